// A shipped directory as a source to restore from: its newest state, or the last one before a given time.
import { basename, dirname, join } from 'node:path';
import { equalBytes } from '../crypto/bytes.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import { type KeyOptions, unseal } from '../custody/unsealer.ts';
import { KmsError } from '../errors.ts';
import { longestSeal, sealFile, sealName, systemDir } from '../platform/data-dir.ts';
import { listedFiles } from '../platform/file-ports.ts';
import { type ForeignFiles, foreignFiles } from '../platform/foreign-files.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import { pieces } from './format.ts';
import { lackOf, lifeBeside, parted } from './lives.ts';
import { type ExpectedStore, type Proof, proveStores } from './prove.ts';
import type { RestoredFile, RestoreSource } from './restore-source.ts';
import {
  arrived,
  filesUpTo,
  journalFile,
  livesNamed,
  type Point,
  parseShippedDirectory,
  readJournal,
  type ShippedDirectory,
  type ShippedPlace,
  shippedSeal,
} from './ship-journal.ts';
import { journalBytes, mostLives, mostNames } from './shipped-bounds.ts';
import { restoredSegments } from './shipped-segments.ts';

/**
 * `path` is the directory given to `--ship-to`, or one of those in it. Throws `refused` for the former if two lives
 * shipped there, since it is not clear which counts.
 */
export async function shippedSource(
  path: string,
  keys: KeyOptions,
  to?: number,
): Promise<{ unsealed: OpenedSeal; source: RestoreSource }> {
  const root = rootOf(path);
  const lives = foreignFiles({ path: root });
  const directories = await findDirectories(path, lives);
  let earliest: number | undefined;
  for (const directory of directories) {
    const { name } = directory;
    const files = lives.beneath(name);
    const lack = await lackOf(files);
    // Nothing has arrived there yet, at most a fence.
    if (lack === 'nothing') continue;
    if (lack !== undefined) throw unread(path, root, name, lack, directories.length);
    const opened = (bytes: Uint8Array) => unseal(bytes, `the seal in ${join(root, name)}`, keys);
    const found = await files.read(sealFile, longestSeal);
    let unsealed = await opened(found);
    const points = await pointsOf(files, name, unsealed.seal);
    const seal = await shippedSeal(files, points);
    // Shipping was cut off between the point and its seal.
    if (!equalBytes(seal, found)) {
      unsealed.seal.wipe();
      unsealed = await opened(seal);
    }
    if (points.length === 0) {
      unsealed.seal.wipe();
      throw unread(
        path,
        root,
        name,
        `no line of its journal, ${journalFile}, verifies, as in a copy under another name`,
        directories.length,
      );
    }
    const upTo = to === undefined ? points : points.slice(0, points.findLastIndex(({ at }) => at <= to) + 1);
    if (upTo.length > 0) {
      const held = {
        own: unsealed.seal.keysFor(systemDir),
        openBeside: (each: string) => openBeside(lives, each, keys),
      };
      const beside = await lifeBeside((each) => lives.beneath(each), directories, directory, held);
      if (beside) unsealed.seal.wipe();
      if (beside) throw parted(beside, directory, root, 'kms restore');
      return { unsealed, source: await sourceAt(files, seal, unsealed.seal, upTo) };
    }
    earliest = points[0]?.at ?? earliest;
    unsealed.seal.wipe();
  }
  const oldest =
    earliest === undefined ? 'nothing has arrived there yet' : `the earliest is ${new Date(earliest).toISOString()}`;
  throw new KmsError('refused', `${path} holds no state of that time: ${oldest}`, {
    hint: 'give a later time with --to',
  });
}

/** The error for a life that may be later than all that can be read. */
function unread(path: string, root: string, name: string, why: string, lives: number): KmsError {
  const isNamed = lives < 2;
  return new KmsError('refused', `${path}: ${name}: ${why}; nothing was restored`, {
    hint: isNamed
      ? 'restore from a backup, or from another copy of what was shipped'
      : `it may be the latest life, damaged, or somebody else's: name the life that is meant, as ${root}/LIFE`,
  });
}

/** Opens the seal in a life's directory with the same sources of the key, but never prompts. */
export async function openBeside(
  lives: ForeignFiles,
  name: string,
  { data, keys: { askPassphrase: _, ...keys } }: Pick<KeyOptions, 'data' | 'keys'>,
): Promise<Seal> {
  const bytes = await lives.beneath(name).read(sealFile, longestSeal);
  return (await unseal(bytes, `the seal in ${name}`, { data, keys })).seal;
}

/** The directory given to `--ship-to`; `path` is that directory, or a life in it. */
export function rootOf(path: string): string {
  return parseShippedDirectory(basename(path)) ? dirname(path) : path;
}

