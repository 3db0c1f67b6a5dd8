// Entries of the palette: pages, and the keyrings, transit rings, API keys and users that the session may list. The
// ranking is pure, so that it is tested without a browser.
import { type ConsolePageName, consolePages } from '../api/console-pages.ts';
import type { CallOptions, Client } from '../client/client.ts';
import type { Flags } from '../model/flags.ts';
import type { Values } from './page-path.ts';
import { ringTraits } from './text.ts';

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

/** Maximum number of entries per kind; the list pages have their own search. */
const mostOfKind = 5_000;
const atATime = 1_000;

interface AskOptions extends CallOptions {
  readonly signal: AbortSignal;
}

/** Calls `tell` with each page of entries as it arrives; fetches nothing that the flags forbid. */
export async function askForEntries(
  api: Client,
  may: Flags,
  tell: (entries: readonly PaletteEntry[]) => void,
  options: AskOptions,
): Promise<void> {
  const walks: Promise<void>[] = [];
  if (may.allows('keyring.list')) {
    walks.push(
      walk(
        (page) => api.listKeyrings(page, options),
        (ring) => ({
          kind: 'Keyring',
          name: ring.displayName,
          about: ringTraits(ring).join(', '),
          also: '',
          page: 'keyring',
          params: { name: ring.name },
        }),
      ),
    );
  }
  if (may.allows('transit.list')) {
    walks.push(
      walk(
        (page) => api.listTransitRings(page, options),
        (ring) => ({
          kind: 'Transit ring',
          name: ring.displayName,
          about: [...ringTraits(ring), ring.type].join(', '),
          also: '',
          page: 'transitRing',
          params: { name: ring.name },
        }),
      ),
    );
  }
  if (may.allows('apikey.read')) {
    walks.push(
      walk(
        (page) => api.listApiKeys(page, options),
        ({ keyid, name }) => ({
          kind: 'API key',
          name: name === '' ? keyid : name,
          also: keyid,
          page: 'apikey',
          params: { id: keyid },
        }),
      ),
    );
  }
  if (may.allows('user.read')) {
    walks.push(
      walk(
        (page) => api.listUsers(page, options),
        ({ username, displayName, id }) => ({
          kind: 'User',
          name: username,
          also: `${displayName} ${id}`,
          page: 'user',
          params: { username },
        }),
      ),
    );
  }
  await Promise.all(walks);

  async function walk<T>(
    load: (page: { readonly limit: number; readonly cursor?: string }) => Promise<Page<T>>,
    entryOf: (item: T) => PaletteEntry,
  ): Promise<void> {
    let cursor: string | undefined;
    for (let looked = 0; looked < mostOfKind; looked += atATime) {
      const page = await load({ limit: atATime, ...(cursor !== undefined && { cursor }) });
      tell(page.data.map(entryOf));
      cursor = page.pagination.nextCursor;
      if (cursor === undefined) return;
    }
  }
}

interface Page<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly nextCursor?: string };
}

/** Maximum number of entries shown. */
const mostShown = 50;

/** Entries that contain every typed word; those that begin with the typed text first. */
export function foundEntries<Entry extends Pick<PaletteEntry, 'kind' | 'name' | 'also'>>(
  entries: readonly Entry[],
  typed: string,
): Entry[] {
  const text = typed.trim().toLowerCase();
  const words = text.split(/\s+/);
  if (text === '') return entries.filter(({ kind }) => kind === 'Page').slice(0, mostShown);
  const ranked = entries.flatMap((entry) => {
    const name = entry.name.toLowerCase();
    const all = `${entry.kind} ${name} ${entry.also}`.toLowerCase();
    if (!words.every((word) => all.includes(word))) return [];
    return [{ entry, rank: name === text ? 0 : name.startsWith(text) ? 1 : name.includes(text) ? 2 : 3 }];
  });
  ranked.sort((a, b) => a.rank - b.rank);
  return ranked.slice(0, mostShown).map(({ entry }) => entry);
}
