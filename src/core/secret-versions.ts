// Versions of secrets, deleted so that they can be restored, or destroyed for good. Other versions stay as they are.
import type { Answer, Body } from '../api/endpoints.ts';
import { KmsError } from '../errors.ts';
import { type KeyState, stateAfter } from '../model/key-states.ts';
import type { KeyVersion } from '../store/tables/managed-key-versions.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import type { Context } from './context.ts';
import { needManyValues } from './kmip-names.ts';
import { keyRef, versionRef } from './managed-keys.ts';
import { findSecret, type SecretAt } from './secrets.ts';

/** Without versions, the latest. */
export function deleteSecretVersions(
  ctx: Context,
  { path, versions }: SecretAt & Body<'deleteSecretVersions'>,
): Answer<'deleteSecretVersions'> {
  const key = findSecret(ctx, path);
  const now = ctx.world.now();
  return change(ctx, key, versions ?? [key.latestVersion], 'pending-deletion', (stored) => {
    const after = stateAfter(stored.state, 'schedule-deletion', undefined);
    if ('problem' in after) return false;
    const { id, state: formerState } = stored;
    ctx.tx.keyVersions.setState(id, { state: after.state, formerState, deletedAt: now });
    return true;
  });
}

export function restoreSecretVersions(
  ctx: Context,
  { path, versions }: SecretAt & Body<'restoreSecretVersions'>,
): Answer<'restoreSecretVersions'> {
  return change(ctx, findSecret(ctx, path), versions, undefined, ({ id, state, formerState }) => {
    const after = stateAfter(state, 'restore', formerState);
    if ('problem' in after) return false;
    ctx.tx.keyVersions.setState(id, { state: after.state, formerState: undefined, deletedAt: undefined });
    return true;
  });
}

export function destroySecretVersions(
  ctx: Context,
  { path, versions }: SecretAt & Body<'destroySecretVersions'>,
): Answer<'destroySecretVersions'> {
  return change(ctx, findSecret(ctx, path), versions, 'destroyed', ({ id, state }) => {
    if (state === 'destroyed') return false;
    ctx.tx.keyVersions.destroy(id);
    return true;
  });
}

/** Changes those of the versions that are there; `one` says whether it changed the version. */
function change(
  ctx: Context,
  key: ManagedKey,
  versions: readonly number[],
  state: KeyState | undefined,
  one: (stored: KeyVersion) => boolean,
): { versions: number[] } {
  if (state !== undefined) needManyValues(ctx.tx, key.id);
  if (state !== undefined && !key.deletionAllowed)
    throw new KmsError('conflict', 'deletion is not allowed for this key');
  const found = [...new Set(versions)].flatMap((version) => ctx.tx.keyVersions.get(key.id, version) ?? []);
  const changed = found.filter(one);
  ctx.note({
    object: keyRef(key),
    changed: ['versions'],
    ...(state !== undefined && { state }),
    objects: changed.map(versionRef),
    objectCount: changed.length,
  });
  return { versions: changed.map(({ version }) => version) };
}
