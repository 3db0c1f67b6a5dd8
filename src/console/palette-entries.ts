// Palette entries are the places that one can go to by typing: pages, and the keyrings, transit rings, API keys and
// users whose lists the session may read. Pure but for the asking, so that the order in which they are found is tested.
import { type ConsolePageName, consolePages } from '../api/console-pages.ts';
import type { CallOptions, Client } from '../client/client.ts';
import type { Flags } from '../model/flags.ts';
import type { Values } from './page-path.ts';
import { ringTraits } from './text.ts';

export interface PaletteEntry {
  /** What it is: `Page`, `Keyring`. */
  readonly kind: string;
  /** Any text. */
  readonly name: string;
  /** What else is shown of it, such as how a ring is kept. */
  readonly about?: string;
  /** What else it is found by: an id, what a person is called. */
  readonly also: string;
  readonly page: ConsolePageName;
  readonly params?: Values;
}

interface PageNeed {
  readonly name: ConsolePageName;
  /** Of those in the menu: the operations of which one is needed to see or do anything there. */
  readonly needs?: readonly string[] | undefined;
}

/** What makes something new takes this. */
const makes: Readonly<Partial<Record<ConsolePageName, readonly string[]>>> = {
  newKeyring: ['keyring.create'],
  newApikey: ['apikey.create'],
  newUser: ['user.create'],
  newAccount: ['account.create'],
};

/** Those that stand for themselves, as far as the flags let anybody see something there. */
export function pageEntries(pages: readonly PageNeed[], may: Flags): PaletteEntry[] {
  return pages
    .filter(({ name, needs = makes[name] }) => {
      const isWhole = !consolePages[name].path.includes('{');
      return isWhole && (needs === undefined || needs.some((each) => may.allowsSome(each)));
    })
    .map(({ name }) => ({ kind: 'Page', name: consolePages[name].title, also: '', page: name }));
}

/** More of a kind are not looked through: the pages of lists have searches of their own. */
const mostOfKind = 5_000;
const atATime = 1_000;

interface AskOptions extends CallOptions {
  readonly signal: AbortSignal;
}

/** Tells of each page of names as it comes; asks for nothing that the flags forbid. */
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

/** As many as one looks through. */
const mostShown = 50;

/** Those that have every typed word; what begins like what was typed first. */
export function foundEntries(entries: readonly PaletteEntry[], typed: string): PaletteEntry[] {
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
