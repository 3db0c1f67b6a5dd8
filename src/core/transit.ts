// What the appliance does with the keys of transit rings: it encrypts, decrypts and signs with them itself, for software
// that speaks Vault's transit engine. What is wrong with a message is told in that engine's words, which programs go by.
import type { Answer, Body } from '../api/endpoints.ts';
import type { TransitItem, TransitMade } from '../api/transit.ts';
import { toBase64 } from '../crypto/bytes.ts';
import { derivedKey, isSignature, openMessage, readPrefixed, sealMessage, signMessage } from '../crypto/transit.ts';
import { KmsError } from '../errors.ts';
import { isCipher, messagesPerVersion, type TransitType } from '../model/transit.ts';
import type { TransitRing } from '../store/tables/transit.ts';
import type { Context } from './context.ts';
import { findTransitRing, type NamedRing, nextVersion, openStored } from './transit-rings.ts';

const none = new Uint8Array(0);

export async function transitEncrypt(
  ctx: Context,
  { ringname, items }: NamedRing & Body<'transitEncrypt'>,
): Promise<Answer<'transitEncrypt'>> {
  const use = await RingInUse.of(ctx, ringname, 'encryption');
  return each(ctx, use, items, (item) => {
    if (item.plaintext === undefined) throw refusal('missing plaintext to encrypt');
    return use.seal(bytesOf(item.plaintext), item);
  });
}

export async function transitDecrypt(
  ctx: Context,
  { ringname, items }: NamedRing & Body<'transitDecrypt'>,
): Promise<Answer<'transitDecrypt'>> {
  const use = await RingInUse.of(ctx, ringname, 'decryption');
  return each(ctx, use, items, async (item) => ({ plaintext: toBase64(await use.open(item)) }));
}

export async function transitRewrap(
  ctx: Context,
  { ringname, items }: NamedRing & Body<'transitRewrap'>,
): Promise<Answer<'transitRewrap'>> {
  const use = await RingInUse.of(ctx, ringname, 'encryption');
  return each(ctx, use, items, async (item) => {
    const plaintext = await use.open(item);
    try {
      return await use.seal(plaintext, item);
    } finally {
      plaintext.fill(0);
    }
  });
}

export async function transitDataKey(
  ctx: Context,
  { ringname, bits = 256, wrapped = false, ...item }: NamedRing & Body<'transitDataKey'>,
): Promise<Answer<'transitDataKey'>> {
  if (bits !== 128 && bits !== 256 && bits !== 512) throw refusal('invalid bit length');
  const use = await RingInUse.of(ctx, ringname, 'encryption');
  const key = ctx.world.random(bits / 8);
  try {
    const sealed = await use.seal(key, item);
    return wrapped ? sealed : { ...sealed, plaintext: toBase64(key) };
  } finally {
    key.fill(0);
    use.forget();
  }
}

export async function transitSign(
  ctx: Context,
  { ringname, input = '', keyVersion = 0, hash = 'sha2-256', prehashed = false }: NamedRing & Body<'transitSign'>,
): Promise<Answer<'transitSign'>> {
  const use = await RingInUse.of(ctx, ringname, 'signing');
  try {
    const { version, key } = await use.toMake(keyVersion, 'signing');
    const { type } = use.ring;
    if (isCipher(type)) throw new KmsError('internal', 'expected a ring that signs');
    return {
      signature: signMessage(type, key, version, bytesOf(input), prehashed ? undefined : hash),
      keyVersion: version,
    };
  } finally {
    use.forget();
  }
}

export async function transitVerify(
  ctx: Context,
  { ringname, input = '', signature, hash = 'sha2-256', prehashed = false }: NamedRing & Body<'transitVerify'>,
): Promise<Answer<'transitVerify'>> {
  const { ring } = await RingInUse.of(ctx, ringname, 'verification');
  const { type } = ring;
  if (isCipher(type)) throw new KmsError('internal', 'expected a ring that signs');
  const { version, bytes } = messageOf(ring, signature, 'signature');
  const key = await ctx.tx.transit.key(ring.id, version);
  if (!key) throw new KmsError('corrupt', 'a version of a stored transit ring is not there');
  const publicKey = Uint8Array.fromBase64(key.publicKey);
  return { valid: isSignature(type, publicKey, bytesOf(input), prehashed ? undefined : hash, bytes) };
}

