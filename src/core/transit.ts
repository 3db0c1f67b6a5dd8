// Transit rings: those whose keys the appliance holds. It makes them, gives them versions, and encrypts, decrypts and
// signs with them itself, for software that speaks Vault's transit engine. What is wrong with a message is told in that
// engine's words, which programs go by.
import type { Answer, Body } from '../api/endpoints.ts';
import type { TransitRing as RingAnswer, TransitItem, TransitMade } from '../api/transit.ts';
import { toBase64 } from '../crypto/bytes.ts';
import {
  derivedKey,
  isSignature,
  newTransitKey,
  openMessage,
  openTransitKey,
  p256Pem,
  readPrefixed,
  sealMessage,
  sealTransitKey,
  signMessage,
  transitPublicKey,
} from '../crypto/transit.ts';
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import { changedFields, type Thing } from '../model/deed.ts';
import { checkRingName } from '../model/names.ts';
import { heldByClients, isCipher, messagesPerVersion, type TransitType } from '../model/transit.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Store, Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { TransitKey, TransitRing } from '../store/tables/transit.ts';
import { type Context, needQuota, timestamp, type World } from './context.ts';
import { looksAt, type Reader, readInParts } from './pages.ts';
import { countRings, needRingQuota, restorableFor } from './rings.ts';

/** Of a ring's versions the newest so many are shown. */
const mostVersionsShown = 1000;
const none = new Uint8Array(0);

interface Named {
  readonly ringname: string;
}

export async function createTransitRing(
  ctx: Context,
  input: Body<'createTransitRing'>,
): Promise<Answer<'createTransitRing'>> {
  const { tx, tenant, world } = ctx;
  const { type = 'aes256-gcm96', derived = false } = input;
  const name = checkRingName(input.name);
  if (tenant.custody === 'client') {
    throw new KmsError('conflict', 'this tenant keeps to rings whose keys are held by clients (custody client)');
  }
  if (derived && !isCipher(type)) throw invalidField('derived', `keys of the type ${type} are not derived`);
  const there = await tx.transit.byName(name);
  if (there) {
    if (input.keepExisting && there.type === type && there.derived === derived)
      return { ring: await shown(ctx, there) };
    throw fieldsError('conflict', [{ field: 'name', message: 'another transit ring has this name' }]);
  }
  await needRingQuota(ctx);
  const now = world.now();
  const id = world.newId('ring');
  await tx.transit.insert({
    id,
    name,
    displayName: input.name,
    type,
    derived,
    latestVersion: 1,
    minDecryptionVersion: 1,
    minEncryptionVersion: 0,
    deletionAllowed: false,
    rotateAfter: input.rotateAfter ?? undefined,
    createdAt: now,
    updatedAt: now,
  });
  const ring = await tx.transit.byId(id);
  if (!ring) throw new KmsError('internal', 'a new transit ring is not there');
  const key = await makeVersion(ctx, ring, 1);
  ctx.note({ object: ringThing(ring), objects: [keyThing(key)], custody: 'server' });
  return { ring: await shown(ctx, ring) };
}

/** The oldest first. */
export function listTransitRings(
  { store, world }: Reader,
  { deleted, page }: { readonly deleted: boolean; readonly page: PageRequest },
): Promise<Page<RingAnswer>> {
  const since = deleted ? world.now() - restorableFor : undefined;
  return readInParts<RingAnswer>(looksAt(store), page, ({ transit }, part) => transit.list(part, since, ringAnswer));
}

export async function getTransitRing(ctx: Context, { ringname }: Named): Promise<Answer<'getTransitRing'>> {
  return { ring: await shown(ctx, await findTransitRing(ctx.tx, ringname)) };
}

/** With the versions that decrypt. */
async function shown({ tx }: Pick<Context, 'tx'>, ring: TransitRing): Promise<RingAnswer> {
  const { latestVersion, minDecryptionVersion, type } = ring;
  const oldest = Math.max(minDecryptionVersion, latestVersion - mostVersionsShown + 1);
  const keys = await tx.transit.keysBetween(ring.id, latestVersion, oldest);
  const versions = keys.map(({ version, createdAt, publicKey }) => ({
    version,
    createdAt: timestamp(createdAt),
    ...(publicKey !== '' && { publicKey: publicText(type, publicKey) }),
  }));
  return { ...ringAnswer(ring), versions };
}

/** PEM of ECDSA, base64 of the 32 bytes of Ed25519: as transit has them. */
function publicText(type: TransitType, publicKey: string): string {
  return type === 'ecdsa-p256' ? p256Pem(Uint8Array.fromBase64(publicKey)) : publicKey;
}

