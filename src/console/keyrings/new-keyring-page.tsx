// NewKeyringPage creates a keyring. Its key pair is generated in the browser: the public key goes to the appliance, and
// the private key to the user and nowhere else.
import type { Child } from 'hono/jsx/dom';
import type { KeyRing } from '../../api/keyrings.ts';
import { generateRingKey, kemOfPublicKey } from '../../client/ring-keys.ts';
import { isJsonObject } from '../../model/json.ts';
import type { Kem } from '../../model/kems.ts';
import { isRingName } from '../../model/names.ts';
import { FieldProblems } from '../error-text.ts';
import { baseUrl, hrefTo, useHold } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink, CancelButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Check, Choice, Field, JsonField, TextArea } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { toast } from '../parts/messages.tsx';
import { objectIn } from '../parts/object-in.ts';
import { PageHeader } from '../parts/page.tsx';
import { Secret } from '../parts/secret.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { NewManagedKey, nameRule } from './new-managed-key.tsx';

interface Made {
  readonly ring: KeyRing;
  readonly privateKey: string;
}

type Kind = 'keyring' | 'key' | 'asym';

const kinds = [
  { value: 'keyring', label: 'Keyring', hint: 'Its private key stays with you; the service cannot use its keys.' },
  {
    value: 'key',
    label: 'Managed key',
    hint: 'The service holds the key and works with it, for software that cannot do that itself.',
  },
  { value: 'asym', label: 'Asymmetric keyring', hint: 'Each of its keys is a key pair.' },
] as const;

export function NewKeyringPage(props: PageProps) {
  const asked = props.query.get('kind');
  const [kind, setKind] = useState<Kind>(kinds.find(({ value }) => value === asked)?.value ?? 'keyring');
  return (
    <>
      <PageHeader
        title={kind === 'key' ? 'New managed key' : 'New keyring'}
        back={
          kind === 'key'
            ? { href: hrefTo('managedKeys'), title: 'Managed keys' }
            : { href: hrefTo('keyrings'), title: 'Keyrings' }
        }
      />
      <div data-form>
        <Choice legend="Who uses its keys" name="kind" chosen={kind} onChange={setKind} options={kinds} />
      </div>
      {kind === 'keyring' && <NewKeyring key="keyring" {...props} />}
      {kind === 'key' && <NewManagedKey key="key" {...props} />}
      {kind === 'asym' && (
        <p key="asym">
          <ButtonLink href={hrefTo('asym')} needs="asym.create">
            Go on to the asymmetric keyrings
          </ButtonLink>
        </p>
      )}
    </>
  );
}

function NewKeyring({ api, navigate }: PageProps) {
  const [kem, setKem] = useState<Kem>('mlkem768-x25519');
  const [pair, setPair] = useState<'here' | 'elsewhere'>('here');
  const [made, setMade] = useState<Made | undefined>(undefined);
  const open = ({ name }: KeyRing): void => navigate(hrefTo('keyring', { name }), 'replace');

  const create = async (values: FormValues): Promise<void> => {
    const name = values.text('name');
    if (!isRingName(name)) throw new FieldProblems({ name: nameRule });
    const fields = { name, props: objectIn(values, 'props'), keyProps: objectIn(values, 'keyProps') };
    if (pair === 'elsewhere') {
      const publicKey = values.text('publicKey');
      if (!kemOfPublicKey(publicKey)) throw new FieldProblems({ publicKey: 'This is not a public key for a keyring.' });
      const { ring } = await api.createKeyring({ ...fields, publicKey });
      toast(`The keyring ${ring.displayName} has been created.`);
      open(ring);
      return;
    }
    const { publicKey, privateKey } = generateRingKey(kem);
    const { ring } = await api.createKeyring({ ...fields, publicKey });
    setMade({ ring, privateKey });
  };

  return (
    <>
      {made && (
        <PrivateKeyStep
          {...made}
          notice={<NewKeyringNotice name={made.ring.displayName} origin="made in your browser" />}
          onDone={() => open(made.ring)}
        />
      )}
      <Form action="Create the keyring" busy="Creating it…" needs="keyring.create" onSubmit={create}>
        <Field name="name" label="Name" hint={nameRule} isRequired />
        <Choice
          legend="Key pair"
          name="pair"
          chosen={pair}
          onChange={setPair}
          options={[
            {
              value: 'here',
              label: 'Make it in this browser',
              hint: 'The private key is shown once for you to save, and does not leave this page.',
            },
            {
              value: 'elsewhere',
              label: 'I have made one elsewhere',
              hint: 'Enter its public key; the private key stays where it is.',
            },
          ]}
        />
        {pair === 'here' && (
          <Choice
            legend="Kind"
            name="kem"
            chosen={kem}
            onChange={setKem}
            options={[
              {
                value: 'mlkem768-x25519',
                label: 'Hybrid (ML-KEM-768 and X25519)',
                hint: 'A quantum computer will not be able to open what is recorded today.',
              },
              {
                value: 'x25519',
                label: 'X25519',
                hint: 'For programs in languages whose libraries do not support the other kind yet.',
              },
            ]}
          />
        )}
        {pair === 'elsewhere' && (
          <TextArea
            name="publicKey"
            label="Public key"
            hint="X25519 or MLKEM768-X25519, as PEM, base64 of SPKI DER, or base64 of the bytes."
            isRequired
            isCode
          />
        )}
        <details>
          <summary>Properties</summary>
          <JsonField name="props" label="Properties of the keyring" />
          <JsonField name="keyProps" label="Properties of its keys" />
        </details>
      </Form>
    </>
  );
}

