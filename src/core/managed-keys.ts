// Managed keys, which the appliance holds: their life from creation to deletion. Using them is in key-operations.ts.
import type { Answer, Body } from '../api/endpoints.ts';
import type { ManagedKey as KeyAnswer } from '../api/managed-keys.ts';
import { publicKeyPem } from '../crypto/managed/keys.ts';
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import { changedFields, type ResourceRef } from '../model/activity-details.ts';
import { heldByClients } from '../model/custody.ts';
import { changedObject, type JsonObject, sameJson } from '../model/json.ts';
import { type KeyState, stateAfter, stateAt } from '../model/key-states.ts';
import { isCipher, type KeyType, usesProblem, usualUses } from '../model/key-types.ts';
import { checkRingName } from '../model/names.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import type { PageRequest } from '../store/sql.ts';
import type { KeyVersion } from '../store/tables/managed-key-versions.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import type { Ring, RingService } from '../store/tables/rings.ts';
import { authorizeFurther, isAllowed } from './authorization.ts';
import { accountOf, awsIdOf } from './aws-names.ts';
import { type Context, needQuota } from './context.ts';
import { needUnused, scheduleDeletion } from './key-dependents.ts';
import { nextVersion, publicKeyOfVersion } from './key-versions.ts';
import { inPlace, type KeyWork } from './key-work.ts';
import { kmipFieldsOf, needFreeKmipNames, needManyValues } from './kmip-names.ts';
import { lookUpManagedKey } from './managed-key-names.ts';
import {
  checkActivation,
  checkedDates,
  checkedTags,
  checkKeyAlias,
  checkKeyName,
  checkRotation,
  needSameUses,
  needVersions,
  orderedUses,
  secretSettings,
  touchVersions,
} from './managed-key-rules.ts';
import { looksAt, type Reader, readInParts, type WrittenPage } from './pages.ts';
import { countRings, needRingQuota } from './rings.ts';

/** Versions of a key that are shown, newest first. */
const mostVersionsShown = 1000;
const mostAliases = 50;

/** Names a managed key: by name, id or alias. */
export interface NamedKey {
  readonly key: string;
}

type NewKey = Body<'createManagedKey'> & {
  /** Where KV clients find it. */
  readonly path?: string;
  readonly vaultFormat?: boolean;
};

export function createManagedKey(
  ctx: Context,
  input: Body<'createManagedKey'>,
  work: KeyWork = inPlace(ctx.world),
): Answer<'createManagedKey'> {
  const { type = 'aes256-gcm', derived = false } = input;
  const there = lookUpManagedKey(ctx.tx, checkRingName(input.name));
  const isThere = there !== undefined && there.deletedAt === undefined;
  // An id or an alias leads to a key whose name the caller need not know.
  const isReadable = isThere && isAllowed(ctx.caller, 'key.read', { kind: 'named', name: there.name });
  const isMeant = isReadable || there?.name === input.name.toLowerCase();
  if (isThere && isMeant && input.keepExisting && there.type === type && there.derived === derived) {
    needSameUses(there, input.uses);
    // Tags, properties and public keys are told to those who may read the key.
    if (isReadable) return { key: shown(ctx, there) };
    return { key: { ...keyAnswer(ctx.tx, there, ctx.world.now()), aliases: [], tags: {}, props: {} } };
  }
  const made = insertKey(ctx, input);
  const version = input.origin === 'imported' ? undefined : nextVersion(ctx, made, work);
  const key = mustFind(ctx.tx, made.id);
  const objects = version ? [versionRef(version)] : [];
  ctx.note({ object: keyRef(key), objects, custody: 'server' });
  return { key: shown(ctx, key) };
}