export async function rotateTransitRing(ctx: Context, { ringname }: Named): Promise<Answer<'rotateTransitRing'>> {
  const ring = await findTransitRing(ctx.tx, ringname);
  const key = await nextVersion(ctx, ring);
  ctx.note({ object: ringThing(ring), changed: ['latestVersion'], objects: [keyThing(key)] });
  return { ring: await shown(ctx, await findTransitRing(ctx.tx, ringname)) };
}

export async function configureTransitRing(
  ctx: Context,
  { ringname, ...input }: Named & Body<'configureTransitRing'>,
): Promise<Answer<'configureTransitRing'>> {
  const { tx, world } = ctx;
  const ring = await findTransitRing(tx, ringname);
  const { rotateAfter } = input;
  const change = {
    minDecryptionVersion: Math.max(1, input.minDecryptionVersion ?? ring.minDecryptionVersion),
    minEncryptionVersion: input.minEncryptionVersion ?? ring.minEncryptionVersion,
    deletionAllowed: input.deletionAllowed ?? ring.deletionAllowed,
    rotateAfter: rotateAfter === undefined ? ring.rotateAfter : (rotateAfter ?? undefined),
  };
  const { minDecryptionVersion: decrypts, minEncryptionVersion: encrypts } = change;
  if (decrypts > ring.latestVersion) {
    const latest = `latest key version is ${ring.latestVersion}`;
    throw new KmsError('invalid', `cannot set min decryption version of ${decrypts}, ${latest}`);
  }
  if (encrypts !== 0 && (encrypts < decrypts || encrypts > ring.latestVersion)) {
    const range = `expected 0, or a version from ${decrypts} to ${ring.latestVersion}`;
    throw new KmsError('invalid', `cannot set min encryption version of ${encrypts}, ${range}`);
  }
  await tx.transit.update(ring.id, { ...change, updatedAt: world.now() });
  ctx.note({ object: ringThing(ring), changed: changedFields({ ...ring }, change) });
  return { ring: await shown(ctx, await findTransitRing(tx, ringname)) };
}

/** It stays restorable; its name is free at once. */
export async function deleteTransitRing(ctx: Context, { ringname }: Named): Promise<Answer<'deleteTransitRing'>> {
  const { tx, world } = ctx;
  const ring = await findTransitRing(tx, ringname);
  if (!ring.deletionAllowed) {
    throw new KmsError('conflict', `error deleting policy ${ring.name}: deletion is not allowed for this key`, {
      hint: 'allow it first, by its config',
    });
  }
  await tx.transit.setDeleted(ring.id, world.now());
  ctx.note({ object: ringThing(ring) });
  return { name: ring.name, id: ring.id };
}

export async function restoreTransitRing(ctx: Context, { id }: { id: string }): Promise<Answer<'restoreTransitRing'>> {
  const { tx, world } = ctx;
  const ring = await tx.transit.byId(id);
  if (ring?.deletedAt === undefined || ring.deletedAt <= world.now() - restorableFor) {
    throw new KmsError('not-found', 'there is no deleted transit ring of this id to restore');
  }
  if (await tx.transit.byName(ring.name)) {
    throw fieldsError('conflict', [{ field: 'name', message: 'another transit ring has this name' }]);
  }
  await needQuota(ctx, 'keyrings', () => countRings(tx));
  await tx.transit.setDeleted(id, undefined);
  ctx.note({ object: ringThing(ring) });
  return { ring: await shown(ctx, { ...ring, deletedAt: undefined }) };
}

export async function transitEncrypt(
  ctx: Context,
  { ringname, items }: Named & Body<'transitEncrypt'>,
): Promise<Answer<'transitEncrypt'>> {
  const use = await RingInUse.of(ctx, ringname, 'encryption');
  return each(ctx, use, items, (item) => {
    if (item.plaintext === undefined) throw refusal('missing plaintext to encrypt');
    return use.seal(bytesOf(item.plaintext), item);
  });
}

export async function transitDecrypt(
  ctx: Context,
  { ringname, items }: Named & Body<'transitDecrypt'>,
): Promise<Answer<'transitDecrypt'>> {
  const use = await RingInUse.of(ctx, ringname, 'decryption');
  return each(ctx, use, items, async (item) => ({ plaintext: toBase64(await use.open(item)) }));
}

