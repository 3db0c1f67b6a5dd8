// What a command of the line is given of the world: arguments, environment, the three streams, and the signal that a person
// wants it to stop. `env.ts` makes the real one; tests make their own.
import type { Readable, Writable } from 'node:stream';

export type InputStream = Readable & { readonly isTTY?: boolean };
export type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export interface Io {
  /** What was typed after `kms`. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Relative paths start here. */
  readonly cwd: string;
  readonly home: string;
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Aborted by Ctrl-C or a polite request to end. Whoever waits for something heeds it. */
  readonly signal: AbortSignal;
  /** From now on a hang-up (SIGHUP) calls this and no longer ends the command. Absent where there are no signals. */
  onHangup?(run: () => void): void;
}

/** Whether colour may be used on `stream`. */
export function hasColour(io: Io, stream: OutputStream): boolean {
  return stream.isTTY === true && !io.env.NO_COLOR && io.env.TERM !== 'dumb';
}

/** Writes all of `text`, waiting for a slow reader. A reader that has gone away is reported as `EPIPE`. */
export function write(stream: OutputStream, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** A line for the person at the terminal, on stderr. */
export function say(io: Io, line: string): Promise<void> {
  return write(io.stderr, `kms: ${line}\n`);
}
