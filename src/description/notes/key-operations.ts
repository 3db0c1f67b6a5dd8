// Notes on the endpoints that work with managed keys.
import { sample } from '../../api/example-values.ts';
import type { keyOperationEndpoints } from '../../api/key-operations.ts';
import type { keyToolEndpoints } from '../../api/key-tools.ts';
import type { Note } from '../prose.ts';
import { clients, keyLimit, named, noKey } from './managed-keys.ts';

const each =
  'There can be at most 1,000 `items`. Each is processed on its own and has its result at the same position: what was made, or `error`. Each has its own activity record, and all records are durable before the answer.';
const bound =
  '`associatedData` (base64) is bound to the message, which opens only with the same data. `context` (base64) is for keys that derive a key for each context (`derived`); others refuse it.';
const oneOrMany =
  'Send one message as `input`, or up to 1,000 as `items`, each of which has its result at the same position.';
const noItems = { message: 'missing batch input to process' };
const suspended = { message: 'the key is suspended' };

const params = named('unseal');

export const keyOperationNotes: Readonly<
  Record<(typeof keyOperationEndpoints | typeof keyToolEndpoints)[number]['id'], Note>
> = {
  encryptWithKey: {
    description: [
      `Encrypts with the primary version of a cipher or of an RSA key for encryption, or with \`keyVersion\`. ${bound}`,
      each,
      'A version of a cipher encrypts at most 2^32 messages; the next message gets a new version first. An RSA key takes short messages only: 190 bytes at 2048 bits.',
    ],
    params,
    body: { items: [{ plaintext: 'aGVsbG8=', associatedData: '' }] },
    answer: { items: [{ ciphertext: sample.keyCiphertext, keyVersion: 1 }] },
    problems: { 400: [noItems, suspended, clients], 404: [noKey] },
    limits: [keyLimit],
  },
  decryptWithKey: {
    description: [
      `Decrypts messages of this key. ${bound}`,
      'RSA ciphertexts that other software made do not say their version: send them in base64, with `anyVersion`.',
      'With `toKey` each message is encrypted again under that key, bound to `toAssociatedData`, and answered in place of the plaintext, which nobody sees. That takes the flag `encrypt` for that key too.',
      each,
    ],
    params,
    body: { items: [{ ciphertext: sample.keyCiphertext }] },
    answer: { items: [{ plaintext: 'aGVsbG8=' }] },
    problems: { 400: [noItems, suspended, clients], 404: [noKey] },
  },
  rewrapWithKey: {
    description: [
      `Decrypts and encrypts again, with the primary version, without showing the plaintext. ${bound}`,
      each,
      'The flags `encrypt` and `decrypt` for the key together allow it too.',
    ],
    params,
    body: { items: [{ ciphertext: sample.keyCiphertext }] },
    answer: { items: [{ ciphertext: sample.keyCiphertext, keyVersion: 1 }] },
    problems: { 400: [noItems, suspended, clients], 404: [noKey] },
    limits: [keyLimit],
  },
  generateDataKey: {
    description: [
      `Makes a random key of \`bits\` bits, and encrypts it with the primary version of this key, or with \`keyVersion\`. ${bound}`,
      'With `bytes` the key has that many bytes. With `pair` it is the private key of a new key pair, whose public key comes with it; nothing of the pair is kept.',
    ],
    params,
    body: { bits: 256 },
    answer: { ciphertext: sample.keyCiphertext, keyVersion: 1, plaintext: sample.dataKey },
    problems: { 400: [{ message: 'invalid bit length' }, suspended, clients], 404: [noKey] },
    limits: [keyLimit],
  },
  generateWrappedDataKey: {
    description: [
      'The same as `datakey`, without the key itself: for programs that prepare keys for others and must not see them.',
    ],
    params,
    body: { bits: 256 },
    answer: { ciphertext: sample.keyCiphertext, keyVersion: 1 },
    problems: { 400: [{ message: 'invalid bit length' }, suspended, clients], 404: [noKey] },
    limits: [keyLimit],
  },
  signWithKey: {
    description: [
      'Signs with the primary version of a key pair, or with `keyVersion`. RSA and ECDSA sign the hash of `input`: `hash` chooses which, and with `prehashed` `input` is the hash. Ed25519 signs `input` itself. ML-DSA signs `input` too; with `prehashed` it is the representative µ of FIPS 204.',
      oneOrMany,
    ],
    params: named('release'),
    body: { input: 'aGVsbG8=' },
    answer: { signature: sample.keySignature, keyVersion: 1 },
    problems: {
      400: [{ message: 'key type aes256-gcm96 does not support signing' }, suspended, clients],
      404: [noKey],
    },
    limits: [keyLimit],
  },
  verifyWithKey: {
    description: [
      'Says whether a `signature` or a `mac` by this key is valid for `input`. Give the `hash`, `padding` and `encoding` that it was made with. With `anyVersion` it is base64 without the version, and compared with the newest 5 versions. `warning` says if the key is deactivated or compromised.',
      oneOrMany,
    ],
    params: named('release'),
    body: { input: 'aGVsbG8=', signature: sample.keySignature },
    answer: { valid: true },
    problems: { 400: [{ message: 'expected one of signature and mac' }, suspended, clients], 404: [noKey] },
  },
  macWithKey: {
    description: ['Makes the HMAC of `input` with the primary version, or with `keyVersion`.', oneOrMany],
    params: named('tokens'),
    body: { input: 'aGVsbG8=' },
    answer: { mac: sample.keyMac, keyVersion: 1 },
    problems: {
      400: [{ message: 'the key is not for mac: it is for encrypt, decrypt' }, suspended, clients],
      404: [noKey],
    },
    limits: [keyLimit],
  },
  wrapWithKey: {
    description: [
      'Wraps another key: with AES-KWP (RFC 5649) under an AES key, or with RSA-OAEP to an RSA key. Unlike a message, what is wrapped does not name its version: keep `keyVersion` beside it.',
    ],
    params: named('wrapper'),
    body: { plaintext: sample.dataKey },
    problems: { 400: [{ field: 'plaintext', message: 'expected base64' }, suspended], 404: [noKey] },
    limits: [keyLimit],
  },
  unwrapWithKey: {
    description: ['Unwraps a key that was wrapped with the version `keyVersion`, or the latest one if absent.'],
    params: named('wrapper'),
    body: { wrapped: sample.wrappedDataKey, keyVersion: 1 },
    answer: { plaintext: sample.dataKey, keyVersion: 1 },
    problems: {
      400: [
        { field: 'wrapped', message: 'was not wrapped with this version of the key, or altered' },
        { message: 'keyVersion: the key has no such version' },
        suspended,
      ],
      404: [noKey],
    },
  },
  deriveWithKey: {
    description: [
      'Derives `length` bytes with HKDF from a symmetric key, by `context` and `salt`; or, with an ECDSA key whose use is `derive`, returns the secret that it shares with `publicKey` (ECDH).',
    ],
    params: named('wrapper'),
    body: { context: 'c2Vzc2lvbg==', length: 32 },
    problems: {
      400: [{ field: 'length', message: 'expected at most 8160 bytes with sha2-256' }, suspended],
      404: [noKey],
    },
    limits: [keyLimit],
  },
  generateRandom: {
    description: ['Returns random bytes, which nothing keeps. Any credential is enough.'],
    body: { bytes: 32 },
  },
  hashMessage: {
    description: ['Returns the hash of `input` by SHA-2 or SHA-3. Any credential is enough; no key has a part in it.'],
    body: { input: 'aGVsbG8=', hash: 'sha2-256' },
    problems: {
      400: [{ message: 'unable to decode input as base64: illegal base64 data at input byte 0' }],
    },
  },
};
