// Pages of lists, read beside the request's transaction: in looks of some milliseconds each, between which whatever
// else came is served. Rows come in the order of their places, which they keep, so a page has each row as it stood at
// one moment while it was read, none twice, and every one that stood all the time; rows that came or went meanwhile may
// be in it or not.
import type { Store, Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import { longestPage, type Part } from '../store/tables/page.ts';
import { othersTurn } from '../store/turns.ts';
import type { World } from './context.ts';

/** What reads a list. */
export interface Reader {
  readonly store: Store;
  readonly world: World;
}

/** Looks at a store, one after the other. */
interface Looks {
  /** Runs `fn`, of a few milliseconds, between transactions. What it answers may not be durable yet. */
  look<R>(fn: (tables: Tables) => Promise<R>): Promise<R>;
  /** Resolves once all that was looked at is durable, and fails where a failed write took some of it back. */
  durable(): Promise<unknown>;
}

export function looksAt(store: Store): Looks {
  const ends: Promise<void>[] = [];
  return {
    async look(fn) {
      await othersTurn();
      return new Promise((resolve, reject) => {
        // Not a peek: one that ends tells that what it read is durable. Only the end of all of them is waited for.
        const end = store.transaction(async (tx) => resolve(await fn(tx)));
        end.catch(reject);
        ends.push(end);
      });
    },
    durable: () => Promise.all(ends),
  };
}

/** The page that `read` makes, part by part; `first` are looks whose findings it rests on. */
export async function readInParts<T>(
  looks: Looks,
  { limit, after }: PageRequest,
  read: (tables: Tables, part: PageRequest) => Promise<Part<T>>,
): Promise<Page<T>> {
  const items: T[] = [];
  let length = 0;
  for (let next = after; ; ) {
    const asked = { limit: limit - items.length, ...(next !== undefined && { after: next }) };
    const part = await looks.look((tables) => read(tables, asked));
    items.push(...part.items);
    length += part.length;
    next = part.next;
    if (next !== undefined && items.length < limit && length < longestPage) continue;
    await looks.durable();
    return next === undefined ? { items } : { items, next };
  }
}