export async function transitRewrap(
  ctx: Context,
  { ringname, items }: Named & Body<'transitRewrap'>,
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
  { ringname, bits = 256, wrapped = false, ...item }: Named & Body<'transitDataKey'>,
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
  { ringname, input = '', keyVersion = 0, hash = 'sha2-256', prehashed = false }: Named & Body<'transitSign'>,
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
  { ringname, input = '', signature, hash = 'sha2-256', prehashed = false }: Named & Body<'transitVerify'>,
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

function openStored(keys: TenantKeys, type: TransitType, stored: TransitKey): Uint8Array | undefined {
  return openTransitKey(keys.key('transit', stored.epoch), stored, type, stored.sealed);
}

async function nextVersion(ctx: Context, ring: TransitRing): Promise<TransitKey> {
  const version = ring.latestVersion + 1;
  const key = await makeVersion(ctx, ring, version);
  await ctx.tx.transit.setLatest(ring.id, version, ctx.world.now());
  return key;
}

async function makeVersion(ctx: Context, ring: TransitRing, version: number): Promise<TransitKey> {
  const { tx, tenant, world } = ctx;
  await needQuota(ctx, 'keysPerRing', async () => version - 1);
  const { epoch } = tenant.keys;
  const place = { ringId: ring.id, version };
  const bytes = newTransitKey(ring.type, world.random);
  const sealed = sealTransitKey(tenant.keys.key('transit', epoch), place, ring.type, bytes, world.random);
  const publicKey = toBase64(transitPublicKey(ring.type, bytes));
  bytes.fill(0);
  await tx.transit.insertKey({ id: world.newId('key'), ...place, epoch, sealed, publicKey, createdAt: world.now() });
  const key = await tx.transit.key(ring.id, version);
  if (!key) throw new KmsError('internal', 'a new version is not there');
  return key;
}

/** Throws `not-found`; `conflict` where it is a ring whose keys its clients hold. */
async function findTransitRing(tables: Pick<Tables, 'rings' | 'transit'>, name: string): Promise<TransitRing> {
  const lower = name.toLowerCase();
  const known = tables.transit.byName(lower);
  const ring = known instanceof Promise ? await known : known;
  if (ring) return ring;
  if (await tables.rings.byName('ks', lower)) throw new KmsError('conflict', heldByClients);
  throw new KmsError('not-found', 'there is no such transit ring');
}

/** Keys that are sealed again in one transaction. */
const resealedAtOnce = 200;

/** Brings all keys under the tenant's newest key, so that the older ones can go. */
export async function resealTransitKeys(store: Store, keys: TenantKeys, random: World['random']): Promise<void> {
  const { epoch } = keys;
  const some = async ({ transit }: Tables): Promise<number> => {
    const found = await transit.keysBefore(epoch, resealedAtOnce);
    for (const { type, ...stored } of found) {
      const key = openStored(keys, type, stored);
      if (!key) throw new KmsError('corrupt', 'a version of a stored transit ring was altered');
      const sealed = sealTransitKey(keys.key('transit', epoch), stored, type, key, random);
      key.fill(0);
      await transit.reseal(stored.id, epoch, sealed);
    }
    return found.length;
  };
  while ((await store.transaction(some)) > 0);
}

/**
 * Erases a ring that was deleted until then, or some of its keys: answers how many rings, undefined when there was
 * nothing left. A ring without some of its keys must not be restored, not even where the clock is set back.
 */
export async function purgeTransit({ transit }: Tables, until: number): Promise<number | undefined> {
  const id = await transit.deletedUntil(until);
  if (id === undefined) return undefined;
  if ((await transit.eraseSome(id)) > 0) {
    await transit.setDeleted(id, 0);
    return 0;
  }
  await transit.erase(id);
  return 1;
}

function ringThing({ id, name }: TransitRing): Thing {
  return { type: 'transit-ring', id, name };
}

function keyThing({ id }: TransitKey): Thing {
  return { type: 'key', id };
}

function ringAnswer(ring: TransitRing): RingAnswer {
  const { deletedAt } = ring;
  return {
    id: ring.id,
    name: ring.name,
    displayName: ring.displayName,
    custody: 'server',
    type: ring.type,
    derived: ring.derived,
    latestVersion: ring.latestVersion,
    minDecryptionVersion: ring.minDecryptionVersion,
    minEncryptionVersion: ring.minEncryptionVersion,
    deletionAllowed: ring.deletionAllowed,
    rotateAfter: ring.rotateAfter ?? null,
    createdAt: timestamp(ring.createdAt),
    updatedAt: timestamp(ring.updatedAt),
    ...(deletedAt !== undefined && {
      deletedAt: timestamp(deletedAt),
      restorableUntil: timestamp(deletedAt + restorableFor),
    }),
  };
}