/** Makes a managed key without a version. */
export function insertKey(ctx: Context, input: NewKey, id: string = ctx.world.newId('mkey')): ManagedKey {
  const { tx, tenant, world } = ctx;
  const { type = 'aes256-gcm', derived = false, origin = 'generated', aliases = [] } = input;
  const name = checkKeyName(input.name, ctx.dialect);
  const asked = input.uses ?? usualUses(type);
  const exportable = input.exportable ?? asked.includes('export');
  const uses = orderedUses(exportable ? [...asked, 'export'] : asked.filter((use) => use !== 'export'));
  const problem = usesProblem(type, uses);
  if (problem !== undefined) throw invalidField('uses', problem);
  if (derived && (!isCipher(type) || !uses.includes('encrypt'))) {
    throw invalidField('derived', `keys of the type ${type} are not derived`);
  }
  checkRotation(type, input.rotateAfter);
  needFreeName(ctx, name);
  if (tenant.custody === 'client') {
    throw new KmsError('forbidden', 'this tenant keeps to keys held by clients (custody client)');
  }
  needRingQuota(ctx);
  const now = world.now();
  const { activateAt, deactivateAt } = checkedDates(input.activateAt ?? undefined, input.deactivateAt ?? undefined);
  if (deactivateAt !== undefined && deactivateAt <= now) {
    throw invalidField('deactivateAt', 'expected a time to come: the key would never protect anything');
  }
  tx.managedKeys.insert({
    id,
    name,
    displayName: input.name,
    path: input.path,
    type,
    uses,
    state: activateAt !== undefined && activateAt > now ? 'pre-active' : (input.state ?? 'active'),
    derived,
    exportable,
    origin,
    vaultFormat: input.vaultFormat ?? false,
    latestVersion: 0,
    minDecryptVersion: 1,
    minEncryptVersion: 0,
    deletionAllowed: input.deletionAllowed ?? false,
    rotateAfter: input.rotateAfter ?? undefined,
    tags: checkedTags(input.tags ?? {}),
    props: input.props ?? {},
    activateAt,
    deactivateAt,
    createdAt: now,
    updatedAt: now,
  });
  for (const alias of aliases) giveAlias(ctx, mustFind(tx, id), alias);
  return mustFind(tx, id);
}

interface KeysInput {
  /** Keys that are there, deleted ones that can still be restored, or both. */
  readonly which: 'living' | 'deleted' | 'both';
  /** Whether keys of the type `secret` are among them. */
  readonly secrets: boolean;
  /** Whether only objects of KMIP are meant, with their fields there. */
  readonly kmip?: boolean;
  readonly page: PageRequest;
  /** The part of a key that is written. Default: all of it. */
  readonly item?: ((key: KeyAnswer) => unknown) | undefined;
}

/** Oldest first. */
export function listManagedKeys(
  { store, world }: Reader,
  { which, secrets, kmip = false, page, item }: KeysInput,
): Promise<WrittenPage<KeyAnswer>> {
  const now = world.now();
  const read = (tables: Tables, part: PageRequest) => {
    const answer = (key: ManagedKey) => {
      if (!secrets && key.type === 'secret') return [];
      const object = kmip ? kmipFieldsOf(tables, key.id) : undefined;
      return object || !kmip ? [{ ...keyAnswer(tables, key, now), ...(object && { kmip: object }) }] : [];
    };
    const { items, ...rest } = tables.managedKeys.list(part, { which, now }, answer);
    return { items: items.flat(), ...rest };
  };
  return readInParts(looksAt(store), page, read, item);
}

export function getManagedKey(ctx: Context, { key }: NamedKey): Answer<'getManagedKey'> {
  return { key: shown(ctx, findManagedKey(ctx.tx, key)) };
}

/** The key's answer with its versions. */
export function shown({ tx, tenant, world }: Pick<Context, 'tx' | 'tenant' | 'world'>, key: ManagedKey): KeyAnswer {
  const oldest = Math.max(1, key.latestVersion - mostVersionsShown + 1);
  const versions = tx.keyVersions
    .between(key.id, key.latestVersion, oldest)
    .map((version) => shownVersion(key.type, version));
  const aws = { account: accountOf(tenant.id), keyId: awsIdOf(key) };
  const kmip = kmipFieldsOf(tx, key.id);
  return { ...keyAnswer(tx, key, world.now()), versions, aws, ...(kmip && { kmip }) };
}

