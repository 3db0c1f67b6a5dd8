// Signatures by managed keys of every type that signs, behind one pair of functions. Options that a type has not are
// refused, so that no caller believes in a hash or padding that was not used.
import { ed25519ph } from '@noble/curves/ed25519.js';
import { KmsError } from '../../errors.ts';
import { ed25519FromSpki, ed25519Sign, ed25519Verify } from '../ed25519.ts';
import type { EcType, HashName } from '../primitives.ts';
import type { Signable } from './digests.ts';
import { ecdsaSign, ecdsaVerify, type SignatureEncoding } from './ecdsa.ts';
import { type MlDsaType, mlDsaSignWith, mlDsaVerifyWith } from './ml-dsa-keys.ts';
import { type RsaPadding, type RsaScheme, rsaSign, rsaVerify, type SaltLength } from './rsa.ts';
import type { RsaType } from './rsa-keys.ts';

export type SigningType = RsaType | EcType | MlDsaType | 'ed25519';

/** How to sign: RSA needs a hash and a padding, ECDSA a hash; Ed25519 has one choice, and ML-DSA none. */
export interface SignatureOptions {
  readonly hash?: HashName | undefined;
  readonly padding?: RsaPadding | undefined;
  /** PSS only; as long as the hash by default. `any` is for verification. */
  readonly saltLength?: SaltLength | 'any' | undefined;
  /** ECDSA only; DER by default. */
  readonly encoding?: SignatureEncoding | undefined;
  /** Ed25519 only: Ed25519ph (RFC 8032 §5.1), which signs the SHA-512 of the message given. */
  readonly variant?: 'ph' | undefined;
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
  needNone(type, options, lackedBy(type));
  if (type !== 'ed25519') return mlDsaSignWith(type, key, input);
  needMessage(input);
  if (key.length !== 32) throw anotherType('private', type);
  return options.variant === 'ph' ? ed25519ph.sign(input.bytes, key) : ed25519Sign(key, input.bytes);
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
  needNone(type, options, lackedBy(type));
  if (type !== 'ed25519') return mlDsaVerifyWith(type, publicKey, input, signature);
  needMessage(input);
  const point = ed25519FromSpki(publicKey);
  if (!point) throw anotherType('public', type);
  return options.variant === 'ph'
    ? isPrehashSignature(point, input.bytes, signature)
    : ed25519Verify(point, input.bytes, signature);
}

function anotherType(half: 'private' | 'public', type: SigningType): KmsError {
  return new KmsError('invalid', `expected a ${half} key of the type ${type}`);
}

function isPrehashSignature(point: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    return ed25519ph.verify(signature, message, point, { zip215: false });
  } catch {
    return false;
  }
}

function rsaScheme(type: RsaType, options: SignatureOptions): RsaScheme {
  needNone(type, options, ['encoding', 'variant']);
  const { hash, padding, saltLength } = options;
  if (hash === undefined || padding === undefined) {
    throw new KmsError('invalid', `${padding === undefined ? 'padding' : 'hash'}: ${type} needs one to sign`);
  }
  if (hash === 'sha2-224') throw new KmsError('invalid', `hash: ${type} signs with sha2-256, sha2-384 or sha2-512`);
  if (padding !== 'pss' && saltLength !== undefined) {
    throw new KmsError('invalid', `saltLength: the padding ${padding} has no salt`);
  }
  return { hash, padding, saltLength };
}

function ecHash(type: EcType, options: SignatureOptions): HashName {
  needNone(type, options, ['padding', 'saltLength', 'variant']);
  const { hash } = options;
  if (hash === undefined) throw new KmsError('invalid', `hash: ${type} needs one to sign`);
  return hash;
}

function needNone(type: SigningType, options: SignatureOptions, names: readonly (keyof SignatureOptions)[]): void {
  const given = names.find((name) => options[name] !== undefined);
  if (given === undefined) return;
  throw new KmsError('invalid', `${given}: signatures of ${type} have no such choice`);
}

/** Options that Ed25519 and ML-DSA have not. */
function lackedBy(type: SigningType): readonly (keyof SignatureOptions)[] {
  const none = ['hash', 'padding', 'saltLength', 'encoding'] as const;
  return type === 'ed25519' ? none : [...none, 'variant'];
}

function needMessage({ isDigest }: Signable): void {
  if (isDigest) throw new KmsError('invalid', 'prehashed input: ed25519 signs the message itself');
}
