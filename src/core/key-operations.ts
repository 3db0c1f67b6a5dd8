// Messages under managed keys: the appliance encrypts and decrypts with them itself, for software that leaves no other
// choice. Errors are worded like those of Vault's transit engine, since programs match on them.
import type { Answer, Body } from '../api/endpoints.ts';
import type { KeyItem, KeyResult } from '../api/key-operations.ts';
import { toBase64 } from '../crypto/bytes.ts';
import { type CipherType, cipherIn } from '../crypto/managed/ciphers.ts';
import { exportPkcs8, publicKeyOf, publicKeyPem } from '../crypto/managed/keys.ts';
import { prefixed, readBase64 } from '../crypto/managed/messages.ts';
import type { OaepHash } from '../crypto/primitives.ts';
import { invalidField, KmsError } from '../errors.ts';
import type { ActivityDetails } from '../model/activity-details.ts';
import type { KeyType, pairTypes } from '../model/key-types.ts';
import type { Slices } from '../store/sql.ts';
import { authorizeFurther } from './authorization.ts';
import type { Context } from './context.ts';
import { KeyInUse, refusal } from './key-in-use.ts';
import { isRsa } from './key-versions.ts';
import { inPlace, type KeyWork } from './key-work.ts';
import { lookUpManagedKey } from './managed-key-names.ts';
import { keyRef, type NamedKey } from './managed-keys.ts';

const none = new Uint8Array(0);

type Encrypted = Body<'encryptWithKey'>;

export function* encryptWithKey(
  ctx: Context,
  { items, hash, ...ref }: NamedKey & Encrypted,
  work: KeyWork = inPlace(ctx.world),
): Slices<Answer<'encryptWithKey'>> {
  const use = new KeyInUse(ctx, ref, 'encrypt', work);
  return yield* each(ctx, items, (item) => {
    if (item.plaintext === undefined) throw refusal('missing plaintext to encrypt');
    const made = seal(use, bytesOf(item.plaintext), item, hash);
    return { made, deed: versionDeed(made.keyVersion) };
  });
}

export function* decryptWithKey(
  ctx: Context,
  { items, hash, toKey, toHash, anyVersion = false, ...ref }: NamedKey & Body<'decryptWithKey'>,
  work: KeyWork = inPlace(ctx.world),
): Slices<Answer<'decryptWithKey'>> {
  const use = new KeyInUse(ctx, ref, 'decrypt', work);
  if (toKey !== undefined) return yield* reencrypt(use, { items, hash, toKey, toHash, anyVersion });
  if (toHash !== undefined) throw invalidField('toHash', 'expected none without toKey');
  return yield* each(ctx, items, (item) => {
    const { plaintext, version, warning } = anyVersion ? openByAny(use, item, hash) : open(use, item, hash);
    return { made: { plaintext: toBase64(plaintext), ...warning }, deed: versionDeed(version) };
  });
}

interface Reencrypt {
  readonly items: readonly KeyItem[];
  readonly hash: OaepHash | undefined;
  readonly toKey: string;
  readonly toHash: OaepHash | undefined;
  readonly anyVersion: boolean;
}

/** Encrypts what it decrypts under another key, whose flag the caller needs too. */
function* reencrypt(
  opens: KeyInUse,
  { items, hash, toKey, toHash, anyVersion }: Reencrypt,
): Slices<Answer<'decryptWithKey'>> {
  const { ctx, work } = opens;
  const target = lookUpManagedKey(ctx.tx, toKey);
  const asked = toKey.toLowerCase();
  if (target) ctx.note({ object: keyRef(opens.key), objects: [keyRef(target)] });
  const subject = { kind: 'named', name: target?.name ?? asked, asked } as const;
  authorizeFurther(ctx, 'key.encrypt', subject, target && keyRef(target));
  const seals = new KeyInUse(ctx, { key: toKey }, 'encrypt', work);
  const objects = [keyRef(seals.key)];
  return yield* each(ctx, items, (item) => {
    const { plaintext, version } = anyVersion ? openByAny(opens, item, hash) : open(opens, item, hash);
    try {
      const { associatedData: _, keyVersion: __, context: ___, toAssociatedData, ...rest } = item;
      const bound = toAssociatedData === undefined ? rest : { ...rest, associatedData: toAssociatedData };
      const made = seal(seals, plaintext, bound, toHash);
      return { made, deed: { keyVersion: made.keyVersion, fromKeyVersion: version, objects } };
    } finally {
      plaintext.fill(0);
    }
  });
}

