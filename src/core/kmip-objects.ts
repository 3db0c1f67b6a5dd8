// KMIP's objects: managed keys with an owner, names of their own, and attributes. An object is its owner's by default;
// others see it by the flags of the managed key. A caller that may not know of an object is told that there is none.
import { fieldsError, KmsError } from '../errors.ts';
import { flagName } from '../model/flags.ts';
import type { JsonObject } from '../model/json.ts';
import { type KeyState, stateAfter } from '../model/key-states.ts';
import { type KeyType, type KeyUse, keyTypeFacts, usesProblem } from '../model/key-types.ts';
import type { KmipForm, KmipRow } from '../store/tables/kmip-objects.ts';
import type { KeyVersion } from '../store/tables/managed-key-versions.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import { isAllowed, missingFlag } from './authorization.ts';
import type { Context } from './context.ts';
import { scheduleDeletion } from './key-dependents.ts';
import { addVersion, isAsymmetric, type KeyMaterial, openVersion } from './key-versions.ts';
import { insertKey, keyRef, mustFind, stateOf } from './managed-keys.ts';

export interface KmipObject {
  /** Unique Identifier: the managed key's id, or that of the public half of one. */
  readonly id: string;
  readonly key: ManagedKey;
  /** Undefined for a key that was made otherwise. */
  readonly row: KmipRow | undefined;
  /** The one before the deletion, if it is deleted. */
  readonly state: KeyState;
  readonly isDestroyed: boolean;
  /**
   * The public half of a pair that was made otherwise. It has no state, names or attributes of its own, and all who may
   * look at the managed key may have it. Pairs made over KMIP are two managed keys.
   */
  readonly isPublicHalf: boolean;
}

/** Ends the id of a public half. */
const publicEnding = '-public';

/** Rights to a public half: all others are the managed key's. */
const publicRights: ReadonlySet<KmipRight> = new Set(['read', 'export', 'encrypt', 'verify']);

/** Rights to operations that may take a name from an object. */
const losesNames: ReadonlySet<KmipRight> = new Set(['config', 'rotate']);

/** An operation of a managed key, by the flag that lets others do it. */
export type KmipRight =
  | 'read'
  | 'export'
  | 'encrypt'
  | 'decrypt'
  | 'sign'
  | 'verify'
  | 'mac'
  | 'wrap'
  | 'derive'
  | 'rotate'
  | 'config'
  | 'state'
  | 'delete';

/** The flags for the same with the client's own objects. */
export const ownKmipFlags: Readonly<Record<KmipRight, string>> = {
  read: 'kmip.read',
  export: 'kmip.get',
  encrypt: 'kmip.use',
  decrypt: 'kmip.use',
  sign: 'kmip.use',
  verify: 'kmip.use',
  mac: 'kmip.use',
  wrap: 'kmip.use',
  derive: 'kmip.use',
  rotate: 'kmip.create',
  config: 'kmip.change',
  state: 'kmip.state',
  delete: 'kmip.destroy',
};

function may({ caller }: Context, { key, row }: Pick<KmipObject, 'key' | 'row'>, right: KmipRight): boolean {
  if (row?.owner === caller.id && isAllowed(caller, ownKmipFlags[right], undefined)) return true;
  return isAllowed(caller, `key.${right}`, { kind: 'named', name: key.name });
}

/** Whether the caller may know of the object. */
function isVisible(ctx: Context, object: Pick<KmipObject, 'key' | 'row'>): boolean {
  return object.row?.owner === ctx.caller.id || may(ctx, object, 'read');
}

/** Throws `forbidden` if the caller may not make objects. */
export function needMaking({ caller }: Context): void {
  if (isAllowed(caller, 'kmip.create', undefined) || isAllowed(caller, 'key.create', undefined)) return;
  throw missingFlag('kmip.create');
}

/** The object of that id, if the caller may know of it or do this with it. */
export function knownKmipObject(ctx: Context, id: string, right: KmipRight): KmipObject | undefined {
  const key = ctx.tx.managedKeys.byId(keyIdOf(id));
  const whole = key && objectOf(ctx, key);
  const found = id === key?.id ? whole : whole && publicHalf(whole);
  return found && (isVisible(ctx, found) || hasRight(ctx, found, right)) ? found : undefined;
}

