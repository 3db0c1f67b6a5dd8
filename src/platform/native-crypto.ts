// The primitives by node:crypto (OpenSSL), for the threads of a server: in use once both they and noble pass the
// known-answer tests. Primitives that this Node lacks stay with noble.
import * as nodeCrypto from 'node:crypto';
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
} from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { CryptoInUse } from '../api/local/status.ts';
import { ed25519FromSpki, ed25519ToSpki, expectSignatures } from '../crypto/ed25519.ts';
import { native, type Primitives, putIn } from '../crypto/primitives.ts';
import { type SelfTests, selfTest, selfTests } from '../crypto/self-test.ts';
import { p256ToSpki } from '../crypto/transit.ts';
import { KmsError } from '../errors.ts';
import type { ApplianceEvent } from './events.ts';
import { nodeAgreement, plain, privateKeyFrom, startAgreement } from './native-agreement.ts';

export type CryptoChoice = 'node' | 'noble';

let inUse: CryptoInUse = { by: 'noble' };

/** The implementation that this process uses. */
export function cryptoInUse(): CryptoInUse {
  return inUse;
}

const tagLength = 16;

/** The DER before the 32 bytes of an Ed25519 seed in PKCS #8 (RFC 8410 §7). */
const ed25519Prefix = Uint8Array.of(
  0x30,
  0x2e,
  0x02,
  0x01,
  0x00,
  0x30,
  0x05,
  0x06,
  0x03,
  0x2b,
  0x65,
  0x70,
  0x04,
  0x22,
  0x04,
  0x20,
);

/**
 * Caches the key object of each byte array, since making one takes as long as a signature. The key is collected with
 * its array.
 */
function kept(make: (bytes: Uint8Array) => KeyObject): (bytes: Uint8Array) => KeyObject {
  const keys = new WeakMap<Uint8Array, KeyObject>();
  return (bytes) => {
    const known = keys.get(bytes);
    if (known) return known;
    const key = make(bytes);
    keys.set(bytes, key);
    return key;
  };
}

const ed25519Private = kept((seed) => privateKeyFrom(ed25519Prefix, seed, 32));
const ed25519Public = kept((publicKey) => spkiKey(ed25519ToSpki(publicKey)));
const p256Private = kept((key) => {
  const der = Buffer.concat([sec1Prefix, key, sec1Curve]);
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'sec1' });
  } finally {
    der.fill(0);
  }
});
const p256Public = kept((publicKey) => spkiKey(p256ToSpki(publicKey)));

/** Node's types tell the two apart only by literal names. */
type AeadName = 'chacha20-poly1305' | 'aes-256-gcm';

/**
 * Buffers in which OpenSSL gets short messages and nonces: a small typed array allocates its buffer on demand, which
 * costs a tenth of a whole message.
 */
const shortMessage = new Uint8Array(new ArrayBuffer(1024));
const shortNonce = new Uint8Array(new ArrayBuffer(12));
const withTag = { authTagLength: tagLength };

/** Valid until the next call; must be wiped. */
function inBuffer(kept: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (bytes.length > kept.length) return bytes;
  kept.set(bytes);
  return bytes.length === kept.length ? kept : kept.subarray(0, bytes.length);
}

function sealWith(name: AeadName): Primitives['sealGcm'] {
  return (key, nonce, plaintext, associated) => {
    const iv = inBuffer(shortNonce, nonce);
    const cipher = name === 'aes-256-gcm' ? createCipheriv(name, key, iv) : createCipheriv(name, key, iv, withTag);
    cipher.setAAD(associated);
    const sealed = new Uint8Array(plaintext.length + tagLength);
    sealed.set(cipher.update(inBuffer(shortMessage, plaintext)));
    shortMessage.fill(0, 0, plaintext.length);
    cipher.final();
    sealed.set(cipher.getAuthTag(), plaintext.length);
    return sealed;
  };
}

function openWith(name: AeadName): Primitives['openGcm'] {
  return (key, nonce, sealed, associated) => {
    const length = sealed.length - tagLength;
    const iv = inBuffer(shortNonce, nonce);
    const cipher =
      name === 'aes-256-gcm' ? createDecipheriv(name, key, iv, withTag) : createDecipheriv(name, key, iv, withTag);
    cipher.setAAD(associated);
    const message = inBuffer(shortMessage, sealed);
    cipher.setAuthTag(message.subarray(length));
    const plaintext = cipher.update(message.subarray(0, length));
    try {
      cipher.final();
    } catch {
      return undefined;
    }
    return plain(plaintext);
  };
}

/** Available since Node 20.12 and 24.7. */
const { hash, argon2Sync } = nodeCrypto as Partial<typeof nodeCrypto>;

