// RSA with managed keys (RFC 8017): OAEP for encryption, PSS and PKCS #1 v1.5 for signatures. The encodings of
// signatures are made here, so that hashes made elsewhere can be signed; the platform raises them to the power.
import { KmsError } from '../../errors.ts';
import { concatBytes, equalBytes } from '../bytes.ts';
import type { HashName, OaepHash } from '../primitives.ts';
import { digest, digestLengths, digestOf, type Signable } from './digests.ts';
import { modulusBits, modulusLength, platformRsa, type RsaType } from './rsa-keys.ts';

export type RsaHash = Exclude<HashName, 'sha2-224'>;

export type RsaPadding = 'pss' | 'pkcs1v15';

/** Length of PSS's salt in bytes, as long as the hash, or as long as fits; for verification also any length. */
export type SaltLength = number | 'hash' | 'longest';

export interface RsaScheme {
  readonly padding: RsaPadding;
  readonly hash: RsaHash;
  /** For PSS; `hash` by default. */
  readonly saltLength?: SaltLength | 'any' | undefined;
}

const oaepHashLengths: Readonly<Record<OaepHash, number>> = { ...digestLengths, sha1: 20 };

/** The longest message that OAEP encrypts, in bytes. */
export function longestOaepMessage(type: RsaType, hash: OaepHash): number {
  return modulusLength(type) - 2 * oaepHashLengths[hash] - 2;
}

/** Encrypts to a public key, SPKI DER. Throws `invalid` for a message that is too long. */
export function oaepEncrypt(
  type: RsaType,
  publicKey: Uint8Array,
  hash: OaepHash,
  message: Uint8Array,
  label: Uint8Array,
): Uint8Array {
  const most = longestOaepMessage(type, hash);
  if (message.length > most) {
    throw new KmsError(
      'invalid',
      `plaintext: expected at most ${most} bytes for ${type} with OAEP and ${hash}, got ${message.length}`,
    );
  }
  const { oaepEncrypt: encrypt } = platformRsa();
  return ofType(type, () => encrypt(publicKey, hash, label, message));
}

/** The platform's result, as long as the modulus. Throws `invalid` if it has none: the key is of another type. */
function ofType(type: RsaType, operate: () => Uint8Array): Uint8Array {
  let cause: unknown;
  try {
    const result = operate();
    if (result.length === modulusLength(type)) return result;
  } catch (error) {
    cause = error;
  }
  throw new KmsError('invalid', `expected a key of the type ${type}`, { cause });
}

/** The message; undefined for anything that was not encrypted to this key with this hash and label. */
export function oaepDecrypt(
  type: RsaType,
  key: Uint8Array,
  hash: OaepHash,
  sealed: Uint8Array,
  label: Uint8Array,
): Uint8Array | undefined {
  const { oaepDecrypt: decrypt } = platformRsa();
  return sealed.length === modulusLength(type) ? decrypt(key, hash, label, sealed) : undefined;
}

/** A signature as long as the modulus. Throws `invalid` for a digest or salt of a length that does not fit. */
export function rsaSign(
  type: RsaType,
  key: Uint8Array,
  input: Signable,
  { padding, hash, saltLength = 'hash' }: RsaScheme,
  random: (length: number) => Uint8Array,
): Uint8Array {
  const hashed = digestOf(hash, input);
  const { privateOperation } = platformRsa();
  if (padding === 'pkcs1v15') return ofType(type, () => privateOperation(key, pkcs1Block(type, hash, hashed)));
  if (saltLength === 'any') throw new KmsError('invalid', 'saltLength: expected the length of the salt to make');
  const salt = random(saltBytes(type, hash, saltLength));
  return ofType(type, () => privateOperation(key, pssBlock(type, hash, hashed, salt)));
}

/** Whether the signature is valid; also false for a malformed one. Throws as `rsaSign` does. */
export function rsaVerify(
  type: RsaType,
  publicKey: Uint8Array,
  input: Signable,
  { padding, hash, saltLength = 'hash' }: RsaScheme,
  signature: Uint8Array,
): boolean {
  const hashed = digestOf(hash, input);
  const salt = saltLength === 'any' ? undefined : saltBytes(type, hash, saltLength);
  const { publicOperation } = platformRsa();
  if (signature.length !== modulusLength(type)) return false;
  const block = publicOperation(publicKey, signature);
  if (block?.length !== signature.length) return false;
  if (padding === 'pss') return isPssBlock(type, hash, hashed, block, salt);
  return equalBytes(block, pkcs1Block(type, hash, hashed));
}