export function* rewrapWithKey(
  ctx: Context,
  { items, hash, ...ref }: NamedKey & Body<'rewrapWithKey'>,
  work: KeyWork = inPlace(ctx.world),
): Slices<Answer<'rewrapWithKey'>> {
  const opens = new KeyInUse(ctx, ref, 'decrypt', work, 'rewrap');
  const seals = new KeyInUse(ctx, ref, 'encrypt', work, 'rewrap');
  return yield* each(ctx, items, (item) => {
    const { plaintext, version } = open(opens, item, hash);
    try {
      const made = seal(seals, plaintext, item, hash);
      return { made, deed: { keyVersion: made.keyVersion, fromKeyVersion: version } };
    } finally {
      plaintext.fill(0);
    }
  });
}

export function generateDataKey(
  ctx: Context,
  wanted: NamedKey & Body<'generateDataKey'>,
  work: KeyWork = inPlace(ctx.world),
): Answer<'generateDataKey'> {
  return newDataKey(ctx, wanted, work, 'datakey', (sealed, key) => ({ ...sealed, plaintext: toBase64(key) }));
}

export function generateWrappedDataKey(
  ctx: Context,
  wanted: NamedKey & Body<'generateWrappedDataKey'>,
  work: KeyWork = inPlace(ctx.world),
): Answer<'generateWrappedDataKey'> {
  return newDataKey(ctx, wanted, work, 'datakey-wrapped', (sealed) => sealed);
}

function newDataKey<R extends object>(
  ctx: Context,
  { bits, bytes, pair, key: ref, ...item }: NamedKey & Body<'generateDataKey'>,
  work: KeyWork,
  operation: string,
  answer: (sealed: Sealed, key: Uint8Array) => R,
): R & { readonly publicKey?: string } {
  if ([bits, bytes, pair].filter((each) => each !== undefined).length > 1) {
    throw new KmsError('invalid', 'expected one of bits, bytes and pair');
  }
  if (![undefined, 128, 256, 512].includes(bits)) throw refusal('invalid bit length');
  const use = new KeyInUse(ctx, { key: ref }, 'encrypt', work, operation);
  const made = pair && newPair(pair, work);
  const key = made?.privateKey ?? ctx.world.random(bytes ?? (bits ?? 256) / 8);
  try {
    const sealed = seal(use, key, item, undefined);
    ctx.note(versionDeed(sealed.keyVersion));
    return { ...answer(sealed, key), ...(made && { publicKey: made.publicKey }) };
  } finally {
    key.fill(0);
  }
}

/** A key pair that is not kept: PKCS #8, and SPKI in PEM. */
function newPair(type: (typeof pairTypes)[number], work: KeyWork) {
  const key = work.newKey(type);
  try {
    const spki = publicKeyOf(type, key);
    return { privateKey: exportPkcs8(type, key, spki), publicKey: publicKeyPem(spki) };
  } finally {
    key.fill(0);
  }
}

interface Sealed {
  readonly ciphertext: string;
  readonly keyVersion: number;
}

function seal(use: KeyInUse, plaintext: Uint8Array, item: KeyItem, hash: OaepHash | undefined): Sealed {
  const { type } = use;
  const context = contextOf(use, item);
  const associated = item.associatedData === undefined ? none : bytesOf(item.associatedData);
  const stored = use.toMake(item.keyVersion ?? 0);
  const { version } = stored;
  if (isRsa(type)) {
    if (associated.length > 0) throw refusal(noAssociated(type));
    const publicKey = use.publicKey(stored);
    const bytes = use.work.run('oaepEncrypt', { type, publicKey, hash: hash ?? 'sha2-256', bytes: plaintext });
    use.count(version);
    return { ciphertext: prefixed(version, bytes), keyVersion: version };
  }
  const key = use.opened(stored);
  const message = { type: cipherOf(type), key, place: stored, bytes: plaintext, associated, context };
  const bytes = use.work.run('seal', message);
  use.count(version);
  return { ciphertext: prefixed(version, bytes), keyVersion: version };
}

interface Opened {
  readonly plaintext: Uint8Array;
  readonly version: number;
  readonly warning: { readonly warning?: string };
}

function open(use: KeyInUse, item: KeyItem, hash: OaepHash | undefined): Opened {
  const { type } = use;
  if (item.ciphertext === undefined || item.ciphertext === '') throw refusal('missing ciphertext to decrypt');
  const context = contextOf(use, item);
  const associated = item.associatedData === undefined ? none : bytesOf(item.associatedData);
  const { version, bytes } = use.read(item.ciphertext, 'ciphertext');
  const stored = use.toRead(version);
  const warning = use.warning(stored);
  if (isRsa(type)) {
    if (associated.length > 0) throw refusal(noAssociated(type));
    const plaintext = use.work.run('oaepDecrypt', {
      type,
      key: use.opened(stored),
      hash: hash ?? 'sha2-256',
      sealed: bytes,
    });
    if (!plaintext) throw refusal('failed to RSA decrypt the ciphertext: decryption error');
    use.count(version);
    return { plaintext, version, warning };
  }
  if (bytes.length < 12) throw refusal('invalid ciphertext length');
  const cipher = cipherOf(type);
  const key = use.opened(stored);
  const isVaultToo = use.key.vaultFormat && stored.origin === 'imported';
  const message = { type: cipher, key, place: stored, sealed: bytes, associated, context, isVaultToo };
  const plaintext = use.work.run('open', message);
  if (!plaintext) throw refusal(`${authenticators[cipher]}: message authentication failed`);
  use.count(version);
  return { plaintext, version, warning };
}

