// The costly work with managed keys, as jobs of plain data: each is done where it is asked for, or on another thread
// beforehand. A job's result depends on its input alone, and on randomness.
import type { KmsError } from '../../errors.ts';
import type { OaepHash } from '../primitives.ts';
import { wrapKw } from './block-modes.ts';
import type { CipherType } from './ciphers.ts';
import { type CounterDerivation, counterKey, type PasswordDerivation, passwordKey } from './derivation.ts';
import type { Signable } from './digests.ts';
import { unwrapFromRsa, unwrapKwp, wrapKwp, wrapToRsa } from './key-wrap.ts';
import { importKey, type KeyFormat, type ManagedKeyType } from './keys.ts';
import { derivedKey, openMessage, openVaultMessage, sealMessage, vaultDerivedKey } from './messages.ts';
import { oaepDecrypt, oaepEncrypt } from './rsa.ts';
import type { RsaType } from './rsa-keys.ts';
import type { KeyPlace } from './sealed-keys.ts';
import { type SignatureOptions, type SigningType, signWithKey, verifyWithKey } from './signatures.ts';

type Random = (length: number) => Uint8Array;

interface SignInput {
  readonly type: SigningType;
  readonly key: Uint8Array;
  readonly input: Signable;
  readonly options: SignatureOptions;
}

interface VerifyInput extends Omit<SignInput, 'key'> {
  readonly publicKey: Uint8Array;
  readonly signature: Uint8Array;
}

interface OaepInput {
  readonly type: RsaType;
  readonly key: Uint8Array;
  readonly hash: OaepHash;
  readonly sealed: Uint8Array;
}

interface SealInput {
  readonly type: CipherType;
  readonly key: Uint8Array;
  readonly place: KeyPlace;
  readonly bytes: Uint8Array;
  readonly associated: Uint8Array;
  /** Present if the message has a key of its own, derived by it. */
  readonly context?: Uint8Array | undefined;
}

interface OpenInput extends Omit<SealInput, 'bytes'> {
  readonly sealed: Uint8Array;
  /** Whether Vault may have made the message. */
  readonly isVaultToo: boolean;
}

interface ImportInput {
  readonly type: ManagedKeyType;
  readonly format: KeyFormat;
  readonly bytes: Uint8Array;
}

interface WrapInput {
  readonly type: RsaType;
  readonly publicKey: Uint8Array;
  readonly hash: OaepHash;
  readonly bytes: Uint8Array;
}

interface KwpInput {
  readonly key: Uint8Array;
  readonly bytes: Uint8Array;
}

const none = new Uint8Array(0);

/** Runs `use` with the key for the context. */
function withKey<R>(
  { type, key, context }: Pick<SealInput, 'type' | 'key' | 'context'>,
  derive: typeof derivedKey,
  use: (key: Uint8Array) => R,
): R {
  if (!context) return use(key);
  const derived = derive(type, key, context);
  try {
    return use(derived);
  } finally {
    derived.fill(0);
  }
}

/** Jobs by name. Each throws `invalid` for input that does not fit. */
const keyJobs = {
  seal: (input: SealInput, random: Random): Uint8Array =>
    withKey(input, derivedKey, (key) =>
      sealMessage(input.type, key, input.place, input.bytes, input.associated, random),
    ),
  /** The message; undefined if key, place, context, associated data or message is wrong. */
  open: (input: OpenInput): Uint8Array | undefined => {
    const { type, place, sealed, associated, isVaultToo } = input;
    const own = withKey(input, derivedKey, (key) => openMessage(type, key, place, sealed, associated));
    if (own || !isVaultToo) return own;
    return withKey(input, vaultDerivedKey, (key) => openVaultMessage(type, key, sealed, associated));
  },
  sign: ({ type, key, input, options }: SignInput, random: Random): Uint8Array =>
    signWithKey(type, key, input, options, random),
  verify: ({ type, publicKey, input, options, signature }: VerifyInput): boolean =>
    verifyWithKey(type, publicKey, input, options, signature),
  oaepEncrypt: ({ type, publicKey, hash, bytes }: WrapInput): Uint8Array =>
    oaepEncrypt(type, publicKey, hash, bytes, none),
  /** The message; undefined if it was not encrypted to this key with this hash. */
  oaepDecrypt: ({ type, key, hash, sealed }: OaepInput): Uint8Array | undefined =>
    oaepDecrypt(type, key, hash, sealed, none),
  /** The wrapped bytes, wrapped by OAEP alone or with AES-KWP; undefined as above. */
  unwrap: ({ type, key, hash, sealed }: OaepInput): Uint8Array | undefined =>
    oaepDecrypt(type, key, hash, sealed, none) ?? unwrapFromRsa(type, key, hash, sealed),
  wrap: ({ type, publicKey, hash, bytes }: WrapInput, random: Random): Uint8Array =>
    wrapToRsa(type, publicKey, hash, bytes, random),
  wrapKwp: ({ key, bytes }: KwpInput): Uint8Array => wrapKwp(key, bytes),
  unwrapKwp: ({ key, bytes }: KwpInput): Uint8Array | undefined => unwrapKwp(key, bytes),
  wrapKw: ({ key, bytes }: KwpInput): Uint8Array => wrapKw(key, bytes),
  passwordKey: (input: PasswordDerivation): Uint8Array => passwordKey(input),
  counterKey: (input: CounterDerivation): Uint8Array => counterKey(input),
  import: ({ type, format, bytes }: ImportInput, random: Random): Uint8Array => importKey(type, format, bytes, random),
} as const;

export type KeyJobName = keyof typeof keyJobs;
export type KeyJobInput<Name extends KeyJobName> = Parameters<(typeof keyJobs)[Name]>[0];
export type KeyJobResult<Name extends KeyJobName> = ReturnType<(typeof keyJobs)[Name]>;

/** A job as data. */
type KeyJob = {
  readonly [Name in KeyJobName]: { readonly name: Name; readonly input: KeyJobInput<Name> };
}[KeyJobName];

/** Derivations of keys, each of which may take a second. */
export function isDerivation(name: Ordered['name']): name is 'passwordKey' | 'counterKey' {
  return name === 'passwordKey' || name === 'counterKey';
}

/** Work to be done beforehand: a job, or a key to make. */
export type Ordered = KeyJob | { readonly name: 'generate'; readonly type: ManagedKeyType };

/** The result of an order, or the error that the work ended with. */
export type WorkResult = { readonly value: unknown } | { readonly error: KmsError };

export function runKeyJob<Name extends KeyJobName>(
  name: Name,
  input: KeyJobInput<Name>,
  random: Random,
): KeyJobResult<Name> {
  // Cast: the function and its input have the same name.
  const job = keyJobs[name] as (input: KeyJobInput<Name>, random: Random) => KeyJobResult<Name>;
  return job(input, random);
}

/** Secret parts of an input, which their owner may overwrite before the job is done. */
const heldParts = ['key', 'bytes'] as const;

/** The input with copies of its secret parts. */
export function heldOf<Input extends object>(input: Input): Input {
  const copies = heldParts.flatMap((part) => {
    const bytes: unknown = Reflect.get(input, part);
    return bytes instanceof Uint8Array ? [[part, bytes.slice()]] : [];
  });
  return { ...input, ...Object.fromEntries(copies) };
}

/** Overwrites such copies. */
export function wipeHeld(input: object): void {
  for (const part of heldParts) {
    const bytes: unknown = Reflect.get(input, part);
    if (bytes instanceof Uint8Array) bytes.fill(0);
  }
}
