// What a terminal is shown, whoever wrote it: everything a command writes to one goes through here, and what would move
// its cursor, change its colours, its title or the direction of text is written out as JSON escapes it, so that JSON
// stays JSON. Files and pipes get each byte as it is.
import { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import type { Io } from './io.ts';

type OutputStream = Io['stdout'];

/**
 * C0 but line feed and tab, DEL, C1, what changes the direction of text, separators of lines, and halves of characters;
 * before them what this program writes itself, which is harmless: bold, colours and their end, line ends, and a line
 * that is written over and cleared.
 */
const parts =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what this is about
  /(\x1b\[(?:0|1|22|3[136])m|\x1b\[K|\r\n|^\r)|[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu;

/** The text with the others as `\\u` and four digits. */
function escaped(text: string): string {
  return text.replace(parts, (part: string, own: string | undefined) =>
    own === undefined ? `\\u${part.charCodeAt(0).toString(16).padStart(4, '0')}` : part,
  );
}

/** The same world, of whose terminals nothing but text is asked. */
export function withSafeTerminals(io: Io): Io {
  return Object.create(io, { stdout: { value: safe(io.stdout) }, stderr: { value: safe(io.stderr) } });
}

function safe(stream: OutputStream): OutputStream {
  return stream.isTTY ? new Terminal(stream) : stream;
}

class Terminal extends Writable {
  readonly isTTY = true;
  readonly #stream: OutputStream;
  /** A character may come in two pieces. */
  readonly #decoder = new StringDecoder('utf8');

  constructor(stream: OutputStream) {
    // A write that fails is not the last: the same is tried again, as on the stream itself.
    super({ autoDestroy: false, decodeStrings: true });
    this.#stream = stream;
    // It fails the write that meets it; the event itself has nothing to add.
    this.on('error', () => undefined);
  }

  get columns(): number {
    return this.#stream.columns ?? 0;
  }

  get fd(): number {
    return this.#stream.fd ?? -1;
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#stream.write(escaped(this.#decoder.write(bytes)), done);
  }
}
