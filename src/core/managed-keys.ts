// Managed keys, whose keys the appliance holds: make, rotate, configure, delete and restore them. Using their keys is
// in managedKeys.ts.
import type { Answer, Body } from '../api/endpoints.ts';
import type { ManagedKey as RingAnswer } from '../api/managed-keys.ts';
import { toBase64 } from '../crypto/bytes.ts';
import { newTransitKey, openTransitKey, p256Pem, sealTransitKey, transitPublicKey } from '../crypto/transit.ts';
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import { changedFields, type ResourceRef } from '../model/activity-details.ts';
import { checkRingName } from '../model/names.ts';
import { timestamp } from '../model/timestamp.ts';
import { heldByClients, isCipher, type TransitType } from '../model/transit.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Store, Tables } from '../store/port.ts';
import type { PageRequest } from '../store/sql.ts';
import type { KeyVersion, ManagedKey } from '../store/tables/managed-keys.ts';
import type { Ring, RingService } from '../store/tables/rings.ts';
import { type Context, needQuota, type World } from './context.ts';
import { looksAt, type Reader, readInParts, type WrittenPage } from './pages.ts';
import { countRings, needRingQuota, restorableFor } from './rings.ts';

/** Versions of a ring that are shown, newest first. */
const mostVersionsShown = 1000;

/** Names a managed key. */
export interface NamedRing {
  readonly ringname: string;
}

export function createManagedKey(ctx: Context, input: Body<'createManagedKey'>): Answer<'createManagedKey'> {
  const { tx, tenant, world } = ctx;
  const { type = 'aes256-gcm96', derived = false } = input;
  const name = checkRingName(input.name);
  if (derived && !isCipher(type)) throw invalidField('derived', `keys of the type ${type} are not derived`);
  const there = tx.managedKeys.byName(name);
  if (there) {
    if (input.keepExisting && there.type === type && there.derived === derived) return { ring: shown(ctx, there) };
    throw fieldsError('conflict', [{ field: 'name', message: 'another managed key has this name' }]);
  }
  if (tenant.custody === 'client') {
    throw new KmsError('conflict', 'this tenant keeps to rings whose keys are held by clients (custody client)');
  }
  needRingQuota(ctx);
  const now = world.now();
  const id = world.newId('ring');
  tx.managedKeys.insert({
    id,
    name,
    displayName: input.name,
    type,
    derived,
    latestVersion: 1,
    minDecryptionVersion: 1,
    minEncryptionVersion: 0,
    deletionAllowed: false,
    rotateAfter: input.rotateAfter ?? undefined,
    createdAt: now,
    updatedAt: now,
  });
  const ring = tx.managedKeys.byId(id);
  if (!ring) throw new KmsError('internal', 'a new managed key is not there');
  const key = makeVersion(ctx, ring, 1);
  ctx.note({ object: ringThing(ring), objects: [keyThing(key)], custody: 'server' });
  return { ring: shown(ctx, ring) };
}

interface RingsInput {
  readonly deleted: boolean;
  readonly page: PageRequest;
  /** The part of a ring that is written. Default: all of it. */
  readonly item?: ((ring: RingAnswer) => unknown) | undefined;
}

/** Oldest first. */
export function listManagedKeys(
  { store, world }: Reader,
  { deleted, page, item }: RingsInput,
): Promise<WrittenPage<RingAnswer>> {
  const since = deleted ? world.now() - restorableFor : undefined;
  const read = ({ managedKeys }: Tables, part: PageRequest) => managedKeys.list(part, since, ringAnswer);
  return readInParts(looksAt(store), page, read, item);
}

export function getManagedKey(ctx: Context, { ringname }: NamedRing): Answer<'getManagedKey'> {
  return { ring: shown(ctx, findManagedKey(ctx.tx, ringname)) };
}

/** The ring's answer with the versions that can decrypt. */
function shown({ tx }: Pick<Context, 'tx'>, ring: ManagedKey): RingAnswer {
  const { latestVersion, minDecryptionVersion, type } = ring;
  const oldest = Math.max(minDecryptionVersion, latestVersion - mostVersionsShown + 1);
  const keys = tx.managedKeys.keysBetween(ring.id, latestVersion, oldest);
  const versions = keys.map(({ version, createdAt, publicKey }) => ({
    version,
    createdAt: timestamp(createdAt),
    ...(publicKey !== '' && { publicKey: publicText(type, publicKey) }),
  }));
  return { ...ringAnswer(ring), versions };
}