/** DER of DigestInfo up to the hash (RFC 8017 §9.2 note 1). */
const digestInfos: Readonly<Record<RsaHash, Uint8Array>> = {
  'sha2-256': digestInfo(0x01, 32),
  'sha2-384': digestInfo(0x02, 48),
  'sha2-512': digestInfo(0x03, 64),
};

function digestInfo(hash: number, length: number): Uint8Array {
  return Uint8Array.of(
    ...[0x30, 0x11 + length, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, hash],
    ...[0x05, 0x00, 0x04, length],
  );
}

/** EMSA-PKCS1-v1_5 (RFC 8017 §9.2). */
function pkcs1Block(type: RsaType, hash: RsaHash, hashed: Uint8Array): Uint8Array {
  const block = new Uint8Array(modulusLength(type)).fill(0xff);
  const info = concatBytes(digestInfos[hash], hashed);
  block.set([0x00, 0x01]);
  block[block.length - info.length - 1] = 0x00;
  block.set(info, block.length - info.length);
  return block;
}

function saltBytes(type: RsaType, hash: RsaHash, wanted: SaltLength): number {
  const longest = modulusLength(type) - digestLengths[hash] - 2;
  if (wanted === 'longest') return longest;
  if (wanted === 'hash') return digestLengths[hash];
  if (Number.isInteger(wanted) && wanted >= 0 && wanted <= longest) return wanted;
  throw new KmsError('invalid', `saltLength: expected 0 to ${longest} bytes for ${type} with ${hash}, got ${wanted}`);
}

/** EMSA-PSS-ENCODE (RFC 8017 §9.1.1), MGF1 with the same hash. The modulus has whole bytes, so one bit stays unused. */
function pssBlock(type: RsaType, hash: RsaHash, hashed: Uint8Array, salt: Uint8Array): Uint8Array {
  const length = modulusLength(type);
  const h = digest(hash, concatBytes(new Uint8Array(8), hashed, salt));
  const db = new Uint8Array(length - h.length - 1);
  db[db.length - salt.length - 1] = 0x01;
  db.set(salt, db.length - salt.length);
  mask(hash, h, db);
  db[0] = (db[0] ?? 0) & 0x7f;
  return concatBytes(db, h, Uint8Array.of(0xbc));
}

/** EMSA-PSS-VERIFY (RFC 8017 §9.1.2); `saltLength` undefined takes any. */
function isPssBlock(
  type: RsaType,
  hash: RsaHash,
  hashed: Uint8Array,
  block: Uint8Array,
  saltLength: number | undefined,
): boolean {
  const end = modulusBits[type] / 8 - 1;
  const start = end - digestLengths[hash];
  const h = block.subarray(start, end);
  if (block[end] !== 0xbc || (block[0] ?? 0) > 0x7f) return false;
  const db = block.slice(0, start);
  mask(hash, h, db);
  db[0] = (db[0] ?? 0) & 0x7f;
  const one = db.findIndex((byte) => byte !== 0);
  if (one < 0 || db[one] !== 0x01) return false;
  const salt = db.subarray(one + 1);
  if (saltLength !== undefined && salt.length !== saltLength) return false;
  return equalBytes(digest(hash, concatBytes(new Uint8Array(8), hashed, salt)), h);
}

/** XORs the bytes with MGF1 of the seed (RFC 8017 appendix B.2.1). */
function mask(hash: RsaHash, seed: Uint8Array, bytes: Uint8Array): void {
  const input = concatBytes(seed, new Uint8Array(4));
  const counter = new DataView(input.buffer, seed.length);
  for (let at = 0, n = 0; at < bytes.length; n++) {
    counter.setUint32(0, n);
    for (const byte of digest(hash, input)) {
      if (at === bytes.length) break;
      bytes[at] = (bytes[at] ?? 0) ^ byte;
      at++;
    }
  }
}
