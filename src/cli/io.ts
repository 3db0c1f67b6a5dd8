// Io is what a command is given of the world: arguments, environment, the three streams, and the signal that a person
// wants it to stop. `process-io.ts` makes the real one; tests make their own.
import { isAbsolute, join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { KmsError } from '../errors.ts';
import { fileError } from './files.ts';

type InputStream = Readable & { readonly isTTY?: boolean };
type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly fd?: number };

export interface Io {
  /** What was typed after `kms`. Throws `usage` where that, or a variable for this command, is not UTF-8. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Relative paths start here. Looked at only where one was given: it may be gone, which throws `refused`, or not be
   * UTF-8, which throws `usage`.
   */
  readonly cwd: string;
  /** Likewise: a user need not have one. */
  readonly home: string;
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  /**
   * Whether what goes to stdout is for nobody, since it was closed when the process began: the runtime opens /dev/null
   * there, for reading and writing, so that no write fails. Another program may have done the same on purpose.
   */
  readonly isStdoutClosed?: boolean;
  readonly stderr: OutputStream;
  /**
   * Aborted, with the signal's name as reason, by Ctrl-C or a polite request to end. Whoever waits for something heeds
   * it.
   */
  readonly signal: AbortSignal;
  /** From now on a hang-up (SIGHUP) calls this and no longer ends the command. Absent where there are no signals. */
  onHangup?(run: () => void): void;
}

/** A file name as it was typed, from the directory in which it was. Throws `usage` for one that is not UTF-8. */
export function pathFrom(io: Pick<Io, 'cwd'>, name: string): string {
  // The platform puts this character in place of bytes that are no UTF-8: another file would be meant.
  if (name.includes('\ufffd')) {
    throw new KmsError('usage', `expected a path in UTF-8 without the character U+FFFD, got "${name}"`, {
      hint: 'rename the file, or use stdin and stdout (< and >)',
    });
  }
  return isAbsolute(name) ? resolve(name) : resolve(io.cwd, name);
}

/** Whether colour may be used on `stream`. */
export function hasColour(io: Io, stream: OutputStream): boolean {
  return stream.isTTY === true && !io.env.NO_COLOR && io.env.TERM !== 'dumb';
}

/** Writes all of it, waiting for a slow reader. Throws what the platform says. */
export function written(stream: Writable, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** The same for our own output. Throws `EPIPE` where the reader has gone away, else `refused`. */
export async function write(stream: OutputStream, text: string | Uint8Array): Promise<void> {
  try {
    await written(stream, text);
  } catch (error) {
    if (isBrokenPipe(error)) throw error;
    throw fileError('write to', stream.fd === 2 ? 'stderr' : 'stdout', error);
  }
}

/** Throws `refused` where stdout was closed, for a command whose whole point is what it writes there. */
export function mustReachStdout({ isStdoutClosed }: Io): void {
  if (!isStdoutClosed) return;
  throw new KmsError('refused', 'cannot write to stdout: it is closed, or /dev/null opened for reading too', {
    hint: 'name a file with -o FILE where there is that option, or send it somewhere with >',
  });
}

/** Whether whoever reads our output has gone away. */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}

/** A line for the person at the terminal, on stderr. */
export function say(io: Io, line: string): Promise<void> {
  return tell(io, `kms: ${line}\n`);
}

/**
 * Writes to stderr, for whoever reads it. Nobody need: a reader that has gone away is no reason to stop what was
 * asked for, nor is one that does not read a reason to wait once the command is told to end. Never throws.
 */
export async function tell({ stderr, signal }: Io, text: string): Promise<void> {
  const done = Promise.withResolvers<unknown>();
  signal.addEventListener('abort', done.resolve, { once: true });
  stderr.write(text, done.resolve);
  if (!signal.aborted) await done.promise;
  signal.removeEventListener('abort', done.resolve);
}

/** `$XDG_CONFIG_HOME/kms`, else `~/.config/kms`. Throws `refused` where the user has no home. */
export function configDirectory(io: Io): string {
  const { XDG_CONFIG_HOME } = io.env;
  return join(XDG_CONFIG_HOME ? pathFrom(io, XDG_CONFIG_HOME) : join(io.home, '.config'), 'kms');
}
