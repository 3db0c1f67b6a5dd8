// Terminal output filter: everything that a command writes to a terminal goes through here. Characters that would move
// the cursor or change colours, the title or the direction of text are written as JSON escapes, so that JSON stays
// JSON. Files and pipes get the bytes unchanged.
import { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import type { Io } from './io.ts';

type OutputStream = Io['stdout'];

/**
 * C0 except line feed and tab, DEL, C1, changes of text direction, line separators, and lone surrogates. Before them,
 * as exceptions, the harmless sequences that this program writes itself: bold, colours and their reset, line ends, and
 * rewriting or clearing a line.
 */
const parts =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what this is about
  /(\x1b\[(?:0|1|22|3[136])m|\x1b\[K|\r\n|^\r)|[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu;

/** The text with those characters as `\\u` and four digits. */
function escaped(text: string): string {
  return text.replace(parts, (part: string, own: string | undefined) =>
    own === undefined ? `\\u${part.charCodeAt(0).toString(16).padStart(4, '0')}` : part,
  );
}

/** The same Io with filtered terminals. */
export function withSafeTerminals(io: Io): Io {
  return Object.create(io, { stdout: { value: safe(io.stdout) }, stderr: { value: safe(io.stderr) } });
}

function safe(stream: OutputStream): OutputStream {
  return stream.isTTY ? new Terminal(stream) : stream;
}

class Terminal extends Writable {
  readonly isTTY = true;
  readonly #stream: OutputStream;
  /** A character may arrive in two pieces. */
  readonly #decoder = new StringDecoder('utf8');

  constructor(stream: OutputStream) {
    // A failed write does not destroy it: writing may be retried, as on the stream itself.
    super({ autoDestroy: false, decodeStrings: true });
    this.#stream = stream;
    // The failed write reports it; the event adds nothing.
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
