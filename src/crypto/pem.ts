// PEM as RFC 7468 has it: blocks of base64 between lines that name what is in them, and any text around (§2 and §5.2:
// comments, "Bag Attributes", what `openssl -text` prints, another key). The one reader of all that hands in keys so.
import { KmsError } from '../errors.ts';
import { fromBase64, fromUtf8 } from './bytes.ts';

/** The text of a file: PEM is ASCII, and what stands around its blocks, for people alone, may be in Latin-1. */
export function pemText(bytes: Uint8Array): string {
  return fromUtf8(bytes) ?? new TextDecoder('latin1').decode(bytes);
}

/** Whether the text has a block of any label, and is to be read as PEM. */
export function isPem(text: string): boolean {
  return /^[\ufeff \t]*-----BEGIN [^-\r\n]+-----/m.test(text);
}

/**
 * What is in the blocks of this label, in their order. One that is not whole, not of base64, or encrypted by the
 * headers of RFC 1421 stands as undefined: what is damaged is never taken for text around the others.
 */
export function pemBlocks(text: string, label: string): readonly (Uint8Array | undefined)[] {
  const block = `(^[\\ufeff \\t]*-----BEGIN ${label}-----)((?:[^-]|-(?!----))*)(-----END ${label}-----)?`;
  const halves = new RegExp(`${block}|-----END ${label}-----`, 'gm');
  return [...text.matchAll(halves)].map(([, begin, body = '', end]) =>
    begin === undefined || end === undefined ? undefined : fromBase64(body.replace(/[\r\n\t ]/g, '')),
  );
}

/**
 * What is in the block of this label; undefined where there is none that can be read. Throws `invalid` where there are
 * two, since nobody says which is meant.
 */
export function pemBlock(text: string, label: string): Uint8Array | undefined {
  const blocks = pemBlocks(text, label);
  if (blocks.length <= 1) return blocks[0];
  throw new KmsError('invalid', `expected one PEM block "${label}", found ${blocks.length}`, {
    hint: 'give the one that is meant alone',
  });
}