/** Whether the caller may do that with the object, public halves being for all who may look at the managed key. */
function hasRight(ctx: Context, object: KmipObject, right: KmipRight): boolean {
  if (!object.isPublicHalf) return may(ctx, object, right);
  return publicRights.has(right) && may(ctx, object, right === 'export' ? 'read' : right);
}

/** Throws `forbidden` for a missing flag, `conflict` for a public half that is to be changed. */
export function needKmipRight(ctx: Context, object: KmipObject, right: KmipRight): void {
  if (hasRight(ctx, object, right)) {
    const flag = object.isPublicHalf && right === 'export' ? 'read' : right;
    const { id, name } = object.key;
    const lost = losesNames.has(right) ? ctx.tx.kmipObjects.names(id) : [];
    ctx.touches({ actions: [`key.${flag}`, ownKmipFlags[flag]], ring: name, object: keyRef(object.key), lost });
    return;
  }
  if (object.isPublicHalf && !publicRights.has(right)) {
    throw new KmsError('conflict', 'the public half of a pair follows the private key, which is changed instead');
  }
  const isOwn = object.row?.owner === ctx.caller.id;
  throw missingFlag(isOwn ? ownKmipFlags[right] : flagName(`key.${right}`, object.key.name));
}

/** The refusal of an object that is not there, or that the caller may not know of. */
export function noKmipObject(): KmsError {
  return new KmsError('not-found', 'there is no such object');
}

/** The managed key that an object's id names. */
export function keyIdOf(id: string): string {
  return id.endsWith(publicEnding) ? id.slice(0, -publicEnding.length) : id;
}

/** Whether the key was made otherwise than over KMIP, which may have given it attributes since. */
export function isNative({ row }: Pick<KmipObject, 'row'>): boolean {
  return row === undefined || row.owner === '';
}

/** The public half of a pair that was made otherwise; undefined for any other object. */
export function publicHalf(object: KmipObject): KmipObject | undefined {
  const { key } = object;
  if (!isNative(object) || !isAsymmetric(key.type)) return undefined;
  return { ...object, id: `${key.id}${publicEnding}`, row: undefined, isPublicHalf: true };
}

/** The object that a key is, if KMIP has a word for it. Authorities for client certificates are none. */
function objectOf(ctx: Context, key: ManagedKey): KmipObject | undefined {
  const { tx } = ctx;
  const row = tx.kmipObjects.byKey(key.id);
  const isOdd = keyTypeFacts[key.type].kmip === undefined || key.derived || key.latestVersion === 0;
  if (!row && (isOdd || tx.clientAuthorities.hasKey(key.id))) return undefined;
  const now = stateOf(ctx, key);
  const isDestroyed = key.deletedAt !== undefined;
  const state = isDestroyed ? (key.formerState ?? now) : now;
  return { id: key.id, key, row, state, isDestroyed, isPublicHalf: false };
}

/** Objects looked up by one step of a search. */
const searchedAtOnce = 200;
/** Keys named by flags that a search looks at. */
const mostShared = 5000;

/** Steps of a search: the ids to look up, and undefined for other look-ups, which cost as much. */
type Steps<R> = Generator<string | undefined, R>;

/**
 * The objects that the caller may look at, newest first. With a name, at least all of those that have it. Undefined for
 * each step that finds none, so that its caller counts them all.
 */
export function* searchedObjects(ctx: Context, name: string | undefined): Generator<KmipObject | undefined, void> {
  for (const id of name === undefined ? searchedIds(ctx) : namedIds(ctx, name)) {
    const key = id === undefined ? undefined : ctx.tx.managedKeys.byId(id);
    const found = key && objectOf(ctx, key);
    if (!found || !may(ctx, found, 'read')) {
      yield undefined;
      continue;
    }
    yield found;
    const half = publicHalf(found);
    if (half) yield half;
  }
}

/** Objects that may have the name: others' are not even looked at, so that no time tells of them. */
function* namedIds(ctx: Context, name: string): Steps<void> {
  const { tx, caller } = ctx;
  const isAll = seesAll(ctx);
  const native = isAll ? tx.managedKeys.byName(name.toLowerCase()) : undefined;
  const shared = isAll ? (native ? [native.id] : []) : yield* sharedIds(ctx);
  const owner = isAll ? undefined : caller.id;
  yield* newestFirst([...shared, ...(readsOwn(ctx) ? tx.kmipObjects.keysNamed(name, owner, mostShared) : [])]);
}

