// A whole file in the age format (age-encryption.org/v1), sealed to one X25519 recipient and armored, so that `age -d`
// opens it anywhere. For short texts: it is made in one piece.

import { fromBech32 } from '../crypto/bech32.ts';
import { concatBytes, toBase64, utf8 } from '../crypto/bytes.ts';
import { hkdfSha256, hkdfSha256Salted, hmacSha256 } from '../crypto/hash.ts';
import { sealWithNonce } from '../crypto/managed/ciphers.ts';
import { generateX25519, isUsablePublicKey, sharedSecret } from '../crypto/x25519.ts';
import { KmsError } from '../errors.ts';
import { toAgeBase64 } from './age-keys.ts';

/** Bytes of a chunk of the body. */
const chunkLength = 65_536;
const none = new Uint8Array();

/** The public key in an `age1…` recipient. Throws `invalid` for anything else, such as a secret key. */
export function ageRecipient(text: string): Uint8Array {
  const { prefix, bytes } = fromBech32(text.trim()) ?? {};
  if (prefix === 'age' && bytes?.length === 32 && isUsablePublicKey(bytes)) return bytes;
  throw new KmsError('invalid', 'expected a recipient of age, which begins with age1', {
    hint: '`age-keygen -o key.txt` makes a pair, and says its recipient',
  });
}

/** The text sealed to the recipient: PEM-like lines. */
export function sealToAge(text: string, recipient: Uint8Array, random: (length: number) => Uint8Array): string {
  const fileKey = random(16);
  const ephemeral = generateX25519(random);
  const shared = sharedSecret(ephemeral.privateKey, recipient);
  if (shared === undefined) throw new KmsError('invalid', 'expected a recipient of age that can be sealed to');
  const salt = concatBytes(ephemeral.publicKey, recipient);
  const wrapping = hkdfSha256Salted(shared, salt, 'age-encryption.org/v1/X25519', 32);
  const wrapped = seal(wrapping, new Uint8Array(12), fileKey);
  const stanza = `-> X25519 ${toAgeBase64(ephemeral.publicKey)}\n${toAgeBase64(wrapped)}\n`;
  const header = `age-encryption.org/v1\n${stanza}---`;
  const mac = hmacSha256(hkdfSha256(fileKey, 'header', 32))(utf8(header));
  const nonce = random(16);
  const payloadKey = hkdfSha256Salted(fileKey, nonce, 'payload', 32);
  const body = chunksOf(utf8(text)).map((chunk, at, all) =>
    seal(payloadKey, chunkNonce(at, at === all.length - 1), chunk),
  );
  return armored(concatBytes(utf8(`${header} ${toAgeBase64(mac)}\n`), nonce, ...body));
}

function seal(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array): Uint8Array {
  return sealWithNonce('chacha20-poly1305', key, nonce, plaintext, none);
}

function chunksOf(bytes: Uint8Array): readonly Uint8Array[] {
  const count = Math.max(1, Math.ceil(bytes.length / chunkLength));
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * chunkLength, (at + 1) * chunkLength));
}

/** Eleven bytes of a big-endian counter, and whether the chunk is the last. */
function chunkNonce(at: number, isLast: boolean): Uint8Array {
  const nonce = new Uint8Array(12);
  new DataView(nonce.buffer).setUint32(7, at);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

function armored(bytes: Uint8Array): string {
  const lines = toBase64(bytes).replace(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN AGE ENCRYPTED FILE-----\n${lines}\n-----END AGE ENCRYPTED FILE-----\n`;
}