/** PEM for ECDSA, base64 of the 32 bytes for Ed25519, as in Vault's managedKeys engine. */
function publicText(type: TransitType, publicKey: string): string {
  return type === 'ecdsa-p256' ? p256Pem(Uint8Array.fromBase64(publicKey)) : publicKey;
}

export function rotateManagedKey(ctx: Context, { ringname }: NamedRing): Answer<'rotateManagedKey'> {
  const ring = findManagedKey(ctx.tx, ringname);
  const key = nextVersion(ctx, ring);
  ctx.note({ object: ringThing(ring), changed: ['latestVersion'], objects: [keyThing(key)] });
  return { ring: shown(ctx, findManagedKey(ctx.tx, ringname)) };
}

export function configureManagedKey(
  ctx: Context,
  { ringname, ...input }: NamedRing & Body<'configureManagedKey'>,
): Answer<'configureManagedKey'> {
  const { tx, world } = ctx;
  const ring = findManagedKey(tx, ringname);
  const { rotateAfter } = input;
  const change = {
    minDecryptionVersion: Math.max(1, input.minDecryptionVersion ?? ring.minDecryptionVersion),
    minEncryptionVersion: input.minEncryptionVersion ?? ring.minEncryptionVersion,
    deletionAllowed: input.deletionAllowed ?? ring.deletionAllowed,
    rotateAfter: rotateAfter === undefined ? ring.rotateAfter : (rotateAfter ?? undefined),
  };
  const { minDecryptionVersion: decrypts, minEncryptionVersion: encrypts } = change;
  if (decrypts > ring.latestVersion) {
    const latest = `latest key version is ${ring.latestVersion}`;
    throw new KmsError('invalid', `cannot set min decryption version of ${decrypts}, ${latest}`);
  }
  if (encrypts !== 0 && (encrypts < decrypts || encrypts > ring.latestVersion)) {
    const range = `expected 0, or a version from ${decrypts} to ${ring.latestVersion}`;
    throw new KmsError('invalid', `cannot set min encryption version of ${encrypts}, ${range}`);
  }
  tx.managedKeys.update(ring.id, { ...change, updatedAt: world.now() });
  ctx.note({ object: ringThing(ring), changed: changedFields({ ...ring }, change) });
  return { ring: shown(ctx, findManagedKey(tx, ringname)) };
}

/** The ring stays restorable; its name is free at once. */
export function deleteManagedKey(ctx: Context, { ringname }: NamedRing): Answer<'deleteManagedKey'> {
  const { tx, world } = ctx;
  const ring = findManagedKey(tx, ringname);
  if (!ring.deletionAllowed) {
    throw new KmsError('conflict', `error deleting policy ${ring.name}: deletion is not allowed for this key`);
  }
  tx.managedKeys.setDeleted(ring.id, world.now());
  ctx.note({ object: ringThing(ring) });
  return { name: ring.name, id: ring.id };
}

export function restoreManagedKey(ctx: Context, { id }: { id: string }): Answer<'restoreManagedKey'> {
  const { tx, world } = ctx;
  const ring = tx.managedKeys.byId(id);
  if (!ring) refuseOfClients(({ rings }, service) => rings.byId(service, id), tx);
  if (ring?.deletedAt === undefined || ring.deletedAt <= world.now() - restorableFor) {
    throw new KmsError('not-found', 'there is no deleted managed key of this id to restore');
  }
  if (tx.managedKeys.byName(ring.name)) {
    throw fieldsError('conflict', [{ field: 'name', message: 'another managed key has this name' }]);
  }
  needQuota(ctx, 'keyrings', () => countRings(tx));
  tx.managedKeys.setDeleted(id, undefined);
  ctx.note({ object: ringThing(ring) });
  return { ring: shown(ctx, { ...ring, deletedAt: undefined }) };
}

/** Cache names of opened keys: long texts, built once per key. */
const openedNames = new WeakMap<KeyVersion, string>();

/** Use it at once: the tenant's keys own the buffer. Undefined if the stored key was altered. */
export function openStored(keys: TenantKeys, type: TransitType, stored: KeyVersion): Uint8Array | undefined {
  const { ringId, version, sealed, epoch } = stored;
  let name = openedNames.get(stored);
  if (name === undefined) {
    name = `${ringId} ${version} ${type} ${sealed}`;
    openedNames.set(stored, name);
  }
  return keys.opened(name, () => openTransitKey(keys.key('transit', epoch), stored, type, sealed));
}

const publicKeys = new WeakMap<KeyVersion, Uint8Array>();

/** Returns the same array each time, so that a platform can cache what it derives from it. */
export function publicBytes(stored: KeyVersion): Uint8Array {
  const known = publicKeys.get(stored);
  if (known) return known;
  const bytes = Uint8Array.fromBase64(stored.publicKey);
  publicKeys.set(stored, bytes);
  return bytes;
}

