// PEM (RFC 7468): labelled blocks of base64, with any text around them (§2 and §5.2: comments, "Bag Attributes", output
// of `openssl -text`, another key). The only PEM reader for keys that are handed in.
import { KmsError } from '../errors.ts';
import { fromBase64, fromUtf8, toBase64 } from './bytes.ts';

/** The text of a PEM file. PEM is ASCII; the text around its blocks is for people only and may be Latin-1. */
export function pemText(bytes: Uint8Array): string {
  return fromUtf8(bytes) ?? new TextDecoder('latin1').decode(bytes);
}

/** Whether the text has a PEM block of any label. */
export function isPem(text: string): boolean {
  return /^[\ufeff \t]*-----BEGIN [^-\r\n]+-----/m.test(text);
}

/**
 * Contents of the blocks with this label, in order. A block that is incomplete, not base64, or encrypted by the headers
 * of RFC 1421 yields undefined: damage is never mistaken for surrounding text.
 */
export function pemBlocks(text: string, label: string): readonly (Uint8Array | undefined)[] {
  const block = `(^[\\ufeff \\t]*-----BEGIN ${label}-----)((?:[^-]|-(?!----))*)(-----END ${label}-----)?`;
  const halves = new RegExp(`${block}|-----END ${label}-----`, 'gm');
  return [...text.matchAll(halves)].map(([, begin, body = '', end]) =>
    begin === undefined || end === undefined ? undefined : fromBase64(body.replace(/[\r\n\t ]/g, '')),
  );
}

/**
 * The contents of the block with this label; undefined if there is none that can be read. Throws `invalid` if there are
 * several, since it is unclear which is meant.
 */
export function pemBlock(text: string, label: string): Uint8Array | undefined {
  const blocks = pemBlocks(text, label);
  if (blocks.length <= 1) return blocks[0];
  throw new KmsError('invalid', `expected one PEM block "${label}", found ${blocks.length}`, {
    hint: 'give only the one that is meant',
  });
}

/** A PEM block with this label, with a newline at its end. */
export function toPem(label: string, bytes: Uint8Array): string {
  const lines = toBase64(bytes).match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
