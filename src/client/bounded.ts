// Limits on reading answers: anything may answer at an address, and send, or have inflated or parsed, more than fits in
// memory.
import { KmsError } from '../errors.ts';
import { jsonOf, longestPage } from '../model/json.ts';

/**
 * Bytes. A page reaches the limit of a page and ends with one whole item, which is no longer than a request; in UTF-8 a
 * character takes up to three bytes.
 */
export const longestList = 4 * longestPage;
/** Bytes of any other answer. */
export const longestAnswer = 2 * longestPage;

/** Asks for an uncompressed answer on platforms that allow setting it, which browsers do not. */
export const plainEncoding = ['accept-encoding', 'identity'] as const;

/** Throws `unavailable` for an answer that is compressed although an uncompressed one was asked for. */
export function refuseInflated(request: Request, response: Response, base: string): void {
  const [header, plain] = plainEncoding;
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? plain;
  if (request.headers.get(header) !== plain || encoding === plain || encoding === '') return;
  void response.body?.cancel().catch(() => undefined);
  throw new KmsError('unavailable', `expected an uncompressed answer from ${base}, got one in ${encoding}`, {
    hint: 'is there a proxy in front that compresses answers all the same? let it pass them on as they are',
  });
}

/** The system that should answer at an address, for hints and messages. */
interface Speaker {
  /** Such as `kms`. */
  readonly name: string;
  readonly hint: string;
}

const ours: Speaker = { name: 'kms', hint: 'is it the address of a kms appliance?' };

/** The body as text. Throws `unavailable`, and stops reading, if it has more than `most` bytes. */
export async function boundedText(response: Response, most: number, base: string, speaker = ours): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return '';
  const decoder = new TextDecoder();
  let text = '';
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > most) {
      void reader.cancel().catch(() => undefined);
      throw new KmsError('unavailable', `expected at most ${most} bytes from ${base}, got more`, {
        hint: speaker.hint,
      });
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Levels of an answer: free-form objects have up to 32, and an answer a few around them. */
const deepest = 64;
/** Values in an answer: a page of 4 MiB can have two million, and each takes some 50 bytes once it is parsed. */
const mostValues = 4_000_000;

/** The body as JSON; undefined if it is none. Throws `unavailable` if no appliance answers as much, or as deeply. */
export async function boundedJson(response: Response, most: number, base: string, speaker = ours): Promise<unknown> {
  const text = await boundedText(response, most, base, speaker);
  if (!isModest(text)) {
    const expected = `expected an answer of ${speaker.name} from ${base}`;
    throw new KmsError('unavailable', `${expected}, got JSON of another size or depth`, { hint: speaker.hint });
  }
  return jsonOf(text);
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Whether JSON is within the limits; of another text it means nothing. */
function isModest(text: string): boolean {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      for (at++; at < text.length && text.charCodeAt(at) !== quote; at++) if (text.charCodeAt(at) === backslash) at++;
    } else if (code === openBracket || code === openBrace) {
      if (++depth > deepest || ++values > mostValues) return false;
    } else if (code === comma) {
      if (++values > mostValues) return false;
    } else if (code === closeBracket || code === closeBrace) {
      depth--;
    }
  }
  return true;
}
