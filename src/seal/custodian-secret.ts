// A custodian's secret as text: the line of a key file, the code of a recovery kit, or one share of several, each with
// a checksum that tells a damaged or mistyped secret from a wrong one. Also reads 32 bytes in the encodings of other
// tools. Formats: docs/seal-format.md.

import { fromBase32, toBase32 } from '../crypto/base32.ts';
import {
  concatBytes,
  equalBytes,
  fromBase64,
  fromBase64Url,
  fromHex,
  fromUtf8,
  toBase64Url,
  toHex,
  utf8,
} from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';

/** Length of a custodian's secret in bytes. */
export const secretLength = 32;

const keyFileFormat = 'kms-master-key-1';
const keyFileShape = /^kms-master-key-1 ([A-Za-z0-9_-]{43})\.([0-9a-f]{8})(?:\r?\n)?$/;

/** A key file's single line. */
export function formatKeyFile(secret: Uint8Array): string {
  const line = `${keyFileFormat} ${toBase64Url(secret)}`;
  return `${line}.${keyFileChecksum(line)}\n`;
}

/** The secret in the text of a key file. `name` is the file's name in errors. */
export function parseKeyFile(text: string, name: string): Uint8Array {
  const [, encoded, sum] = keyFileShape.exec(text) ?? [];
  if (encoded === undefined || sum === undefined) {
    const expected = `expected one line that starts with "${keyFileFormat}"`;
    throw new KmsError('corrupt', `${name}: ${expected}, found something else`, {
      hint: 'give the key file that `kms init` made, or a copy of it',
    });
  }
  const secret = fromBase64Url(encoded);
  if (secret?.length !== secretLength || sum !== keyFileChecksum(`${keyFileFormat} ${encoded}`)) {
    throw new KmsError('corrupt', `${name}: the key file is damaged: its checksum does not match`, {
      hint: 'take it from a copy of the key file',
    });
  }
  return secret;
}

function keyFileChecksum(line: string): string {
  return toHex(sha256(utf8(line))).slice(0, 8);
}

const recoveryFormat = 'kms-recovery-1';
/** Found anywhere in a text, so that the whole kit can be given. */
const recoveryShape = /\bkms-recovery-1-([0-9a-z]{4}(?:[-\s]{1,8}[0-9a-z]{4}){13})(?![0-9a-z])/i;
/** Bytes in the checksum of texts typed from paper. */
const checksumLength = 3;

/** A code in characters that can be read from paper and typed. */
export function formatRecoveryCode(secret: Uint8Array): string {
  return `${recoveryFormat}-${toBase32(concatBytes(secret, typedChecksum(recoveryFormat, secret)))}`;
}

/** The secret in a kit, or in its code alone. `name` is the text's name in errors. */
export function parseRecoveryCode(text: string, name: string): Uint8Array {
  const [, code = ''] = recoveryShape.exec(text) ?? [];
  const bytes = fromBase32(code, secretLength + checksumLength);
  const secret = bytes?.slice(0, secretLength);
  if (!bytes || !secret || !equalBytes(bytes.subarray(secretLength), typedChecksum(recoveryFormat, secret))) {
    throw new KmsError('corrupt', `${name}: the recovery code is mistyped: its checksum does not match`, {
      hint: `compare it with the kit: ${recoveryFormat}- and 14 groups of four characters`,
    });
  }
  return secret;
}

function typedChecksum(head: string, bytes: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8(`${head}-`), bytes)).subarray(0, checksumLength);
}

/** A share of the custodian `shares`, in the form that its holder keeps and types. */
export interface Share {
  /** 8 hex digits shared by all shares of one split. */
  readonly set: string;
  readonly threshold: number;
  readonly index: number;
  readonly bytes: Uint8Array;
}

const shareFormat = 'kms-share-1';
const shareShape = /^kms-share-1-([0-9a-f]{8})-([0-9]{1,3})-([0-9]{1,3})-([0-9a-z-]+)$/;

export function formatShare(share: Share): string {
  const head = shareHead(share);
  return `${head}-${toBase32(concatBytes(share.bytes, typedChecksum(head, share.bytes)))}`;
}

/** Throws `invalid`; the message names the share if the text tells which one it is, and repeats nothing else of it. */
export function parseShare(text: string): Share {
  // White space and line breaks come from mails and paper.
  const [, set = '', threshold, index, code = ''] = shareShape.exec(text.toLowerCase().replace(/\s/g, '')) ?? [];
  if (code === '') {
    throw new KmsError('invalid', `expected a share, a text that starts with ${shareFormat}-, got something else`, {
      hint: 'type the whole share as it was given out, with its prefix',
    });
  }
  const head = { set, threshold: Number(threshold), index: Number(index) };
  const bytes = fromBase32(code, secretLength + checksumLength);
  const share = { ...head, bytes: bytes?.slice(0, secretLength) ?? new Uint8Array() };
  const sane = share.threshold >= 2 && share.threshold <= 255 && share.index >= 1 && share.index <= 255;
  if (!bytes || !sane || !equalBytes(bytes.subarray(secretLength), typedChecksum(shareHead(share), share.bytes))) {
    throw new KmsError('invalid', `share ${share.index} of the set ${set} is mistyped: its checksum does not match`, {
      hint: 'compare it with what was given out and enter it again; shares entered before still count',
    });
  }
  return share;
}

function shareHead({ set, threshold, index }: Omit<Share, 'bytes'>): string {
  return `${shareFormat}-${set}-${threshold}-${index}`;
}

/**
 * The secret from a key file, an environment variable, a credential, a command or a recovery kit: in one of our
 * formats, or 32 bytes in hex, base64 or raw. Throws `corrupt` for a damaged text of our formats, and for anything else
 * that is no secret.
 */
export function parseSecret(bytes: Uint8Array, name: string): Uint8Array {
  const text = fromUtf8(bytes);
  // Random bytes; 32 characters of text are more likely a password.
  const isText = text !== undefined && /^[\x20-\x7e\r\n\t]*$/.test(text);
  if (bytes.length === secretLength && !isText) return bytes.slice();
  if (text === undefined) throw noSecret(name);
  if (text.toLowerCase().includes(recoveryFormat)) return parseRecoveryCode(text, name);
  const line = text.trim();
  if (line.startsWith('kms-master-key-')) return parseKeyFile(line, name);
  const secret = fromHex(line.toLowerCase()) ?? fromBase64(line) ?? fromBase64Url(line);
  if (secret?.length === secretLength) return secret;
  throw noSecret(name);
}

function noSecret(name: string): KmsError {
  return new KmsError('corrupt', `${name}: expected a master key, found something else`, {
    hint: 'the line of a key file, a recovery code, or 32 random bytes in hex or base64',
  });
}
