// Bech32 (BIP 173) as age uses it, without the limit of 90 characters: a readable prefix, the separator 1, the bytes in
// groups of five bits, and six checksum characters that catch typing errors.
import { utf8 } from './bytes.ts';

const characters = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const generator = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];
const checksumLength = 6;

/** Bech32 in lower case (all upper case is valid too). `prefix` is lower-case ASCII. */
export function toBech32(prefix: string, bytes: Uint8Array): string {
  const groups = regrouped(bytes, 8, 5);
  const sum = checksum([...expanded(prefix), ...groups, ...new Uint8Array(checksumLength)]) ^ 1;
  for (let i = 0; i < checksumLength; i++) groups.push((sum >>> (5 * (checksumLength - 1 - i))) & 31);
  return `${prefix}1${groups.map((each) => characters.charAt(each)).join('')}`;
}

/** The prefix in lower case, and the bytes; undefined for any text that `toBech32` does not make, in either case. */
export function fromBech32(text: string): { readonly prefix: string; readonly bytes: Uint8Array } | undefined {
  const lower = text.toLowerCase();
  if (text !== lower && text !== text.toUpperCase()) return undefined;
  const separator = lower.lastIndexOf('1');
  const prefix = lower.slice(0, separator);
  if (separator < 1 || !/^[\x21-\x7e]+$/.test(prefix)) return undefined;
  const groups = Array.from(lower.slice(separator + 1), (character) => characters.indexOf(character));
  if (groups.length < checksumLength || groups.includes(-1)) return undefined;
  if (checksum([...expanded(prefix), ...groups]) !== 1) return undefined;
  const bytes = Uint8Array.from(regrouped(groups.slice(0, -checksumLength), 5, 8));
  // Encoding again proves the text canonical: the padding is shorter than a group, and zero.
  return toBech32(prefix, bytes) === lower ? { prefix, bytes } : undefined;
}

/** Regroups the bits of `values` to another width; the last narrow group is padded with zeros. */
function regrouped(values: Iterable<number>, from: number, to: number): number[] {
  const groups: number[] = [];
  let held = 0;
  let bits = 0;
  for (const value of values) {
    held = ((held << from) | value) & 0xfff;
    for (bits += from; bits >= to; bits -= to) groups.push((held >>> (bits - to)) & ((1 << to) - 1));
  }
  if (from > to && bits > 0) groups.push((held << (to - bits)) & ((1 << to) - 1));
  return groups;
}

/** The prefix as the checksum covers it: the upper bits of its characters, a zero, the lower bits. */
function expanded(prefix: string): number[] {
  const codes = [...utf8(prefix)];
  return [...codes.map((code) => code >>> 5), 0, ...codes.map((code) => code & 31)];
}

function checksum(groups: readonly number[]): number {
  let sum = 1;
  for (const group of groups) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ group;
    generator.forEach((each, i) => {
      if ((top >>> i) & 1) sum ^= each;
    });
  }
  return sum;
}
