// Changes of managed keys that take something away or give it back: states, aliases, and the destruction of versions.
import type { Answer, Body } from '../api/endpoints.ts';
import { fieldsError, KmsError } from '../errors.ts';
import { type KeyState, type keyMoves, stateAfter } from '../model/key-states.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import { authorizeFurther } from './authorization.ts';
import type { Context } from './context.ts';
import { dependentsOf, needUnused } from './key-dependents.ts';
import { needManyValues } from './kmip-names.ts';
import {
  findManagedKey,
  giveAlias,
  keyRef,
  livingKey,
  mustFind,
  type NamedKey,
  shown,
  stateOf,
  versionRef,
} from './managed-keys.ts';

type Move = (typeof keyMoves)[number];
type AskedState = Body<'setManagedKeyState'>['state'];

/** The move that leads to a state somebody asks for. */
function moveTo(state: AskedState, from: KeyState): Move {
  if (state === 'active') return from === 'suspended' ? 'resume' : 'activate';
  const moves = { suspended: 'suspend', deactivated: 'deactivate', compromised: 'compromise' } as const;
  return moves[state];
}

export function setManagedKeyState(
  ctx: Context,
  { key: ref, state, version, used = false }: NamedKey & Body<'setManagedKeyState'>,
): Answer<'setManagedKeyState'> {
  const { tx, world } = ctx;
  const key = livingKey(ctx, ref);
  // KMIP shows the state of the whole object alone.
  if (version !== undefined) needManyValues(tx, key.id);
  const stored = version === undefined ? undefined : versionOf(ctx, key, version);
  const before = stored?.state ?? stateOf(ctx, key);
  if (before === state) return { key: shown(ctx, key) };
  const after = stateAfter(before, moveTo(state, before), undefined);
  const subject = version === undefined ? 'the key' : 'the version';
  if ('problem' in after) throw new KmsError('conflict', after.problem.replace('the key', subject));
  if (state === 'suspended' && !used) needUnused(ctx, key, 'suspended', version);
  if (stored) tx.keyVersions.setState(stored.id, { state: after.state, formerState: undefined, deletedAt: undefined });
  else {
    const now = world.now();
    // A date that would move it on at once no longer counts.
    const change = { ...key, activateAt: after.state === 'active' ? undefined : key.activateAt };
    tx.managedKeys.update(key.id, { ...change, updatedAt: now });
    tx.managedKeys.setState(key.id, {
      state: after.state,
      formerState: undefined,
      deletedAt: undefined,
      destroyAt: undefined,
      updatedAt: now,
    });
  }
  ctx.note({
    object: keyRef(key),
    changed: ['state'],
    state: after.state,
    ...(stored && { objects: [versionRef(stored)], keyVersion: stored.version }),
  });
  return { key: shown(ctx, mustFind(tx, key.id)) };
}

/** Throws `not-found` for a version that is not there. */
export function versionOf({ tx }: Pick<Context, 'tx'>, key: ManagedKey, version: number) {
  const stored = tx.keyVersions.get(key.id, version);
  if (stored) return stored;
  throw new KmsError('not-found', `the key has no version ${version}`);
}

/** The refusal of an alias that must be new. */
export const aliasTaken = 'a managed key has this alias already';

/** An alias of another key moves to this one, if the caller may configure both, and unless it must be new. */
export function addManagedKeyAlias(
  ctx: Context,
  { key: ref, alias, isNew = false }: NamedKey & Body<'addManagedKeyAlias'>,
): Answer<'addManagedKeyAlias'> {
  const { tx } = ctx;
  const key = livingKey(ctx, ref);
  const holder = tx.managedKeys.aliasOf(alias.toLowerCase());
  if (isNew && holder !== undefined) throw fieldsError('conflict', [{ field: 'alias', message: aliasTaken }]);
  const other = holder === undefined || holder === key.id ? undefined : tx.managedKeys.byId(holder);
  if (other) {
    ctx.note({ object: keyRef(key), objects: [keyRef(other)] });
    authorizeFurther(ctx, 'key.config', { kind: 'hidden', name: other.name }, keyRef(other), [alias]);
    tx.managedKeys.removeAlias(alias.toLowerCase());
  }
  giveAlias(ctx, key, alias);
  ctx.note({ object: keyRef(key), changed: ['aliases'], ...(other && { objects: [keyRef(other)] }) });
  return { key: shown(ctx, key) };
}

export function removeManagedKeyAlias(
  ctx: Context,
  { key: ref, alias }: NamedKey & { readonly alias: string },
): Answer<'removeManagedKeyAlias'> {
  const { tx } = ctx;
  const key = findManagedKey(tx, ref);
  const lower = alias.toLowerCase();
  if (tx.managedKeys.aliasOf(lower) !== key.id) throw new KmsError('not-found', 'the key has no such alias');
  tx.managedKeys.removeAlias(lower);
  ctx.note({ object: keyRef(key), changed: ['aliases'] });
  return { key: shown(ctx, key) };
}

/** Versions destroyed by one request. */
const mostTrimmed = 1000;

export function trimManagedKey(
  ctx: Context,
  { key: ref, minAvailableVersion }: NamedKey & Body<'trimManagedKey'>,
): Answer<'trimManagedKey'> {
  const { tx } = ctx;
  const key = livingKey(ctx, ref);
  const { minDecryptVersion: decrypts, minEncryptVersion: encrypts, latestVersion } = key;
  if (encrypts === 0)
    throw new KmsError(
      'conflict',
      'minimum available version cannot be set when minimum encryption version is not set',
    );
  if (minAvailableVersion > latestVersion) {
    throw new KmsError(
      'invalid',
      `cannot set min available version of ${minAvailableVersion}, latest key version is ${latestVersion}`,
    );
  }
  if (minAvailableVersion > Math.min(decrypts, encrypts)) {
    throw new KmsError(
      'conflict',
      'minimum available version cannot be higher than minimum decryption version or minimum encryption version',
    );
  }
  const old = tx.keyVersions.between(key.id, minAvailableVersion - 1, 1).filter(({ state }) => state !== 'destroyed');
  if (old.length > mostTrimmed) {
    throw new KmsError('conflict', `expected at most ${mostTrimmed} versions to destroy at once, got ${old.length}`);
  }
  for (const { id } of old) tx.keyVersions.destroy(id);
  ctx.note({ object: keyRef(key), changed: ['versions'], objects: old.map(versionRef), objectCount: old.length });
  return { key: shown(ctx, mustFind(tx, key.id)) };
}

export function listManagedKeyDependents(
  ctx: Context,
  { key: ref, since = '0' }: NamedKey & { readonly since?: string | undefined },
): Answer<'listManagedKeyDependents'> {
  return dependentsOf(ctx, findManagedKey(ctx.tx, ref), Number(since));
}
