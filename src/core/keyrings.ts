// Keyrings of the key service and their keys: make, list, get, configure, delete and restore; and keyrings of the asym
// service, whose private key is always made here and returned once.

import type { AsymKey, AsymKeyRing } from '../api/asym.ts';
import type { Answer, Body } from '../api/endpoints.ts';
import type { Key, KeyListItem, KeyRing, KeyRingConfig, ListedKeyRing, ReadKey } from '../api/keyrings.ts';
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import { changedFields, type ResourceRef } from '../model/activity-details.ts';
import type { JsonObject } from '../model/json.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Store, Tables } from '../store/port.ts';
import type { PageRequest, Slices } from '../store/sql.ts';
import type { KeyUsage } from '../store/tables/key-uses.ts';
import type { EarlierWrapping, RingKey } from '../store/tables/ring-keys.ts';
import type { Ring, RingService } from '../store/tables/rings.ts';
import { type Context, needQuota } from './context.ts';
import { eraseOldWrappingKeys } from './key-transfer.ts';
import { destroyDueKeys } from './key-versions.ts';
import { looksAt, type Reader, readInParts, type WrittenPage } from './pages.ts';
import {
  changePublicKey,
  countRings,
  findRing,
  givenPair,
  makeRing,
  publicKeyOf,
  type RingRef,
  refuseOtherKind,
  restorableFor,
  ringNameTaken,
  rotateRing,
} from './rings.ts';

export function createKeyring(ctx: Context, input: Body<'createKeyring'>): Answer<'createKeyring'> {
  const { ring, key, privateKey } = makeRing(ctx, 'ks', input);
  ctx.note({ object: ringThing(ring), objects: [keyThing(key)], custody: 'client' });
  const answer = { ring: keyRing(ring), key: ksKey(key) };
  return privateKey === undefined ? answer : { ...answer, privateKey };
}

/** Oldest first. */
export function listKeyrings(
  { store, world }: Reader,
  { deleted = false, page }: { readonly deleted?: boolean; readonly page: PageRequest },
): Promise<WrittenPage<ListedKeyRing>> {
  return readInParts<ListedKeyRing>(looksAt(store), page, ({ rings }, part) =>
    deleted
      ? rings.listDeletedSince('ks', world.now() - restorableFor, part, deletedKeyRing)
      : rings.list('ks', part, keyRing),
  );
}

export function getKeyring({ tx }: Context, input: { readonly ring: RingRef }): { ring: KeyRing } {
  return { ring: keyRing(findRing(tx, 'ks', input.ring)) };
}

/** Page and part size when usage or wrappings are included: a hundred days each, or thirty wrappings of 3 kB. */
const mostWithMore = 200;
const partWithMore = 5;

interface KeysInput {
  readonly ring: RingRef;
  readonly usage?: boolean;
  readonly wrapped?: boolean;
  readonly page: PageRequest;
}

/** Oldest first. With usage or wrappings, a page may have fewer keys than asked for. */
export async function listKeys({ store, world }: Reader, input: KeysInput): Promise<WrittenPage<KeyListItem>> {
  const { usage = false, wrapped = false } = input;
  const looks = looksAt(store);
  const { id } = await looks.look((tables) => findRing(tables, 'ks', input.ring));
  if (!usage && !wrapped) {
    return readInParts(looks, input.page, ({ ringKeys }, part) => ringKeys.list(id, part, keyListItem));
  }
  const page = { ...input.page, limit: Math.min(input.page.limit, mostWithMore) };
  return readInParts(looks, page, ({ ringKeys, keyUses }, part) => {
    const some = { ...part, limit: Math.min(part.limit, partWithMore) };
    const keys = ringKeys.list(id, some, (key, publicKey) => ({ key, item: keyListItem(key, publicKey) }));
    const listed = keys.items.map(({ key }) => key);
    const uses = usage ? keyUses.ofKeys(listed, world.now()) : undefined;
    const items: KeyListItem[] = [];
    for (const { key, item } of keys.items) {
      const used = uses?.get(key.id);
      const earlier = wrapped && key.rewraps > 0 ? ringKeys.earlierWrappings(key).map(earlierAnswer) : [];
      items.push({
        ...item,
        ...(used && { usage: usageAnswer(used) }),
        ...(wrapped && { keyData: keyData(key) }),
        ...(earlier.length > 0 && { earlier }),
      });
    }
    return { ...keys, items };
  });
}