export function shownVersion(
  type: KeyType,
  version: Omit<KeyVersion, 'sealed'>,
): NonNullable<KeyAnswer['versions']>[number] {
  const publicKey = publicKeyOfVersion(type, version);
  return {
    version: version.version,
    state: version.state,
    origin: version.origin,
    createdAt: timestamp(version.createdAt),
    ...(publicKey && { publicKey: publicKeyPem(publicKey) }),
    ...(version.deletedAt !== undefined && { deletedAt: timestamp(version.deletedAt) }),
  };
}

export function rotateManagedKey(
  ctx: Context,
  { key: ref }: NamedKey,
  work: KeyWork = inPlace(ctx.world),
): Answer<'rotateManagedKey'> {
  const key = livingKey(ctx, ref);
  needManyValues(ctx.tx, key.id);
  needGrowing(ctx, key);
  needRandom(ctx, key);
  if (key.origin === 'imported' && key.latestVersion === 0) {
    throw new KmsError('conflict', 'the key has no version yet: import one');
  }
  const version = nextVersion(ctx, key, work);
  ctx.note({ object: keyRef(key), changed: ['latestVersion'], objects: [versionRef(version)] });
  return { key: shown(ctx, mustFind(ctx.tx, key.id)) };
}

/** Throws `conflict` for a secret that somebody wrote: its readers would get random bytes instead. */
function needRandom({ tx }: Pick<Context, 'tx'>, { id, type, latestVersion }: ManagedKey): void {
  if (type !== 'secret' || tx.keyVersions.get(id, latestVersion)?.origin !== 'imported') return;
  throw new KmsError(
    'conflict',
    'somebody wrote this secret, and random bytes would take the place of its value: write a new value',
  );
}

/** Throws `conflict` for a key in a state in which it gets no new version. */
export function needGrowing(ctx: Pick<Context, 'world'>, key: ManagedKey): void {
  const state = stateOf(ctx, key);
  if (state === 'active' || state === 'pre-active') return;
  throw new KmsError('conflict', `the key is ${state}, so it gets no new version`);
}

export function configureManagedKey(
  ctx: Context,
  { key: ref, ...input }: NamedKey & Body<'configureManagedKey'>,
): Answer<'configureManagedKey'> {
  const { tx, world } = ctx;
  const key = livingKey(ctx, ref);
  const { rotateAfter } = input;
  // Dates move the state, which takes a flag of its own.
  const isDated = input.activateAt !== undefined || input.deactivateAt !== undefined;
  if (isDated) authorizeFurther(ctx, 'key.state', { kind: 'named', name: key.name }, keyRef(key));
  if (input.exportable === true && !key.exportable) {
    throw invalidField('exportable', 'expected false: a key that may not leave the appliance stays so');
  }
  if (typeof rotateAfter === 'number') needManyValues(tx, key.id);
  checkRotation(key.type, rotateAfter);
  checkActivation(stateOf(ctx, key), key.activateAt, input.activateAt);
  const kept = <T>(given: T | null | undefined, before: T | undefined) =>
    given === undefined ? before : (given ?? undefined);
  const change = {
    displayName: key.displayName,
    exportable: input.exportable ?? key.exportable,
    minDecryptVersion: Math.max(1, input.minDecryptVersion ?? key.minDecryptVersion),
    minEncryptVersion: input.minEncryptVersion ?? key.minEncryptVersion,
    deletionAllowed: input.deletionAllowed ?? key.deletionAllowed,
    rotateAfter: kept(rotateAfter, key.rotateAfter),
    ...namedValues(key, input),
    ...checkedDates(kept(input.activateAt, key.activateAt), kept(input.deactivateAt, key.deactivateAt)),
  };
  needVersions(key, change);
  touchVersions(ctx, key, change);
  const updatedAt = world.now();
  // The former dates may have moved it already, and that stays.
  const state = stateOf(ctx, key);
  if (isDated && state !== key.state) tx.managedKeys.setState(key.id, { ...key, state, updatedAt });
  tx.managedKeys.update(key.id, { ...change, updatedAt });
  const changed = mustFind(tx, key.id);
  const after = stateOf(ctx, changed);
  ctx.note({
    object: keyRef(key),
    changed: [...changedFields({ ...key }, change), ...(after === state ? [] : ['state'])],
    ...(after !== state && { state: after }),
  });
  return { key: shown(ctx, changed) };
}

