// Opens a seal with any available custodian. Changes nothing, and if given a wrong key says which one is needed.
import { passphraseCost } from '../crypto/argon2id.ts';
import type { Argon2Cost } from '../crypto/primitives.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import type { CustodianKind } from '../model/custodian-kinds.ts';
import { secretOf } from '../model/secret-text.ts';
import { derivePassphrase, passphraseParamsOf } from '../platform/threads/passwords.ts';
import { parseHeader, type SealHeader } from '../seal/header.ts';
import { openSeal, type Seal } from '../seal/seal.ts';
import { mostOfKind, type Slot, slotIdOf } from '../seal/slot.ts';
import { type KeySource, type KeySources, missingKey, StaysSealed, sourcesFor } from './key-sources.ts';

export interface SealBytes {
  readonly bytes: Uint8Array;
  /** The name for errors. */
  readonly name: string;
}

export interface OpenedSeal {
  readonly seal: Seal;
  /** The custodian that opened it. */
  readonly slot: Slot;
  /** Path of the key file, if one opened it. */
  readonly place?: string;
}

/** Kinds that a person has to provide: while a slot has one, an appliance without its key waits. */
const byHand: Readonly<Record<CustodianKind, boolean>> = {
  keyfile: false,
  passphrase: true,
  shares: true,
  exec: false,
  env: false,
  credential: false,
  'recovery-kit': false,
};

/**
 * Throws `sealed` if no source has the key, `refused` if all have a wrong one. `data` is the data directory, beside
 * which key files are looked for.
 */
export async function unlockSeal(from: SealBytes, data: string | undefined, given: KeySources): Promise<OpenedSeal> {
  const { slots } = expectedHeader(from, given.appliance);
  const sources = sourcesFor({ data, seal: from.bytes }, slots, given);
  const people = given.keyFile === undefined && slots.some(({ kind }) => kind === 'passphrase') ? given : {};
  let failure: unknown;
  let refusal: KmsError | undefined;
  const known = await people.passphrase?.();
  if (known) {
    try {
      return await openWithPassphrase(from, slots, known, given.signal);
    } catch (error) {
      // The passphrase may be for a new custodian, or an old one, and another source may open the seal.
      if (!(error instanceof KmsError) || error instanceof SealDamage || given.signal?.aborted) throw error;
      refusal = error;
    }
  }
  for (const source of sources) {
    // An attacker's seal would be opened by the attacker's key.
    if (source.isNoted && refusal) continue;
    given.signal?.throwIfAborted();
    try {
      const secret = await source.find();
      if (secret) return openFound(from, slots, source, secret);
    } catch (error) {
      // A named key file is the only source; otherwise another custodian may still open. A damaged seal stays closed.
      if (given.keyFile !== undefined || error instanceof SealDamage || given.signal?.aborted) throw error;
      failure ??= error;
      if (source.isGiven && error instanceof KmsError) refusal ??= error;
    }
  }
  if (refusal) throw refusal;
  const typed = await people.askPassphrase?.();
  if (typed) return openWithPassphrase(from, slots, typed, given.signal);
  if (failure === undefined) throw missingKey(slots, sources, given);
  if (failure instanceof KmsError && slots.some(({ kind }) => byHand[kind])) {
    throw new StaysSealed(failure.message, { hint: 'unseal it with `kms unseal`', cause: failure });
  }
  throw failure;
}

/** The header of the seal, which names its appliance. Throws `refused` if it is not the expected one. */
export function expectedHeader({ bytes, name }: SealBytes, expected: string | undefined): SealHeader {
  const { header } = parseHeader(bytes, name);
  if (expected === undefined || header.applianceId === expected) return header;
  throw new KmsError('refused', `${name}: expected the appliance ${expected}, found ${header.applianceId}`, {
    hint: 'it was mistaken for another one, or somebody put another one there; nothing was changed',
  });
}

/** Opens the seal with a secret, which is then wiped. `place` is the file that it came from. */
export function openWith(
  from: SealBytes,
  slots: readonly Slot[],
  secret: Uint8Array,
  what: string,
  place?: string,
): OpenedSeal {
  try {
    const id = slotIdOf(secret);
    const slot = slots.find((each) => each.id === id);
    if (!slot) throw wrongKey(what, slots, id, place);
    return { seal: verified(from, secret), slot };
  } finally {
    secret.fill(0);
  }
}

/** The secret fits a slot of the seal, yet does not open it. */
class SealDamage extends KmsError {}

function verified({ bytes, name }: SealBytes, secret: Uint8Array): Seal {
  try {
    return openSeal(bytes, secret, systemRandom, name);
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'corrupt') throw error;
    throw new SealDamage('corrupt', error.message, error.hint === undefined ? {} : { hint: error.hint });
  }
}

function openFound(
  from: SealBytes,
  slots: readonly Slot[],
  { place, name }: KeySource,
  secret: Uint8Array,
): OpenedSeal {
  if (place === undefined) return openWith(from, slots, secret, `wrong master key in ${name}`);
  return { ...openWith(from, slots, secret, 'wrong master key file', place), place };
}

/** In UTF-16 units: twice the maximum of bytes in a passphrase. */
const longestPassphrase = 2048;

/** Tries it on each passphrase slot. Throws `refused` if it opens none, or if trying would take too long. */
export async function openWithPassphrase(
  from: SealBytes,
  slots: readonly Slot[],
  given: string,
  signal?: AbortSignal,
): Promise<OpenedSeal> {
  const passphrase = secretOf(given, 'the passphrase');
  // Longer than any passphrase; normalising it would take long.
  if (passphrase.length > longestPassphrase) throw new KmsError('refused', 'wrong passphrase');
  const own = slots
    .filter(({ kind }) => kind === 'passphrase')
    .map((slot) => ({ slot, params: passphraseParamsOf(slot) }));
  needPayable(
    own.map(({ params }) => params),
    from.name,
  );
  for (const { slot, params } of own) {
    const secret = await derivePassphrase(passphrase, params, signal);
    if (slotIdOf(secret) === slot.id) return openWith(from, slots, secret, 'wrong passphrase');
    secret.fill(0);
  }
  // The id derived from a wrong passphrase would reveal something about it, so the error omits it.
  throw new KmsError('refused', own.length === 0 ? 'no custodian here is a passphrase' : 'wrong passphrase');
}

/** KiB × passes of all passphrase slots together: 16 times as much as a new slot has, some 3 s of one core. */
const mostWork = 16 * passphraseCost.m * passphraseCost.t;

/** Nothing in a seal is proven before it is open, so its writer must not choose how long that takes. */
function needPayable(costs: readonly Argon2Cost[], name: string): void {
  const hint = 'open it with another custodian, such as a key file, and find out who can write there';
  if (costs.length > mostOfKind) {
    const found = `expected at most ${mostOfKind} passphrases, found ${costs.length}`;
    throw new KmsError('refused', `${name}: ${found}; none was tried`, { hint });
  }
  // A negative cost must not make room for others.
  const work = costs.map(({ m, t }) => (m > 0 && t > 0 ? m * t : Number.POSITIVE_INFINITY));
  if (work.reduce((sum, each) => sum + each, 0) <= mostWork) return;
  throw new KmsError('refused', `${name}: to try its passphrases would take too long; none was tried`, { hint });
}

function wrongKey(what: string, slots: readonly Slot[], got: string, place?: string): KmsError {
  const another = place === undefined ? '' : `${place} holds another one: `;
  return new KmsError('refused', `${what}: needs ${slots.map(({ id }) => id).join(' or ')}, got ${got}`, {
    hint: `${another}give the key that belongs to this data; nothing was changed`,
  });
}