function earlierAnswer({ kem, publicKey, replacedAt, ...wrapping }: EarlierWrapping) {
  return { kem, publicKey, keyData: keyData(wrapping), replacedAt: timestamp(replacedAt) };
}

function usageAnswer({ since, lastEncrypt, lastDecrypt, days }: KeyUsage): NonNullable<KeyListItem['usage']> {
  return {
    since: since ?? null,
    lastEncryptAt: lastEncrypt?.at ?? null,
    lastEncryptBy: lastEncrypt?.by ?? null,
    lastDecryptAt: lastDecrypt?.at ?? null,
    lastDecryptBy: lastDecrypt?.by ?? null,
    days: days.map(({ at, encrypts, decrypts }) => ({ day: timestamp(at).slice(0, 10), encrypts, decrypts })),
  };
}

export function getKey(ctx: Context, input: { readonly ring: RingRef; readonly keyId: string }): ReadKey {
  const { key, publicKey } = findKey(ctx, 'ks', input);
  return { ...ksKey(key), publicKey };
}

export function rotateKeyring(
  ctx: Context,
  input: { readonly ringname: string; readonly algo?: 'aes256' },
): { key: Key } {
  const ring = findRing(ctx.tx, 'ks', { name: input.ringname });
  return { key: ksKey(rotate(ctx, ring)) };
}

function rotate(ctx: Context, ring: Ring): RingKey {
  const key = rotateRing(ctx, ring);
  ctx.note({ object: ringThing(ring), changed: ['activeKey'], objects: [keyThing(key)] });
  return key;
}

/** The ring's key and the public key it is wrapped to. Throws `not-found` for the ring or the key. */
function findKey(
  { tx }: Context,
  service: RingService,
  input: { readonly ring: RingRef; readonly keyId: string },
): { readonly key: RingKey; readonly publicKey: string } {
  const ring = findRing(tx, service, input.ring);
  const key = tx.ringKeys.byId(ring.id, input.keyId);
  if (!key) throw new KmsError('not-found', 'the keyring has no such key');
  return { key, publicKey: publicKeyOf(tx, ring, key) };
}

export function createAsymKeyring(ctx: Context, input: Body<'createAsymKeyring'>): Answer<'createAsymKeyring'> {
  const { name, kem, props = {}, keyProps = {} } = input;
  const made = makeRing(ctx, 'asym', { name, props, keyProps, ...(kem && { kem }) });
  ctx.note({ object: ringThing(made.ring), objects: [keyThing(made.key)], custody: 'client' });
  return { ring: asymKeyRing(made.ring), key: asymKey(made.key), privateKey: made.privateKey ?? '' };
}

export function getAsymKey(
  ctx: Context,
  input: { readonly ring: RingRef; readonly keyId: string },
): Answer<'getAsymKey'> {
  const { key, publicKey } = findKey(ctx, 'asym', input);
  return { ...asymKey(key), publicKey };
}

export function rotateAsymKeyring(
  ctx: Context,
  input: { readonly ringname: string; readonly algo?: 'aes256' },
): { key: AsymKey } {
  const ring = findRing(ctx.tx, 'asym', { name: input.ringname });
  return { key: asymKey(rotate(ctx, ring)) };
}

export function getConfig({ tx }: Context, input: { readonly ring: RingRef }): { config: KeyRingConfig } {
  return { config: configOf(findRing(tx, 'ks', input.ring)) };
}

/**
 * A changed public key applies to keys made later; earlier ones keep their wrapping. Throws `conflict` if `replaces` is
 * not the ring's public key.
 */