/** Tags and properties after the change. */
function namedValues(
  key: ManagedKey,
  { tags = key.tags, props, changes = {} }: Body<'configureManagedKey'>,
): Pick<ManagedKey, 'tags' | 'props'> {
  const base = props ? { ...secretSettings(key), ...props } : key.props;
  const all = { tags: patched(tags, changes.tags), props: patched(base, changes.props) };
  return { ...all, tags: sameJson(all.tags, key.tags) ? key.tags : checkedTags(all.tags) };
}

function patched(base: JsonObject, change: JsonObject = {}): JsonObject {
  const removed = Object.fromEntries(Object.entries(change).filter(([, value]) => value === null));
  const set = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== null));
  const kept = changedObject('delete', base, removed);
  return Object.fromEntries([...Object.entries(kept), ...Object.entries(set)]);
}

/** Its name is free at once; its aliases stay its own until it is destroyed. */
export function deleteManagedKey(
  ctx: Context,
  { key: ref, days = 30, used = false }: NamedKey & Body<'deleteManagedKey'>,
): Answer<'deleteManagedKey'> {
  const key = livingKey(ctx, ref);
  if (!key.deletionAllowed) {
    throw new KmsError('conflict', `error deleting policy ${key.name}: deletion is not allowed for this key`);
  }
  if (!used) needUnused(ctx, key, 'deleted');
  const destroyAt = scheduleDeletion(ctx, key.id, stateOf(ctx, key), days);
  ctx.note({ object: keyRef(key) });
  return { name: key.name, id: key.id, restorableUntil: timestamp(destroyAt) };
}

interface Restored {
  readonly id: string;
  /** Whether a key that was active is suspended first. */
  readonly suspended?: boolean;
}

export function restoreManagedKey(ctx: Context, { id, suspended = false }: Restored): Answer<'restoreManagedKey'> {
  const { tx, world } = ctx;
  const key = tx.managedKeys.byId(id);
  if (!key) refuseOfClients(({ rings }, service) => rings.byId(service, id), tx);
  if (key?.destroyAt === undefined || key.destroyAt <= world.now()) {
    throw new KmsError('not-found', 'there is no deleted managed key of this id to restore');
  }
  needFreeName(ctx, key.name, id);
  if (key.path !== undefined && tx.managedKeys.byPath(key.path)) throw nameTaken();
  needFreeKmipNames(tx, id);
  needQuota(ctx, 'keyrings', () => countRings(tx));
  const after = stateAfter(key.state, 'restore', key.formerState);
  if ('problem' in after) throw new KmsError('conflict', after.problem);
  // A key without its bytes does nothing anyway, and only an active one takes them.
  const hasBytes = tx.keyVersions.newestActive(key.id) !== undefined;
  const state = suspended && hasBytes && after.state === 'active' ? 'suspended' : after.state;
  tx.managedKeys.setState(id, {
    state,
    formerState: undefined,
    deletedAt: undefined,
    destroyAt: undefined,
    updatedAt: world.now(),
  });
  ctx.note({ object: keyRef(key), ...(state !== after.state && { state }) });
  return { key: shown(ctx, mustFind(tx, id)) };
}

/** Throws `conflict` if another key has the name, or has it as an alias; `ownId` is of the key that gets it. */
function needFreeName({ tx }: Pick<Context, 'tx'>, name: string, ownId?: string): void {
  if (tx.managedKeys.byName(name)) throw nameTaken();
  const holder = tx.managedKeys.aliasOf(name);
  if (holder === undefined || holder === ownId) return;
  throw fieldsError('conflict', [{ field: 'name', message: 'a managed key has this alias' }]);
}