interface PrivateKeyStepProps {
  readonly ring: { readonly name: string; readonly displayName: string };
  /** PEM. */
  readonly privateKey: string;
  /** Text on which ring it belongs to, where it comes from, and what happens next. */
  readonly notice: Child;
  readonly fileName?: string;
  /** The folder in which the command `kms` looks for the private key. */
  readonly folder?: 'rings' | 'asym';
  readonly action?: string;
  /** The action that the saved key allows. If it throws, the key stays on screen. */
  readonly work?: () => Promise<void>;
  readonly onDone: () => void;
  /** Present while nothing has been created yet, so that the user can cancel. */
  readonly onCancel?: () => void;
}

/** The appliance's id, by which `kms` separates keys of several appliances; `kms status` shows it. */
async function applianceId(signal: AbortSignal): Promise<string> {
  const body: unknown = await (await fetch(`${baseUrl}/readyz`, { signal })).json();
  return isJsonObject(body) && typeof body.appliance === 'string' ? body.appliance : '…';
}

/** Shows the only copy of a private key; the user has to save it before they can continue. */
export function PrivateKeyStep(props: PrivateKeyStepProps) {
  const { ring, privateKey, notice, fileName = `${ring.name}.key`, folder = 'rings', action = 'Done' } = props;
  const { work, onDone, onCancel } = props;
  const [isTaken, setTaken] = useState(false);
  const release = useHold();
  const answer = useAnswer(applianceId);
  const appliance = answer.is === 'ready' ? answer.value : '…';
  return (
    <Dialog title="Save the private key now">
      <p>
        {notice} The private key is shown only once, and <strong>nobody can get it back for you</strong>.
      </p>
      <Secret
        label={`Private key of ${ring.displayName}`}
        value={privateKey}
        fileName={fileName}
        onTaken={() => setTaken(true)}
      />
      <p>
        <small>
          The command <code>kms</code> looks for it at{' '}
          <code data-any>
            ~/.config/kms/{folder}/{appliance}/{ring.name}.key
          </code>
          . Let nobody else read the file.
        </small>
      </p>
      <Form
        action={action}
        onSubmit={async () => {
          if (!isTaken) throw new FieldProblems({ saved: 'Copy the key or save it as a file first.' });
          await work?.();
          release();
          onDone();
        }}
        beside={
          onCancel && (
            <CancelButton
              onClick={() => {
                release();
                onCancel();
              }}
            />
          )
        }
      >
        <Check name="saved" label="I have saved the private key where I will find it" isRequired />
      </Form>
    </Dialog>
  );
}

/** Text for the private key of a ring that has been created. */
export function NewKeyringNotice({ name, origin }: { readonly name: string; readonly origin: string }) {
  return (
    <>
      The keyring <strong>{name}</strong> has been created. This is its private key, {origin}. You need it to encrypt
      and to decrypt.
    </>
  );
}
