// Encryption contexts as associated data: the number of pairs, then name and value of each with their lengths, sorted
// by the bytes of the names. One context has one encoding, and no two share one.
import { concatBytes, utf8 } from '../../crypto/bytes.ts';
import { isJsonObject } from '../../model/json.ts';
import { failure } from './errors.ts';

/** Bytes of the encoding. */
const longest = 8192;

/** Empty for no context. Throws `ValidationException`. */
export function contextBytes(given: unknown): Uint8Array {
  if (given === undefined || given === null) return new Uint8Array();
  if (!isJsonObject(given)) throw failure('SerializationException');
  const pairs = Object.entries(given).map(([name, value]) => {
    if (typeof value !== 'string') throw failure('SerializationException');
    // A lone surrogate would become U+FFFD, and two contexts one.
    if (!name.isWellFormed() || !value.isWellFormed()) {
      throw failure('ValidationException', 'EncryptionContext has a text that is not well-formed');
    }
    return [utf8(name), utf8(value)] as const;
  });
  if (pairs.length === 0) return new Uint8Array();
  pairs.sort(([a], [b]) => Buffer.compare(a, b));
  const bytes = concatBytes(
    length(pairs.length),
    ...pairs.flatMap((pair) => pair.flatMap((part) => [length(part.length), part])),
  );
  if (bytes.length > longest) throw failure('ValidationException', `EncryptionContext is longer than ${longest} bytes`);
  return bytes;
}

function length(number: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}