/** Opens what RSA-OAEP made with one of the newest versions: it does not say which. */
function openByAny(use: KeyInUse, { ciphertext = '' }: KeyItem, hash: OaepHash | undefined): Opened {
  if (!isRsa(use.type)) throw refusal('anyVersion: the messages of this key say their version');
  const sealed = bytesOf(ciphertext);
  for (const stored of use.newestReadable()) {
    const how = { type: use.type, key: use.opened(stored), hash: hash ?? 'sha2-256', sealed } as const;
    const plaintext = use.work.run('oaepDecrypt', how);
    if (!plaintext) continue;
    use.count(stored.version);
    return { plaintext, version: stored.version, warning: use.warning(stored) };
  }
  throw refusal('failed to RSA decrypt the ciphertext: decryption error');
}

function noAssociated(type: KeyType): string {
  return `associated data: a message of ${type} cannot be bound to any`;
}

function cipherOf(type: KeyType): CipherType {
  const cipher = cipherIn(type);
  if (cipher) return cipher;
  throw new KmsError('internal', 'expected a key that encrypts');
}

/** Go's names of the ciphers. */
const authenticators: Readonly<Record<CipherType, string>> = {
  'aes128-gcm': 'cipher',
  'aes256-gcm': 'cipher',
  'chacha20-poly1305': 'chacha20poly1305',
};

/** A context is compulsory if keys are derived; otherwise it would bind nothing. */
function contextOf(use: KeyInUse, { context = '' }: KeyItem): Uint8Array | undefined {
  if (use.key.derived) {
    if (context !== '') return bytesOf(context);
    throw refusal(
      "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key",
    );
  }
  if (context === '') return undefined;
  throw refusal(
    'context: the messages of this key have no derived keys, so it would bind nothing; use associated_data',
  );
}

/** Result of an item, and what to record of it. */
interface Done {
  readonly made: KeyResult;
  readonly deed: ActivityDetails;
}

/** Weight of the items of one slice: some 2 ms of noble's AES. */
const sliceWeight = 32_768;

/** An item costs as much as this many characters, whatever is in it. */
const itemWeight = 600;

function weightOf({ plaintext = '', ciphertext = '', input = '' }: KeyItem): number {
  return itemWeight + plaintext.length + ciphertext.length + input.length;
}

/** Whether work on the items is too long for one turn of the event loop. */
export function needsSlices(items: readonly KeyItem[]): boolean {
  return items.length > 1 && items.reduce((sum, item) => sum + weightOf(item), 0) > sliceWeight;
}

/**
 * Runs `work` on each item and returns the results in order; each is recorded with the status that it would have alone.
 */
export function* each(
  ctx: Context,
  items: readonly KeyItem[],
  work: (item: KeyItem) => Done,
): Slices<{ items: KeyResult[] }> {
  if (items.length === 0) throw refusal('missing batch input to process');
  const made: Done[] = [];
  let weight = 0;
  for (const item of items) {
    weight += weightOf(item);
    if (made.length > 0 && weight > sliceWeight) {
      yield;
      weight = weightOf(item);
    }
    made.push(orProblem(item, work));
  }
  ctx.did(
    made.map(({ made: { error } }) => (error === undefined ? 200 : 400)),
    made.map(({ deed }) => deed),
  );
  return { items: made.map((each) => each.made) };
}

function orProblem(item: KeyItem, work: (item: KeyItem) => Done): Done {
  try {
    return work(item);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'invalid') return { made: { error: error.message }, deed: noDeed };
    throw error;
  }
}

const noDeed: ActivityDetails = {};
let lastDeed: ActivityDetails = noDeed;

/** Cached: most requests use the same version as the previous one. */
export function versionDeed(keyVersion: number): ActivityDetails {
  if (lastDeed.keyVersion !== keyVersion) lastDeed = { keyVersion };
  return lastDeed;
}

/** The same of a message to sign, to hash or to make a MAC of. */
export function inputBytes(text: string): Uint8Array {
  const read = readBase64(text);
  if (read instanceof Uint8Array) return read;
  throw refusal(`unable to decode input as base64: illegal base64 data at input byte ${read.wrongAt}`);
}

/** The bytes of a text in base64, as Go reads it. */
function bytesOf(text: string): Uint8Array {
  const read = readBase64(text);
  if (read instanceof Uint8Array) return read;
  throw refusal(`illegal base64 data at input byte ${read.wrongAt}`);
}
