// A directory of JSON Lines: a subdirectory for each tenant, in it a file for each day (UTC, of the writing), and
// further files for days that fill one. Every batch is synced before it counts. After a crash a torn line is cut off,
// and the files themselves tell what had arrived, so that no record appears twice.

import { concatBytes } from '../../crypto/bytes.ts';
import { reasonOf, systemCode } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import type { ApplianceEvent } from '../../platform/events.ts';
import { tryFileSystem } from '../../platform/file-system.ts';
import { foreignFiles } from '../../platform/foreign-files.ts';
import type { Files } from '../../store/files.ts';
import { type Arrived, type Batch, DeliveryFault, type Receiver } from './receiver.ts';
import { type StreamedTenant, streamedLine } from './record.ts';
import type { DirectoryTarget } from './target.ts';

interface DirectorySettings {
  /** In epoch milliseconds. */
  readonly now: () => number;
  readonly onEvent: (event: ApplianceEvent) => void;
  /** The data directory, whose files are never written to. */
  readonly root?: string;
  /** Size in bytes at which a day gets another file. */
  readonly fileBytes?: number | undefined;
}

/** Default of `fileBytes`. */
const usualFile = 64 * 1024 * 1024;
const tailPiece = 64 * 1024;
/** In bytes; a record is smaller than its request, which has at most a megabyte. */
const longestLine = 8 * 1024 * 1024;
/** In lines; a batch has a few hundred, and each is synced before the next one is written. */
const mostTorn = 10_000;
/** Bytes from the end of a file within which there must be a line that had arrived: more than all of a usual file. */
const farthest = 2 * usualFile;

export class DirectoryReceiver implements Receiver {
  readonly #files: Files;
  readonly #settings: DirectorySettings;
  readonly #name: string;
  readonly #path: string;
  /** Whether its file system has passed the trial. */
  #isTried = false;
  /** The last file of each tenant's directory, up to its synced end, which is a line feed. */
  readonly #last = new Map<string, DayFile>();
  /** Directories in which a write failed: the file may be longer than noted. */
  readonly #doubtful = new Set<string>();

  constructor({ name, path }: DirectoryTarget, settings: DirectorySettings, files?: Files) {
    const { root } = settings;
    this.#files = files ?? foreignFiles({ path, own: root === undefined ? [] : [root] });
    this.#settings = settings;
    this.#name = name;
    this.#path = path;
  }

