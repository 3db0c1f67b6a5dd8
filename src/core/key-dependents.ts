// Dependents of a managed key: their uses are counted, and told before the key goes. A key that was used in the last
// day goes only if the caller says so. A key that goes waits out its days first.
import type { Answer } from '../api/endpoints.ts';
import { KmsError } from '../errors.ts';
import { type KeyState, stateAfter } from '../model/key-states.ts';
import { timestamp } from '../model/timestamp.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import type { Context } from './context.ts';

/** In milliseconds. */
export const dayLength = 24 * 60 * 60 * 1000;

/** Counts one use of a version by the caller. */
export function countUse(ctx: Context, { id: keyId }: ManagedKey, version: number, operation: string): void {
  const { tx, caller, dialect = 'native', world } = ctx;
  tx.managedKeyUses.count({ keyId, version, caller: caller.id, dialect, operation }, world.now());
}

/** The uses of the key since then, in epoch milliseconds. */
export function dependentsOf(
  { tx }: Pick<Context, 'tx'>,
  { id }: ManagedKey,
  since: number,
): Answer<'listManagedKeyDependents'> {
  const dependents = tx.managedKeyUses.since(id, since).map(({ usedAt, keyId: _, ...use }) => ({
    ...use,
    lastUsedAt: timestamp(usedAt),
  }));
  return { dependents };
}

/**
 * Throws `conflict` if the key was used in the last 24 hours, or with `version` that version, naming how many callers
 * used it. `what` is about to happen to it.
 */
export function needUnused(ctx: Context, key: ManagedKey, what: string, version?: number): void {
  const uses = ctx.tx.managedKeyUses
    .since(key.id, ctx.world.now() - dayLength)
    .filter((use) => version === undefined || use.version === version);
  if (uses.length === 0) return;
  const callers = new Set(uses.map(({ caller }) => caller)).size;
  const who = callers === 1 ? '1 caller' : `${callers} callers`;
  throw new KmsError(
    'conflict',
    `${who} used the key in the last 24 hours: say \`used: true\` if it is to be ${what} all the same`,
  );
}

/**
 * Sets a key aside that is in this state, for as many days as it can be restored. Returns when it is destroyed, in
 * epoch milliseconds. Throws `conflict` if its state does not allow it.
 */
export function scheduleDeletion(
  { tx, world }: Pick<Context, 'tx' | 'world'>,
  id: string,
  state: KeyState,
  days: number,
): number {
  const after = stateAfter(state, 'schedule-deletion', undefined);
  if ('problem' in after) throw new KmsError('conflict', after.problem);
  const now = world.now();
  const destroyAt = now + days * dayLength;
  tx.managedKeys.setState(id, {
    state: after.state,
    formerState: state,
    deletedAt: now,
    destroyAt,
    updatedAt: now,
  });
  return destroyAt;
}
