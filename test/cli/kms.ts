// Runs command lines as typed, in this process and in a directory of their own: exact stdout, stderr and exit code.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import type { Io } from '../../src/cli/io.ts';
import { runCli } from '../../src/cli/run.ts';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly bytes: Buffer;
}

export interface RunOptions {
  readonly stdin?: string | Uint8Array | Readable;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Streams that are a terminal, and its width. */
  readonly tty?: {
    readonly stdin?: boolean;
    readonly stdout?: boolean;
    readonly stderr?: boolean;
    readonly columns?: number;
  };
  readonly signal?: AbortSignal;
  /** Called with stdout as it comes. */
  readonly onStdout?: (text: string) => void;
  /** Called with stderr as it comes. */
  readonly onStderr?: (text: string) => void;
}

export interface Desk {
  /** The working directory, which also contains everything that the commands make. */
  readonly dir: string;
  path(...parts: string[]): string;
  /** Runs `kms` with these arguments. */
  kms(args: readonly string[] | string, options?: RunOptions): Promise<Ran>;
  /** Runs it, expects exit code 0, and parses stdout. */
  json<T = Record<string, unknown>>(args: readonly string[] | string, options?: RunOptions): Promise<T>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A new directory with a home in it. */
export async function desk(): Promise<Desk> {
  const dir = await mkdtemp(join(tmpdir(), 'kms-cli-'));
  const kms = (args: readonly string[] | string, options: RunOptions = {}): Promise<Ran> =>
    run(dir, typeof args === 'string' ? args.split(' ') : args, options);
  return {
    dir,
    path: (...parts) => join(dir, ...parts),
    kms,
    async json<T>(args: readonly string[] | string, options?: RunOptions): Promise<T> {
      const ran = await kms(args, options);
      if (ran.code !== 0) throw new Error(`exit code ${ran.code}: ${ran.stderr}`);
      return JSON.parse(ran.stdout);
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

async function run(dir: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const { stdin = '', env = {}, cwd = dir, tty = {}, signal = new AbortController().signal } = options;
  const out = gathered(options.onStdout);
  const err = gathered(options.onStderr);
  const input =
    stdin instanceof Readable ? stdin : Readable.from([Buffer.from(stdin)].filter(({ length }) => length > 0));
  const io: Io = {
    args,
    env: { XDG_CONFIG_HOME: join(dir, 'config'), ...env },
    cwd,
    home: dir,
    stdin: Object.assign(input, { isTTY: tty.stdin === true }),
    stdout: Object.assign(out.stream, { isTTY: tty.stdout === true, columns: tty.columns ?? 80 }),
    // Without a width nothing is broken into lines.
    stderr: Object.assign(err.stream, { isTTY: tty.stderr === true, columns: tty.columns ?? 0 }),
    signal,
  };
  const code = await runCli(io);
  return { code, bytes: out.bytes(), stdout: out.bytes().toString(), stderr: err.bytes().toString() };
}

function gathered(tell?: (text: string) => void): { stream: Writable; bytes(): Buffer } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(Buffer.from(chunk));
      tell?.(String(chunk));
      done();
    },
  });
  return { stream, bytes: () => Buffer.concat(chunks) };
}

/** A terminal's input on which `text` is typed once it is asked for. */
export function typed(text: string): Readable {
  const stream = new PassThrough();
  stream.end(text);
  return stream;
}

/** A desk with an appliance, on which these command lines were typed. */
export async function withKey(...lines: readonly string[]): Promise<Desk> {
  const d = await desk();
  for (const line of ['init', ...lines]) {
    const { code, stderr } = await d.kms(line);
    assert.equal(code, 0, `${line}: ${stderr}`);
  }
  return d;
}

/** Exit code and output. */
export const pick = ({ code, stdout, stderr }: Ran): readonly unknown[] => [code, stdout, stderr];