function seesAll({ caller }: Context): boolean {
  return isAllowed(caller, 'key.read', { kind: 'hidden', name: undefined });
}

/** Whether the caller may look at all of its own objects: one that may not is not to go through them in vain. */
function readsOwn(ctx: Context): boolean {
  return seesAll(ctx) || isAllowed(ctx.caller, ownKmipFlags.read, undefined);
}

function* searchedIds(ctx: Context): Steps<void> {
  const { tx, caller } = ctx;
  const isAll = seesAll(ctx);
  const shared = isAll ? [] : yield* sharedIds(ctx);
  let before = Number.MAX_SAFE_INTEGER;
  while (readsOwn(ctx)) {
    const part = isAll
      ? tx.kmipObjects.keysBefore(before, searchedAtOnce)
      : tx.kmipObjects.ofOwner(caller.id, before, searchedAtOnce);
    for (const { keyId } of part) {
      while ((shared[0] ?? '') > keyId) yield shared.shift() ?? '';
      if (shared[0] === keyId) shared.shift();
      yield keyId;
    }
    const last = part.at(-1);
    if (!last || part.length < searchedAtOnce) break;
    before = last.seq;
  }
  yield* shared;
}

/** Keys that the caller's flags name, newest first. */
function* sharedIds({ tx, caller }: Context): Steps<string[]> {
  const names = new Set(caller.flags.names.flatMap((flag) => /^key\.(.+)\.(?:read|\*)$/.exec(flag)?.[1] ?? []));
  const ids: string[] = [];
  for (const name of [...names].slice(0, mostShared)) {
    const key = tx.managedKeys.byName(name);
    if (key) ids.push(key.id);
    yield undefined;
  }
  return newestFirst(ids);
}

/** Ids tell when a key was made. */
function newestFirst(ids: readonly string[]): string[] {
  return [...new Set(ids)].sort().reverse();
}

interface NewObject {
  /** Default: the caller. */
  readonly owner?: string | undefined;
  readonly type: KeyType;
  /** Uses that are wanted, of which the type may have fewer. */
  readonly uses: readonly KeyUse[];
  readonly isExportable: boolean;
  readonly material: KeyMaterial;
  readonly origin: 'generated' | 'imported';
  readonly objectType: number;
  readonly form: KmipForm;
  readonly shape: string;
  readonly activateAt: number | undefined;
  readonly deactivateAt: number | undefined;
}

/** Makes an object without attributes. */
export function insertKmipObject(ctx: Context, wanted: NewObject): KmipObject {
  const { tx, world, caller } = ctx;
  const { type, origin, isExportable } = wanted;
  const id = world.newId('mkey');
  const draft = {
    name: `kmip-${id.slice('mkey_'.length)}`,
    type,
    uses: [...possibleUses(type, wanted.uses), 'export' as const],
    exportable: true,
    origin,
    deletionAllowed: true,
  };
  const made = insertKey(ctx, draft, id);
  addVersion(ctx, made, wanted.material, origin);
  const now = world.now();
  const { activateAt, deactivateAt } = wanted;
  const isBegun = activateAt !== undefined && activateAt <= now;
  tx.managedKeys.update(made.id, { ...made, exportable: isExportable, activateAt, deactivateAt, updatedAt: now });
  tx.managedKeys.setState(made.id, { ...made, state: isBegun ? 'active' : 'pre-active', updatedAt: now });
  const { objectType, form, shape, owner = caller.id } = wanted;
  tx.kmipObjects.insert({ keyId: made.id, owner, objectType, form, shape, attributes: {} });
  return again(ctx, made.id);
}

/** The uses that a key of the type can have together, of those wanted. */
function possibleUses(type: KeyType, wanted: readonly KeyUse[]): readonly KeyUse[] {
  const some = wanted.filter((use) => use !== 'export');
  const sets = keyTypeFacts[type].purposes.map(({ possible }) => some.filter((use) => possible.includes(use)));
  const best = sets.toSorted((a, b) => b.length - a.length)[0] ?? [];
  return usesProblem(type, [...best, 'export']) === undefined ? best : [];
}

function again(ctx: Context, id: string): KmipObject {
  const found = objectOf(ctx, mustFind(ctx.tx, id));
  if (found) return found;
  throw new KmsError('internal', 'expected an object of KMIP, found none');
}

