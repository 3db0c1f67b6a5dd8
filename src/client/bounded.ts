// Size limits on reading answers: anything may answer at an address, and send, or have inflated, more than fits in
// memory.
import { KmsError } from '../errors.ts';
import { longestPage } from '../model/json.ts';

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

/** The body as text. Throws `unavailable`, and stops reading, if it has more than `most` bytes. */
export async function boundedText(response: Response, most: number, base: string): Promise<string> {
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
        hint: 'is it the address of a kms appliance?',
      });
    }
    text += decoder.decode(value, { stream: true });
  }
}
