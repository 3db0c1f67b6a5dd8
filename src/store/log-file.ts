// Reads, writes and repairs one log file. Reading verifies every record and stops at the first byte that does not
// verify, unless that is the torn end of the last file. Writing is one append and one fsync for each group.
import { equalBytes } from '../crypto/bytes.ts';
import { type Run, withRun } from '../model/store-mark.ts';
import { type AppendFile, type Files, isRefusedWrite } from './files.ts';
import { needEnd } from './known-end.ts';
import {
  damageAt,
  endOfContent,
  type LogPlace,
  logHeaderLength,
  logHeaderVerifies,
  prefixLength,
  RecordSealer,
  runOf,
  sealLogHeader,
  sectorLength,
} from './log-format.ts';
import {
  corrupt,
  decodeFileHeader,
  type FileHeader,
  keyOf,
  logName,
  nonceLength,
  type StoreKeys,
  tagLength,
} from './store-files.ts';

/** The dependencies for writing a store's files. */
export interface LogContext {
  readonly files: Files;
  readonly dir: string;
  readonly keys: StoreKeys;
  random(length: number): Uint8Array;
}

/** The values that a file's header must have, from the files before it. */
interface LogStart {
  readonly uid: Uint8Array;
  readonly generation: number;
  readonly sequence: number;
  readonly chain: Uint8Array;
  readonly runs: readonly Run[];
}

/** The content of a replayed record. */
export interface Applied {
  readonly transactions: number;
  /** Whether it is the first record that an opening of the store wrote. */
  readonly begins: boolean;
}

interface LogEnd extends LogPlace {
  readonly header: FileHeader;
  /** Bytes after `offset`, up to the last non-zero one, of a write that was never acknowledged. */
  readonly torn: number;
}

/** Bytes read at once. */
const pieceLength = 256 * 1024;

/** A log file read in pieces, so that a long one takes no more memory than a short one. */
class LogPieces {
  readonly #files: Pick<Files, 'readAt'>;
  readonly #name: string;
  #bytes: Uint8Array = new Uint8Array();
  /** Offset of these bytes in the file. */
  #from = 0;

  constructor(files: Pick<Files, 'readAt'>, name: string) {
    this.#files = files;
    this.#name = name;
  }

  /** The bytes read so far from `offset` on. */
  at(offset: number): Uint8Array {
    return this.#bytes.subarray(offset - this.#from);
  }

  has(offset: number, length: number): boolean {
    return offset + length <= this.#from + this.#bytes.length;
  }

  /** Reads at least `length` bytes from `offset` on; fewer at the end of the file. */
  async read(offset: number, length: number): Promise<void> {
    // Released before the next piece is allocated.
    this.#bytes = new Uint8Array();
    this.#bytes = await this.#files.readAt(this.#name, offset, Math.max(pieceLength, length));
    this.#from = offset;
  }
}

/**
 * Hands each payload to `apply`, which returns what it held, and calls `between` before each further piece. `last` says
 * that no file follows, so that the end may be torn.
 */
export async function readLog(
  files: Pick<Files, 'size' | 'readAt'>,
  name: string,
  keys: StoreKeys,
  start: LogStart,
  last: boolean,
  apply: (payload: Uint8Array, name: string, offset: number) => Applied,
  between: () => Promise<unknown>,
): Promise<LogEnd> {
  const pieces = new LogPieces(files, name);
  await pieces.read(0, logHeaderLength);
  const header = readLogHeader(name, pieces.at(0), keys, start);
  const sealer = new RecordSealer(keyOf(keys, 'log', header.epoch, name), start.uid, start.generation);
  let place: LogPlace = {
    offset: logHeaderLength,
    sequence: start.sequence,
    chain: pieces.at(0).slice(logHeaderLength - tagLength, logHeaderLength),
    runs: start.runs,
  };
  for (;;) {
    const { offset } = place;
    if (!pieces.has(offset, prefixLength)) {
      await between();
      await pieces.read(offset, prefixLength);
    }
    if (pieces.at(offset).length === 0) return { ...place, header, torn: 0 };
    const length = pieces.has(offset, prefixLength) ? sealer.lengthAt(pieces.at(offset), offset) : undefined;
    if (length !== undefined && !pieces.has(offset, prefixLength + length)) {
      await pieces.read(offset, prefixLength + length);
    }
    const isWhole = length !== undefined && pieces.has(offset, prefixLength + length);
    const payload = isWhole ? sealer.open(pieces.at(offset), length, place) : undefined;
    if (!isWhole || payload === undefined) {
      if (!last) throw corrupt(name, offset, 'a record does not verify');
      const { bytes, from } = await tailOf(files, name, offset);
      const damage = damageAt(bytes, offset - from, length, sealer, from);
      if (damage !== undefined) throw corrupt(name, offset, damage);
      return { ...place, header, torn: endOfContent(bytes, offset - from) - (offset - from) };
    }
    const { transactions, begins } = apply(payload, name, offset);
    const { sequence, runs } = place;
    const end = prefixLength + length;
    const chain = pieces.at(offset).slice(end - tagLength, end);
    place = {
      offset: offset + end,
      sequence: sequence + transactions,
      chain,
      runs: begins ? withRun(runs, runOf(sequence, chain)) : runs,
    };
  }
}

