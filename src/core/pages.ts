// Pages of lists, read outside the request's transaction: in reads of a few milliseconds each, between which other
// requests are served. Rows come in the order of their places, which never change, so a page has each row as it stood
// at one moment while it was read, none twice, and every row that existed throughout; rows added or removed in the
// meantime may be missing or not. Items are serialized as they are read: objects kept until the last one would be
// copied by the garbage collector again and again.
import { longestPage } from '../model/json.ts';
import { yieldToEventLoop } from '../store/event-loop.ts';
import type { Store, Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { World } from './context.ts';

/** Context for reading a list. */
export interface Reader {
  readonly store: Store;
  readonly world: World;
}

/** Sequential reads of a store. */
export interface Looks {
  /** Runs `fn`, for at most a few milliseconds, in a transaction of its own. Its result may not be durable yet. */
  look<R>(fn: (tables: Tables) => R): Promise<R>;
  /** Resolves once everything that was read is durable; rejects if a failed write rolled some of it back. */
  durable(): Promise<unknown>;
}

export function looksAt(store: Store): Looks {
  const ends: Promise<void>[] = [];
  return {
    async look(fn) {
      await yieldToEventLoop();
      return new Promise((resolve, reject) => {
        // A transaction resolves when what it read is durable. Only the end of all of them is waited for.
        const end = store.transaction((tx) => resolve(fn(tx)));
        end.catch(reject);
        ends.push(end);
      });
    },
    durable: () => Promise.all(ends),
  };
}

/** Characters, or bytes, per piece of a streamed answer. */
export const pieceLength = 64 * 1024;
const encoder = new TextEncoder();

/** Items as JSON, with commas between them. */
export class WrittenItems<T> {
  readonly #shown: ((item: unknown) => unknown) | undefined;
  readonly #pieces: Uint8Array[] = [];
  #rest = '';
  #count = 0;
  #length = 0;

  /** @param shown selects the part of an item that is written. Default: all of it. */
  constructor(shown?: (item: T) => unknown) {
    // Cast: only items of that type are added.
    this.#shown = shown as ((item: unknown) => unknown) | undefined;
  }

  get count(): number {
    return this.#count;
  }

  /** Bytes of the JSON. */
  get length(): number {
    return this.#length;
  }

  /** Returns whether another whole piece is complete. */
  add(item: T): boolean {
    const text = JSON.stringify(this.#shown ? this.#shown(item) : item);
    this.#rest += this.#count === 0 ? text : `,${text}`;
    this.#count++;
    this.#length += Buffer.byteLength(text) + 1;
    if (this.#rest.length < pieceLength) return false;
    this.#pieces.push(encoder.encode(this.#rest));
    this.#rest = '';
    return true;
  }

  /** The written items, parsed again. */
  parsed(): unknown[] {
    const text = this.between('[', ']');
    return JSON.parse(typeof text === 'string' ? text : Buffer.concat(text).toString());
  }

  /** All items between two texts, in pieces of some 64 KiB; a plain text if it is less than a piece. */
  between(before: string, after: string): string | Uint8Array[] {
    if (this.#pieces.length === 0) return before + this.#rest + after;
    return [encoder.encode(before), ...this.#pieces, encoder.encode(this.#rest + after)];
  }
}

/** A page whose items are already serialized. */
export interface WrittenPage<T> {
  readonly items: WrittenItems<T>;
  /** Start of the next page; absent on the last one. */
  readonly next?: number;
}

/**
 * The page that `read` makes, part by part, after the reads already in `looks`.
 * @param shown selects the part of an item that is written. Default: all of it.
 */
export async function readInParts<T>(
  looks: Looks,
  { limit, after }: PageRequest,
  read: (tables: Tables, part: PageRequest) => Page<T>,
  shown?: (item: T) => unknown,
): Promise<WrittenPage<T>> {
  const items = new WrittenItems<T>(shown);
  for (let next = after; ; ) {
    const asked = { limit: limit - items.count, ...(next !== undefined && { after: next }) };
    const part = await looks.look((tables) => read(tables, asked));
    for (const item of part.items) items.add(item);
    next = part.next;
    if (next !== undefined && items.count < limit && items.length < longestPage) continue;
    await looks.durable();
    return next === undefined ? { items } : { items, next };
  }
}