/**
 * Does it to each, and answers what came of it, in order; each is recorded with the status that it would have alone.
 */
async function each(
  ctx: Context,
  use: RingInUse,
  items: readonly TransitItem[],
  work: (item: TransitItem) => Promise<TransitMade>,
): Promise<{ items: TransitMade[] }> {
  if (items.length === 0) throw refusal('missing batch input to process');
  const made: TransitMade[] = [];
  try {
    for (const item of items) made.push(await orProblem(() => work(item)));
  } finally {
    use.forget();
  }
  ctx.did(made.map(({ error }) => (error === undefined ? 200 : 400)));
  return { items: made };
}

async function orProblem(work: () => Promise<TransitMade>): Promise<TransitMade> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof KmsError && error.code === 'invalid') return { error: error.message };
    throw error;
  }
}

function refusal(message: string): KmsError {
  return new KmsError('invalid', message);
}

/** Base64 as Go reads it: line ends are skipped, and the lower bits of the last character say nothing. */
function bytesOf(text: string): Uint8Array {
  const lone = text.replace(/[\r\n]/g, '');
  const bad = lone.search(/[^A-Za-z0-9+/=]/);
  const whole = lone.length - (lone.length % 4);
  if (bad < 0 && whole === lone.length && /^[^=]*={0,2}$/.test(lone)) {
    try {
      return Uint8Array.fromBase64(lone);
    } catch {
      // What is left of wrong texts is told of below.
    }
  }
  throw refusal(`illegal base64 data at input byte ${bad >= 0 ? bad : (misplaced(lone) ?? whole)}`);
}

/** Where Go finds padding, or what comes behind it, that must not be there. */
function misplaced(text: string): number | undefined {
  const padding = text.indexOf('=');
  if (padding < 0) return undefined;
  const place = padding % 4;
  if (place < 2) return padding;
  const end = place === 2 && text[padding + 1] === '=' ? padding + 2 : padding + 1;
  return end < text.length ? end : undefined;
}

/** Version and bytes, of a version that may still be read. Throws `invalid`. */
function messageOf(ring: TransitRing, text: string, what: 'ciphertext' | 'signature') {
  const read = readPrefixed(text, what);
  if ('problem' in read) throw refusal(read.problem);
  if (read.version > ring.latestVersion) throw refusal(`invalid ${what}: version is too new`);
  if (read.version < ring.minDecryptionVersion) {
    throw refusal('ciphertext or signature version is disallowed by policy (too old)');
  }
  return read;
}

type Work = 'encryption' | 'decryption' | 'signing' | 'verification';

/** What a ring of the type is refused for. */
function unsupported(type: TransitType, work: Work): string | undefined {
  if (work === 'encryption' || work === 'decryption') {
    return isCipher(type) ? undefined : `message ${work} not supported for key type ${type}`;
  }
  return isCipher(type) ? `key type ${type} does not support ${work}` : undefined;
}

interface OpenedKey {
  readonly version: number;
  readonly key: Uint8Array;
  /** Of the key in the database. */
  readonly id: string;
  /** Messages that it may yet make. */
  left: number;
}

/** A ring while one request works with it: its keys are opened when they are needed, and forgotten at the end. */
class RingInUse {
  ring: TransitRing;
  readonly #ctx: Context;
  readonly #opened = new Map<number, OpenedKey>();

  private constructor(ctx: Context, ring: TransitRing) {
    this.#ctx = ctx;
    this.ring = ring;
  }

  /** Throws `not-found`, and `invalid` for work that its keys are not for. */
  static async of(ctx: Context, ringname: string, work: Work): Promise<RingInUse> {
    const ring = await findTransitRing(ctx.tx, ringname);
    const problem = unsupported(ring.type, work);
    if (problem !== undefined) throw refusal(problem);
    return new RingInUse(ctx, ring);
  }

