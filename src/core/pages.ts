// Pages of lists, read beside the request's transaction: in looks of some milliseconds each, between which whatever
// else came is served. Rows come in the order of their places, which they keep, so a page has each row as it stood at
// one moment while it was read, none twice, and every one that stood all the time; rows that came or went meanwhile may
// be in it or not. Items are written as they are read: objects that wait for the last of them would be copied by the
// collector again and again.
import { longestPage } from '../model/json.ts';
import { yieldToEventLoop } from '../store/event-loop.ts';
import type { Store, Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { World } from './context.ts';

/** What reads a list. */
export interface Reader {
  readonly store: Store;
  readonly world: World;
}

/** Looks at a store, one after the other. */
export interface Looks {
  /** Runs `fn`, of a few milliseconds, between transactions. What it answers may not be durable yet. */
  look<R>(fn: (tables: Tables) => R): Promise<R>;
  /** Resolves once all that was looked at is durable, and fails where a failed write took some of it back. */
  durable(): Promise<unknown>;
}

export function looksAt(store: Store): Looks {
  const ends: Promise<void>[] = [];
  return {
    async look(fn) {
      await yieldToEventLoop();
      return new Promise((resolve, reject) => {
        // The end of a transaction tells that what it read is durable. Only the end of all of them is waited for.
        const end = store.transaction((tx) => resolve(fn(tx)));
        end.catch(reject);
        ends.push(end);
      });
    },
    durable: () => Promise.all(ends),
  };
}

/** Characters, or bytes, of a piece of an answer that is sent as it is read. */
export const pieceLength = 64 * 1024;
const encoder = new TextEncoder();

/** Items as JSON, with commas between them. */
export class WrittenItems<T> {
  readonly #shown: ((item: unknown) => unknown) | undefined;
  readonly #pieces: Uint8Array[] = [];
  #rest = '';
  #count = 0;
  #length = 0;

  /** @param shown the part of an item that is written. Default: all of it. */
  constructor(shown?: (item: T) => unknown) {
    // Cast: nothing but items of that type is added.
    this.#shown = shown as ((item: unknown) => unknown) | undefined;
  }

  get count(): number {
    return this.#count;
  }

  /** Bytes of the JSON. */
  get length(): number {
    return this.#length;
  }

  /** Answers whether there is a whole piece more. */
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

  /** The items as they were written, parsed. */
  parsed(): unknown[] {
    const text = this.between('[', ']');
    return JSON.parse(typeof text === 'string' ? text : Buffer.concat(text).toString());
  }

  /** All of them between two texts, in pieces of some 64 KiB; as a text where there is less than a piece. */
  between(before: string, after: string): string | Uint8Array[] {
    if (this.#pieces.length === 0) return before + this.#rest + after;
    return [encoder.encode(before), ...this.#pieces, encoder.encode(this.#rest + after)];
  }
}

/** A page whose items are written already. */
export interface WrittenPage<T> {
  readonly items: WrittenItems<T>;
  /** Where the next page starts; absent when this is the last one. */
  readonly next?: number;
}

/**
 * The page that `read` makes, part by part, behind what was looked at before.
 * @param shown the part of an item that is written. Default: all of it.
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