export function nextVersion(ctx: Context, ring: ManagedKey): KeyVersion {
  const version = ring.latestVersion + 1;
  const key = makeVersion(ctx, ring, version);
  ctx.tx.managedKeys.setLatest(ring.id, version, ctx.world.now());
  return key;
}

function makeVersion(ctx: Context, ring: ManagedKey, version: number): KeyVersion {
  const { tx, tenant, world } = ctx;
  needQuota(ctx, 'keysPerRing', () => version - 1);
  const { epoch } = tenant.keys;
  const place = { ringId: ring.id, version };
  const bytes = newTransitKey(ring.type, world.random);
  const sealed = sealTransitKey(tenant.keys.key('transit', epoch), place, ring.type, bytes, world.random);
  const publicKey = toBase64(transitPublicKey(ring.type, bytes));
  bytes.fill(0);
  tx.managedKeys.insertKey({ id: world.newId('key'), ...place, epoch, sealed, publicKey, createdAt: world.now() });
  const key = tx.managedKeys.key(ring.id, version);
  if (!key) throw new KmsError('internal', 'expected the new version in the database, found none');
  return key;
}

/** Throws `not-found`, or `conflict` if it is a ring whose keys its clients hold. */
export function findManagedKey(tables: Pick<Tables, 'rings' | 'managedKeys'>, name: string): ManagedKey {
  const lower = name.toLowerCase();
  const ring = tables.managedKeys.byName(lower);
  if (ring) return ring;
  refuseOfClients(({ rings }, service) => rings.byName(service, lower), tables);
  throw new KmsError('not-found', 'there is no such managed key');
}

type ClientRings = Pick<Tables, 'rings'>;

/** Throws `conflict` if it is a ring whose keys its clients hold. */
function refuseOfClients(
  find: (tables: ClientRings, service: RingService) => Ring | undefined,
  tables: ClientRings,
): void {
  for (const service of ['ks', 'asym'] as const) {
    if (find(tables, service)) throw new KmsError('conflict', heldByClients(service));
  }
}

/** Keys resealed per transaction. */
const resealedAtOnce = 200;

/** Reseals all keys under the tenant's newest epoch, so that older ones can go. */
export async function resealManagedKeys(store: Store, keys: TenantKeys, random: World['random']): Promise<void> {
  const { epoch } = keys;
  const some = ({ managedKeys }: Tables): number => {
    const found = managedKeys.keysBefore(epoch, resealedAtOnce);
    for (const { type, ...stored } of found) {
      const key = openStored(keys, type, stored);
      if (!key) throw new KmsError('corrupt', 'a version of a stored managed key was altered');
      const sealed = sealTransitKey(keys.key('transit', epoch), stored, type, key, random);
      managedKeys.reseal(stored.id, epoch, sealed);
    }
    return found.length;
  };
  while ((await store.transaction(some)) > 0);
}

/**
 * Erases a ring that was deleted before then, or some of its keys. Returns how many rings; undefined if nothing was
 * left. A ring that lost some keys must not be restored, not even if the clock is set back.
 */
export function purgeManagedKeys({ managedKeys }: Tables, until: number): number | undefined {
  const id = managedKeys.deletedUntil(until);
  if (id === undefined) return undefined;
  if (managedKeys.eraseSome(id) > 0) {
    managedKeys.setDeleted(id, 0);
    return 0;
  }
  managedKeys.erase(id);
  return 1;
}

function ringThing({ id, name }: ManagedKey): ResourceRef {
  return { type: 'managed-key', id, name };
}

function keyThing({ id }: KeyVersion): ResourceRef {
  return { type: 'key', id };
}

function ringAnswer(ring: ManagedKey): RingAnswer {
  const { deletedAt } = ring;
  return {
    id: ring.id,
    name: ring.name,
    displayName: ring.displayName,
    custody: 'server',
    type: ring.type,
    derived: ring.derived,
    latestVersion: ring.latestVersion,
    minDecryptionVersion: ring.minDecryptionVersion,
    minEncryptionVersion: ring.minEncryptionVersion,
    deletionAllowed: ring.deletionAllowed,
    rotateAfter: ring.rotateAfter ?? null,
    createdAt: timestamp(ring.createdAt),
    updatedAt: timestamp(ring.updatedAt),
    ...(deletedAt !== undefined && {
      deletedAt: timestamp(deletedAt),
      restorableUntil: timestamp(deletedAt + restorableFor),
    }),
  };
}
