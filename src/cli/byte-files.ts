// Where encrypt and decrypt read from and write to: files or the standard streams, in constant memory. What was not finished
// leaves nothing behind, and nothing is overwritten.
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import { plainBlockLength } from '../client/chunked.ts';
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';
import { fileError, newFile } from './files.ts';
import { pathFrom, write } from './io.ts';

/** What encrypts without being copied first. */
const pieceLength = plainBlockLength;

export interface Input {
  readonly source: AsyncIterable<Uint8Array>;
  /** Bytes, where that is known beforehand. */
  readonly size: number | undefined;
  /** Lets go of it where it was not read to its end. */
  close(): Promise<void>;
}

/** The file of that name; stdin for `-` and for no name. */
export async function openInput(cli: Cli, name: string | undefined): Promise<Input> {
  if (name === undefined || name === '-') {
    const source = addAbortSignal(cli.io.signal, cli.io.stdin);
    return { source: named(source, 'stdin'), size: undefined, close: async () => void source.destroy() };
  }
  const path = pathFrom(cli.io, name);
  let file: FileHandle;
  try {
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

export interface Output {
  write(bytes: Uint8Array): Promise<void>;
  /** Everything is written: a file gets its name. */
  commit(): Promise<void>;
  /** What was written is not to be kept. */
  discard(): Promise<void>;
  /** Whether some of it stays all the same. */
  readonly left: boolean;
}

/** The file that -o names; stdout for `-` and without it. `binary` is what no terminal should be shown. */
export async function openOutput(cli: Cli, { binary }: { binary: boolean }): Promise<Output> {
  const name = cli.text('--output');
  if (name === undefined || name === '-') {
    const { stdout } = cli.io;
    if (binary && stdout.isTTY) {
      throw new KmsError('usage', 'encrypted bytes are nothing for a terminal', {
        hint: 'write to a file with -o FILE',
      });
    }
    if (cli.isTyped('--json')) {
      throw new KmsError('usage', '--json needs -o FILE: stdout takes the file itself', { hint: cli.seeHelp });
    }
    return toStream(cli);
  }
  const path = pathFrom(cli.io, name);
  const info = await stat(path).catch(() => undefined);
  // A device or a pipe is written to as it is; there is nothing in it to overwrite.
  return info && !info.isFile() && !info.isDirectory() ? toDevice(path) : toFile(path);
}

export function writesToStdout(cli: Cli): boolean {
  const name = cli.text('--output');
  return name === undefined || name === '-';
}

function toStream({ io }: Cli): Output {
  let left = false;
  return {
    async write(bytes) {
      left = true;
      try {
        await write(io.stdout, bytes);
      } catch (error) {
        throw fileError('write to', 'stdout', error);
      }
    },
    commit: async () => undefined,
    discard: async () => undefined,
    get left() {
      return left;
    },
  };
}

async function toFile(path: string): Promise<Output> {
  const file = await newFile(path, 0o666);
  return {
    write: (bytes) => writeAll(file.handle, bytes, path),
    async commit() {
      try {
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
