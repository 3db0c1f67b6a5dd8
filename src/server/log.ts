// The server's own log on stderr: lines for people on a terminal, JSON elsewhere. Possible secrets are never passed to
// it; `redact` is the second line of defence.
import { constants, openSync, write, writeSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { isatty } from 'node:tty';
import pino, { type Logger } from 'pino';
import { KmsError } from '../errors.ts';
import { environment } from '../platform/environment.ts';

export type { Logger };

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** Names of fields whose values are never written, at the top level and one below. */
const secretFields = ['authorization', 'key', 'privateKey', 'password', 'token', 'accessToken', 'secret'];

interface ServerLog {
  readonly logger: Logger;
  /**
   * Writes the remaining lines, for a second at most: a reader that has stopped reading must not delay the shutdown.
   */
  end(): Promise<void>;
}

/** `auto` is `text` on a terminal, else `json`. */
export type LogFormat = 'auto' | 'text' | 'json';

/** `level` wins over KMS_LOG_LEVEL; without both it is `info`. `write` takes the lines in tests. */
export function createLog(level?: string, write?: (line: string) => void, format: LogFormat = 'auto'): ServerLog {
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
  const shown = format === 'text' || (format === 'auto' && !write && isatty(2)) ? textLine : (line: string) => line;
  if (write) return { logger: pino(options, { write: (line: string) => write(shown(line)) }), end: async () => {} };
  const stderr = new Lines(isatty(2) ? sameTerminal(2) : 2);
  return { logger: pino(options, { write: (line: string) => stderr.write(shown(line)) }), end: () => stderr.end() };
}

/** A line of the log for people: the local time of day, the level, the sentence, and the fields behind it. */
function textLine(json: string): string {
  // Cast: the logger wrote it.
  const { time, level, msg = '', err, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const date = new Date(String(time));
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0'));
  const reason = err !== null && typeof err === 'object' && 'message' in err ? `: ${String(err.message)}` : '';
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${fieldText(value)}`);
  const sentence = `${String(msg)}${reason}${rest.join('')}`.replace(/\p{Cc}/gu, ' ');
  return `${clock.join(':')} ${String(level).padEnd(5)} ${sentence}\n`;
}

function fieldText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}

function describeError(error: unknown): unknown {
  return error instanceof Error ? pino.stdSerializers.err(error) : error;
}

/**
 * A paused terminal (Ctrl-S) blocks each write, and the end of a process with such a write under way. Opened again
 * without blocking, it reports that it is full, as a pipe does.
 */
function sameTerminal(file: number): number {
  try {
    return openSync(`/dev/fd/${file}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return file;
  }
}

/** Characters held before a write: one write per request would cost as much as the request. */
const enough = 8 * 1024;
const mostHeld = 4 * 1024 * 1024;
/** In milliseconds. */
const interval = 100;
const untilRoom = 10;
const lineFeed = 0x0a;
const lastWait = 1000;

/** Characters that JSON leaves unescaped but a terminal obeys: DEL, C1, direction of text, line separators. */
const controls = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

interface Written {
  readonly error: NodeJS.ErrnoException | null;
  readonly written: number;
}

/**
 * Writes lines to a file, terminal or pipe, without blocking the event loop. Lines that find no room (a slow reader, a
 * full disk, no reader) are counted and dropped. pino's own destination, when the process ends, repeats a refused write
 * for ever.
 */
class Lines {
  readonly #file: number;
  readonly #timer: NodeJS.Timeout;
  #held = '';
  #lost = 0;
  /** The write under way. */
  #writing: Promise<void> | undefined;

  constructor(file: number) {
    this.#file = file;
    this.#timer = setInterval(() => this.#flush(), interval).unref();
    process.on('exit', this.#atExit);
  }

  /** Escapes control characters, so that a terminal shows the same JSON without obeying them. */
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

  /** Whether there is more to write. */
  async #step(): Promise<boolean> {
    this.#flush();
    await this.#writing;
    return this.#held !== '';
  }

  /** Runs however the process ends. Nothing can be written behind a write that is under way. */
  readonly #atExit = (): void => {
    if (this.#writing !== undefined || this.#held === '') return;
    try {
      writeSync(this.#file, this.#held);
    } catch {
      // The reader is gone.
    }
  };

  #flush(): void {
    if (this.#writing !== undefined || this.#held === '') return;
    const lines = Buffer.from(this.#held + this.#loss());
    this.#held = '';
    this.#writing = this.#write(lines).then((written) => {
      this.#lost += lines.subarray(written).toString('latin1').split('\n').length - 1;
      // The next line must not continue a cut one.
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
      msg: 'the log found no room or no reader: lines were dropped',
    });
    this.#lost = 0;
    return `${line}\n`;
  }

  /** The number of bytes written. */
  async #write(bytes: Uint8Array): Promise<number> {
    for (let at = 0; ; ) {
      if (at === bytes.length) return at;
      const { error, written } = await new Promise<Written>((resolve) => {
        write(this.#file, bytes, at, (error, written) => resolve({ error, written }));
      });
      if (!error) at += written;
      else if (error.code !== 'EAGAIN') return at;
      // Waits for the reader to make room.
      else await setTimeout(untilRoom, undefined, { ref: false });
    }
  }
}