/** Bytes after the last good record: of one group, and of room. */
const longestTail = 256 * 1024 * 1024;

/** The file's bytes from the beginning of the sector that `offset` is in. Throws `corrupt` for more than a torn end. */
async function tailOf(
  files: Pick<Files, 'size' | 'readAt'>,
  name: string,
  offset: number,
): Promise<{ readonly bytes: Uint8Array; readonly from: number }> {
  const from = offset - (offset % sectorLength);
  const length = (await files.size(name)) - from;
  if (length > longestTail) throw corrupt(name, offset, `a record does not verify, and ${length} bytes follow it`);
  return { bytes: await files.readAt(name, from, length), from };
}

function readLogHeader(name: string, file: Uint8Array, keys: StoreKeys, start: LogStart): FileHeader {
  const header = decodeFileHeader('log', name, file);
  if (file.length < logHeaderLength) throw corrupt(name, file.length, 'the file ends inside its header');
  if (!logHeaderVerifies(keyOf(keys, 'log', header.epoch, name), file))
    throw corrupt(name, 0, 'the header does not verify');
  if (!equalBytes(header.uid, start.uid)) throw corrupt(name, 16, 'the file belongs to another store');
  if (header.generation !== start.generation) {
    throw corrupt(name, 32, `the file is number ${header.generation}, not ${start.generation}`);
  }
  if (header.sequence !== start.sequence || !equalBytes(header.chain, start.chain)) {
    throw corrupt(
      name,
      40,
      'the file does not follow what stands before it: something is missing, or from another time',
    );
  }
  return header;
}

const leastRoom = 4 * 1024;
const mostRoom = 1024 * 1024;

/**
 * Bytes of room after a record that ends at `end`: about as many as the file already has, rounded so that the file ends
 * at a page boundary. Otherwise a later record could have a sector cut in two, of which a crash may keep only the first
 * part, and that would look like damage.
 */
function roomBehind(end: number): number {
  const room = Math.min(Math.max(end, leastRoom), mostRoom);
  return Math.ceil((end + room) / leastRoom) * leastRoom - end;
}

export class LogWriter {
  readonly generation: number;
  /** Epoch of the key. */
  readonly epoch: number;
  readonly #file: AppendFile;
  readonly #sealer: RecordSealer;
  readonly #context: LogContext;
  #place: LogPlace;
  #syncFailed = false;

  constructor(
    context: LogContext,
    file: AppendFile,
    sealer: RecordSealer,
    { generation, epoch }: Pick<FileHeader, 'generation' | 'epoch'>,
    place: LogPlace,
  ) {
    this.#context = context;
    this.#file = file;
    this.#sealer = sealer;
    this.generation = generation;
    this.epoch = epoch;
    this.#place = place;
  }

  /** The end of what is durable. */
  get place(): LogPlace {
    return this.#place;
  }

  /**
   * Whether an fsync failed for another reason than lack of space. After that, nothing that the file seems to hold can
   * be trusted.
   */
  get syncFailed(): boolean {
    return this.#syncFailed;
  }

