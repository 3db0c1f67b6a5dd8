// Wrappings: an owner wraps a ring's existing keys to its present public key. The appliance forgot a key's bytes when
// it had made the key, so it cannot check that a new wrapping has the same bytes, or opens at all. Hence no wrapping is
// ever lost: the earlier one is kept beside the new one. Nor can a wrapping be slipped into new encrypts: only the
// appliance wraps the active key.
import type { Answer, Body } from '../api/endpoints.ts';
import type { RewrappedKey } from '../api/keyrings.ts';
import { fromBase64, toBase64 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { isWrapping } from '../crypto/ring-key.ts';
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import type { ActivityDetails } from '../model/activity-details.ts';
import { mostRewraps } from '../model/kems.ts';
import type { RingKey } from '../store/tables/ring-keys.ts';
import type { Ring } from '../store/tables/rings.ts';
import type { Context } from './context.ts';
import { keyThing, ringThing } from './keyrings.ts';
import { findRing, givenPair } from './rings.ts';

/**
 * Rewraps all of them or none. Throws `conflict` for a key that was rewrapped in the meantime, and what `findRing`
 * throws.
 */
export function rewrapKeys(ctx: Context, input: Body<'rewrapKeys'>): Answer<'rewrapKeys'> {
  const { tx, world } = ctx;
  const ring = findRing(tx, 'ks', { name: input.ringname });
  if (input.keys.length === 0) throw invalidField('keys', 'must have at least 1 entry');
  const { publicKey } = givenPair(input.publicKey);
  if (publicKey !== ring.publicKey) throw collision('publicKey', 'the keyring has another public key');
  const active = tx.ringKeys.byId(ring.id, ring.activeKey);
  if (active?.pair !== ring.pair) {
    throw collision('ringname', 'no key is wrapped to its public key yet: rotate the keyring first');
  }
  const deeds: ActivityDetails[] = [];
  for (const [index, given] of input.keys.entries()) {
    const key = tx.ringKeys.byId(ring.id, given.id);
    if (!key) throw new KmsError('not-found', `keys.${index}: the keyring has no such key`);
    const { wrapped, iv } = given;
    const before = key.rewraps > 0 ? tx.ringKeys.earlierWrappings(key) : [];
    const earlier = before.find((each) => each.wrapped === wrapped);
    if (!earlier) refuseUnlikely(`keys.${index}`, ring, given);
    if (wrapped === key.wrapped) continue;
    refuseCollision(`keys.${index}`, ring, key, given);
    if (earlier) tx.ringKeys.putBack(key, earlier, world.now());
    else {
      refuseNew(`keys.${index}`, ring, key);
      tx.ringKeys.rewrap(key, { kem: ring.kem, pair: ring.pair, wrapped, iv }, world.now());
    }
    const changed = key.kem === (earlier ?? ring).kem ? ['keyData'] : ['kem', 'keyData'];
    deeds.push({ object: ringThing(ring), objects: [keyThing(key)], changed });
  }
  if (deeds.length === 0) ctx.note({ object: ringThing(ring) });
  else ctx.did(new Array(deeds.length).fill(200), deeds);
  return { rewrapped: deeds.length };
}

/** Refuses anything that is not a wrapping to the ring's public key by its form. */
function refuseUnlikely(place: string, { kem }: Ring, { wrapped, iv }: RewrappedKey): void {
  if (!isWrapping(kem, wrapped)) {
    throw invalidField(`${place}.wrapped`, `expected base64 of 32 bytes wrapped by ${kem}`);
  }
  if (fromBase64(iv)?.length !== 12) throw invalidField(`${place}.iv`, 'expected base64 of 12 bytes');
}

function refuseCollision(place: string, ring: Ring, key: RingKey, { replaces }: RewrappedKey): void {
  if (key.id === ring.activeKey) {
    throw collision(`${place}.id`, 'the active key stays as the appliance wrapped it: rotate the keyring first');
  }
  if (toBase64(sha256(fromBase64(key.wrapped) ?? new Uint8Array())) !== replaces) {
    throw collision(`${place}.replaces`, 'the key is wrapped differently by now: read it again');
  }
}

/**
 * Refuses a new wrapping past the limit. One that is put back is always allowed: it takes no room and was there before.
 */
function refuseNew(place: string, ring: Ring, key: RingKey): void {
  if (ring.kem === 'x25519' && key.kem !== 'x25519') {
    throw collision(`${place}.id`, `a key that is wrapped by ${key.kem} is not wrapped by x25519 again`);
  }
  if (key.rewraps >= mostRewraps) {
    throw collision(`${place}.id`, `the key was rewrapped ${mostRewraps} times, which is the limit`);
  }
}

function collision(field: string, message: string): KmsError {
  return fieldsError('conflict', [{ field, message }]);
}
