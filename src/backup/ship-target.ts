// The directory to ship to: its contents, and how files get there so that after a crash of either side it has what the
// journal's last line says, and nothing that could be taken for more.
import { KmsError } from '../errors.ts';
import { sealFile } from '../platform/data-dir.ts';
import { decodeHeader } from '../store/activity/segment.ts';
import type { Files } from '../store/files.ts';
import type { HeldFile } from '../store/port.ts';
import { decodeFileHeader, headerLength, listStoreFiles, logName, snapshotName } from '../store/store-files.ts';
import { isSegment, pieces } from './format.ts';
import {
  arrived,
  isLog,
  type Journal,
  journalFile,
  nextSealFile,
  type Point,
  PointChain,
  type PointKeys,
  parseShippedSegment,
  readJournal,
  type ShippedPlace,
  sealAfter,
  shippedSeal,
  shippedSegment,
  storesGone,
} from './ship-journal.ts';
import { journalBytes, longestJournal } from './shipped-bounds.ts';

/** Oldest files still needed of a store: the snapshot, and the first record of a segment. */
type Needed = Required<Pick<ShippedPlace, 'snapshot' | 'from'>>;

export class ShipTarget {
  /** Files of the directory. */
  readonly #files: Files;
  readonly #directory: string;
  readonly #mostBytes: number;
  /** Files that are there, and whether this process wrote or compared them: then they are complete. */
  readonly #whole = new Map<string, boolean>();
  /** The keys under which files of the source were last seen to be there. */
  readonly #known = new Map<string, string>();
  /** Bytes of each log that are there. */
  readonly #logs = new Map<string, number>();
  #points: Point[] = [];
  #places = new Map<string, ShippedPlace>();
  #chain: PointChain;
  #journalBytes = 0;

  /** @param mostBytes size of the journal at which it forgets half of its points. */
  constructor(files: Files, directory: string, keys: PointKeys, mostBytes = longestJournal / 2) {
    this.#files = files;
    this.#directory = directory;
    this.#mostBytes = mostBytes;
    this.#chain = new PointChain(directory, keys);
  }

  get points(): readonly Point[] {
    return this.#points;
  }

  /** Arrived places, by store directory. */
  get places(): ReadonlyMap<string, ShippedPlace> {
    return this.#places;
  }

