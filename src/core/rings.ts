// Rings as both services use them: finding one, making one, and giving it keys. A key is 32 random bytes, wrapped to
// the ring's public key and then forgotten. Look-ups never find a deleted ring.
import { toBase64 } from '../crypto/bytes.ts';
import { hybridKeyToSpki, parseHybridKey, seedToPkcs8 } from '../crypto/hybrid-keys.ts';
import { wrapRingKey } from '../crypto/ring-key.ts';
import { generateXWing } from '../crypto/x-wing.ts';
import { generateX25519, parsePublicKey, privateKeyToPkcs8, publicKeyToSpki } from '../crypto/x25519.ts';
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import { heldByServer } from '../model/custody.ts';
import type { JsonObject } from '../model/json.ts';
import type { Kem } from '../model/kems.ts';
import { checkRingName } from '../model/names.ts';
import type { Tables } from '../store/port.ts';
import type { RingKey } from '../store/tables/ring-keys.ts';
import type { Ring, RingService } from '../store/tables/rings.ts';
import { type Context, needQuota } from './context.ts';

/** Encrypts that a key serves unless its ring says otherwise. */
const defaultMaxEncryptCount = 2 ** 32;

/** Milliseconds for which a deleted ring can be restored. */
export const restorableFor = 30 * 24 * 60 * 60 * 1000;

interface NewRingInput {
  readonly name: string;
  readonly publicKey?: string;
  readonly kem?: Kem;
  readonly props?: JsonObject;
  readonly keyProps?: JsonObject;
}

interface MadeRing {
  readonly ring: Ring;
  readonly key: RingKey;
  /** Base64 PKCS#8 DER, if the appliance made the pair. It is not stored. */
  readonly privateKey?: string;
}

export function makeRing(ctx: Context, service: RingService, input: NewRingInput): MadeRing {
  const { tx, world } = ctx;
  const name = checkRingName(input.name);
  const { kem, publicKey, privateKey }: RingPair =
    input.publicKey === undefined
      ? newPair(world, input.kem ?? world.defaultKem ?? 'x25519')
      : givenPair(input.publicKey);
  if (input.kem !== undefined && input.kem !== kem) {
    throw invalidField('publicKey', `expected one of the kem ${input.kem}, got one of ${kem}`);
  }
  if (tx.rings.byName(service, name)) throw ringNameTaken();
  needRingQuota(ctx);
  const now = world.now();
  const draft = {
    id: world.newId('ring'),
    service,
    name,
    displayName: input.name,
    algorithm: 'aes256',
    kem,
    publicKey,
    props: input.props ?? {},
    keyProps: input.keyProps ?? {},
    maxEncryptCount: defaultMaxEncryptCount,
    createdAt: now,
    updatedAt: now,
  };
  const activeKey = world.newId('key');
  tx.rings.insert({ ...draft, activeKey });
  const ring = tx.rings.byId(service, draft.id);
  if (!ring) throw new KmsError('internal', 'a new keyring is not there');
  const key = makeKey(ctx, ring, activeKey);
  return privateKey === undefined ? { ring, key } : { ring, key, privateKey };
}

/**
 * The key that the next encrypt of the ring gets: the active one, or a new one if that has reached its maximum of
 * encrypts or its age. Throws `not-found`, and what `rotateRing` throws.
 */
export function keyToServe(ctx: Context, ringname: string): RingKey {
  const { tx, world } = ctx;
  const active = tx.rings.activeKeyOf('ks', ringname.toLowerCase());
  if (!active) {
    refuseOtherKind(tx, { name: ringname });
    throw unknownRing();
  }
  const key = tx.ringKeys.byId(active.ringId, active.keyId);
  if (!key) throw missingActiveKey();
  const { maxEncryptCount, rotateAfter } = active;
  const isSpent = tx.ringKeys.encryptCount(key) >= maxEncryptCount;
  const isOld = rotateAfter !== undefined && world.now() - key.createdAt >= rotateAfter * 1000;
  return isSpent || isOld ? rotateRing(ctx, findRing(tx, 'ks', { id: active.ringId })) : key;
}

/** Gives the ring a new active key. Throws `quota` if it may have no more keys. */
export function rotateRing(ctx: Context, ring: Ring): RingKey {
  const key = makeKey(ctx, ring, ctx.world.newId('key'));
  ctx.tx.rings.setActiveKey(ring.id, key.id, ctx.world.now());
  return key;
}

/** Later keys are wrapped to the new public key; existing ones keep their wrapping. */
export function changePublicKey(
  { rings, ringKeys }: Pick<Tables, 'rings' | 'ringKeys'>,
  ring: Ring,
  pair: Pick<Ring, 'kem' | 'publicKey'>,
): void {
  if (pair.publicKey === ring.publicKey) return;
  const active = ringKeys.byId(ring.id, ring.activeKey);
  if (!active) throw missingActiveKey();
  // The active key is the newest: if it is wrapped to an earlier pair, no key is wrapped to the present one.
  if (active.pair === ring.pair) rings.changePublicKey(ring, pair);
  else rings.replacePublicKey(ring.id, pair);
}

/** The public key that a key of the ring is wrapped to. */
export function publicKeyOf({ rings }: Pick<Tables, 'rings'>, ring: Ring, { pair }: RingKey): string {
  const publicKey = pair === ring.pair ? ring.publicKey : rings.earlierPublicKey(ring.id, pair);
  if (publicKey === undefined) throw new KmsError('corrupt', 'the public key of a stored key is not there');
  return publicKey;
}

