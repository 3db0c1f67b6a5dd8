// A secret of 32 bytes from a passphrase: argon2id (RFC 9106), made as costly as a start of the appliance can bear. Takes about a
// second and the memory that the parameters name: callers run it off the serving thread.
import { argon2id } from '@noble/hashes/argon2.js';
import { KmsError } from '../errors.ts';
import { utf8 } from './encoding.ts';

export interface PassphraseCost {
  /** Memory in KiB, passes, lanes. */
  readonly m: number;
  readonly t: number;
  readonly p: number;
}

/** RFC 9106 §4, the second recommended option: 64 MiB, three passes, four lanes. */
export const passphraseCost: PassphraseCost = { m: 65_536, t: 3, p: 4 };

/** What stored parameters may ask for at most: a changed file must not stall the process. */
const most: PassphraseCost = { m: 1_048_576, t: 16, p: 16 };

export const passphraseSaltLength = 16;

/** Throws `corrupt` for parameters that nobody here chose. The text counts in Unicode's composed form (NFC). */
export function passphraseSecret(passphrase: string, salt: Uint8Array, { m, t, p }: PassphraseCost): Uint8Array {
  const sane = [m, t, p].every((each) => Number.isInteger(each) && each >= 1) && m >= 8 * p;
  if (!sane || m > most.m || t > most.t || p > most.p || salt.length < 8 || salt.length > 64) {
    throw new KmsError('corrupt', 'the cost of the passphrase makes no sense: the seal file was changed');
  }
  return argon2id(utf8(passphrase.normalize('NFC')), salt, { m, t, p, dkLen: 32 });
}
