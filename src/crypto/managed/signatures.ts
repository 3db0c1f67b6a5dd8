// Signatures by managed keys of every type that signs, behind one pair of functions. Options that a type has not are
// refused, so that no caller believes in a hash or padding that was not used.
import { KmsError } from '../../errors.ts';
import { ed25519FromSpki, ed25519Sign, ed25519Verify } from '../ed25519.ts';
import type { EcType, HashName } from '../primitives.ts';
import type { Signable } from './digests.ts';
import { ecdsaSign, ecdsaVerify, type SignatureEncoding } from './ecdsa.ts';
import { type MlDsaType, mlDsaSignWith, mlDsaVerifyWith } from './ml-dsa-keys.ts';
import { type RsaPadding, type RsaScheme, rsaSign, rsaVerify, type SaltLength } from './rsa.ts';
import type { RsaType } from './rsa-keys.ts';

export type SigningType = RsaType | EcType | MlDsaType | 'ed25519';

/** How to sign: RSA needs a hash and a padding, ECDSA a hash; Ed25519 and ML-DSA have no choice. */
export interface SignatureOptions {
  readonly hash?: HashName | undefined;
  readonly padding?: RsaPadding | undefined;
  /** PSS only; as long as the hash by default. `any` is for verification. */
  readonly saltLength?: SaltLength | 'any' | undefined;
  /** ECDSA only; DER by default. */
  readonly encoding?: SignatureEncoding | undefined;
}

const isRsa = (type: SigningType): type is RsaType => type.startsWith('rsa-');
const isEc = (type: SigningType): type is EcType => type.startsWith('ecdsa-');

/** Signs with the private key in the form in which it is kept. Throws `invalid` for input that does not fit. */
export function signWithKey(
  type: SigningType,
  key: Uint8Array,
  input: Signable,
  options: SignatureOptions,
  random: (length: number) => Uint8Array,
): Uint8Array {
  if (isRsa(type)) return rsaSign(type, key, input, rsaScheme(type, options), random);
  if (isEc(type)) return ecdsaSign(type, key, input, ecHash(type, options), options.encoding);
  needNone(type, options);
  if (type !== 'ed25519') return mlDsaSignWith(type, key, input);
  needMessage(input);
  return ed25519Sign(key, input.bytes);
}

/** Whether the signature is valid; `publicKey` is SPKI DER. Throws `invalid` for input that does not fit. */
export function verifyWithKey(
  type: SigningType,
  publicKey: Uint8Array,
  input: Signable,
  options: SignatureOptions,
  signature: Uint8Array,
): boolean {
  if (isRsa(type)) return rsaVerify(type, publicKey, input, rsaScheme(type, options), signature);
  if (isEc(type)) return ecdsaVerify(type, publicKey, input, ecHash(type, options), signature, options.encoding);
  needNone(type, options);
  if (type !== 'ed25519') return mlDsaVerifyWith(type, publicKey, input, signature);
  needMessage(input);
  const point = ed25519FromSpki(publicKey);
  return point !== undefined && ed25519Verify(point, input.bytes, signature);
}

function rsaScheme(type: RsaType, { hash, padding, saltLength, encoding }: SignatureOptions): RsaScheme {
  if (encoding !== undefined) throw refused('encoding', type);
  if (hash === undefined || padding === undefined) {
    throw new KmsError('invalid', `${padding === undefined ? 'padding' : 'hash'}: ${type} needs one to sign`);
  }
  if (hash === 'sha2-224') throw new KmsError('invalid', `hash: ${type} signs with sha2-256, sha2-384 or sha2-512`);
  if (padding !== 'pss' && saltLength !== undefined) {
    throw new KmsError('invalid', `saltLength: the padding ${padding} has no salt`);
  }
  return { hash, padding, saltLength };
}

function ecHash(type: EcType, { hash, padding, saltLength }: SignatureOptions): HashName {
  if (padding !== undefined) throw refused('padding', type);
  if (saltLength !== undefined) throw refused('saltLength', type);
  if (hash === undefined) throw new KmsError('invalid', `hash: ${type} needs one to sign`);
  return hash;
}

function needNone(type: SigningType, options: SignatureOptions): void {
  for (const name of ['hash', 'padding', 'saltLength', 'encoding'] as const) {
    if (options[name] !== undefined) throw refused(name, type);
  }
}

function refused(option: keyof SignatureOptions, type: SigningType): KmsError {
  return new KmsError('invalid', `${option}: signatures of ${type} have no such choice`);
}

function needMessage({ isDigest }: Signable): void {
  if (isDigest) throw new KmsError('invalid', 'prehashed input: ed25519 signs the message itself');
}