function missingActiveKey(): KmsError {
  return new KmsError('corrupt', 'the active key of a stored keyring is not there');
}

/**
 * A deleted ring does not count, but making and deleting rings in turn must not fill the appliance: if rings are
 * limited, so are the deleted ones within their 30 days.
 */
export function needRingQuota(ctx: Context): void {
  const { tx, tenant, world } = ctx;
  needQuota(ctx, 'keyrings', () => countRings(tx));
  const { keyrings } = tenant.limits;
  if (keyrings === undefined) return;
  const most = Math.max(100, 10 * keyrings);
  const since = world.now() - restorableFor;
  if (tx.rings.countDeletedSince(since) + tx.managedKeys.countDeleted(world.now()) < most) return;
  throw new KmsError('quota', `the limit of ${most} deleted keyrings that can still be restored is reached`);
}

/** All kinds, without the deleted ones. */
export function countRings({ rings, managedKeys }: Pick<Tables, 'rings' | 'managedKeys'>): number {
  return rings.count() + managedKeys.count();
}

export function ringNameTaken(): KmsError {
  return fieldsError('conflict', [{ field: 'name', message: 'another keyring has this name' }]);
}

function makeKey(ctx: Context, ring: Ring, id: string): RingKey {
  const { tx, world } = ctx;
  needQuota(ctx, 'keysPerRing', () => tx.ringKeys.count(ring.id));
  const bytes = world.random(32);
  const { wrapped, iv } = wrapRingKey(ring.service, rawPublicKey(ring), id, bytes, world.random);
  bytes.fill(0);
  const { kem, pair, keyProps } = ring;
  const draft = { id, ringId: ring.id, algorithm: 'aes256', kem, pair, props: keyProps, createdAt: world.now() };
  tx.ringKeys.insert({ ...draft, wrapped, iv });
  const key = tx.ringKeys.byId(ring.id, id);
  if (!key) throw new KmsError('internal', 'a new key is not there');
  return key;
}

/** A ring's public key, base64 SPKI DER, and its private key, base64 PKCS#8 DER, if made here. */
interface RingPair {
  readonly kem: Kem;
  readonly publicKey: string;
  readonly privateKey?: string;
}

function newPair({ random }: Context['world'], kem: Kem): RingPair {
  const isHybrid = kem === 'mlkem768-x25519';
  const { privateKey, publicKey } = isHybrid ? generateXWing(random) : generateX25519(random);
  const pair = {
    kem,
    publicKey: toBase64(isHybrid ? hybridKeyToSpki(publicKey) : publicKeyToSpki(publicKey)),
    privateKey: toBase64(isHybrid ? seedToPkcs8(privateKey) : privateKeyToPkcs8(privateKey)),
  };
  privateKey.fill(0);
  return pair;
}

/** Parses the public key in a request's field. */
export function givenPair(text: string, field = 'publicKey'): Pick<RingPair, 'kem' | 'publicKey'> {
  if (/PRIVATE KEY-----/.test(text)) {
    throw invalidField(
      field,
      'there is a private key beside it, which nobody else should have: send the public key alone',
    );
  }
  const x25519 = parsePublicKey(text);
  if (x25519) return { kem: 'x25519', publicKey: toBase64(publicKeyToSpki(x25519)) };
  const hybrid = parseHybridKey(text);
  if (hybrid) return { kem: 'mlkem768-x25519', publicKey: toBase64(hybridKeyToSpki(hybrid)) };
  throw invalidField(
    field,
    'expected a public key of X25519 or MLKEM768-X25519: base64 SPKI DER, PEM, base64 of the bytes, or a JWK of the latter',
  );
}

function rawPublicKey({ kem, publicKey }: Ring): Uint8Array {
  const key = kem === 'x25519' ? parsePublicKey(publicKey) : parseHybridKey(publicKey);
  if (!key) throw new KmsError('corrupt', 'the public key of a stored keyring is not one');
  return key;
}

export type RingRef = { readonly name: string } | { readonly id: string };

/** Throws `not-found`. */
export function findRing(tables: Pick<Tables, 'rings' | 'managedKeys'>, service: RingService, ref: RingRef): Ring {
  const ring = lookUp(tables, service, ref);
  if (ring) return ring;
  refuseOtherKind(tables, ref);
  throw unknownRing();
}

export function unknownRing(): KmsError {
  return new KmsError('not-found', 'there is no such keyring');
}

/** Throws `conflict` for a managed key. A caller with a flag for that name may know its kind. */
export function refuseOtherKind({ managedKeys }: Pick<Tables, 'managedKeys'>, ref: RingRef): void {
  const other = 'name' in ref ? managedKeys.byName(ref.name.toLowerCase()) : managedKeys.byId(ref.id);
  if (other) throw new KmsError('conflict', heldByServer);
}

function lookUp(tables: Pick<Tables, 'rings'>, service: RingService, ref: RingRef): Ring | undefined {
  if ('name' in ref) return tables.rings.byName(service, ref.name.toLowerCase());
  const ring = tables.rings.byId(service, ref.id);
  return ring?.deletedAt === undefined ? ring : undefined;
}
