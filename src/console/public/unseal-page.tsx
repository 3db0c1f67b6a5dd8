// UnsealPage takes what unseals the service: a passphrase, a key, or shares, each from its holder.
import { useEffect, useRef } from 'hono/jsx/dom';
import type { SealStatus, UnsealStep } from '../../api/system.ts';
import { errorOfAnswer, errorOfFailure } from '../../client/failure.ts';
import { KmsError } from '../../errors.ts';
import { typedStep } from '../../model/custodian-kinds.ts';
import { isJsonObject } from '../../model/json.ts';
import { FieldProblems } from '../error-text.ts';
import { baseUrl, guidesUrl } from '../navigation.ts';
import { Field } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { announce } from '../parts/messages.tsx';
import { MessagePage } from '../parts/page.tsx';
import { useState } from '../parts/state.ts';

/** Milliseconds between polls, since shares may also be entered elsewhere. */
const lookEvery = 10_000;

export function UnsealPage() {
  const [status, setStatus] = useState<SealStatus | undefined>(undefined);
  const [turn, setTurn] = useState(0);
  const form = useRef<HTMLDivElement>(null);
  const see = (now: SealStatus): void => {
    if (!now.sealed) window.location.reload();
    setStatus(now);
  };
  useEffect(() => {
    // The form is usable even without a response.
    const look = (): void => void ask('GET', '/system/seal-status').then(see, () => {});
    look();
    const timer = setInterval(look, lookEvery);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => form.current?.querySelector('input')?.focus(), [turn]);

  const submit = async (text: string): Promise<void> => {
    try {
      const now = await ask('POST', '/system/unseal', typedStep(text));
      announce(now.sealed ? progressText(now) : 'The service is unsealed.');
      see(now);
      setTurn(turn + 1);
    } catch (error) {
      if (!(error instanceof KmsError) || error.code === 'unavailable') throw error;
      throw new FieldProblems({ secret: `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.` });
    }
  };

  return (
    <MessagePage title="The service is sealed" isFirst>
      <p>Its keys are out of reach, and nobody can use it, until somebody enters what opens it{waysText(status)}.</p>
      {status?.threshold !== undefined && (
        <p role="status" data-note>
          {progressText(status)}
        </p>
      )}
      <div ref={form}>
        <Form key={turn} action="Unseal" busy="Trying it…" onSubmit={(values) => submit(values.text('secret'))}>
          <Field
            name="secret"
            label={fieldLabel(status)}
            type="password"
            hint="It is sent only to this service, and kept nowhere. The service recognises its kind by its form."
            isRequired
          />
        </Form>
      </div>
      <p data-links>
        <small>
          On the machine of the service, <code>kms unseal</code> does the same, and also looks again where the key is
          kept. <a href={`${guidesUrl}/custody`}>The guide to the master key</a> says where it may be.
        </small>
      </p>
    </MessagePage>
  );
}

/** The secret to type for each kind of custodian; other kinds have none. */
const names: Readonly<Record<string, { readonly text: string; readonly label: string }>> = {
  passphrase: { text: 'the passphrase', label: 'Passphrase' },
  shares: { text: 'shares', label: 'Share' },
  keyfile: { text: 'the content of the key file', label: 'Content of the key file' },
  'recovery-kit': { text: 'the code of the recovery kit', label: 'Code of the recovery kit' },
};

function namesOf(status: SealStatus | undefined) {
  return (status?.kinds ?? []).map((kind) => names[kind]).filter((name) => name !== undefined);
}

function waysText(status: SealStatus | undefined): string {
  const ways = namesOf(status).map(({ text }) => text);
  const last = ways.pop();
  if (last === undefined) return '';
  return ways.length === 0 ? `: ${last}` : `: ${ways.join(', ')} or ${last}`;
}

function fieldLabel(status: SealStatus | undefined): string {
  const [only, ...others] = namesOf(status);
  return only && others.length === 0 ? only.label : 'Passphrase, share or key';
}

function progressText({ progress = 0, threshold = 0 }: SealStatus): string {
  const given = progress === 1 ? '1 share is given' : `${progress} shares are given`;
  const missing = threshold - progress;
  return `${given}, ${missing} more ${missing === 1 ? 'is' : 'are'} needed.`;
}

/** Throws the appliance's error. */
async function ask(method: string, path: string, step?: UnsealStep): Promise<SealStatus> {
  let response: Response;
  try {
    response = await fetch(baseUrl + path, {
      method,
      signal: AbortSignal.timeout(60_000),
      ...(step && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(step) }),
    });
  } catch (cause) {
    throw errorOfFailure(cause, baseUrl);
  }
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok || !isJsonObject(answer)) throw errorOfAnswer(response, answer, baseUrl);
  // Cast: the appliance's response is declared.
  return answer as unknown as SealStatus;
}
