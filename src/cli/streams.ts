// Input and output bytes of commands: files or the standard streams, in constant memory, with progress on long ones.
// Unfinished output leaves nothing behind, and nothing is overwritten.
import { constants, createReadStream, openSync } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { addAbortSignal, type Writable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { plainBlockLength } from '../client/chunked.ts';
import { KmsError, systemCode } from '../errors.ts';
import type { Cli, CliOf } from './command.ts';
import { Interrupted, isInterruption } from './exit.ts';
import { fileError, type NewFile, newFile } from './files.ts';
import type { output } from './grammar/option-sets.ts';
import { hasColour, type Io, mustReachStdout, pathFrom, tell, written } from './io.ts';

/** Piece length that is encrypted without copying. */
const pieceLength = plainBlockLength;

interface Input {
  readonly source: AsyncIterable<Uint8Array>;
  /** Bytes, if known beforehand. */
  readonly size: number | undefined;
  /** Closes it if it was not read to its end. */
  close(): Promise<void>;
}

/** All bytes of an input that fits into memory; `what` names it. Throws `invalid` for more than `most` bytes. */
export async function readInput(
  cli: Cli,
  name: string | undefined,
  { what, most, hint }: { readonly what: string; readonly most: number; readonly hint?: string },
): Promise<Uint8Array> {
  const { source, close } = await openInput(cli, name);
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of source) {
      pieces.push(piece);
      length += piece.length;
      if (length > most) throw new KmsError('invalid', `${what} is over the limit of ${most} bytes`, { hint });
    }
  } finally {
    await close();
  }
  return Buffer.concat(pieces);
}

/** Opens the named file; stdin for `-` and without a name. */
export async function openInput(cli: Cli, name: string | undefined): Promise<Input> {
  if (name === undefined || name === '-') {
    const source = addAbortSignal(cli.io.signal, cli.io.stdin);
    return { source: named(source, 'stdin'), size: undefined, close: async () => void source.destroy() };
  }
  const path = pathFrom(cli.io, name);
  let file: FileHandle;
  try {
    if (await isPipe(path)) {
      const source = openPipe(cli.io, path, constants.O_RDONLY);
      return { source: named(source, path), size: undefined, close: async () => void source.destroy() };
    }
    file = await open(path, 'r');
  } catch (error) {
    throw fileError('read', path, error);
  }
  const info = await file.stat();
  if (info.isDirectory()) {
    await file.close();
    throw new KmsError('refused', `cannot read ${path}: it is a directory`, {
      hint: 'pack it first, for example with tar',
    });
  }
  const stream = createReadStream(path, { fd: file, highWaterMark: pieceLength, signal: cli.io.signal });
  return {
    source: named(stream, path),
    size: info.isFile() ? info.size : undefined,
    close: async () => void stream.destroy(),
  };
}

async function* named(stream: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* stream;
  } catch (error) {
    throw isAbort(error) ? error : fileError('read', path, error);
  }
}

interface Output {
  write(bytes: Uint8Array): Promise<void>;
  /** Everything is written: gives a file its name. */
  commit(): Promise<void>;
  /** Discards the output. */
  discard(): Promise<void>;
  /** Whether some of it stays all the same. */
  readonly left: boolean;
}

interface OutputStyle {
  readonly binary: boolean;
  /** Mode of a new file. */
  readonly mode?: number;
}

