// The server's own log: JSON lines on stderr. What may hold a secret never gets here; `redact` is the second net.
import { constants, openSync, write, writeSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { isatty } from 'node:tty';
import pino, { type Logger } from 'pino';
import { KmsError } from '../errors.ts';
import { environment } from '../platform/environment.ts';

export type { Logger };

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** Names of fields whose values are never written, at the top and one level down. */
const secretFields = ['authorization', 'key', 'privateKey', 'password', 'token', 'accessToken', 'secret'];

interface ServerLog {
  readonly logger: Logger;
  /** Writes out what is still held back, for a second at most: a reader that has stopped reading keeps no server up. */
  end(): Promise<void>;
}

/** `level` wins over KMS_LOG_LEVEL; without both it is `info`. `write` takes the lines in tests. */
export function createLog(level?: string, write?: (line: string) => void): ServerLog {
  const chosen = level ?? environment('KMS_LOG_LEVEL') ?? 'info';
  if (!levels.includes(chosen)) {
    throw new KmsError('usage', `log level: expected one of ${levels.join(', ')}, got "${chosen}"`);
  }
  const options = {
    level: chosen,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretFields.flatMap((field) => [field, `*.${field}`]), censor: '[secret]' },
    serializers: { err: describeError, error: describeError },
  };
  if (write) return { logger: pino(options, { write }), end: async () => {} };
  const stderr = new Lines(isatty(2) ? sameTerminal(2) : 2);
  return { logger: pino(options, stderr), end: () => stderr.end() };
}

function describeError(error: unknown): unknown {
  return error instanceof Error ? pino.stdSerializers.err(error) : error;
}

/**
 * A terminal that was told to stop (Ctrl-S) holds whoever writes to it, and the end of a process that has such a write
 * under way. Opened once more it says instead that it is full, as a pipe does.
 */
function sameTerminal(file: number): number {
  try {
    return openSync(`/dev/fd/${file}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return file;
  }
}

/** Characters from which lines are written without waiting for more: one write a request would cost as much as it. */
const enough = 8 * 1024;
const mostHeld = 4 * 1024 * 1024;
/** Milliseconds. */
const interval = 100;
const untilRoom = 10;
const lineFeed = 0x0a;
const lastWait = 1000;

/** What JSON leaves as it is and a terminal obeys: DEL, C1, what changes the direction of text, separators of lines. */
const controls = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

interface Written {
  readonly error: NodeJS.ErrnoException | null;
  readonly written: number;
}

/**
 * Lines to a file, terminal or pipe, written beside the event loop. What finds no room, since its reader is slow or the
 * disk full, or no reader at all, is counted and left out. pino's own destination repeats for ever, at the process's
 * end, a write that is refused.
 */
class Lines {
  readonly #file: number;
  readonly #timer: NodeJS.Timeout;
  #held = '';
  #lost = 0;
  /** The writing of what is no longer held. */
  #writing: Promise<void> | undefined;

  constructor(file: number) {
    this.#file = file;
    this.#timer = setInterval(() => this.#flush(), interval).unref();
    process.on('exit', this.#atExit);
  }

  /** Whoever reads the log at a terminal sees the same JSON with no control in it. */
  write(text: string): void {
    const line = text.replace(controls, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
    if (this.#held.length + line.length > mostHeld) {
      this.#lost++;
      return;
    }
    this.#held += line;
    if (this.#held.length >= enough) this.#flush();
  }

  async end(): Promise<void> {
    const over = new AbortController();
    const late = setTimeout(lastWait, false, { signal: over.signal }).catch(() => false);
    while (await Promise.race([this.#step(), late]));
    over.abort();
    clearInterval(this.#timer);
    process.off('exit', this.#atExit);
  }

  /** Whether there is more. */
  async #step(): Promise<boolean> {
    this.#flush();
    await this.#writing;
    return this.#held !== '';
  }

  /** However the process ends. Nothing can be put behind a write that is under way. */
  readonly #atExit = (): void => {
    if (this.#writing !== undefined || this.#held === '') return;
    try {
      writeSync(this.#file, this.#held);
    } catch {
      // Nobody reads.
    }
  };

  #flush(): void {
    if (this.#writing !== undefined || this.#held === '') return;
    const lines = Buffer.from(this.#held + this.#loss());
    this.#held = '';
    this.#writing = this.#write(lines).then((written) => {
      this.#lost += lines.subarray(written).toString('latin1').split('\n').length - 1;
      // What comes next is not to go on in the middle of a line.
      if (written > 0 && lines[written - 1] !== lineFeed) this.#held = `\n${this.#held}`;
      this.#writing = undefined;
      if (this.#held.length >= enough) this.#flush();
    });
  }

  #loss(): string {
    if (this.#lost === 0) return '';
    const time = new Date().toISOString();
    const line = JSON.stringify({
      level: 'warn',
      time,
      lost: this.#lost,
      msg: 'the log found no room or no reader: lines were left out',
    });
    this.#lost = 0;
    return `${line}\n`;
  }

  /** How many of them could be. */
  async #write(bytes: Uint8Array): Promise<number> {
    for (let at = 0; ; ) {
      if (at === bytes.length) return at;
      const { error, written } = await new Promise<Written>((resolve) => {
        write(this.#file, bytes, at, (error, written) => resolve({ error, written }));
      });
      if (!error) at += written;
      else if (error.code !== 'EAGAIN') return at;
      // Room comes with the reader.
      else await setTimeout(untilRoom, undefined, { ref: false });
    }
  }
}
