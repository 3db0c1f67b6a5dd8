// Entries of the palette: pages, and the keyrings, managed keys, API keys and users that the session may list. The
// ranking is pure, so that it is tested without a browser.
import { type ConsolePageName, consolePages } from '../api/console-pages.ts';
import type { Flags } from '../model/flags.ts';
import type { Names } from './kept-names.ts';
import type { Values } from './page-path.ts';
import { countText, ringTraits } from './text.ts';

export interface PaletteEntry {
  /** Kind of entry: `Page`, `Keyring`. */
  readonly kind: string;
  /** May be any text. */
  readonly name: string;
  /** Additional text shown, such as a ring's custody. */
  readonly about?: string;
  /** Additional text to search in: an id, a person's name. */
  readonly also: string;
  readonly page: ConsolePageName;
  readonly params?: Values;
}

interface PageNeed {
  readonly name: ConsolePageName;
  /** For pages in the menu: operations of which at least one is needed to see or do anything there. */
  readonly needs?: readonly string[] | undefined;
}

/** Flags needed by pages that create something. */
const makes: Readonly<Partial<Record<ConsolePageName, readonly string[]>>> = {
  newKeyring: ['keyring.create'],
  newApikey: ['apikey.create'],
  newUser: ['user.create'],
  newAccount: ['account.create'],
  newApprovalRule: ['approval.rule'],
};

/** Pages that need no parameters, as far as the flags let the user see anything there. */
export function pageEntries(pages: readonly PageNeed[], may: Flags): PaletteEntry[] {
  return pages
    .filter(({ name, needs = makes[name] }) => {
      const isWhole = !consolePages[name].path.includes('{');
      return isWhole && (needs === undefined || needs.some((each) => may.allowsSome(each)));
    })
    .map(({ name }) => ({ kind: 'Page', name: consolePages[name].title, also: '', page: name }));
}

/** Entries of the names that the session may list. */
export function entriesOf({ keyrings = [], managedKeys = [], apikeys = [], users = [] }: Names): PaletteEntry[] {
  return [
    ...keyrings.map(
      (ring): PaletteEntry => ({
        kind: 'Keyring',
        name: ring.displayName,
        about: ringTraits({ ...ring, custody: 'client' }).join(', '),
        also: '',
        page: 'keyring',
        params: { name: ring.name },
      }),
    ),
    ...managedKeys.map(
      (ring): PaletteEntry => ({
        kind: 'Managed key',
        name: ring.displayName,
        about: [...ringTraits({ custody: 'server' }), ring.type].join(', '),
        also: '',
        page: 'managedKey',
        params: { name: ring.name },
      }),
    ),
    ...apikeys.map(
      ({ keyid, name }): PaletteEntry => ({
        kind: 'API key',
        name: name === '' ? keyid : name,
        also: keyid,
        page: 'apikey',
        params: { id: keyid },
      }),
    ),
    ...users.map(
      ({ username, displayName, id }): PaletteEntry => ({
        kind: 'User',
        name: username,
        also: `${displayName} ${id}`,
        page: 'user',
        params: { username },
      }),
    ),
  ];
}

/** Maximum number of entries shown. */
const mostShown = 50;

interface FoundEntries<Entry> {
  /** The first of them. */
  readonly shown: readonly Entry[];
  /** Number of all. */
  readonly total: number;
}

/** Entries that contain every typed word; those that begin with the typed text first. */
export function foundEntries<Entry extends Pick<PaletteEntry, 'kind' | 'name' | 'also'>>(
  entries: readonly Entry[],
  typed: string,
): FoundEntries<Entry> {
  const all = rankedEntries(entries, typed);
  return { shown: all.slice(0, mostShown), total: all.length };
}

/** The line below the list. `isAsking`: names are still to come. */
export function countLine({ shown, total }: FoundEntries<unknown>, isAsking: boolean): string {
  if (total === 0) return isAsking ? 'Looking…' : 'Nothing that you may see has this name.';
  const count = total === 1 ? '1 place' : `${countText(total)} places`;
  const some = shown.length < total ? `The first ${shown.length} of ${count}. Type more to find others.` : `${count}.`;
  return `${some} Choose with the arrow keys, open with Enter.`;
}

function rankedEntries<Entry extends Pick<PaletteEntry, 'kind' | 'name' | 'also'>>(
  entries: readonly Entry[],
  typed: string,
): Entry[] {
  const text = typed.trim().toLowerCase();
  const words = text.split(/\s+/);
  if (text === '') return entries.filter(({ kind }) => kind === 'Page');
  const ranked = entries.flatMap((entry) => {
    const name = entry.name.toLowerCase();
    const all = `${entry.kind} ${name} ${entry.also}`.toLowerCase();
    if (!words.every((word) => all.includes(word))) return [];
    return [{ entry, rank: name === text ? 0 : name.startsWith(text) ? 1 : name.includes(text) ? 2 : 3 }];
  });
  ranked.sort((a, b) => a.rank - b.rank);
  return ranked.map(({ entry }) => entry);
}
