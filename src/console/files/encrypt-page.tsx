// EncryptPage encrypts a file in the page: either to the public keys of keyrings, any one of which opens it, or with a
// keyring's private key.
import type { KeyRing } from '../../api/keyrings.ts';
import type { InputOf } from '../../client/client.ts';
import { maxRings } from '../../client/file-format.ts';
import { type EncryptAnswer, encryptStream } from '../../client/file-streams.ts';
import type { AnsweredRing } from '../../client/recipients.ts';
import { fingerprintOf, isSamePublicKey } from '../../client/ring-keys.ts';
import { KmsError } from '../../errors.ts';
import { FieldProblems } from '../error-text.ts';
import { useRings } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Check, Choice, Field, FileField, JsonField } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { objectIn } from '../parts/object-in.ts';
import { PageHeader } from '../parts/page.tsx';
import { useState } from '../parts/state.ts';
import { Facts, Fingerprint, RingTags } from '../parts/values.tsx';
import type { Session } from '../session.ts';
import { FileJobView, MemoryNote, PrivateKeyFields, useChosen, useFileJob } from './file-job.tsx';
import { encryptedName } from './saving.ts';

type AssetInput = NonNullable<InputOf<'encrypt'>['asset']>;

export function EncryptPage({ api, keeper, session, query }: PageProps) {
  const known = useRings(api);
  const chosen = useChosen();
  const [how, setHow] = useState<'public' | 'private'>('public');
  const [ring, setRing] = useState(query.get('ring') ?? '');
  const [further, setFurther] = useState('');
  const [withAsset, setWithAsset] = useState(false);
  const [sealedTo, setSealedTo] = useState<readonly AnsweredRing[]>([]);
  const [isAccepted, setAccepted] = useState(false);
  const [refused, setRefused] = useState<readonly Shown[]>([]);
  const [job, run] = useFileJob<EncryptAnswer>();
  const isSealed = how === 'public';

  const publicKey = (answered: AnsweredRing, isAccepted: boolean): string => {
    const shown = ringCalled(known, answered.ringname);
    if (shown && !isSamePublicKey(shown.publicKey, answered.publicKey)) throw anotherKey(answered.ringname);
    const ring = { name: answered.ringname.toLowerCase(), publicKey: answered.publicKey };
    if (rememberedAs(ring) === 'changed' && !isAccepted) {
      setRefused((before) => [...before.filter(({ name }) => name !== ring.name), ring]);
      throw changedKey(ring.name);
    }
    remember(ring);
    setSealedTo((before) => [...before, answered]);
    return answered.publicKey;
  };

  const names = [ring.trim(), ...wordsIn(further)].map((name) => name.toLowerCase());
  const told = names.flatMap((name) => ringCalled(known, name) ?? refused.find((each) => each.name === name) ?? []);
  const changed = told.filter((each) => rememberedAs(each) === 'changed');

  const submit = async (values: FormValues): Promise<void> => {
    const rings = ringsIn(values, session);
    if (isSealed && changed.length > 0 && !isAccepted) {
      throw new FieldProblems({ accepted: 'Ask the owner first, and compare the fingerprint with the answer.' });
    }
    const asset = withAsset ? assetIn(values) : undefined;
    if (asset && rings.length > 1) throw new FieldProblems({ withAsset: 'An asset belongs to only one keyring.' });
    const { file, privateKey } = isSealed ? { file: chosen.readFile(), privateKey: [] } : await chosen.read(values);
    const way = isSealed
      ? { ring: rings, publicKey: (answered: AnsweredRing) => publicKey(answered, isAccepted) }
      : { ring: rings.join(), privateKey };
    setSealedTo([]);
    setAccepted(false);
    await run({
      file,
      privateKey,
      name: encryptedName(file.name),
      stream: (signal) => encryptStream({ client: keeper, ...way, signal, ...(asset && { asset }) }),
    });
  };

  return (
    <>
      <PageHeader
        title="Encrypt a file"
        lead={
          <>
            The file is encrypted in this page and sent nowhere: the service only provides what the key is made from.{' '}
            <code>kms decrypt</code> opens the result, and so does this console.
          </>
        }
      />
      <MemoryNote />
      <Form action="Encrypt and save" busy="Encrypting…" onSubmit={submit}>
        <FileField name="file" label="File" isRequired onFile={chosen.onFile} />
        <Choice
          legend="Encrypt with"
          name="how"
          chosen={how}
          onChange={setHow}
          options={[
            {
              value: 'public',
              label: 'The public key of one or more keyrings',
              hint: 'You need no private key for it, and cannot open the file without one.',
            },
            {
              value: 'private',
              label: 'The private key of a keyring',
              hint: 'For programs that cannot read the other kind of file yet.',
            },
          ]}
        />
        <Field
          name="ring"
          label="Keyring"
          value={ring}
          proposals={known.map(({ name }) => name)}
          isRequired
          onInput={setRing}
        />
        {isSealed ? (
          <div key="public">
            <Field
              name="further"
              label="Further keyrings"
              hint={`Names, separated by spaces. Each of the keyrings, at most ${maxRings}, opens the file by itself.`}
              onInput={setFurther}
            />
            <PublicKeys rings={told} />
            {changed.length > 0 && (
              <Check
                key="accepted"
                name="accepted"
                label={`The owner of ${changed.map(({ name }) => name).join(' and ')} told me about the changed public key`}
                hint="This browser then remembers the new one."
                isOn={isAccepted}
                onChange={setAccepted}
              />
            )}
          </div>
        ) : (
          <PrivateKeyFields key="private" onFile={chosen.onKeyFile} />
        )}
        <Check
          name="withAsset"
          label="Attach an asset"
          hint="A record that the service keeps and signs. Decrypting the file tells whether it verifies."
          isOn={withAsset}
          onChange={setWithAsset}
        />
        {withAsset && (
          <div key="asset">
            <JsonField name="data" label="Data of the asset" />
            <Field name="parents" label="Parents" hint="Ids of assets, separated by spaces." />
            <Field name="assetId" label="Asset to update" hint="Its id; leave it empty for a new one." />
          </div>
        )}
      </Form>
      <FileJobView
        job={job}
        doing="Encrypting"
        show={({ asset }) => (
          <>
            {asset && (
              <p>
                The file carries the asset{' '}
                <a href={hrefTo('asset', { id: asset.id })}>
                  <code>{asset.id}</code>
                </a>
                .
              </p>
            )}
            {sealedTo.length > 0 && <p>It is sealed to the public keys with these fingerprints:</p>}
            {sealedTo.length > 0 && <Fingerprints rings={sealedTo.map((to) => ({ ...to, name: to.ringname }))} />}
          </>
        )}
      />
    </>
  );
}

