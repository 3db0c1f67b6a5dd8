// The log file that is being written: one append and one fsync for each group, one at a time.
import { type FileHeader, nonceLength, tagLength } from './file-header.ts';
import { logName } from './file-names.ts';
import { type AppendFile, type Files, isFull } from './files.ts';
import { logHeaderLength, type RecordPlace, RecordSealer, sealLogHeader } from './log-format.ts';
import type { LogStart } from './log-reader.ts';
import type { StoreKeys } from './store-keys.ts';

/** What every file of a store is made with. */
export interface LogContext {
  readonly files: Files;
  readonly dir: string;
  readonly keys: StoreKeys;
  random(length: number): Uint8Array;
}

export class LogWriter {
  readonly generation: number;
  /** Of the key. */
  readonly epoch: number;
  readonly #file: AppendFile;
  readonly #sealer: RecordSealer;
  readonly #context: LogContext;
  #place: RecordPlace;
  #syncFailed = false;

  constructor(
    context: LogContext,
    file: AppendFile,
    sealer: RecordSealer,
    { generation, epoch }: Pick<FileHeader, 'generation' | 'epoch'>,
    place: RecordPlace,
  ) {
    this.#context = context;
    this.#file = file;
    this.#sealer = sealer;
    this.generation = generation;
    this.epoch = epoch;
    this.#place = place;
  }

  /** The end of what is durable. */
  get place(): RecordPlace {
    return this.#place;
  }

  /** Whether an fsync failed otherwise than for want of room, after which nothing that the file seems to hold can be believed. */
  get syncFailed(): boolean {
    return this.#syncFailed;
  }

  /**
   * Makes `payload`, which holds `transactions` of them, durable, and answers how many milliseconds the fsync took. After a failure the
   * writer is good for nothing more.
   */
  async append(payload: Uint8Array, transactions: number): Promise<number> {
    const { offset, sequence } = this.#place;
    const record = this.#sealer.seal(payload, this.#place, this.#context.random(nonceLength));
    await this.#file.append(record);
    const written = performance.now();
    await this.#sync();
    const syncMs = performance.now() - written;
    this.#place = {
      offset: offset + record.length,
      sequence: sequence + transactions,
      chain: record.slice(record.length - tagLength),
    };
    return syncMs;
  }

  async #sync(): Promise<void> {
    try {
      await this.#file.sync();
    } catch (error) {
      // Where there was no room, what stood there before was not touched.
      this.#syncFailed ||= !isFull(error);
      throw error;
    }
  }

  /** Best effort after a failed append: takes away what was not acknowledged. */
  async takeBack(): Promise<void> {
    await this.#file.truncate(this.#place.offset).catch(() => {});
    await this.close();
  }

  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }
}

/** Makes a log file, durable before this resolves, and opens it. A file of that name is replaced. */
export async function createLog(context: LogContext, start: LogStart): Promise<LogWriter> {
  const { files, dir, keys } = context;
  const header: FileHeader = { ...start, epoch: keys.epoch };
  const key = keys.key('log', header.epoch);
  const bytes = sealLogHeader(key, context.random(nonceLength), header);
  const name = logName(dir, start.generation);
  await files.replace(name, bytes);
  const place = { offset: logHeaderLength, sequence: start.sequence, chain: bytes.slice(logHeaderLength - tagLength) };
  const sealer = new RecordSealer(key, start.uid, start.generation);
  return new LogWriter(context, await files.openAppend(name, false), sealer, header, place);
}

/**
 * Opens a log file that was read to `place`, cuts off what is behind that, and makes what is before it durable: the process that
 * wrote it may have died before its fsync.
 */
export async function continueLog(context: LogContext, header: FileHeader, place: RecordPlace): Promise<LogWriter> {
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
