// A share of the custodian `shares` as people keep and type it: whose it is, which one, how many it takes, its bytes,
// and a checksum by which a mistyped share is named before anything is tried with it. Format: docs/seal-format.md.
import { fromBase32, toBase32 } from '../crypto/base32.ts';
import { concatBytes, equalBytes, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';
import { secretLength } from './key-file.ts';

export interface Share {
  /** 8 hex digits that the shares of one split have in common. */
  readonly set: string;
  readonly threshold: number;
  readonly index: number;
  readonly bytes: Uint8Array;
}

const format = 'kms-share-1';
const shape = /^kms-share-1-([0-9a-f]{8})-([0-9]{1,3})-([0-9]{1,3})-([0-9a-z-]+)$/;
const checksumLength = 3;

export function formatShare(share: Share): string {
  const head = headOf(share);
  return `${head}-${toBase32(concatBytes(share.bytes, checksum(head, share.bytes)))}`;
}

/**
 * Throws `invalid`; the message names the share where the text says which one it is, and repeats nothing else of it.
 */
export function parseShare(text: string): Share {
  // White space and line ends come from mails and paper.
  const [, set = '', threshold, index, code = ''] = shape.exec(text.toLowerCase().replace(/\s/g, '')) ?? [];
  if (code === '') {
    throw new KmsError('invalid', `expected a share, a text that starts with ${format}-, got something else`, {
      hint: 'type the share as it was given out, with its head',
    });
  }
  const head = { set, threshold: Number(threshold), index: Number(index) };
  const bytes = fromBase32(code, secretLength + checksumLength);
  const share = { ...head, bytes: bytes?.slice(0, secretLength) ?? new Uint8Array() };
  const sane = share.threshold >= 2 && share.threshold <= 255 && share.index >= 1 && share.index <= 255;
  if (!bytes || !sane || !equalBytes(bytes.subarray(secretLength), checksum(headOf(share), share.bytes))) {
    throw new KmsError('invalid', `share ${share.index} of the set ${set} is mistyped: its checksum does not fit`, {
      hint: 'compare it with what was given out and enter it again; shares entered before still count',
    });
  }
  return share;
}

function headOf({ set, threshold, index }: Omit<Share, 'bytes'>): string {
  return `${format}-${set}-${threshold}-${index}`;
}

function checksum(head: string, bytes: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8(`${head}-`), bytes)).subarray(0, checksumLength);
}
