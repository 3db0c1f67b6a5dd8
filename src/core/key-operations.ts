// Use of managed keys' keys: the appliance encrypts, decrypts and signs with them itself, for software that speaks
// Vault's managedKeys engine. Errors are worded like that engine's, since programs match on them.
import type { Answer, Body } from '../api/endpoints.ts';
import type { KeyItem, KeyResult } from '../api/managed-keys.ts';
import { toBase64 } from '../crypto/bytes.ts';
import {
  derivedKey,
  isSignature,
  openMessage,
  readBase64,
  readPrefixed,
  sealMessage,
  signMessage,
} from '../crypto/transit.ts';
import { KmsError } from '../errors.ts';
import type { ActivityDetails } from '../model/activity-details.ts';
import { hashLengths, isCipher, messagesPerVersion, type TransitHash, type TransitType } from '../model/transit.ts';
import type { KeyVersion, ManagedKey } from '../store/tables/managed-keys.ts';
import type { Context } from './context.ts';
import { findManagedKey, type NamedRing, nextVersion, openStored, publicBytes } from './managed-keys.ts';

const none = new Uint8Array(0);

export function encryptWithKey(
  ctx: Context,
  { ringname, items }: NamedRing & Body<'encryptWithKey'>,
): Answer<'encryptWithKey'> {
  return each(ctx, RingInUse.of(ctx, ringname, 'encryption'), items, (use, item) => {
    if (item.plaintext === undefined) throw refusal('missing plaintext to encrypt');
    const made = use.seal(bytesOf(item.plaintext), item);
    return { made, deed: versionDeed(made.keyVersion) };
  });
}

export function decryptWithKey(
  ctx: Context,
  { ringname, items }: NamedRing & Body<'decryptWithKey'>,
): Answer<'decryptWithKey'> {
  return each(ctx, RingInUse.of(ctx, ringname, 'decryption'), items, (use, item) => {
    const { plaintext, version } = use.open(item);
    return { made: { plaintext: toBase64(plaintext) }, deed: versionDeed(version) };
  });
}

export function rewrapWithKey(
  ctx: Context,
  { ringname, items }: NamedRing & Body<'rewrapWithKey'>,
): Answer<'rewrapWithKey'> {
  return each(ctx, RingInUse.of(ctx, ringname, 'encryption'), items, (use, item) => {
    const { plaintext, version } = use.open(item);
    try {
      const made = use.seal(plaintext, item);
      return { made, deed: { keyVersion: made.keyVersion, fromKeyVersion: version } };
    } finally {
      plaintext.fill(0);
    }
  });
}

export function generateDataKey(ctx: Context, wanted: NamedRing & Body<'generateDataKey'>): Answer<'generateDataKey'> {
  return newDataKey(ctx, wanted, (sealed, key) => ({ ...sealed, plaintext: toBase64(key) }));
}

export function generateWrappedDataKey(
  ctx: Context,
  wanted: NamedRing & Body<'generateWrappedDataKey'>,
): Answer<'generateWrappedDataKey'> {
  return newDataKey(ctx, wanted, (sealed) => sealed);
}

function newDataKey<R>(
  ctx: Context,
  { ringname, bits = 256, ...item }: NamedRing & Body<'generateDataKey'>,
  answer: (sealed: Sealed, key: Uint8Array) => R,
): R {
  if (bits !== 128 && bits !== 256 && bits !== 512) throw refusal('invalid bit length');
  const use = RingInUse.of(ctx, ringname, 'encryption');
  const key = ctx.world.random(bits / 8);
  try {
    const sealed = use.seal(key, item);
    ctx.note(versionDeed(sealed.keyVersion));
    return answer(sealed, key);
  } finally {
    key.fill(0);
  }
}

export function signWithKey(
  ctx: Context,
  { ringname, input = '', keyVersion = 0, hash = 'sha2-256', prehashed = false }: NamedRing & Body<'signWithKey'>,
): Answer<'signWithKey'> {
  const use = RingInUse.of(ctx, ringname, 'signing');
  const stored = use.toMake(keyVersion, 'signing');
  const { type } = use.ring;
  if (isCipher(type)) throw new KmsError('internal', 'expected a ring that signs');
  const { version } = stored;
  const message = signedBytes(type, input, hash, prehashed);
  const signature = signMessage(type, use.opened(stored), version, message, prehashed ? undefined : hash);
  ctx.note(versionDeed(version));
  return { signature, keyVersion: version };
}

