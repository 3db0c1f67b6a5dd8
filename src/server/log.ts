// The server's own log: JSON lines on stderr. What may hold a secret never gets here; `redact` is the second net.
import { constants, openSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import pino, { type Logger } from 'pino';
import { environment } from '../appliance/environment.ts';
import { KmsError } from '../errors.ts';

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
const lastWait = 1000;

/**
 * Lines to a file, terminal or pipe, written beside the event loop. What a slow reader leaves no room for is counted
 * and left out; once the reader is gone, so is every line. pino's own destination repeats for ever, at the process's
 * end, a write that such readers refuse.
 */
class Lines {
  readonly #file: number;
  readonly #timer: NodeJS.Timeout;
  #held = '';
  #lost = 0;
  /** The writing of what is no longer held; false once nobody can read. */
  #writing: Promise<void> | undefined | false;

  constructor(file: number) {
    this.#file = file;
    this.#timer = setInterval(() => this.#flush(), interval).unref();
    process.on('exit', this.#atExit);
  }

  write(line: string): void {
    if (this.#writing === false) return;
    if (this.#held.length + line.length > mostHeld) {
      this.#lost++;
      return;
    }
    this.#held += line;
    if (this.#held.length >= enough) this.#flush();
  }

  async end(): Promise<void> {
    const late = Promise.withResolvers<false>();
    const timer = setTimeout(late.resolve, lastWait, false);
    while (await Promise.race([this.#step(), late.promise]));
    clearTimeout(timer);
    clearInterval(this.#timer);
    process.off('exit', this.#atExit);
  }

  /** Whether there is more. */
  async #step(): Promise<boolean> {
    this.#flush();
    await this.#writing;
    return this.#held !== '' && this.#writing !== false;
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
    this.#writing = this.#write(lines).then(
      () => {
        this.#writing = undefined;
        if (this.#held.length >= enough) this.#flush();
      },
      () => {
        this.#writing = false;
        this.#held = '';
      },
    );
  }

  #loss(): string {
    if (this.#lost === 0) return '';
    const time = new Date().toISOString();
    const line = JSON.stringify({
      level: 'warn',
      time,
      lost: this.#lost,
      msg: 'nobody read the log: lines were left out',
    });
    this.#lost = 0;
    return `${line}\n`;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      at += await new Promise<number>((resolve, reject) => {
        write(this.#file, bytes, at, (error, written) => {
          if (!error) resolve(written);
          // Full: room comes with the reader.
          else if (error.code === 'EAGAIN') setTimeout(resolve, untilRoom, 0).unref();
          else reject(error);
        });
      });
    }
  }
}
