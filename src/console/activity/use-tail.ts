// Follows the activity log: asks every few seconds for what is new, while somebody can see it.
import { useLayoutEffect } from 'hono/jsx/dom';
import type { Client } from '../../client/client.ts';
import { useState } from '../parts/state.ts';
import type { ActivityFilters } from './newest.ts';
import { emptyTail, type Tail, tailStart, withPage } from './tail.ts';

export interface Following extends Tail {
  readonly is: 'starting' | 'following' | 'paused' | 'failed';
  readonly error?: unknown;
}

export interface TailOptions {
  readonly api: Client;
  readonly filters: ActivityFilters;
  /** Of the user whose reading of the log is left out: to follow it is in the log too. */
  readonly without: string | undefined;
}

/** The most rows that are kept. */
export const mostRows = 500;
const pageSize = 200;
const pollEvery = 2_000;
const retryAfter = 10_000;

/** Begins anew when the filters change, as JSON, or who is left out. */
export function useTail({ api, filters, without }: TailOptions): Following {
  const [state, setState] = useState<Following>({ ...emptyTail, is: 'starting' });

  // An effect that is run later might be run after the part is gone, and then nobody would stop it.
  useLayoutEffect(() => {
    const stopped = new AbortController();
    void follow({ api, filters, without, signal: stopped.signal, tell: setState });
    return () => stopped.abort();
  }, [without, JSON.stringify(filters)]);

  return state;
}

interface FollowInput extends TailOptions {
  readonly signal: AbortSignal;
  readonly tell: (state: Following) => void;
}

async function follow({ api, filters, without, signal, tell }: FollowInput): Promise<void> {
  let tail = emptyTail;
  tell({ ...tail, is: 'starting' });
  while (!signal.aborted) {
    if (document.hidden) {
      tell({ ...tail, is: 'paused' });
      await untilVisible(signal);
      continue;
    }
    const start = tailStart(tail, filters.start);
    try {
      const { data, pagination } = await api.searchActivity(
        { ...filters, ...(start !== undefined && { start }), limit: pageSize },
        { signal },
      );
      const shown = data.filter(({ keyid, action }) => keyid !== without || action !== 'activity.read');
      tail = withPage(tail, shown, { hasMore: pagination.hasMore, most: mostRows });
      if (!signal.aborted) tell({ ...tail, is: 'following' });
      await pause(pollEvery, signal);
    } catch (error) {
      if (signal.aborted) return;
      tell({ ...tail, is: 'failed', error });
      await pause(retryAfter, signal);
    }
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}

function untilVisible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
    look();
  });
}