export function verifyWithKey(
  ctx: Context,
  { ringname, input = '', signature, hash = 'sha2-256', prehashed = false }: NamedRing & Body<'verifyWithKey'>,
): Answer<'verifyWithKey'> {
  const use = RingInUse.of(ctx, ringname, 'verification');
  const { type } = use.ring;
  if (isCipher(type)) throw new KmsError('internal', 'expected a ring that signs');
  const { version, bytes } = messageOf(use.ring, signature, 'signature');
  const message = signedBytes(type, input, hash, prehashed);
  const stored = use.key(version);
  ctx.note(versionDeed(version));
  return { valid: isSignature(type, publicBytes(stored), message, prehashed ? undefined : hash, bytes) };
}

/**
 * A prehashed input must be as long as its algorithm says: of a longer one only the first bits would count, and a short
 * one easily collides with another message. Ed25519 signs anything it is given.
 */
function signedBytes(type: TransitType, input: string, hash: TransitHash, prehashed: boolean): Uint8Array {
  const message = bytesOf(input);
  if (!prehashed || type !== 'ecdsa-p256' || message.length === hashLengths[hash]) return message;
  throw refusal(`prehashed input: expected the ${hashLengths[hash]} bytes of ${hash}, got ${message.length}`);
}

/**
 * Runs `work` on each item and returns the results in order; each is recorded with the status that it would have alone.
 */
function each(ctx: Context, use: RingInUse, items: readonly KeyItem[], work: Work): { items: KeyResult[] } {
  if (items.length === 0) throw refusal('missing batch input to process');
  const made = items.map((item) => orProblem(use, item, work));
  ctx.did(
    made.map(({ made: { error } }) => (error === undefined ? 200 : 400)),
    made.map(({ deed }) => deed),
  );
  return { items: made.map((each) => each.made) };
}

/** Result of an item, and what to record of it. */
interface Done {
  readonly made: KeyResult;
  readonly deed: ActivityDetails;
}

interface Sealed {
  readonly ciphertext: string;
  readonly keyVersion: number;
}

type Work = (use: RingInUse, item: KeyItem) => Done;

function orProblem(use: RingInUse, item: KeyItem, work: Work): Done {
  try {
    return work(use, item);
  } catch (error) {
    return problemOf(error);
  }
}

function problemOf(error: unknown): Done {
  if (error instanceof KmsError && error.code === 'invalid') return { made: { error: error.message }, deed: noDeed };
  throw error;
}

const noDeed: ActivityDetails = {};
let lastDeed: ActivityDetails = noDeed;

/** Cached: most requests use the same version as the previous one. */
function versionDeed(keyVersion: number): ActivityDetails {
  if (lastDeed.keyVersion !== keyVersion) lastDeed = { keyVersion };
  return lastDeed;
}

function refusal(message: string): KmsError {
  return new KmsError('invalid', message);
}

function bytesOf(text: string): Uint8Array {
  const read = readBase64(text);
  if (read instanceof Uint8Array) return read;
  throw refusal(`illegal base64 data at input byte ${read.wrongAt}`);
}

/** Version and bytes of a message whose version may still be read. Throws `invalid`. */
function messageOf(ring: ManagedKey, text: string, what: 'ciphertext' | 'signature') {
  const read = readPrefixed(text, what);
  if ('problem' in read) throw refusal(read.problem);
  if (read.version > ring.latestVersion) throw refusal(`invalid ${what}: version is too new`);
  if (read.version < ring.minDecryptionVersion) {
    throw refusal('ciphertext or signature version is disallowed by policy (too old)');
  }
  return read;
}

type Kind = 'encryption' | 'decryption' | 'signing' | 'verification';

/** Why a ring of this type is refused the work; undefined if it is not. */
function unsupported(type: TransitType, work: Kind): string | undefined {
  if (work === 'encryption' || work === 'decryption') {
    return isCipher(type) ? undefined : `message ${work} not supported for key type ${type}`;
  }
  return isCipher(type) ? `key type ${type} does not support ${work}` : undefined;
}

/**
 * A ring in use by one request. Its keys are looked up and opened for each message; the store and the tenant's keys
 * cache them.
 */
class RingInUse {
  ring: ManagedKey;
  readonly #ctx: Context;

  private constructor(ctx: Context, ring: ManagedKey) {
    this.#ctx = ctx;
    this.ring = ring;
  }

  /** Throws `not-found`, and `invalid` for work that its keys are not for. */
  static of(ctx: Context, ringname: string, work: Kind): RingInUse {
    const ring = findManagedKey(ctx.tx, ringname);
    const problem = unsupported(ring.type, work);
    if (problem !== undefined) throw refusal(problem);
    return new RingInUse(ctx, ring);
  }