  /** Reads the existing files, and removes what came after the last point. */
  async open(keys: PointKeys): Promise<void> {
    await this.#files.makeDir('.');
    const journal = await this.#readJournal(keys);
    this.#points = [...journal.points];
    this.#places = arrived(journal.points);
    this.#chain = journal.chain;
    if (await this.#files.exists(nextSealFile)) await this.adoptSeal(await shippedSeal(this.#files, this.#points));
    for (const [dir, place] of this.#places) await this.#openStore(dir, place);
  }

  async #readJournal(keys: PointKeys): Promise<Journal> {
    const exists = await this.#files.exists(journalFile);
    const bytes = exists ? await journalBytes(this.#files, journalFile) : new Uint8Array();
    const journal = await readJournal(bytes, this.#directory, keys);
    // Always rewritten: bytes that an fsync failed to write still show up, but are lost when the power fails.
    await this.#files.replace(journalFile, bytes.subarray(0, journal.bytes));
    this.#journalBytes = journal.bytes;
    return journal;
  }

  async #openStore(dir: string, { log, offset }: ShippedPlace): Promise<void> {
    const files = this.#files;
    // An existing directory entry may not be durable.
    await files.makeDir(dir);
    await files.syncDir(dir);
    const { snapshots, logs, leftovers } = await listStoreFiles(files, dir);
    for (const name of leftovers) await files.remove(name);
    for (const generation of snapshots) this.#whole.set(snapshotName(dir, generation), false);
    for (const name of await files.list(dir)) this.#whole.set(`${dir}/${name}`, false);
    for (const generation of logs) {
      const name = logName(dir, generation);
      this.#whole.delete(name);
      // Data after the last point may be torn; the source still has it.
      if (generation > log) {
        await files.remove(name);
        continue;
      }
      let size = await files.size(name);
      if (generation === log && size < offset) throw shorter(name, size, offset);
      if (generation === log && size > offset) {
        const file = await files.openAppend(name, false);
        try {
          await file.truncate(offset);
          await file.sync();
        } finally {
          await file.close();
        }
        size = offset;
      }
      this.#logs.set(name, size);
    }
  }

  /** The last bytes of a log that have arrived, to compare with the source. */
  tailOf(dir: string, { log, offset }: ShippedPlace, length: number): Promise<Uint8Array> {
    return this.#files.readAt(logName(dir, log), offset - length, length);
  }

  /**
   * Ships a file, or its missing part. `keys` identifies the store's keys: under other keys its segments differ.
   * `isServed`: the store is open, so that the file's length is not only that of the disk, where it may be damaged.
   */
  async bring(source: Pick<Files, 'readAt'>, file: HeldFile, keys: string, isServed: boolean): Promise<void> {
    if (isLog(file)) return this.#bringLog(source, file);
    if (this.#known.get(file.name) === keys) return;
    await this.#bringWhole(source, file, isServed);
    this.#known.set(file.name, keys);
  }

  async #bringWhole(source: Pick<Files, 'readAt'>, file: HeldFile, isServed: boolean): Promise<void> {
    const name = isSegment(file) ? await shippedSegment(source, file.name) : file.name;
    const isWhole = this.#whole.get(name);
    if (isWhole) return;
    if (isWhole === undefined || !(await this.#fits(name, isServed ? file.bytes : undefined))) {
      await this.#files.replace(name, pieces(source, file.name, file.bytes));
    }
    this.#whole.set(name, true);
  }

  /**
   * Whether the file there is as long, and one of this name by its header: others may have put one there before. Its
   * content is not compared: here it may be damaged, and there it is what a damaged one is put back from.
   */
  async #fits(name: string, bytes: number | undefined): Promise<boolean> {
    if (bytes !== undefined && (await this.#files.size(name)) !== bytes) return false;
    const start = await this.#files.readAt(name, 0, headerLength);
    const segment = parseShippedSegment(name.slice(name.lastIndexOf('/') + 1));
    if (!segment) return isSnapshot(name, start);
    const header = decodeHeader(start);
    return typeof header !== 'string' && header.firstSeq === segment.from && header.epoch === segment.epoch;
  }

  async #bringLog(source: Pick<Files, 'readAt'>, { name, bytes }: HeldFile): Promise<void> {
    const there = this.#logs.get(name);
    if (there === undefined) {
      await this.#files.replace(name, pieces(source, name, bytes));
    } else if (there < bytes) {
      // Until this ends it is unknown how much is there.
      const file = await this.#files.openAppend(name, false);
      try {
        if (file.size < there) throw shorter(name, file.size, there);
        if (file.size > there) await file.truncate(there);
        for await (const piece of pieces(source, name, bytes, there)) await file.append(piece);
        await file.sync();
      } finally {
        await file.close();
      }
    }
    this.#logs.set(name, Math.max(bytes, there ?? 0));
  }

  async makeDir(dir: string): Promise<void> {
    await this.#files.makeDir(dir);
  }

  /** Beside the valid seal, until a point makes this one valid. */
  async bringSeal(bytes: Uint8Array): Promise<void> {
    await this.#files.replace(this.#points.length === 0 ? sealFile : nextSealFile, bytes);
  }

  /** Replaces the seal by the one that a point made valid. */
  async adoptSeal(bytes: Uint8Array): Promise<void> {
    await this.#files.replace(sealFile, bytes);
    if (await this.#files.exists(nextSealFile)) await this.#files.remove(nextSealFile);
  }

  /** Appends a point: from then on everything in it counts as arrived. */
  async note(point: Point): Promise<void> {
    const line = this.#chain.line(point);
    const file = await this.#files.openAppend(journalFile, false);
    try {
      if (file.size < this.#journalBytes) throw shorter(journalFile, file.size, this.#journalBytes);
      if (file.size > this.#journalBytes) await file.truncate(this.#journalBytes);
      await file.append(line);
      await file.sync();
    } finally {
      await file.close();
    }
    this.#journalBytes += line.length;
    this.#points.push(point);
    this.#places = arrived([{ ...point, stores: Object.fromEntries(this.#places) }, point]);
  }

  /**
   * Drops points before the last one at or before `cutoff`, and half of them if the journal is long; removes files that
   * only they needed.
   */
  async prune(cutoff: number, keys: PointKeys): Promise<void> {
    const isLong = this.#journalBytes > this.#mostBytes;
    const past = this.#points.findLastIndex(({ at }) => at <= cutoff);
    const first = Math.max(past, isLong ? Math.floor(this.#points.length / 2) : 0);
    if (first > 0) await this.#forget(first, keys);
    const needed = new Map<string, Needed>();
    for (const { stores } of this.#points) {
      for (const [dir, place] of Object.entries(stores)) {
        if (!place) continue;
        const { snapshot, from = 1 } = place;
        const before = needed.get(dir) ?? { snapshot, from };
        needed.set(dir, { snapshot: Math.min(snapshot, before.snapshot), from: Math.min(from, before.from) });
      }
    }
    for (const [dir, first] of needed) await this.#removeBefore(dir, first);
    for (const name of [...this.#whole.keys(), ...this.#logs.keys()]) {
      const dir = name.slice(0, name.lastIndexOf('/'));
      if (!needed.has(dir)) await this.#removeStore(dir);
    }
  }

  async #forget(first: number, keys: PointKeys): Promise<void> {
    const [base, ...rest] = this.#points.slice(first);
    if (!base) return;
    const before = this.#points.slice(0, first + 1);
    const seal = sealAfter(before);
    // A follower without the key takes a store for lost unless a line says that it is gone.
    const gone = [...storesGone(before)].map((dir) => [dir, null] as const);
    const stores = Object.fromEntries([...gone, ...arrived(before)]);
    const points = [{ ...base, ...(seal === undefined ? {} : { seal }), stores }, ...rest].map((point) => ({
      ...point,
      keyEpoch: keys.epoch,
    }));
    const chain = new PointChain(this.#directory, keys);
    const lines = points.map((point) => chain.line(point));
    async function* all(): AsyncGenerator<Uint8Array> {
      yield* lines;
    }
    await this.#files.replace(journalFile, all());
    this.#points = points;
    this.#chain = chain;
    this.#journalBytes = lines.reduce((sum, line) => sum + line.length, 0);
  }

  async #removeBefore(dir: string, { snapshot, from }: Needed): Promise<void> {
    const { snapshots, logs } = await listStoreFiles(this.#files, dir);
    for (const generation of snapshots) if (generation < snapshot) await this.#remove(snapshotName(dir, generation));
    for (const generation of logs) if (generation <= snapshot) await this.#remove(logName(dir, generation));
    if (from === 1) return;
    for (const name of await this.#files.list(dir)) {
      if ((parseShippedSegment(name)?.from ?? from) < from) await this.#remove(`${dir}/${name}`);
    }
  }

  async #remove(name: string): Promise<void> {
    await this.#files.remove(name);
    this.#whole.delete(name);
    this.#known.delete(name);
    this.#logs.delete(name);
  }

  async #removeStore(dir: string): Promise<void> {
    await this.#files.removeDir(dir);
    for (const name of this.#whole.keys()) if (name.startsWith(`${dir}/`)) this.#whole.delete(name);
    for (const name of this.#known.keys()) if (name.startsWith(`${dir}/`)) this.#known.delete(name);
    for (const name of this.#logs.keys()) if (name.startsWith(`${dir}/`)) this.#logs.delete(name);
  }
}

function isSnapshot(name: string, start: Uint8Array): boolean {
  try {
    decodeFileHeader('snapshot', name, start);
    return true;
  } catch (error) {
    if (error instanceof KmsError && error.code === 'corrupt') return false;
    throw error;
  }
}

function shorter(name: string, size: number, expected: number): KmsError {
  return new KmsError('corrupt', `${name}: ${size} bytes, ${expected} were shipped`, {
    hint: 'the shipped directory was damaged: move it away, and shipping starts over',
  });
}