export function putConfig(
  ctx: Context,
  input: { readonly ringname: string; readonly config: Body<'putConfig'>['config'] },
): { config: KeyRingConfig } {
  const { tx, world } = ctx;
  const { props, key, algos, rotateAfter, offlineDecrypt, publicKey, replaces } = input.config;
  const maxEncryptCount = algos?.aes256?.maxEncryptCount;
  if (maxEncryptCount !== undefined && (!Number.isSafeInteger(maxEncryptCount) || maxEncryptCount < 1)) {
    throw invalidField('config.algos.aes256.maxEncryptCount', 'expected an integer of at least 1');
  }
  const pair = publicKey === undefined ? undefined : givenPair(publicKey, 'config.publicKey');
  const seen = replaces === undefined ? undefined : givenPair(replaces, 'config.replaces');
  if (seen && !pair) throw invalidField('config.replaces', 'goes with config.publicKey');
  const ring = findRing(tx, 'ks', { name: input.ringname });
  // A repeated change finds itself done.
  if (pair && seen && ring.publicKey !== seen.publicKey && ring.publicKey !== pair.publicKey) {
    throw fieldsError('conflict', [{ field: 'config.replaces', message: otherPublicKey }]);
  }
  const change = {
    props: props ?? ring.props,
    keyProps: key?.props ?? ring.keyProps,
    maxEncryptCount: maxEncryptCount ?? ring.maxEncryptCount,
    rotateAfter: rotateAfter === undefined ? ring.rotateAfter : (rotateAfter ?? undefined),
    offlineDecrypt: offlineDecrypt ?? ring.offlineDecrypt,
    updatedAt: world.now(),
  };
  tx.rings.update(ring.id, change);
  if (pair) changePublicKey(tx, ring, pair);
  ctx.note({ object: ringThing(ring), changed: changedConfig(ring, { ...ring, ...change, ...pair }) });
  return { config: configOf(change) };
}

const otherPublicKey = 'the keyring has another public key by now: read it again';

function configOf(ring: RingConfig): KeyRingConfig {
  return {
    props: ring.props,
    key: { props: ring.keyProps },
    algos: { aes256: { maxEncryptCount: ring.maxEncryptCount } },
    rotateAfter: ring.rotateAfter ?? null,
    offlineDecrypt: ring.offlineDecrypt,
  };
}

type RingConfig = Pick<Ring, 'props' | 'keyProps' | 'maxEncryptCount' | 'rotateAfter' | 'offlineDecrypt'>;

/** Changed fields, by their paths in the config. */
function changedConfig(before: Ring, after: Ring): string[] {
  const placed = (ring: Ring): JsonObject => ({
    props: ring.props,
    'key.props': ring.keyProps,
    'algos.aes256.maxEncryptCount': ring.maxEncryptCount,
    rotateAfter: ring.rotateAfter ?? null,
    offlineDecrypt: ring.offlineDecrypt,
    kem: ring.kem,
    publicKey: ring.publicKey,
  });
  return changedFields(placed(before), placed(after));
}

/**
 * Frees the name at once. Throws `conflict` while an active API key other than the caller's names the ring in its
 * flags.
 */
export function* deleteKeyring(ctx: Context, input: { readonly name: string }): Slices<{ name: string; id: string }> {
  const { tx, caller, world } = ctx;
  const ring = findRing(tx, 'ks', { name: input.name });
  if (yield* tx.apiKeys.isRingUsed(ring.name, caller.id, world.now())) {
    throw new KmsError('conflict', 'active API keys still use this keyring');
  }
  tx.rings.markDeleted(ring.id, world.now());
  ctx.note({ object: ringThing(ring) });
  return { name: ring.name, id: ring.id };
}

export function restoreKeyring(ctx: Context, input: { readonly id: string }): { ring: KeyRing } {
  const { tx, world } = ctx;
  const ring = tx.rings.byId('ks', input.id);
  if (!ring) refuseOtherKind(tx, input);
  if (ring?.deletedAt === undefined || isExpired(ring.deletedAt, world.now())) {
    throw new KmsError('not-found', 'there is no deleted keyring of this id to restore');
  }
  if (tx.rings.byName('ks', ring.name)) throw ringNameTaken();
  needQuota(ctx, 'keyrings', () => countRings(tx));
  tx.rings.unmarkDeleted(ring.id);
  ctx.note({ object: ringThing(ring) });
  return { ring: keyRing(ring) };
}

