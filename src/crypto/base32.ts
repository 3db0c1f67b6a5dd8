// Crockford's base32 for bytes that people copy by hand: groups of four characters, read without regard to case,
// hyphens or white space, with O read as 0 and I and L as 1. The bytes may be secret, so characters are computed
// instead of looked up.

/** Five bits as a character code: `0`-`9`, then `a`-`z` without i, l, o and u. */
function characterOf(value: number): number {
  const past = (last: number): number => ((last - value) >>> 31) & 1;
  return 48 + value + 39 * past(9) + past(17) + past(19) + past(21) + past(26);
}

/** Base32 in groups of four, such as `91jp-rv3f-40` for six bytes. */
export function toBase32(bytes: Uint8Array): string {
  let text = '';
  let held = 0;
  let bits = 0;
  let characters = 0;
  const put = (value: number): void => {
    if (characters > 0 && characters % 4 === 0) text += '-';
    text += String.fromCharCode(characterOf(value & 31));
    characters++;
  };
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) put(held >>> (bits - 5));
  }
  if (bits > 0) put(held << (5 - bits));
  return text;
}

/**
 * The `length` bytes that the text encodes; undefined for other characters, a wrong length or a spare bit that is set.
 */
export function fromBase32(text: string, length: number): Uint8Array | undefined {
  const characters = text.toLowerCase().replace(/[-\s]/g, '').replaceAll('o', '0').replace(/[il]/g, '1');
  if (characters.length !== Math.ceil((length * 8) / 5) || !/^[0-9a-hjkmnp-tv-z]*$/.test(characters)) return undefined;
  const bytes = new Uint8Array(length);
  let held = 0;
  let bits = 0;
  let at = 0;
  for (let index = 0; index < characters.length; index++) {
    held = ((held << 5) | numberOf(characters.charCodeAt(index))) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes[at++] = held >>> bits;
  }
  return (held & ((1 << bits) - 1)) === 0 ? bytes : undefined;
}

function numberOf(code: number): number {
  let value = 0;
  for (let each = 0; each < 32; each++) {
    const difference = characterOf(each) ^ code;
    // All bits are set if there is no difference.
    value |= each & ((difference - 1) >> 31);
  }
  return value;
}