  async seal(plaintext: Uint8Array, item: TransitItem): Promise<{ ciphertext: string; keyVersion: number }> {
    const { world } = this.#ctx;
    const context = this.#contextOf(item);
    const associated = item.associatedData === undefined ? none : bytesOf(item.associatedData);
    const opened = await this.toMake(item.keyVersion ?? 0, 'encryption');
    const { id, type } = this.ring;
    if (!isCipher(type)) throw new KmsError('internal', 'expected a ring that encrypts');
    const place = { ringId: id, version: opened.version };
    const ciphertext = withKey(opened.key, context, (key) =>
      sealMessage(type, key, place, plaintext, associated, world.random),
    );
    return { ciphertext, keyVersion: opened.version };
  }

  async open(item: TransitItem): Promise<Uint8Array> {
    if (item.ciphertext === undefined || item.ciphertext === '') throw refusal('missing ciphertext to decrypt');
    const context = this.#contextOf(item);
    const associated = item.associatedData === undefined ? none : bytesOf(item.associatedData);
    const { version, bytes } = messageOf(this.ring, item.ciphertext, 'ciphertext');
    if (bytes.length < 12) throw refusal('invalid ciphertext length');
    const opened = await this.#open(version);
    const { id, type } = this.ring;
    if (!isCipher(type)) throw new KmsError('internal', 'expected a ring that encrypts');
    const place = { ringId: id, version };
    const plaintext = withKey(opened.key, context, (key) => openMessage(type, key, place, bytes, associated));
    if (!plaintext) throw refusal(`${authenticators[type]}: message authentication failed`);
    return plaintext;
  }

  /** The key that a new message is made with, which is counted as made: 0 is the newest version. */
  async toMake(wanted: number, what: 'encryption' | 'signing'): Promise<OpenedKey> {
    const { minEncryptionVersion, latestVersion } = this.ring;
    if (wanted < 0) throw refusal(`requested version for ${what} is negative`);
    if (wanted > latestVersion) {
      throw refusal(`requested version for ${what} is higher than the latest key version`);
    }
    if (wanted > 0 && wanted < Math.max(minEncryptionVersion, this.ring.minDecryptionVersion)) {
      throw refusal(`requested version for ${what} is less than the minimum encryption key version`);
    }
    const isNewest = wanted === 0 || wanted === latestVersion;
    let opened = await this.#open(isNewest ? latestVersion : wanted);
    if (opened.left <= 0 || (wanted === 0 && (await this.#isOld()))) {
      if (wanted !== 0) throw refusal(`version ${wanted} has made all the messages that it may`);
      await nextVersion(this.#ctx, this.ring);
      this.ring = await findTransitRing(this.#ctx.tx, this.ring.name);
      opened = await this.#open(this.ring.latestVersion);
    }
    opened.left--;
    this.#ctx.tx.transit.countMessage(opened.id);
    return opened;
  }

  forget(): void {
    for (const { key } of this.#opened.values()) key.fill(0);
    this.#opened.clear();
  }

  async #isOld(): Promise<boolean> {
    const { rotateAfter, id, latestVersion } = this.ring;
    if (rotateAfter === undefined) return false;
    const key = await this.#ctx.tx.transit.key(id, latestVersion);
    return key !== undefined && this.#ctx.world.now() - key.createdAt >= rotateAfter * 1000;
  }

  async #open(version: number): Promise<OpenedKey> {
    const known = this.#opened.get(version);
    if (known) return known;
    const { tx, tenant } = this.#ctx;
    const stored = await tx.transit.key(this.ring.id, version);
    const key = stored && openStored(tenant.keys, this.ring.type, stored);
    if (!key) throw new KmsError('corrupt', 'a version of a stored transit ring is not there, or was altered');
    const left = messagesPerVersion - (await tx.transit.messageCount(stored.id));
    const opened = { version, key, id: stored.id, left };
    this.#opened.set(version, opened);
    return opened;
  }

  /** Where keys are derived one is compulsory; elsewhere it would bind nothing. */
  #contextOf({ context = '' }: TransitItem): Uint8Array | undefined {
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

/** What Go calls them. */
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
