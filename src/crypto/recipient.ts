// A file's key sealed to one ring, in version 2 of the kms file format. It is wrapped under a key derived from two
// parts: a secret that HPKE seals to the ring's public key, and the appliance's share. All of it is bound to the
// header. See docs/file-format.md.
import { bulkGcm } from './aead.ts';
import { concatBytes, utf8 } from './bytes.ts';
import { hkdfSha256 } from './hash.ts';
import { type HpkeKem, setupRecipient, setupSender } from './hpke.ts';
import { xWingKem, xWingPublicKeyLength } from './x-wing.ts';

const partLength = 32;
const tagLength = 16;
/** Nonce for wrapping a file key: all zeros, since each wrapping key is used once. */
const nonce = new Uint8Array(12);
/** Length of a wrapped file key in bytes. */
export const wrappedLength = partLength + tagLength;

interface KnownKem {
  readonly encLength: number;
  /** Undefined for HPKE's default KEM. */
  readonly kem?: HpkeKem;
}

/** KEM ids in HPKE: DHKEM(X25519, HKDF-SHA256) and MLKEM768-X25519. */
export const kemIds = { x25519: 0x0020, 'mlkem768-x25519': 0x647a } as const;

const kems = new Map<number, KnownKem>([
  [kemIds.x25519, { encLength: 32 }],
  [kemIds['mlkem768-x25519'], { encLength: xWingKem.encLength, kem: xWingKem }],
]);

export interface SealedFileKey {
  /** The HPKE id of the KEM. */
  readonly kem: number;
  /** Encapsulated key and ciphertext of the secret, and of the share if the ring's files open offline. */
  readonly sealed: Uint8Array;
  /** 48 bytes. */
  readonly wrapped: Uint8Array;
}

interface SealInput {
  readonly header: string;
  /** Raw bytes, X25519 or X-Wing. */
  readonly publicKey: Uint8Array;
  /** 32 bytes each. */
  readonly share: Uint8Array;
  readonly fileKey: Uint8Array;
  /** Whether the share is sealed too. */
  readonly isOffline: boolean;
  readonly random: (length: number) => Uint8Array;
}

/** Seals a file key to a ring's public key. Throws `invalid` for a key that is malformed or of low order. */
export async function sealFileKey(input: SealInput): Promise<SealedFileKey> {
  const { header, publicKey, share, fileKey, isOffline, random } = input;
  const id = kemIds[publicKey.length === xWingPublicKeyLength ? 'mlkem768-x25519' : 'x25519'];
  const secret = random(partLength);
  const plaintext = isOffline ? concatBytes(secret, share) : secret;
  const { enc, key, baseNonce } = setupSender(publicKey, infoOf(header), random, undefined, kems.get(id)?.kem);
  const ciphertext = new Uint8Array(await (await bulkGcm(key)).seal(baseNonce, plaintext));
  const cipher = await bulkGcm(wrappingKey(header, { secret, share }));
  const wrapped = new Uint8Array(await cipher.seal(nonce, fileKey));
  secret.fill(0);
  return { kem: id, sealed: concatBytes(enc, ciphertext), wrapped };
}

/** Whether this program supports the KEM. */
export function isKnownKem(id: number): boolean {
  return kems.has(id);
}

/** Whether this many sealed bytes can be from that KEM; true for any number if the KEM is unknown. */
export function fitsKem(id: number, sealedLength: number): boolean {
  const known = kems.get(id);
  const content = sealedLength - (known?.encLength ?? 0) - tagLength;
  return known === undefined || content === partLength || content === 2 * partLength;
}

interface OpenedSecret {
  readonly secret: Uint8Array;
  /** Present if the writer sealed it. */
  readonly share?: Uint8Array;
}

/** Undefined if the private key (32 bytes) is wrong, anything was altered, or the KEM is unknown. */
export async function openSecret(
  header: string,
  { kem: id, sealed }: Pick<SealedFileKey, 'kem' | 'sealed'>,
  privateKey: Uint8Array,
): Promise<OpenedSecret | undefined> {
  const known = kems.get(id);
  if (!known) return undefined;
  const [enc, ciphertext] = [sealed.subarray(0, known.encLength), sealed.subarray(known.encLength)];
  const context = setupRecipient(privateKey, enc, infoOf(header), undefined, known.kem);
  const bytes = context && (await opened(context.key, context.baseNonce, ciphertext));
  if (bytes?.length === partLength) return { secret: bytes };
  if (bytes?.length !== 2 * partLength) return undefined;
  return { secret: bytes.subarray(0, partLength), share: bytes.subarray(partLength) };
}

/** Undefined if the share is wrong or the wrapped key was altered. */
export async function openFileKey(
  header: string,
  wrapped: Uint8Array,
  parts: Required<OpenedSecret>,
): Promise<Uint8Array | undefined> {
  return opened(wrappingKey(header, parts), nonce, wrapped);
}

/** Uses Web Crypto, which clients have anyway. */
async function opened(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array): Promise<Uint8Array | undefined> {
  const { open } = await bulkGcm(key);
  return open(nonce, sealed).then(
    (bytes) => new Uint8Array(bytes),
    () => undefined,
  );
}

/** The header is bound by HPKE's `info`, since not every library accepts associated data too. */
function infoOf(header: string): Uint8Array {
  return utf8(`kms/file/recipient/v2 ${header}`);
}

function wrappingKey(header: string, { secret, share }: Required<OpenedSecret>): Uint8Array {
  return hkdfSha256(concatBytes(secret, share), `kms/file/wrap/v2 ${header}`, 32);
}