/** Opens the file of -o; stdout for `-` and without it. `binary` output is refused on a terminal. */
export async function openOutput(cli: CliOf<typeof output>, { binary, mode }: OutputStyle): Promise<Output> {
  const name = cli.get('--output');
  if (name === undefined || name === '-') {
    const { stdout } = cli.io;
    if (binary && stdout.isTTY) {
      throw new KmsError('usage', 'encrypted bytes do not belong on a terminal', {
        hint: 'write to a file with -o FILE',
      });
    }
    if (cli.globals.isTyped('--json')) {
      throw cli.wrong('--json needs -o FILE: stdout takes the file itself');
    }
    mustReachStdout(cli.io);
    return toReader(cli.io.stdout, (error) => fileError('write to', 'stdout', error));
  }
  const path = pathFrom(cli.io, name);
  if (await isPipe(path)) return toPipe(cli.io, path);
  const info = await stat(path).catch(() => undefined);
  // A device is written to directly, like a pipe; it has no content to overwrite.
  return info && !info.isFile() && !info.isDirectory() ? toDevice(path) : toFile(path, mode);
}

export function writesToStdout(cli: CliOf<typeof output>): boolean {
  const name = cli.get('--output');
  return name === undefined || name === '-';
}

/** Output that is with its reader once it is written. `failure` words the error of a write. */
function toReader(stream: Writable, failure: (error: unknown) => Error, close?: () => void): Output {
  let left = false;
  return {
    async write(bytes) {
      left = true;
      try {
        await written(stream, bytes);
      } catch (error) {
        throw failure(error);
      }
    },
    commit: async () => close?.(),
    discard: async () => close?.(),
    get left() {
      return left;
    },
  };
}

/** `prove` checks the written file before it gets its name. */
export async function toFile(path: string, mode = 0o666, prove?: (file: NewFile) => Promise<void>): Promise<Output> {
  const file = await newFile(path, mode);
  return {
    write: (bytes) => writeAll(file.handle, bytes, path),
    async commit() {
      try {
        await prove?.(file);
        await file.commit();
      } catch (error) {
        await file.discard();
        throw fileError('write', path, error);
      }
    },
    discard: () => file.discard(),
    left: false,
  };
}

async function toDevice(path: string): Promise<Output> {
  const handle = await open(path, 'w').catch((error) => {
    throw fileError('write', path, error);
  });
  let left = false;
  return {
    write(bytes) {
      left = true;
      return writeAll(handle, bytes, path);
    },
    commit: () => handle.close(),
    discard: () => handle.close(),
    get left() {
      return left;
    },
  };
}

async function isPipe(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isFIFO(),
    () => false,
  );
}

/**
 * Opens one end of a named pipe. Opened as a file, it would block a thread until the other end comes, and the process
 * could not exit before, even on a signal. Throws ENXIO when writing to a pipe without a reader.
 */
function openPipe({ signal }: Io, path: string, access: number): Socket {
  const fd = openSync(path, access | constants.O_NONBLOCK);
  const writable = access === constants.O_WRONLY;
  return new Socket({ fd, readable: !writable, writable, signal });
}

const readerPause = 50;

