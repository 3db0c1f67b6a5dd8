// Sealing and opening files of version 2: a file key that each of up to 20 rings opens, made with a share from the
// appliance and without the rings' private keys. The caller decides which public key a file is sealed to, never the
// appliance alone.
import { fromBase64, fromBase64Url } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { isKnownKem, kemIds, openFileKey, openSecret, sealFileKey } from '../crypto/recipient.ts';
import { type ErrorCode, KmsError } from '../errors.ts';
import { fileFault, maxRings, type Prelude, type Stanza } from './file-format.ts';
import type { AnswerTo, InputOf } from './methods.ts';
import { isSamePublicKey, publicKeyBytes, type RingPrivateKey } from './ring-keys.ts';

/** The appliance's answer about a ring to encrypt for. */
export interface AnsweredRing {
  /** Name as requested. */
  readonly ringname: string;
  readonly ringId: string;
  /** Base64 of SPKI DER. */
  readonly publicKey: string;
}

/**
 * The public key of the ring, as PEM or base64, or a function that gets the appliance's answer and returns the key
 * known for this ring, or, on first use, the answered key, which it remembers.
 */
export type PublicKey = string | ((answered: AnsweredRing) => string | Promise<string>);

interface RecipientInput {
  readonly rings: readonly string[];
  readonly publicKey: PublicKey;
  readonly asset: InputOf<'encrypt'>['asset'] | undefined;
  readonly ask: (input: InputOf<'encrypt'>) => Promise<AnswerTo<'encrypt'>>;
  /** Default: the platform's secure generator. */
  readonly random?: ((length: number) => Uint8Array) | undefined;
}

interface SealedToRings {
  /** Answers without their shares, which are not kept. */
  readonly answers: readonly AnswerTo<'encrypt'>[];
  readonly stanzas: readonly Stanza[];
  /** Wipe after use. */
  readonly fileKey: Uint8Array;
}

/**
 * Makes a file key and seals it to each of the rings. Throws `refused` if the appliance has another public key than the
 * caller, `invalid` for no ring, too many, duplicates, or an asset with more than one ring, and what `ask` throws. With
 * several rings, an error names its ring.
 */
export async function sealToRings({
  rings,
  publicKey,
  asset,
  ask,
  random = systemRandom,
}: RecipientInput): Promise<SealedToRings> {
  if (rings.length < 1 || rings.length > maxRings) {
    throw new KmsError('invalid', `ring: expected 1 to ${maxRings} rings, got ${rings.length}`);
  }
  if (new Set(rings.map((ring) => ring.toLowerCase())).size < rings.length) {
    throw new KmsError('invalid', 'ring: expected each ring once');
  }
  if (asset && rings.length > 1) {
    throw new KmsError('invalid', 'asset: an asset belongs to one ring, and the file is for several');
  }
  const fileKey = random(32);
  const answers: AnswerTo<'encrypt'>[] = [];
  const stanzas: Stanza[] = [];
  for (const ringname of rings) {
    const asked = ask({ ringname, recipient: true, ...(asset && { asset }) });
    const { share: told, ...answer } = await asked.catch((error: unknown) => {
      if (rings.length < 2 || !isOfOneRing(error)) throw error;
      throw new KmsError(error.code, `${ringname}: ${error.message}`, { ...error, cause: error });
    });
    const share = bytes32(told);
    // A header's second byte holds its flags: docs/formats.md.
    const flags = fromBase64Url(`${answer.header}`)?.[1] ?? 0;
    if (!share || answer.publicKey === undefined || !(flags & 2)) {
      throw new KmsError('unavailable', 'the appliance does not know how to encrypt without the private key', {
        hint: 'upgrade it, or encrypt with the private key',
      });
    }
    const { header, ringId, publicKey: answered } = answer;
    const key = await checkedKey(publicKey, { ringname, ringId, publicKey: answered });
    stanzas.push({
      header,
      ...(await sealFileKey({ header, publicKey: key, share, fileKey, isOffline: (flags & 4) !== 0, random })),
    });
    share.fill(0);
    answers.push(answer);
  }
  return { answers, stanzas, fileKey };
}

/** The caller's public key as raw bytes, once the appliance's is the same. */
async function checkedKey(publicKey: PublicKey, answered: AnsweredRing): Promise<Uint8Array> {
  const told = typeof publicKey === 'function' ? await publicKey(answered) : publicKey;
  // Untyped programs may pass anything.
  const known = typeof told === 'string' ? publicKeyBytes(told) : undefined;
  if (!known) {
    throw new KmsError('invalid', `publicKey: expected PEM or base64 of a public key, of ${answered.ringname}`, {
      hint: 'the ring shows it: `kms keyring show NAME`',
    });
  }
  if (isSamePublicKey(told, answered.publicKey)) return known;
  throw new KmsError(
    'refused',
    `the appliance has another public key for the keyring ${answered.ringname} than the one that is known`,
    {
      hint: 'nothing was encrypted: ask the owner of the keyring whether its key pair was changed, and only then give the new one',
    },
  );
}

