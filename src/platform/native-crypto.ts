// The primitives by node:crypto (OpenSSL), for the threads of a server: in use once both they and noble pass the
// known-answer tests. Primitives that this Node lacks stay with noble.
import * as nodeCrypto from 'node:crypto';
import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { CryptoInUse } from '../api/local/status.ts';
import { expectSignatures } from '../crypto/ed25519.ts';
import { native, type Primitives, putIn } from '../crypto/primitives.ts';
import { type SelfTests, selfTest, selfTests } from '../crypto/self-test.ts';
import { KmsError } from '../errors.ts';
import type { ApplianceEvent } from './events.ts';
import { nodeAgreement, startAgreement } from './native-agreement.ts';
import { plain } from './native-key-objects.ts';
import { nodeRsa } from './native-rsa.ts';
import { hashNames, nodeSignatures } from './native-signatures.ts';

export type CryptoChoice = 'node' | 'noble';

let inUse: CryptoInUse = { by: 'noble' };

/** The implementation that this process uses. */
export function cryptoInUse(): CryptoInUse {
  return inUse;
}

const tagLength = 16;

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

type AeadName = 'chacha20-poly1305' | 'aes-gcm';

/** Node's types tell the two kinds of ciphers apart only by literal names. */
function cipherOf(name: AeadName, key: Uint8Array, iv: Uint8Array) {
  if (name === 'chacha20-poly1305') return createCipheriv(name, key, iv, withTag);
  return createCipheriv(key.length === 16 ? 'aes-128-gcm' : 'aes-256-gcm', key, iv);
}

function decipherOf(name: AeadName, key: Uint8Array, iv: Uint8Array) {
  if (name === 'chacha20-poly1305') return createDecipheriv(name, key, iv, withTag);
  return createDecipheriv(key.length === 16 ? 'aes-128-gcm' : 'aes-256-gcm', key, iv, withTag);
}

function sealWith(name: AeadName): Primitives['sealGcm'] {
  return (key, nonce, plaintext, associated) => {
    const cipher = cipherOf(name, key, inBuffer(shortNonce, nonce));
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
    const cipher = decipherOf(name, key, inBuffer(shortNonce, nonce));
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

/** A latin1 string costs half as much as a Buffer. */
function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

const plainHashNames = {
  ...hashNames,
  'sha3-224': 'sha3-224',
  'sha3-256': 'sha3-256',
  'sha3-384': 'sha3-384',
  'sha3-512': 'sha3-512',
} as const;

const nodePrimitives: Partial<Primitives> = {
  ...(hash && { sha256: (bytes) => bytesOf(hash('sha256', bytes, 'latin1')) }),
  ...(hash && { hash: (name, bytes) => bytesOf(hash(plainHashNames[name], bytes, 'latin1')) }),
  hmac: (name, key, bytes) => plain(createHmac(hashNames[name], key).update(bytes).digest()),
  runningSha256() {
    const running = createHash('sha256');
    return { update: (bytes) => void running.update(bytes), digest: () => plain(running.digest()) };
  },
  ...nodeSignatures,
  rsa: nodeRsa,
  sealChaCha: sealWith('chacha20-poly1305'),
  openChaCha: openWith('chacha20-poly1305'),
  sealGcm: sealWith('aes-gcm'),
  openGcm: openWith('aes-gcm'),
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
  const { ed25519Sign, ed25519PublicKey, ed25519Verify, ecdsaSign, ecdsaVerify, ...unsigned } = offered;
  const { mlDsaSign, mlDsaVerify, ...others } = unsigned;
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
