// Crockford's base32 for bytes that people copy by hand: groups of four characters, read without regard to case,
// hyphens or white space, with O read as 0 and I and L as 1.
import { base32, base32crockford } from '@scure/base';

/** Base32 in groups of four, such as `91jp-rv3f-40` for six bytes. */
export function toBase32(bytes: Uint8Array): string {
  return base32crockford
    .encode(bytes)
    .toLowerCase()
    .replace(/.{4}(?=.)/g, '$&-');
}

/**
 * The `length` bytes that the text encodes; undefined for other characters, a wrong length or a spare bit that is set.
 */
export function fromBase32(text: string, length: number): Uint8Array | undefined {
  const characters = text.replace(/[-\s]/g, '');
  if (characters.length !== Math.ceil((length * 8) / 5)) return undefined;
  try {
    return base32crockford.decode(characters);
  } catch {
    return undefined;
  }
}

/** Base32 of RFC 4648, upper case. */
export function toPlainBase32(bytes: Uint8Array): string {
  return base32.encode(bytes);
}