/** The keyrings' public keys before anything is encrypted; the service's response must match them. */
function PublicKeys({ rings }: { readonly rings: readonly Shown[] }) {
  if (rings.length === 0) return null;
  return (
    <section data-note aria-label="Public keys">
      <Fingerprints rings={rings} areNext />
      <p data-hint>
        These are the fingerprints of the public keys. They come from the service, as this page does, so neither would
        reveal a false one: compare them with what the owners of the keyrings say. If you do not trust the service for
        that, use <code>kms encrypt --recipient</code> from a copy of <code>kms</code> that you trust; it remembers
        public keys.
      </p>
    </section>
  );
}

type Shown = Pick<KeyRing, 'name' | 'publicKey'> & Partial<KeyRing>;

/** `areNext`: nothing has been encrypted to them yet. */
function Fingerprints({ rings, areNext }: { readonly rings: readonly Shown[]; readonly areNext?: boolean }) {
  return (
    <Facts
      facts={rings.map((ring) => [
        ring.name,
        <span key="of">
          <Fingerprint of={ring.publicKey} /> <RingTags of={ring} />
          {areNext && <span data-hint>{rememberedWords[rememberedAs(ring)]}</span>}
        </span>,
      ])}
    />
  );
}

const rememberedWords = {
  new: 'New: this browser has not encrypted to this keyring before.',
  same: 'Known: the public key that this browser encrypted to before.',
  changed: 'Changed: this browser encrypted to another public key of this keyring before.',
} as const;

/** Name in `localStorage`, which each tenant's origin has its own of; the value is the fingerprint at the last use. */
const storedName = ({ name }: Shown): string => `kms-public-key.${name}`;

function rememberedAs(ring: Shown): keyof typeof rememberedWords {
  const last = localStorage.getItem(storedName(ring));
  return last === null ? 'new' : last === fingerprintOf(ring.publicKey) ? 'same' : 'changed';
}

function remember(ring: Shown): void {
  localStorage.setItem(storedName(ring), fingerprintOf(ring.publicKey) ?? '');
}

function ringCalled(known: readonly KeyRing[], name: string): KeyRing | undefined {
  return known.find((ring) => ring.name === name.toLowerCase());
}

function anotherKey(name: string): KmsError {
  return new KmsError('refused', `the public key of ${name} is not the one that was shown here`, {
    hint: 'ask its owner whether the key pair was changed, then reload this page',
  });
}

function changedKey(name: string): KmsError {
  return new KmsError('refused', `this browser encrypted to another public key of ${name} before`, {
    hint: 'ask its owner whether the key pair was changed, then confirm it below the fingerprint',
  });
}

/**
 * Names of the chosen keyrings. Throws `FieldProblems` if a flag is missing, a name is repeated, or there are too many.
 */
function ringsIn(values: FormValues, { may }: Session): readonly string[] {
  const further = wordsIn(values.text('further'));
  const rings = [values.text('ring'), ...further];
  for (const [n, ring] of rings.entries()) {
    const field = n === 0 ? 'ring' : 'further';
    const name = ring.toLowerCase();
    if (!may.allows('keyring.encrypt', ring)) {
      throw new FieldProblems({ [field]: `You would need the flag keyring.${name}.encrypt.` });
    }
    if (rings.slice(0, n).some((other) => other.toLowerCase() === name)) {
      throw new FieldProblems({ further: `The keyring ${ring} is listed twice.` });
    }
  }
  if (rings.length <= maxRings) return rings;
  throw new FieldProblems({ further: `There are ${rings.length} keyrings, but a file can have at most ${maxRings}.` });
}

function wordsIn(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

/** The asset in the form; for an update, only the fields that were filled in. */
function assetIn(values: FormValues): AssetInput {
  const assetId = values.text('assetId');
  const parents = [...wordsIn(values.text('parents'))];
  const hasData = values.text('data') !== '';
  return {
    ...(assetId !== '' && { assetId }),
    ...((hasData || assetId === '') && { data: objectIn(values, 'data') }),
    ...(parents.length > 0 && { parents }),
  };
}