  /**
   * Makes `payload` durable and returns the milliseconds that the fsync took. `transactions` is the number in it;
   * `begins` if it begins a run. After a failure the writer cannot be used any more.
   */
  async append(payload: Uint8Array, { transactions, begins }: Applied): Promise<number> {
    const { offset, sequence, runs, chain: before } = this.#place;
    const record = this.#sealer.seal(payload, this.#place, this.#context.random(nonceLength));
    await this.#file.append(record, roomBehind(offset + record.length), before);
    const written = performance.now();
    await this.#sync();
    const syncMs = performance.now() - written;
    const chain = record.slice(record.length - tagLength);
    this.#place = {
      offset: offset + record.length,
      sequence: sequence + transactions,
      chain,
      runs: begins ? withRun(runs, runOf(sequence, chain)) : runs,
    };
    return syncMs;
  }

  async #sync(): Promise<void> {
    try {
      await this.#file.sync();
    } catch (error) {
      // If there was no room, the earlier content was not touched.
      this.#syncFailed ||= !isRefusedWrite(error);
      throw error;
    }
  }

  /** Removes the room after the last record: a file that another one follows must not have any. */
  async trim(): Promise<void> {
    await this.#file.trim();
  }

  /**
   * After a failed append, removes the unacknowledged bytes if the log is still there; returns whether that succeeded.
   */
  async takeBack(): Promise<boolean> {
    const { generation, place } = this;
    const isGone = await needEnd(this.#context, { generation, place })
      .then(() => this.#file.truncate(place.offset))
      .then(
        () => true,
        () => false,
      );
    await this.close();
    return isGone;
  }

  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }
}

/** Makes a log file, durable before this resolves, and opens it. Replaces a file of the same name. */
export async function createLog(context: LogContext, start: LogStart): Promise<LogWriter> {
  const { files, dir, keys } = context;
  const header: FileHeader = { ...start, epoch: keys.epoch };
  const key = keys.key('log', header.epoch);
  const bytes = sealLogHeader(key, context.random(nonceLength), header);
  const name = logName(dir, start.generation);
  await files.replace(name, bytes);
  const { sequence, runs } = start;
  const place = { offset: logHeaderLength, sequence, chain: bytes.slice(logHeaderLength - tagLength), runs };
  const sealer = new RecordSealer(key, start.uid, start.generation);
  return new LogWriter(context, await files.openAppend(name, false), sealer, header, place);
}

/**
 * Opens a log file that was read to `place`, cuts off everything after that, and syncs the rest: the process that wrote
 * it may have died before its fsync.
 */
export async function continueLog(context: LogContext, header: FileHeader, place: LogPlace): Promise<LogWriter> {
  const file = await context.files.openAppend(logName(context.dir, header.generation), false);
  try {
    if (file.size > place.offset) await file.truncate(place.offset);
    await file.sync();
  } catch (error) {
    await file.close().catch(() => {});
    throw error;
  }
  const sealer = new RecordSealer(context.keys.key('log', header.epoch), header.uid, header.generation);
  return new LogWriter(context, file, sealer, header, place);
}

export interface BrokenLog {
  readonly generation: number;
  /** The end of the acknowledged records. */
  readonly place: LogPlace;
  /**
   * Whether an fsync failed. The system may then still show data that it failed to write and will forget, so the file
   * is written again. Not set if the disk was full: a rewrite would need more space than there is.
   */
  readonly syncFailed: boolean;
}

/** May be repeated until it succeeds. */
export async function repairLog(context: LogContext, uid: Uint8Array, broken: BrokenLog): Promise<void> {
  const { generation, place } = broken;
  const cutOff = !broken.syncFailed && (await cut(context, generation, place.offset));
  if (!cutOff) await rewrite(context, generation, place.offset);
  const { sequence, chain, runs } = place;
  const log = await createLog(context, { uid, generation: generation + 1, sequence, chain, runs });
  await log.close();
}

async function rewrite(context: LogContext, generation: number, size: number): Promise<void> {
  const name = logName(context.dir, generation);
  const bytes = await context.files.readAt(name, 0, size);
  if (bytes.length < size) throw corrupt(name, bytes.length, 'acknowledged records are missing');
  await context.files.replace(name, bytes);
}

/** Returns whether it worked. */
async function cut(context: LogContext, generation: number, size: number): Promise<boolean> {
  let file: AppendFile | undefined;
  try {
    file = await context.files.openAppend(logName(context.dir, generation), false);
    if (file.size > size) await file.truncate(size);
    await file.sync();
    return true;
  } catch {
    return false;
  } finally {
    await file?.close().catch(() => {});
  }
}