async function toPipe(io: Io, path: string): Promise<Output> {
  let pipe: Socket | undefined;
  while (!pipe) {
    try {
      pipe = openPipe(io, path, constants.O_WRONLY);
    } catch (error) {
      if (systemCode(error) !== 'ENXIO') throw fileError('write', path, error);
      await setTimeout(readerPause, undefined, { signal: io.signal });
    }
  }
  const opened = pipe;
  // A closed reader fails the write itself; the event adds nothing.
  opened.on('error', () => undefined);
  return toReader(
    opened,
    (error) => fileError('write', path, error),
    () => void opened.destroy(),
  );
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, path: string): Promise<void> {
  try {
    for (let from = 0; from < bytes.length; ) from += (await handle.write(bytes, from)).bytesWritten;
  } catch (error) {
    throw fileError('write', path, error);
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** Bytes moved between two collections: about that much stays in memory as dead buffers. */
const collectEvery = 8 << 20;

/**
 * Collects the young generation. Streamed buffers are outside the heap, so the engine sees little reason to collect and
 * lets a hundred megabytes of them pile up.
 */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const gc: (options: { type: 'minor' }) => void = runInNewContext('gc');
  return () => gc({ type: 'minor' });
}

/** Writes everything that `pieces` yields and commits; on any failure, Ctrl-C included, discards and rethrows. */
export async function transfer(cli: Cli, pieces: AsyncIterable<Uint8Array>, output: Output): Promise<void> {
  const collect = garbageCollector();
  let sinceCollected = 0;
  let pending = Promise.resolve();
  try {
    for await (const piece of pieces) {
      await pending;
      cli.io.signal.throwIfAborted();
      sinceCollected += piece.length;
      if (sinceCollected > collectEvery) {
        sinceCollected = 0;
        collect();
      }
      pending = output.write(piece);
      // Awaited one round later; a failure before that must not count as unhandled.
      pending.catch(() => undefined);
    }
    await pending;
    await output.commit();
  } catch (error) {
    await pending.catch(() => undefined);
    await abandon(cli, output, error);
  }
}

/** Discards what was written and rethrows the error; for an interruption one that says what is left. */
export async function abandon(cli: Cli, output: Output, error: unknown): Promise<never> {
  await output.discard();
  if (!isInterruption(cli.io, error)) throw error;
  throw new Interrupted(output.left ? 'what was written is incomplete' : 'nothing was left behind');
}

const firstShown = 1000;
const shownEvery = 250;

/** The whole of a stream of lines whose bytes are not known beforehand. */
export interface Lines {
  readonly count: number;
  /** Plural for people. */
  readonly noun: string;
}

/** `source`, with progress on stderr if that is a terminal and it takes more than a moment. */
export async function* withProgress(
  cli: Cli,
  source: AsyncIterable<Uint8Array>,
  total: number | Lines | undefined,
): AsyncGenerator<Uint8Array, void, void> {
  const { stderr } = cli.io;
  if (!stderr.isTTY) return yield* source;
  const began = performance.now();
  let next = began + firstShown;
  let shown = false;
  let done = 0;
  try {
    for await (const piece of source) {
      const length = typeof total === 'object' ? lineEnds(piece) : piece.length;
      yield piece;
      done += length;
      const now = performance.now();
      if (now < next) continue;
      next = now + shownEvery;
      shown = true;
      await tell(cli.io, `\r${progressLine(done, total, now - began)}${hasColour(cli.io, stderr) ? '\x1b[K' : '   '}`);
    }
  } finally {
    if (shown) await tell(cli.io, '\n');
  }
}

const lineFeed = 0x0a;

function lineEnds(bytes: Uint8Array): number {
  let ends = 0;
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) ends++;
  return ends;
}

/** A line such as `1.2 GiB of 10.0 GiB (12 %), 450.0 MiB/s, 20 s left`. */
export function progressLine(done: number, total: number | Lines | undefined, milliseconds: number): string {
  const perSecond = milliseconds > 0 ? (done / milliseconds) * 1000 : 0;
  if (typeof total === 'object') {
    const part = `${done} of ${total.count} ${total.noun}${percentage(done, total.count)}`;
    return `${part}, ${Math.round(perSecond)}/s${timeLeft(done, total.count, milliseconds)}`;
  }
  const rate = `${byteCount(perSecond)}/s`;
  if (!total) return `${byteCount(done)}, ${rate}`;
  const part = `${byteCount(done)} of ${byteCount(total)}${percentage(done, total)}`;
  return `${part}, ${rate}${timeLeft(done, total, milliseconds)}`;
}

function percentage(done: number, total: number): string {
  return ` (${total === 0 ? 100 : Math.min(100, Math.floor((done / total) * 100))} %)`;
}

/** At the rate so far. */
function timeLeft(done: number, total: number, milliseconds: number): string {
  if (done <= 0 || done >= total) return '';
  const seconds = Math.ceil((((total - done) / done) * milliseconds) / 1000);
  if (seconds < 60) return `, ${seconds} s left`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `, ${minutes} min left` : `, ${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}

export function byteCount(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return unit === 0 ? `${Math.round(value)} B` : `${value.toFixed(1)} ${units[unit]}`;
}