  async ready(): Promise<void> {
    if (this.#isTried) return;
    try {
      await this.#files.makeDir('.');
      await tryFileSystem(this.#path, { isPrivate: false, files: this.#files });
      this.#isTried = true;
    } catch (error) {
      throw fileFault(error);
    }
  }

  async send({ tenant, records }: Batch): Promise<void> {
    const dir = tenant.name;
    try {
      const last = await this.#lastOf(dir);
      const next = this.#fileAfter(last);
      if (next !== last) {
        await (await this.#files.openAppend(`${dir}/${nameOf(next)}`, true)).close();
        await this.#files.syncDir(dir);
      }
      this.#last.set(dir, next);
      this.#doubtful.add(dir);
      const file = await this.#files.openAppend(`${dir}/${nameOf(next)}`, false);
      try {
        await file.append(Buffer.from(records.map((each) => streamedLine(tenant, each)).join('')));
        await file.sync();
      } finally {
        await file.close();
      }
      this.#last.set(dir, { ...next, bytes: file.size });
      this.#doubtful.delete(dir);
    } catch (error) {
      throw fileFault(error);
    }
  }

  async arrived({ id, name }: StreamedTenant, place: number): Promise<Arrived | undefined> {
    try {
      this.#last.delete(name);
      // Data not synced at a power failure may have holes and fragments; lines noted as arrived are whole.
      await this.#lastOf(name, ({ tenantId, seq }) => tenantId !== id || (typeof seq === 'number' && seq <= place));
      const { tenantId, seq, hash } = (await this.#lastLine(name)) ?? {};
      if (tenantId !== id || typeof seq !== 'number' || typeof hash !== 'string') return undefined;
      return { seq, hash };
    } catch (error) {
      throw fileFault(error);
    }
  }

  drop(): void {}

  /** `isOld` says for which lines it is certain that they, and all before them, are whole. */
  async #lastOf(dir: string, isOld: (line: JsonObject) => boolean = () => true): Promise<DayFile | undefined> {
    const known = this.#last.get(dir);
    if (known && !this.#doubtful.has(dir)) return known;
    if (known && (await this.#cut(`${dir}/${nameOf(known)}`, known.bytes))) {
      this.#doubtful.delete(dir);
      return known;
    }
    this.#last.delete(dir);
    await this.#files.makeDir(dir);
    const last = (await this.#list(dir)).at(-1);
    if (!last) return undefined;
    const found = { ...last, bytes: await this.#mended(`${dir}/${nameOf(last)}`, isOld) };
    this.#last.set(dir, found);
    this.#doubtful.delete(dir);
    return found;
  }

  /** Removes the leftovers of a failed write; false if the file is gone, or shorter than it was. */
  async #cut(name: string, bytes: number): Promise<boolean> {
    try {
      if ((await this.#files.size(name)) < bytes) return false;
      const file = await this.#files.openAppend(name, false);
      await file.truncate(bytes).finally(() => file.close());
      return true;
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return false;
      throw error;
    }
  }

  /** Never earlier than the last one, even if the clock went back: file names are in the order of the records. */
  #fileAfter(last: DayFile | undefined): DayFile {
    const { now, fileBytes = usualFile } = this.#settings;
    const today = new Date(now()).toISOString().slice(0, 10);
    if (!last || last.day < today) return { day: today, part: 1, bytes: 0 };
    return last.bytes < fileBytes ? last : { day: last.day, part: last.part + 1, bytes: 0 };
  }

  async #list(dir: string): Promise<DayFile[]> {
    const files = (await this.#files.list(dir)).flatMap((name) => parseName(name) ?? []);
    return files.sort((a, b) => (a.day === b.day ? a.part - b.part : a.day < b.day ? -1 : 1));
  }

  /** Cuts off the first torn line with all after it; returns how many bytes are left. */
  async #mended(name: string, isOld: (line: JsonObject) => boolean): Promise<number> {
    const size = await this.#files.size(name);
    let whole = size;
    let torn = 0;
    for await (const { start, text } of this.#linesFromEnd(name, size)) {
      const line = parseLine(text);
      if (line && isOld(line)) break;
      if (line) continue;
      whole = start;
      if (++torn > mostTorn || size - whole > longestLine) {
        throw isForeign(name, `no whole line in the last ${size - whole} bytes`);
      }
    }
    const file = await this.#files.openAppend(name, false);
    try {
      if (whole < size) await file.truncate(whole);
      // Lines of an earlier process may be visible, yet not durable.
      await file.sync();
    } finally {
      await file.close();
    }
    if (whole === size) return size;
    const message = `activity to ${this.#name}: cut off ${size - whole} bytes at the end of ${name}`;
    this.#settings.onEvent({ level: 'warn', message: `${message}, which were not written whole` });
    return whole;
  }

  /** The last line; undefined if there is none, or if another program wrote it. */
  async #lastLine(dir: string): Promise<JsonObject | undefined> {
    for (const file of (await this.#list(dir)).reverse()) {
      const name = `${dir}/${nameOf(file)}`;
      for await (const { text } of this.#linesFromEnd(name, await this.#files.size(name))) return parseLine(text);
    }
    return undefined;
  }

  /** Lines of a file with their line ends, the last first, and where each starts. */
  async *#linesFromEnd(name: string, size: number): AsyncGenerator<{ readonly start: number; readonly text: string }> {
    /** Pieces of a line whose start is not read yet, the last first. */
    let end: Uint8Array[] = [];
    let length = 0;
    for (let at = size; at > 0; ) {
      if (length > longestLine) throw isForeign(name, `no line of at most ${longestLine} ends at byte ${at + length}`);
      if (size - at > farthest) throw isForeign(name, `nothing that is known within ${farthest} of its end`);
      const from = Math.max(0, at - tailPiece);
      const piece = await this.#files.readAt(name, from, at - from);
      at = from;
      if (piece.lastIndexOf(10) < 0) {
        end.push(piece);
        length += piece.length;
        continue;
      }
      const bytes = concatBytes(piece, ...end.reverse());
      let lineEnd = bytes.length;
      for (let feed = feedBefore(bytes, lineEnd); feed >= 0; feed = feedBefore(bytes, lineEnd)) {
        yield { start: from + feed + 1, text: textOf(bytes.subarray(feed + 1, lineEnd)) };
        lineEnd = feed + 1;
      }
      end = [bytes.subarray(0, lineEnd)];
      length = lineEnd;
    }
    if (length > 0) yield { start: 0, text: textOf(concatBytes(...end.reverse())) };
  }
}

function isForeign(name: string, found: string): DeliveryFault {
  return new DeliveryFault(
    'file',
    `${name} was not written by this program, as it has ${found}: find out who writes there, and move it away`,
  );
}

/** Offset of the line feed of the line before the one that ends at `lineEnd`. */
function feedBefore(bytes: Uint8Array, lineEnd: number): number {
  return lineEnd < 2 ? -1 : bytes.lastIndexOf(10, lineEnd - 2);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

/** Undefined for anything but a whole line by this program. */
function parseLine(text: string): JsonObject | undefined {
  if (!text.endsWith('\n')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

interface DayFile {
  /** Such as `2026-01-02`. */
  readonly day: string;
  /** Counts from 1. */
  readonly part: number;
  readonly bytes: number;
}

function nameOf({ day, part }: DayFile): string {
  return `${day}.${String(part).padStart(4, '0')}.jsonl`;
}

function parseName(name: string): DayFile | undefined {
  const [, day, part] = /^(\d{4}-\d\d-\d\d)\.(\d{4,9})\.jsonl$/.exec(name) ?? [];
  return day === undefined ? undefined : { day, part: Number(part), bytes: 0 };
}

function fileFault(error: unknown): DeliveryFault {
  return error instanceof DeliveryFault ? error : new DeliveryFault('file', reasonOf(error), error);
}