function nameTaken(): KmsError {
  return fieldsError('conflict', [{ field: 'name', message: 'another managed key has this name' }]);
}

/** Gives the key an alias, which must not be another's. */
export function giveAlias(ctx: Context, key: ManagedKey, given: string): string {
  const { tx, world } = ctx;
  const alias = checkKeyAlias(given);
  const named = tx.managedKeys.byName(alias);
  if (named && named.id !== key.id) {
    throw fieldsError('conflict', [{ field: 'alias', message: 'a managed key has this name' }]);
  }
  const holder = tx.managedKeys.aliasOf(alias);
  if (holder !== undefined && holder !== key.id) {
    throw fieldsError('conflict', [{ field: 'alias', message: 'another managed key has this alias' }]);
  }
  if (holder === key.id) tx.managedKeys.removeAlias(alias);
  else if (tx.managedKeys.aliases(key.id).length >= mostAliases) {
    throw invalidField('alias', `expected at most ${mostAliases} aliases of one key`);
  }
  tx.managedKeys.addAlias(alias, key.id, world.now(), given);
  return alias;
}

/** Throws `not-found`, or `conflict` if it is a ring whose keys its clients hold. */
export function findManagedKey(tables: Pick<Tables, 'rings' | 'managedKeys'>, ref: string): ManagedKey {
  const key = lookUpManagedKey(tables, ref);
  if (key) return key;
  refuseOfClients(({ rings }, service) => rings.byName(service, ref.toLowerCase()), tables);
  throw new KmsError('not-found', 'there is no such managed key');
}

/** The same for one that is not deleted. */
export function livingKey({ tx }: Pick<Context, 'tx'>, ref: string): ManagedKey {
  const key = findManagedKey(tx, ref);
  if (key.deletedAt === undefined) return key;
  throw new KmsError('conflict', `the key is ${key.destroyAt === undefined ? 'destroyed' : 'pending deletion'}`);
}

export function mustFind({ managedKeys }: Pick<Tables, 'managedKeys'>, id: string): ManagedKey {
  const key = managedKeys.byId(id);
  if (key) return key;
  throw new KmsError('internal', 'expected a managed key in the database, found none');
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

/** The state now, after the effect of its dates. */
export function stateOf({ world }: Pick<Context, 'world'>, key: ManagedKey): KeyState {
  return stateAt(key.state, key, world.now());
}

export function keyRef({ id, name }: ManagedKey): ResourceRef {
  return { type: 'managed-key', id, name };
}

export function versionRef({ id }: Pick<KeyVersion, 'id'>): ResourceRef {
  return { type: 'key', id };
}

function keyAnswer(
  { managedKeys, keyVersions }: Pick<Tables, 'managedKeys' | 'keyVersions'>,
  key: ManagedKey,
  now: number,
): KeyAnswer {
  const { deletedAt, destroyAt } = key;
  return {
    id: key.id,
    name: key.name,
    displayName: key.displayName,
    aliases: [...managedKeys.aliases(key.id)],
    custody: 'server',
    type: key.type,
    uses: [...key.uses],
    state: stateAt(key.state, key, now),
    latestVersion: key.latestVersion,
    primaryVersion: keyVersions.newestActive(key.id) ?? null,
    minDecryptVersion: key.minDecryptVersion,
    minEncryptVersion: key.minEncryptVersion,
    derived: key.derived,
    exportable: key.exportable,
    origin: key.origin,
    ...(key.vaultFormat && { allowPlaintextFormat: 'vault' as const }),
    rotateAfter: key.rotateAfter ?? null,
    deletionAllowed: key.deletionAllowed,
    tags: key.tags,
    props: key.props,
    createdAt: timestamp(key.createdAt),
    updatedAt: timestamp(key.updatedAt),
    activateAt: key.activateAt ?? null,
    deactivateAt: key.deactivateAt ?? null,
    ...(deletedAt !== undefined && { deletedAt: timestamp(deletedAt) }),
    ...(destroyAt !== undefined && { restorableUntil: timestamp(destroyAt) }),
  };
}
