// Io is the outside world of a command: arguments, environment, the three streams, and the signal to stop.
// `process-io.ts` makes the real one; tests make their own.
import { isAbsolute, join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { KmsError } from '../errors.ts';
import { fileError } from './files.ts';
import { inLines } from './text.ts';

type InputStream = Readable & { readonly isTTY?: boolean };
type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly fd?: number };

export interface Io {
  /** Words after `kms`. Throws `usage` if one of them, or a variable for this command, is not UTF-8. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Base of relative paths. Read only when one is given: it may be gone, which throws `refused`, or not be UTF-8, which
   * throws `usage`.
   */
  readonly cwd: string;
  /** Likewise read only on use: a user may have none. */
  readonly home: string;
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  /**
   * Whether stdout was closed when the process began: the runtime then opens /dev/null there, for reading and writing,
   * so that no write fails. Another program may have done the same on purpose.
   */
  readonly isStdoutClosed?: boolean;
  readonly stderr: OutputStream;
  /**
   * Aborted by Ctrl-C or another request to stop, with the signal's name as reason. Everything that waits must observe
   * it.
   */
  readonly signal: AbortSignal;
  /** Reason of a command that breaks the glass: nothing that it does needs approval. */
  readonly breakingGlass?: string;
  /** From now on a hang-up (SIGHUP) calls `run` instead of ending the command. Absent without signals. */
  onHangup?(run: () => void): void;
}

/** Resolves a typed file name against the current directory. Throws `usage` if it is not UTF-8. */
export function pathFrom(io: Pick<Io, 'cwd'>, name: string): string {
  // The platform substitutes this character for invalid UTF-8: the name would mean another file.
  if (name.includes('\ufffd')) {
    throw new KmsError('usage', `expected a path in UTF-8 without the character U+FFFD, got "${name}"`, {
      hint: 'rename the file, or use stdin and stdout (< and >)',
    });
  }
  return isAbsolute(name) ? resolve(name) : resolve(io.cwd, name);
}

/** Whether `stream` may have colours. */
export function hasColour(io: Io, stream: OutputStream): boolean {
  return stream.isTTY === true && !io.env.NO_COLOR && io.env.TERM !== 'dumb';
}

/** Writes all of it, waiting for a slow reader. Throws the platform's error. */
export function written(stream: Writable, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** The same for our own output. Throws `EPIPE` if the reader has gone away, else `refused`. */
export async function write(stream: OutputStream, text: string | Uint8Array): Promise<void> {
  try {
    await written(stream, text);
  } catch (error) {
    if (isBrokenPipe(error)) throw error;
    throw fileError('write to', stream.fd === 2 ? 'stderr' : 'stdout', error);
  }
}

/** Throws `refused` if stdout is closed; for commands that write their whole result to it. */
export function mustReachStdout({ isStdoutClosed }: Io): void {
  if (!isStdoutClosed) return;
  throw new KmsError('refused', 'cannot write to stdout: it is closed, or /dev/null opened for reading too', {
    hint: 'name a file with -o FILE where there is that option, or redirect the output with >',
  });
}

/** Whether the reader of our output has gone away. */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}

/** Prints a sentence for the person at the terminal, on stderr. */
export function say(io: Io, sentence: string): Promise<void> {
  return tell(io, `${fitted(io.stderr, `kms: ${sentence}`)}\n`);
}

/** The sentence in lines that fit the terminal behind an indent; in one line where there is none. */
export function fitted({ isTTY, columns }: OutputStream, sentence: string, indent = ''): string {
  return isTTY ? inLines(sentence, columns && columns - indent.length).join('\n') : sentence;
}

/**
 * Writes to stderr and never throws. A reader that has gone away does not stop the command, and one that does not read
 * does not delay it once it is interrupted.
 */
export async function tell({ stderr, signal }: Io, text: string): Promise<void> {
  const done = Promise.withResolvers<unknown>();
  signal.addEventListener('abort', done.resolve, { once: true });
  stderr.write(text, done.resolve);
  if (!signal.aborted) await done.promise;
  signal.removeEventListener('abort', done.resolve);
}

/** `$XDG_CONFIG_HOME/kms`, else `~/.config/kms`. Throws `refused` if the user has no home. */
export function configDirectory(io: Io): string {
  const { XDG_CONFIG_HOME } = io.env;
  return join(XDG_CONFIG_HOME ? pathFrom(io, XDG_CONFIG_HOME) : join(io.home, '.config'), 'kms');
}
