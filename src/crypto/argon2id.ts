// Argon2id (RFC 9106) for secrets that people type. Password hashes are PHC strings that include the parameters, so
// that stored ones outlive a change of the cost; a passphrase yields 32 bytes at the highest cost that a start of the
// appliance can bear. Slow by design (19 MiB: about 150 ms with noble, 21 with OpenSSL; 64 MiB: 800 and 160), so
// callers run it off the serving thread.
import { argon2id as nobleArgon2id } from '@noble/hashes/argon2.js';
import { KmsError } from '../errors.ts';
import { equalBytes, fromBase64, toBase64, utf8 } from './bytes.ts';
import { type Argon2Cost, native } from './primitives.ts';

/** Argon2id output of `length` bytes, by the platform if it can, else by noble. */
export function argon2id(secret: Uint8Array, salt: Uint8Array, { m, t, p }: Argon2Cost, length: number): Uint8Array {
  return (
    native().argon2id?.(secret, salt, { m, t, p }, length) ?? nobleArgon2id(secret, salt, { m, t, p, dkLen: length })
  );
}

/** The cost of new hashes. */
const cost = { m: 19_456, t: 2, p: 1 } as const;
const hashLength = 32;
export const passwordSaltLength = 16;

/** Upper bounds for stored parameters: a tampered file must not stall the process. */
const most = { m: 1_048_576, t: 16, p: 16 };

const phc =
  /^\$argon2id\$v=19\$m=([1-9]\d{0,6}),t=([1-9]\d?),p=([1-9]\d?)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

/** `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>`; `salt` is 16 random bytes, fresh for each hash. */
export function hashPassword(password: string, salt: Uint8Array): string {
  if (salt.length !== passwordSaltLength) throw new KmsError('internal', 'a password salt has 16 bytes');
  const hash = argon2id(utf8(password), salt, cost, hashLength);
  return format(salt, hash);
}

/**
 * Whether `password` produced the stored hash; takes the same time either way. Throws `corrupt` if the text is not a
 * PHC string of this format.
 */
export function verifyPassword(stored: string, password: string): boolean {
  const { m, t, p, salt, hash } = parse(stored);
  return equalBytes(argon2id(utf8(password), salt, { m, t, p }, hash.length), hash);
}

/**
 * A hash that no password matches. Checking against it takes as long as a real check, for when there is no such user.
 */
export const decoyPasswordHash = format(new Uint8Array(passwordSaltLength), new Uint8Array(hashLength));

function format(salt: Uint8Array, hash: Uint8Array): string {
  return `$argon2id$v=19$m=${cost.m},t=${cost.t},p=${cost.p}$${unpadded(salt)}$${unpadded(hash)}`;
}

function parse(stored: string) {
  const [, m, t, p, salt, hash] = phc.exec(stored) ?? [];
  const parameters = { m: Number(m), t: Number(t), p: Number(p), salt: padded(salt), hash: padded(hash) };
  const tooCostly = parameters.m > most.m || parameters.t > most.t || parameters.p > most.p;
  if (!parameters.salt || !parameters.hash || tooCostly)
    throw new KmsError('corrupt', 'a stored password hash does not parse');
  return { ...parameters, salt: parameters.salt, hash: parameters.hash };
}

// PHC strings use base64 without padding.
function unpadded(bytes: Uint8Array): string {
  return toBase64(bytes).replace(/=+$/, '');
}

function padded(text: string | undefined): Uint8Array | undefined {
  return text === undefined ? undefined : fromBase64(text.padEnd(Math.ceil(text.length / 4) * 4, '='));
}

/** RFC 9106 §4, the second recommended option: 64 MiB, three passes, four lanes. */
export const passphraseCost: Argon2Cost = { m: 65_536, t: 3, p: 4 };

export const passphraseSaltLength = 16;

/** The secret of a passphrase, which is normalised to NFC first. Throws `corrupt` for parameters out of bounds. */
export function passphraseSecret(passphrase: string, salt: Uint8Array, { m, t, p }: Argon2Cost): Uint8Array {
  const sane = [m, t, p].every((each) => Number.isInteger(each) && each >= 1) && m >= 8 * p;
  if (!sane || m > most.m || t > most.t || p > most.p || salt.length < 8 || salt.length > 64) {
    throw new KmsError('corrupt', 'the cost of the passphrase makes no sense: the seal file was changed');
  }
  return argon2id(utf8(passphrase.normalize('NFC')), salt, { m, t, p }, 32);
}