interface OpenInput {
  /** Asks the appliance for the header's share. */
  readonly ask: (header: string) => Promise<AnswerTo<'decrypt'>>;
  /** The private keys, if they are known before the appliance has named the ring. */
  readonly given: readonly RingPrivateKey[] | undefined;
  readonly privateKeysOf: (answer: AnswerTo<'decrypt'>) => Promise<readonly RingPrivateKey[]>;
}

interface Opened {
  /** Answer without the share. */
  readonly answer: AnswerTo<'decrypt'>;
  /** Wipe after use. */
  readonly fileKey: Uint8Array;
}

const ofOneRing: readonly ErrorCode[] = ['forbidden', 'not-found', 'invalid', 'refused', 'quota', 'corrupt'];

/** Whether the error concerns only one ring: another may still open the file. */
function isOfOneRing(error: unknown): error is KmsError {
  return error instanceof KmsError && ofOneRing.includes(error.code);
}

/**
 * Opens the file key by the first ring for which both the private key and the appliance's share are available. The
 * appliance is not asked about rings that the given private keys do not open, nor about unknown KEMs. Throws the ring's
 * error, or one that sums up the errors of all rings.
 */
export async function openByRing(
  { stanzas }: Pick<Prelude, 'stanzas'>,
  { ask, given, privateKeysOf }: OpenInput,
): Promise<Opened> {
  const known = stanzas.filter(({ kem }) => isKnownKem(kem));
  if (known.length === 0) throw fileFault('unknown-version');
  const candidates = given ? await openedBy(known, given) : known;
  const failures: KmsError[] = [];
  for (const stanza of candidates) {
    try {
      const { share: told, ...answer } = await ask(stanza.header);
      const secret = await secretOf(stanza, given ?? (await privateKeysOf(answer)));
      if (!secret) throw fileFault('wrong-private-key');
      const share = bytes32(told);
      if (!share) throw fileFault('bad-header');
      const fileKey = await openFileKey(stanza.header, stanza.wrapped, { ...secret, share });
      if (!fileKey) throw fileFault('wrong-key');
      return { answer, fileKey };
    } catch (error) {
      if (!isOfOneRing(error)) throw error;
      failures.push(error);
    }
  }
  throw allOf(failures, stanzas.length > known.length);
}

/** Opens the file key by the private key alone. Throws `refused` if no ring that it opens allows that. */
export async function openOffline(
  { stanzas }: Pick<Prelude, 'stanzas'>,
  privateKeys: readonly RingPrivateKey[],
): Promise<{ readonly header: string; readonly fileKey: Uint8Array }> {
  let isOpened = stanzas.length === 0;
  if (!isOpened && !stanzas.some(({ kem }) => isKnownKem(kem))) throw fileFault('unknown-version');
  for (const stanza of stanzas) {
    const parts = await secretOf(stanza, privateKeys);
    if (parts) isOpened = true;
    if (!parts?.share) continue;
    const fileKey = await openFileKey(stanza.header, stanza.wrapped, { ...parts, share: parts.share });
    if (!fileKey) throw fileFault('wrong-key');
    return { header: stanza.header, fileKey };
  }
  if (!isOpened) throw fileFault('wrong-private-key');
  throw new KmsError('refused', 'this file does not open without the appliance', {
    hint: 'only what was encrypted without the private key, while the ring was configured with offlineDecrypt, does',
  });
}

async function openedBy(
  stanzas: readonly Stanza[],
  privateKeys: readonly RingPrivateKey[],
): Promise<readonly Stanza[]> {
  const opened = await Promise.all(stanzas.map((stanza) => secretOf(stanza, privateKeys)));
  return stanzas.filter((_, n) => opened[n]);
}

async function secretOf({ header, ...sealed }: Stanza, privateKeys: readonly RingPrivateKey[]) {
  for (const { kem, bytes } of privateKeys) {
    if (kem !== undefined && kemIds[kem] !== sealed.kem) continue;
    const secret = await openSecret(header, sealed, bytes);
    if (secret) return secret;
  }
  return undefined;
}

function allOf(failures: readonly KmsError[], isOneUnknown: boolean): KmsError {
  const [first = fileFault('wrong-private-key'), ...others] = failures;
  if (!others[0] && !isOneUnknown) return first;
  const reasons = [...new Set(failures.map(({ message }) => message))].join('; ');
  const message = others[0] ? `none of the file's rings opens it: ${reasons}` : first.message;
  const hint = isOneUnknown ? 'a newer version of kms knows the KEM of another of its rings' : first.hint;
  return new KmsError(first.code, message, { hint, cause: first });
}

function bytes32(base64: string | undefined): Uint8Array | undefined {
  const bytes = fromBase64(`${base64}`);
  return bytes?.length === 32 ? bytes : undefined;
}
