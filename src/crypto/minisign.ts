// File signatures in the format of minisign (https://jedisct1.github.io/minisign/): Ed25519 over BLAKE2b-512, with a
// comment that is signed too. Only prehashed signatures ("ED"); the older kind ("Ed") is refused.
import { blake2b } from '@noble/hashes/blake2.js';
import { KmsError } from '../errors.ts';
import { concatBytes, equalBytes, fromBase64, toBase64, toHex, utf8 } from './bytes.ts';
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from './ed25519.ts';

/** The id of a key pair as minisign prints it: hex with the bytes reversed. */
const idOf = (id: Uint8Array): string => toHex(id.toReversed()).toUpperCase();

export interface PublicKey {
  /** 8 bytes. */
  readonly id: Uint8Array;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

/** A signing key without a password. */
export interface SigningKey extends PublicKey {
  /** 32 bytes. */
  readonly seed: Uint8Array;
}

const algorithm = utf8('Ed');
const prehashed = utf8('ED');

const untrusted = 'untrusted comment: ';
const trusted = 'trusted comment: ';

/** Reads a public key as minisign writes it: a comment and a line of base64, or the line alone. */
export function parsePublicKey(text: string, name: string): PublicKey {
  const bytes = fromBase64(onlyLine(text));
  if (bytes?.length !== 42 || !equalBytes(bytes.subarray(0, 2), algorithm)) {
    throw new KmsError('invalid', `${name}: expected a public key of minisign, a line of 56 characters`, {
      hint: 'it is in the file that `minisign -G` calls the public key, such as minisign.pub',
    });
  }
  return { id: bytes.subarray(2, 10), key: bytes.subarray(10) };
}

/**
 * Reads a secret key as `minisign -G -W` writes it. Throws `invalid` for anything else, and for a key with a password.
 */
export function parseSigningKey(text: string, name: string): SigningKey {
  const bytes = fromBase64(onlyLine(text));
  if (bytes?.length !== 158 || !equalBytes(bytes.subarray(0, 2), algorithm)) {
    throw new KmsError('invalid', `${name}: expected a secret key of minisign`, { hint: '`minisign -G -W` makes one' });
  }
  if (bytes[2] !== 0 || bytes[3] !== 0) {
    throw new KmsError('invalid', `${name}: the secret key has a password`, {
      hint: 'make one without a password with `minisign -G -W`, or remove it with `minisign -C -W`',
    });
  }
  const [id, seed, key] = [bytes.subarray(54, 62), bytes.subarray(62, 94), bytes.subarray(94, 126)];
  // Without a password minisign leaves the checksum empty; comparing the two halves of the key is a stronger check.
  if (!equalBytes(ed25519PublicKey(seed), key)) {
    throw new KmsError('invalid', `${name}: the secret key is damaged`);
  }
  return { id, seed, key };
}

/** Both files of a key pair, as `minisign -G -W` would write them. */
export function formatKeyPair({ id, seed, key }: SigningKey): { readonly secret: string; readonly public: string } {
  // No password, so the salt, the costs and the checksum are zeros.
  const head = concatBytes(algorithm, new Uint8Array(2), utf8('B2'), new Uint8Array(48));
  return {
    secret: `${untrusted}minisign secret key ${idOf(id)}\n${toBase64(concatBytes(head, id, seed, key, new Uint8Array(32)))}\n`,
    public: `${untrusted}minisign public key ${idOf(id)}\n${toBase64(concatBytes(algorithm, id, key))}\n`,
  };
}

/** The text of `FILE.minisig` for a file with these bytes; `comment` is one line. */
export function minisign({ id, seed }: SigningKey, bytes: Uint8Array, comment: string): string {
  const signature = ed25519Sign(seed, blake2b(bytes));
  const whole = ed25519Sign(seed, concatBytes(signature, utf8(comment)));
  const first = `${untrusted}signature from minisign secret key\n${toBase64(concatBytes(prehashed, id, signature))}`;
  return `${first}\n${trusted}${comment}\n${toBase64(whole)}\n`;
}

/**
 * Returns the signed comment. Throws `refused` unless the text is a signature of these bytes by that key. `name` is the
 * file's.
 */
export function verifyMinisign({ id, key }: PublicKey, bytes: Uint8Array, text: string, name: string): string {
  const [, first = '', second = '', third = ''] = text.split('\n').map((line) => line.replace(/\r$/, ''));
  const head = fromBase64(first);
  const whole = fromBase64(third);
  if (head?.length !== 74 || whole?.length !== 64 || !second.startsWith(trusted)) {
    throw new KmsError('refused', `${name}: expected a signature of minisign, four lines of text`, {
      hint: 'get the file again: it is incomplete',
    });
  }
  if (!equalBytes(head.subarray(0, 2), prehashed)) {
    throw new KmsError('refused', `${name}: expected a prehashed signature (ED), got another kind`, {
      hint: 'sign with minisign 0.10 or later, without -l',
    });
  }
  const [by, signature] = [head.subarray(2, 10), head.subarray(10)];
  if (!equalBytes(by, id)) {
    throw new KmsError('refused', `${name}: signed by the key ${idOf(by)}, but ${idOf(id)} is trusted`, {
      hint: 'find out who signed it before you trust another key',
    });
  }
  const comment = second.slice(trusted.length);
  const fits = ed25519Verify(key, blake2b(bytes), signature);
  if (!fits || !ed25519Verify(key, concatBytes(signature, utf8(comment)), whole)) {
    throw new KmsError('refused', `${name}: the signature does not match: what was signed has been changed`, {
      hint: 'get it again from where it comes from, and install nothing of this copy',
    });
  }
  return comment;
}

/** The only line that is not a comment; empty if there is none or more than one. */
function onlyLine(text: string): string {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  const said = lines.filter((line) => line !== '' && !line.startsWith(untrusted.trimEnd()));
  return said.length === 1 ? (said[0] ?? '') : '';
}
