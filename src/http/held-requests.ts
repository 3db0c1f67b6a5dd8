// Requests that are held while they wait for approval, if the rules want that: once, for a minute at most, and in
// limited number, since each holds a connection.
import { setTimeout as pause } from 'node:timers/promises';
import type { Wait } from '../core/approval-decision.ts';
import { stateNow } from '../core/approval-standing.ts';
import type { World } from '../core/context.ts';
import type { RequestState } from '../model/approval-rules.ts';
import type { Tables } from '../store/port.ts';
import type { BodyRead } from './body.ts';
import type { KnownRequest } from './input.ts';
import type { ApiRequest } from './request.ts';

/** Held requests: in all, of one tenant, of one caller. */
const mostHeld = 64;
const mostOfTenant = 16;
const mostOfCaller = 4;
/** Milliseconds. */
const heldFor = 60_000;
const betweenLooks = 200;
/** Number of cheap checks for a new word before one in a transaction, which also knows what other nodes did. */
const quickLooks = 5;

/** A request that was held, and is tried again. */
export interface Held {
  /** The request for approval. */
  readonly id: string;
  readonly body: BodyRead | undefined;
}

/** Numbers of held requests by tenant and caller, and in all. */
class Places {
  readonly #taken = new Map<string, number>();

  take(bounds: ReadonlyMap<string, number>): boolean {
    for (const [name, most] of bounds) if ((this.#taken.get(name) ?? 0) >= most) return false;
    for (const name of bounds.keys()) this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1);
    return true;
  }

  give(bounds: ReadonlyMap<string, number>): void {
    for (const name of bounds.keys()) {
      const left = (this.#taken.get(name) ?? 0) - 1;
      if (left > 0) this.#taken.set(name, left);
      else this.#taken.delete(name);
    }
  }
}

const places = new Places();

/**
 * Waits until the request is decided. Returns its state then; undefined if it was not in time, there is no place, the
 * client is gone, or the appliance is about to close, which waits for it.
 */
export async function untilDecided(
  { id, requester }: Pick<Wait, 'id' | 'requester'>,
  { handle: { store, tenant }, open: { closing } }: Pick<KnownRequest, 'handle' | 'open'>,
  world: World,
  { isGone = () => false }: Pick<ApiRequest, 'isGone'>,
): Promise<RequestState | undefined> {
  const bounds = new Map([
    ['all', mostHeld],
    [tenant.id, mostOfTenant],
    [`${tenant.id} ${requester}`, mostOfCaller],
  ]);
  if (!places.take(bounds)) return undefined;
  const end = performance.now() + heldFor;
  const state = (tx: Tables) => stateNow(tx, id, world.now());
  let marks = '';
  try {
    for (let looks = 1; performance.now() < end; looks++) {
      await pause(betweenLooks, undefined, { ref: false, signal: closing }).catch(() => {});
      if (closing.aborted || isGone()) return undefined;
      const now = looks % quickLooks === 0 ? undefined : store.read((tx) => tx.approvalRequests.marksOf(id));
      if (now !== undefined && now === marks) continue;
      const found = await store.transaction(state);
      if (found !== 'pending') return isGone() ? undefined : found;
      marks = now ?? marks;
    }
    return undefined;
  } finally {
    places.give(bounds);
  }
}