/** The DER around the 32 bytes of a P-256 key (RFC 5915 §3), without its public key. */
const sec1Prefix = Uint8Array.of(0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20);
const sec1Curve = Uint8Array.of(0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07);
const ecdsaHashes = { 'sha2-224': 'sha224', 'sha2-256': 'sha256', 'sha2-384': 'sha384', 'sha2-512': 'sha512' } as const;

function spkiKey(spki: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
}

/** A latin1 string costs half as much as a Buffer. */
function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

const nodePrimitives: Partial<Primitives> = {
  ...(hash && { sha256: (bytes) => bytesOf(hash('sha256', bytes, 'latin1')) }),
  runningSha256() {
    const running = createHash('sha256');
    return { update: (bytes) => void running.update(bytes), digest: () => plain(running.digest()) };
  },
  ed25519Sign: (seed, message) => plain(nodeCrypto.sign(null, message, ed25519Private(seed))),
  ed25519PublicKey(seed) {
    const spki = createPublicKey(ed25519Private(seed)).export({ format: 'der', type: 'spki' });
    const key = ed25519FromSpki(plain(spki));
    if (!key) throw new KmsError('internal', 'expected the SPKI of an Ed25519 key from node:crypto');
    return key;
  },
  ed25519Verify: (publicKey, message, signature) =>
    nodeCrypto.verify(null, message, ed25519Public(publicKey), signature),
  p256Sign: (key, hashName, message) => plain(nodeCrypto.sign(ecdsaHashes[hashName], message, p256Private(key))),
  p256Verify: (publicKey, hashName, message, signature) =>
    nodeCrypto.verify(ecdsaHashes[hashName], message, p256Public(publicKey), signature),
  sealChaCha: sealWith('chacha20-poly1305'),
  openChaCha: openWith('chacha20-poly1305'),
  sealGcm: sealWith('aes-256-gcm'),
  openGcm: openWith('aes-256-gcm'),
  ...nodeAgreement,
  ...(argon2Sync && {
    argon2id: (message, nonce, { m: memory, t: passes, p: parallelism }, length) =>
      plain(argon2Sync('argon2id', { message, nonce, memory, passes, parallelism, tagLength: length })),
  }),
};

/** For a worker thread: follows the process's choice, which is already tested. */
export function takeCrypto(choice: CryptoChoice): void {
  putIn(choice === 'node' ? nodePrimitives : {});
}

/**
 * Tests the offered primitives and uses them, in this thread and in those started later: all but signatures, which stay
 * with noble until the returned function has tested the rest. At once, noble is tested only where nothing else can
 * replace it, since its first calls take tens of milliseconds; the returned function tests the rest one by one,
 * yielding to the event loop. A failure is reported, and noble does everything. Throws `internal` if noble itself is
 * wrong where it is needed.
 */
export function startCrypto(
  choice: CryptoChoice,
  onEvent: (event: ApplianceEvent) => void,
  offered: Partial<Primitives> = nodePrimitives,
): () => Promise<void> {
  inUse = { by: 'noble' };
  putIn({});
  expectSignatures(choice === 'noble' ? 'many' : 'few');
  if (choice === 'noble') return async () => {};
  needNoble('quick');
  inUse = { by: 'node', openssl: process.versions.openssl };
  const take = (primitives: Partial<Primitives>, ...tests: readonly SelfTests[]): void => {
    putIn(primitives);
    const [problem] = tests.flatMap((which) => selfTest(which) ?? []);
    if (problem === undefined) return;
    putIn({});
    inUse = { by: 'noble', problem };
    expectSignatures('many');
    const message = `node:crypto failed its self-test, so noble does its work, slower: ${problem}`;
    onEvent({ level: 'error', message });
  };
  const { ed25519Sign, ed25519PublicKey, ed25519Verify, p256Sign, p256Verify, ...others } = offered;
  const { x25519PublicKey, x25519Shared, mlKemPublicKey, mlKemEncapsulate, mlKemDecapsulate, ...most } = others;
  take(most, 'quick', 'costly');
  if (cryptoInUse().by === 'noble') needNoble('costly');
  // If OpenSSL's key agreement fails its check, noble does it; the later self-test reports why.
  else startAgreement(others);
  const taken = native();
  return async () => {
    if (inUse.by === 'noble') return;
    let wrongByNoble: string | undefined;
    for (const test of [...selfTests('costly'), ...selfTests('slow')]) {
      putIn({});
      wrongByNoble ??= test();
      putIn(taken);
      await setImmediate();
      // Other primitives were set in the meantime.
      if (native() !== taken) return;
    }
    if (wrongByNoble !== undefined) {
      onEvent({ level: 'error', message: `noble failed its self-test, and is not used for it: ${wrongByNoble}` });
    }
    take(offered, 'slow');
  };
}

function needNoble(which: SelfTests): void {
  const wrong = selfTest(which);
  if (wrong === undefined) return;
  throw new KmsError('internal', `noble failed its self-test: ${wrong}`, {
    hint: 'nothing that this program writes on this machine can be relied on: try another one',
  });
}