/**
 * Erases wrapping keys whose time is over, and rings whose 30 days are, with their keys. Returns how many rings and
 * managed keys. No request calls this: the appliance does, from time to time. It takes many short transactions, so that
 * others get their turn.
 */
export async function purgeExpired(store: Store, now: number): Promise<number> {
  await store.transaction((tx) => eraseOldWrappingKeys(tx, now));
  for (let erased = 0; ; ) {
    const rings = await store.transaction((tx) => purgeSome(tx, now - restorableFor));
    if (rings === undefined) return erased;
    erased += rings;
  }
}

/** Rows erased per transaction; a ring counts as ten keys. */
const purgedAtOnce = 1000;

/** Number of rings erased; undefined if nothing was left to erase. */
function purgeSome(tables: Tables, until: number): number | undefined {
  const { rings, ringKeys } = tables;
  const managedKeys = destroyDueKeys(tables, until + restorableFor);
  if (managedKeys !== undefined) return managedKeys;
  let erased = 0;
  let begun: string | undefined;
  for (let rows = 0; rows < purgedAtOnce; rows += 10) {
    const id = rings.deletedUntil(until);
    if (id === undefined) return rows === 0 ? undefined : erased;
    const keys = ringKeys.eraseSome(id) || rings.erasePairs(id);
    rows += keys;
    begun = keys === 0 ? undefined : id;
    if (begun !== undefined) continue;
    rings.erase(id);
    erased++;
  }
  // A ring that lost some keys must not be restored, not even if the clock is set back.
  if (begun !== undefined) rings.markDeleted(begun, 0);
  return erased;
}

function isExpired(deletedAt: number, now: number): boolean {
  return deletedAt <= now - restorableFor;
}

export function ringThing({ service, id, name }: Ring): ResourceRef {
  return { type: service === 'ks' ? 'keyring' : 'asym-keyring', id, name };
}

export function keyThing({ id }: RingKey): ResourceRef {
  return { type: 'key', id };
}

function keyRing(ring: Ring): KeyRing {
  return { ...asymKeyRing(ring), props: ring.props, ...(ring.offlineDecrypt && { offlineDecrypt: true }) };
}

function deletedKeyRing(ring: Ring): ListedKeyRing {
  const { deletedAt = 0 } = ring;
  return { ...keyRing(ring), deletedAt: timestamp(deletedAt), restorableUntil: timestamp(deletedAt + restorableFor) };
}

function asymKeyRing(ring: Ring): AsymKeyRing {
  return {
    id: ring.id,
    name: ring.name,
    displayName: ring.displayName,
    activeKey: ring.activeKey,
    activeAlgorithm: 'aes256',
    custody: 'client',
    kem: ring.kem,
    publicKey: ring.publicKey,
    createdAt: timestamp(ring.createdAt),
    updatedAt: timestamp(ring.updatedAt),
  };
}

function keyListItem({ id, kem, props, createdAt }: RingKey, publicKey: string): KeyListItem {
  return { id, type: 'aes256', kem, publicKey, props, createdAt: timestamp(createdAt) };
}

type WrappedKey = Pick<RingKey, 'id' | 'kem' | 'props' | 'wrapped' | 'iv'>;

export function ksKey(key: WrappedKey): Key {
  return {
    id: key.id,
    type: 'aes256',
    kem: key.kem,
    props: key.props,
    keyData: keyData(key),
  };
}

function keyData({ wrapped, iv }: Pick<RingKey, 'wrapped' | 'iv'>): Key['keyData'] {
  return { encrypted: { key: { value: wrapped, encoding: 'base64' } }, iv };
}

function asymKey(key: WrappedKey): AsymKey {
  return { id: key.id, type: 'AES256', kem: key.kem, props: key.props, keyData: { key: key.wrapped } };
}