/** The lives meant by `path`, the highest epoch first. */
export async function findDirectories(
  path: string,
  lives: Pick<ForeignFiles, 'names'> & Partial<Pick<ForeignFiles, 'beneath'>>,
): Promise<readonly ShippedDirectory[]> {
  const own = parseShippedDirectory(basename(path));
  if (own) return [own];
  const names = await lives.names('.');
  if (names.length > mostNames) {
    throw new KmsError('refused', `${path} has ${names.length} entries, expected at most ${mostNames}`, {
      hint: 'find out who made them, and move them away; or name the right life in it',
    });
  }
  let found = livesNamed(names);
  const appliancesIn = (): ReadonlySet<string> => new Set(found.map(({ appliance }) => appliance));
  if (appliancesIn().size > 1 && found.length <= mostLives) {
    const isHeld = await Promise.all(found.map(({ name }) => hasArrived(lives, name)));
    found = found.filter((_, at) => isHeld[at]);
  }
  const appliances = appliancesIn();
  if (appliances.size > 1) {
    throw new KmsError('refused', `${path} holds what several appliances shipped: ${[...appliances].join(', ')}`, {
      hint: 'name one of the directories in it',
    });
  }
  if (found.length === 0) {
    throw new KmsError('refused', `${path} is not a directory that an appliance shipped to`, {
      hint: 'give a backup file, or the directory of `kms serve --ship-to`',
    });
  }
  if (found.length <= mostLives) return found;
  throw new KmsError(
    'refused',
    `${path}: ${found.length} directories are named like lives, expected at most ${mostLives}`,
    {
      hint: 'find out who made them, and move them away; or name the right one of them',
    },
  );
}

/** Whether anything lies in a directory that is named like a life; a file or a link of that name is none. */
async function hasArrived(lives: Partial<Pick<ForeignFiles, 'beneath'>>, name: string): Promise<boolean> {
  const files = lives.beneath?.(name);
  const lack = files && (await lackOf(files));
  return lack !== 'nothing' && lack !== 'it is no directory';
}

export async function pointsOf(files: Files, directory: string, seal: Seal): Promise<readonly Point[]> {
  if (!(await files.exists(journalFile))) return [];
  return (await readJournal(await journalBytes(files, journalFile), directory, seal.keysFor(systemDir))).points;
}

/** The state after the last of `points`. */
export async function sourceAt(
  files: Files,
  sealBytes: Uint8Array,
  seal: Seal,
  points: readonly Point[],
): Promise<RestoreSource> {
  const stores: RestoreSource['stores'][number][] = [];
  for (const { files: shipped, ...store } of await storesAt(files, seal, points)) {
    const restored: RestoredFile[] = [];
    for (const file of shipped) restored.push(await restoredFile(files, file));
    stores.push({ ...store, files: restored });
  }
  const madeAt = new Date(points.at(-1)?.at ?? 0).toISOString();
  return { seal: sealBytes, stores, summary: {}, origin: { kind: 'shipped', madeAt } };
}

type StoreAt = ExpectedStore & { readonly files: readonly Shipped[] };

async function storesAt(files: Files, seal: Seal, points: readonly Point[]): Promise<readonly StoreAt[]> {
  const stores: StoreAt[] = [];
  for (const [dir, place] of arrived(points)) {
    const { uid, sequence } = place;
    // The tenant has been erased since: its keys are gone.
    if (!seal.stores.includes(sealName(dir))) continue;
    const restored = [...filesUpTo(dir, place), ...(await segmentsOf(files, dir, place, seal))];
    stores.push({ dir, uid, ...(sequence === undefined ? {} : { sequence }), files: restored });
  }
  return stores;
}

export interface ShippedStores {
  /** Like those of a data directory; nothing is copied, and writing is refused. */
  readonly files: Files;
  readonly stores: readonly ExpectedStore[];
}

/** The stores of a state, readable in place. */
export async function shippedStores(files: Files, seal: Seal, points: readonly Point[]): Promise<ShippedStores> {
  const stores = await storesAt(files, seal, points);
  const listed = new Map<string, { readonly bytes: number; readonly from: string }>();
  for (const { name, from = name, bytes } of stores.flatMap((store) => store.files)) {
    listed.set(name, { from, bytes: bytes ?? (await files.size(from)) });
  }
  const view = listedFiles(listed, 'a shipped directory is not written to', (fileOf) => ({
    async readAt(name, offset, length) {
      const { from, bytes } = fileOf(name);
      return files.readAt(from, offset, Math.max(0, Math.min(length, bytes - offset)));
    },
    async read(name) {
      const { from, bytes } = fileOf(name);
      return files.readAt(from, 0, bytes);
    },
  }));
  return { files: view, stores };
}

/** Proves the stores of a state, in place. */
export async function proveShipped(
  files: Files,
  wasm: Uint8Array,
  seal: Seal,
  points: readonly Point[],
  proving?: Pick<Parameters<typeof proveStores>[0], 'onStore' | 'from'>,
): Promise<Proof> {
  const { files: view, stores } = await shippedStores(files, seal, points);
  const keysOf = (dir: string) => seal.keysFor(sealName(dir));
  return proveStores({ files: view, wasm, keysOf, ...proving }, stores, {});
}

interface Shipped {
  readonly name: string;
  readonly bytes?: number;
  /** The name under which it is shipped. */
  readonly from?: string;
}

async function restoredFile(files: Files, { name, bytes: arrived, from = name }: Shipped): Promise<RestoredFile> {
  const bytes = arrived ?? (await files.size(from));
  return { name, bytes, read: () => pieces(files, from, bytes) };
}

/** The segments counted by the place. */
async function segmentsOf(files: Files, dir: string, place: ShippedPlace, seal: Seal): Promise<Shipped[]> {
  const found = await restoredSegments(files, dir, place, seal.keysFor(sealName(dir)));
  return [...found].map(([own, epoch]) => ({ name: `${dir}/${own}`, from: `${dir}/${own}.${epoch}` }));
}