/** Gives a key that was made otherwise a row of its own, without an owner. */
export function describedObject(ctx: Context, object: KmipObject, objectType: number): KmipObject & { row: KmipRow } {
  const { key, row } = object;
  const described: KmipRow = row ?? { keyId: key.id, owner: '', objectType, form: 'key', shape: '', attributes: {} };
  if (!row) ctx.tx.kmipObjects.insert(described);
  return { ...object, row: described };
}

/** Replaces attributes and names. Throws `conflict` for a name that another object of the owner and type has. */
export function setKmipAttributes(
  ctx: Context,
  row: KmipRow,
  attributes: JsonObject,
  names: readonly string[] | undefined,
): void {
  const { tx, world } = ctx;
  if (names) {
    const before = new Set(tx.kmipObjects.names(row.keyId));
    if (names.some((name) => !before.has(name) && tx.kmipObjects.isTaken(row, name))) {
      throw fieldsError('conflict', [{ field: 'name', message: 'another object of this type has this name' }]);
    }
    tx.kmipObjects.setNames(row, names);
  }
  tx.kmipObjects.setAttributes(row.keyId, attributes);
  const key = mustFind(tx, row.keyId);
  const tags = names ? namedTags(key.tags, names[0]) : key.tags;
  tx.managedKeys.update(key.id, { ...key, tags, updatedAt: world.now() });
}

/** The tag by which people recognise an object among managed keys. */
const nameTag = 'kmip-name';

function namedTags({ [nameTag]: _, ...others }: JsonObject, name: string | undefined): JsonObject {
  return name === undefined ? others : { ...others, [nameTag]: name };
}

/** Sets the dates that move the state by themselves. Raising `exportable` takes more than that: it cannot be done. */
export function setKmipFields(
  ctx: Context,
  id: string,
  change: Partial<Pick<ManagedKey, 'activateAt' | 'deactivateAt' | 'exportable'>>,
): KmipObject {
  const { tx, world } = ctx;
  const key = mustFind(tx, id);
  const now = world.now();
  if (change.exportable && !key.exportable) {
    throw new KmsError('conflict', 'a key that may not leave the appliance stays so');
  }
  // The former dates may have moved it already, and that stays.
  const state = stateOf(ctx, key);
  if (state !== key.state) tx.managedKeys.setState(id, { ...key, state, updatedAt: now });
  tx.managedKeys.update(id, { ...mustFind(tx, id), ...change, updatedAt: now });
  return again(ctx, id);
}

/** Throws `conflict` if there is no such move from the object's state. */
export function moveKmipObject(
  ctx: Context,
  { key, state }: KmipObject,
  move: 'activate' | 'deactivate' | 'compromise',
): KmipObject {
  const { tx, world } = ctx;
  // KMIP marks a key as compromised before it is active, too. The moves of managed keys lead there by way of `active`.
  const from = move === 'compromise' && state === 'pre-active' ? 'active' : state;
  const after = stateAfter(from, move, undefined);
  if ('problem' in after) throw new KmsError('conflict', after.problem);
  const now = world.now();
  if (move === 'activate') tx.managedKeys.update(key.id, { ...key, activateAt: now, updatedAt: now });
  if (move === 'deactivate') tx.managedKeys.update(key.id, { ...key, deactivateAt: now, updatedAt: now });
  tx.managedKeys.setState(key.id, { ...key, state: after.state, updatedAt: now });
  return again(ctx, key.id);
}

/** How long an operator can restore what a client destroyed. */
const restoreDays = 30;

/** Gone for its clients; an operator can restore the managed key. */
export function destroyKmipObject(ctx: Context, { key, state }: KmipObject): void {
  if (!key.deletionAllowed) throw new KmsError('conflict', 'deletion is not allowed for this key');
  scheduleDeletion(ctx, key.id, state, restoreDays);
}

/** The version that does the work of an object: the newest that is active, or the newest at all. */
export function versionOfObject({ tx }: Pick<Context, 'tx'>, { key }: Pick<KmipObject, 'key'>): KeyVersion {
  const stored = tx.keyVersions.get(key.id, tx.keyVersions.newestActive(key.id) ?? key.latestVersion);
  if (stored) return stored;
  throw new KmsError('corrupt', 'a version of a stored managed key is not there');
}

/** A copy of the object's key, which the caller overwrites after use. */
export function materialOfObject(ctx: Context, object: KmipObject): Uint8Array {
  return openVersion(ctx.tenant.keys, object.key.type, versionOfObject(ctx, object)).slice();
}
