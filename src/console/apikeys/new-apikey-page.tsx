// NewApikeyPage creates an API key: its account, its permissions, and its secret, which is shown once. A key without a
// secret gets other proofs on its own page.
import { useRef } from 'hono/jsx/dom';
import { parseFlags } from '../../model/flags.ts';
import { isRingName } from '../../model/names.ts';
import { FieldProblems } from '../error-text.ts';
import { draftOf, draftProblems, flagsOf, unknownRings } from '../flags/draft.ts';
import { FlagEditor } from '../flags/flag-editor.tsx';
import { useAccountUids, useNamesByResource, useRingNames } from '../known-names.ts';
import { baseUrl, hrefTo, useHold } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { Choice, Field, JsonField } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { toast } from '../parts/messages.tsx';
import { objectIn } from '../parts/object-in.ts';
import { PageHeader } from '../parts/page.tsx';
import { Secret } from '../parts/secret.tsx';
import { useState } from '../parts/state.ts';
import { apikeySnippets } from '../snippets/snippet-texts.ts';
import { Snippets } from '../snippets/snippets.tsx';
import { KeyFields, keyIn } from './key-fields.tsx';

const isAccountId = /^acct_[0-9a-z]{26}$/;

const secretOptions = [
  { value: 'secret', label: 'With a secret', hint: 'It is shown once, and the program keeps it.' },
  {
    value: 'none',
    label: 'Without a secret',
    hint: 'Add on its page what proves it: signed tokens, such as those of CI jobs and pods, or an AWS access key.',
  },
] as const;

interface Made {
  readonly keyid: string;
  readonly secret: string;
  readonly flags: Readonly<Record<string, boolean>>;
}

export function NewApikeyPage({ api, session, navigate, query }: PageProps) {
  const uids = useAccountUids();
  const rings = useRingNames();
  const names = useNamesByResource();
  // The only account is filled in once its name is known, unless something was typed before.
  const account = useRef<string>(query.get('account'));
  const isTyped = useRef(false);
  if (!isTyped.current) account.current ??= onlyOf(uids);
  const [draft, setDraft] = useState(draftOf({}));
  const [kind, setKind] = useState<'secret' | 'none'>('secret');
  const [made, setMade] = useState<Made | undefined>(undefined);

  const create = async (values: FormValues): Promise<void> => {
    const accountId = values.text('accountId');
    const props = objectIn(values, 'props');
    const [problem] = draftProblems(draft);
    if (problem !== undefined) throw new FieldProblems({ flags: problem }, `Flags: ${problem}`);
    const flags = flagsOf(draft);
    const { key, keyid } = await api.createApiKey({
      accountId,
      ...(!isAccountId.test(accountId) && { uid: true }),
      flags,
      props,
      ...keyIn(values),
      ...(kind === 'none' && { secret: false }),
    });
    if (kind === 'secret') return setMade({ keyid, secret: key, flags });
    navigate(hrefTo('apikey', { id: keyid }), 'replace');
    toast('The key has been created.');
  };

  return (
    <>
      <PageHeader title="New API key" back={{ href: hrefTo('apikeys'), title: 'API keys' }} />
      {made ? (
        <SecretStep
          key="secret"
          keyid={made.keyid}
          secret={made.secret}
          flags={made.flags}
          warnings={unknownRings(made.flags, names)}
          rings={[...draft.rings.filter(({ resource }) => resource === 'keyring').map(({ ring }) => ring), ...rings]}
          onDone={() => navigate(hrefTo('apikey', { id: made.keyid }), 'replace')}
        />
      ) : (
        <Form key="form" action="Create the key" busy="Creating it…" needs="apikey.create" onSubmit={create}>
          <Field
            name="accountId"
            label="Account"
            hint={
              <>
                Its UID or its id. <a href={hrefTo('newAccount')}>Create a new account</a>
              </>
            }
            value={account.current ?? ''}
            proposals={[...uids.values()]}
            onInput={() => {
              isTyped.current = true;
            }}
            isRequired
          />
          <KeyFields />
          <Choice
            legend="How do programs prove that they are this key?"
            name="secret"
            options={secretOptions}
            chosen={kind}
            onChange={setKind}
          />
          <h2>What it may do</h2>
          <FlagEditor draft={draft} onChange={setDraft} mine={session.flags} names={names} />
          <details>
            <summary>Properties</summary>
            <JsonField name="props" label="Properties" />
          </details>
        </Form>
      )}
    </>
  );
}

/** The UID of the only account; null if there are more, or none is known. */
function onlyOf(uids: ReadonlyMap<string, string>): string | null {
  const [only = null] = uids.values();
  return uids.size === 1 ? only : null;
}

interface SecretStepProps extends Made {
  readonly warnings: readonly string[];
  /** Keyrings that it may be for, those that its flags name first. */
  readonly rings: readonly string[];
  readonly onDone: () => void;
}

/** Holds the page until the user confirms having saved the secret, which is never shown again. */
function SecretStep({ keyid, secret, flags, warnings, rings, onDone }: SecretStepProps) {
  const release = useHold();
  const keyFile = `${keyid}.key`;
  const { ring, use, snippets } = apikeySnippets({ baseUrl, keyFile }, parseFlags(flags), rings.filter(isRingName));
  return (
    <>
      <section data-panel>
        <h2>The key has been created</h2>
        <p>
          Its id is <code>{keyid}</code>. This is its secret, shown only once: the service keeps only a hash of it. Give
          it only to the program that needs it.
        </p>
        {warnings.map((warning) => (
          <p key={warning} data-note data-tone="warn">
            {warning}
          </p>
        ))}
        <Secret label="Secret of the API key" value={secret} fileName={keyFile} />
        <Button
          onClick={() => {
            release();
            onDone();
          }}
        >
          I have it
        </Button>
      </section>
      <Snippets
        {...{ snippets, keyFile }}
        isSealing={use === 'encrypt'}
        {...(ring !== undefined && use !== 'encrypt' && { privateKeyFile: `${ring}.key` })}
      />
    </>
  );
}