  seal(plaintext: Uint8Array, item: KeyItem): Sealed {
    const { random } = this.#ctx.world;
    const context = this.#contextOf(item);
    const associated = item.associatedData === undefined ? none : bytesOf(item.associatedData);
    const stored = this.toMake(item.keyVersion ?? 0, 'encryption');
    const type = this.#cipher;
    const ciphertext = withKey(this.opened(stored), context, (key) =>
      sealMessage(type, key, stored, plaintext, associated, random),
    );
    return { ciphertext, keyVersion: stored.version };
  }

  open(item: KeyItem): { plaintext: Uint8Array; version: number } {
    if (item.ciphertext === undefined || item.ciphertext === '') throw refusal('missing ciphertext to decrypt');
    const context = this.#contextOf(item);
    const associated = item.associatedData === undefined ? none : bytesOf(item.associatedData);
    const { version, bytes } = messageOf(this.ring, item.ciphertext, 'ciphertext');
    if (bytes.length < 12) throw refusal('invalid ciphertext length');
    const stored = this.key(version);
    const type = this.#cipher;
    const plaintext = withKey(this.opened(stored), context, (key) => openMessage(type, key, stored, bytes, associated));
    if (!plaintext) throw refusal(`${authenticators[type]}: message authentication failed`);
    return { plaintext, version };
  }

  /** The key for a new message, counted as one more message. 0 means the newest version. */
  toMake(wanted: number, what: 'encryption' | 'signing'): KeyVersion {
    const { minEncryptionVersion, latestVersion } = this.ring;
    if (wanted < 0) throw refusal(`requested version for ${what} is negative`);
    if (wanted > latestVersion) {
      throw refusal(`requested version for ${what} is higher than the latest key version`);
    }
    if (wanted > 0 && wanted < Math.max(minEncryptionVersion, this.ring.minDecryptionVersion)) {
      throw refusal(`requested version for ${what} is less than the minimum encryption key version`);
    }
    const { managedKeys } = this.#ctx.tx;
    const stored = this.key(wanted === 0 ? latestVersion : wanted);
    const isSpent = managedKeys.messageCount(stored.id) >= messagesPerVersion;
    if (isSpent && wanted !== 0) throw refusal(`version ${wanted} has made all the messages that it may`);
    if (isSpent || (wanted === 0 && this.#isOld(stored))) return this.#rotated();
    managedKeys.countMessage(stored.id);
    return stored;
  }

  key(version: number): KeyVersion {
    const stored = this.#ctx.tx.managedKeys.key(this.ring.id, version);
    if (stored) return stored;
    throw new KmsError('corrupt', 'a version of a stored managed key is not there');
  }

  /** Use it at once: the tenant's keys own the buffer. */
  opened(stored: KeyVersion): Uint8Array {
    const key = openStored(this.#ctx.tenant.keys, this.ring.type, stored);
    if (!key) throw new KmsError('corrupt', 'a version of a stored managed key was altered');
    return key;
  }

  /** Rotates to a new version and counts its first message. */
  #rotated(): KeyVersion {
    const { tx } = this.#ctx;
    const stored = nextVersion(this.#ctx, this.ring);
    this.ring = findManagedKey(tx, this.ring.name);
    tx.managedKeys.countMessage(stored.id);
    return stored;
  }

  get #cipher() {
    const { type } = this.ring;
    if (isCipher(type)) return type;
    throw new KmsError('internal', 'expected a ring that encrypts');
  }

  #isOld({ createdAt }: KeyVersion): boolean {
    const { rotateAfter } = this.ring;
    return rotateAfter !== undefined && this.#ctx.world.now() - createdAt >= rotateAfter * 1000;
  }

  /** A context is compulsory if keys are derived; otherwise it would bind nothing. */
  #contextOf({ context = '' }: KeyItem): Uint8Array | undefined {
    if (this.ring.derived) {
      if (context !== '') return bytesOf(context);
      throw refusal(
        "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key",
      );
    }
    if (context === '') return undefined;
    throw refusal('context: the keys of this ring are not derived, so it would bind nothing; use associated_data');
  }
}

/** Go's names of the ciphers. */
const authenticators = { 'aes256-gcm96': 'cipher', 'chacha20-poly1305': 'chacha20poly1305' } as const;

function withKey<R>(key: Uint8Array, context: Uint8Array | undefined, use: (key: Uint8Array) => R): R {
  if (context === undefined) return use(key);
  const derived = derivedKey(key, context);
  try {
    return use(derived);
  } finally {
    derived.fill(0);
  }
}
