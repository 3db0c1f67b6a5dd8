// Signatures and MACs by managed keys, and what else comes of a key but messages: wrapped keys and derived bytes.
import type { Answer, Body } from '../api/endpoints.ts';
import type { KeyItem } from '../api/key-operations.ts';
import { fromBase64, toBase64 } from '../crypto/bytes.ts';
import { digestLengths, hkdfBytes, hmac, isHmac } from '../crypto/managed/digests.ts';
import { ecdhShared } from '../crypto/managed/ecdsa.ts';
import { importPublicKey, keyDerOfPem } from '../crypto/managed/keys.ts';
import { prefixed } from '../crypto/managed/messages.ts';
import { longestOaepMessage } from '../crypto/managed/rsa.ts';
import type { SignatureOptions, SigningType } from '../crypto/managed/signatures.ts';
import { isPem } from '../crypto/pem.ts';
import type { HashName } from '../crypto/primitives.ts';
import { invalidField, KmsError } from '../errors.ts';
import { type KeyType, keyTypeFacts } from '../model/key-types.ts';
import type { Slices } from '../store/sql.ts';
import type { KeyVersion } from '../store/tables/managed-key-versions.ts';
import type { Context } from './context.ts';
import { KeyInUse, refusal } from './key-in-use.ts';
import { each, inputBytes, versionDeed } from './key-operations.ts';
import { isRsa } from './key-versions.ts';
import { inPlace, type KeyWork } from './key-work.ts';
import type { NamedKey } from './managed-keys.ts';

type Scheme = Omit<Body<'signWithKey'>, 'input' | 'items' | 'keyVersion'>;

export function* signWithKey(
  ctx: Context,
  { key: ref, input, items, keyVersion = 0, ...scheme }: NamedKey & Body<'signWithKey'>,
  work: KeyWork = inPlace(ctx.world),
): Slices<Answer<'signWithKey'>> {
  const use = new KeyInUse(ctx, { key: ref }, 'sign', work);
  const type = signingType(use.type, 'signing');
  const options = optionsOf(type, scheme);
  const sign = (item: KeyItem) => {
    const stored = use.toMake(item.keyVersion ?? keyVersion, 'signing');
    const made = work.run('sign', {
      type,
      key: use.opened(stored),
      input: signable(type, item.input, scheme.prehashed),
      options,
    });
    use.count(stored.version);
    return { signature: prefixed(stored.version, made), keyVersion: stored.version };
  };
  return yield* oneOrEach(ctx, { input, items }, sign, 'missing input');
}

export function* verifyWithKey(
  ctx: Context,
  { key: ref, input, signature, mac, items, anyVersion = false, ...scheme }: NamedKey & Body<'verifyWithKey'>,
  work: KeyWork = inPlace(ctx.world),
): Slices<Answer<'verifyWithKey'>> {
  const use = new KeyInUse(ctx, { key: ref }, 'verify', work);
  const verify = (item: KeyItem) => {
    const isMac = item.mac !== undefined && item.mac !== '';
    if (isMac === (item.signature !== undefined && item.signature !== '')) {
      throw refusal('expected one of signature and mac');
    }
    const text = (isMac ? item.mac : item.signature) ?? '';
    if (anyVersion) return verifyByAny(use, item, { text, isMac, scheme });
    const { version, bytes } = use.read(text, isMac ? 'HMAC' : 'signature');
    const made = use.toRead(version);
    const valid = fits(use, made, item, { bytes, isMac, scheme });
    use.count(version);
    return { valid, ...use.warning(made), keyVersion: version };
  };
  const answer = yield* oneOrEach(ctx, { input, items, signature, mac }, verify, 'missing input');
  if ('items' in answer) return answer;
  const { valid, warning } = answer;
  return { valid, ...(warning !== undefined && { warning }) };
}

interface Compared {
  readonly isMac: boolean;
  readonly scheme: Scheme;
}

/** Compares with the newest versions that may still be used. Throws `invalid` if none may. */
function verifyByAny(use: KeyInUse, item: KeyItem, { text, ...how }: Compared & { readonly text: string }) {
  const bytes = exactBytes(text, how.isMac ? 'mac' : 'signature');
  let newest: KeyVersion | undefined;
  for (const made of use.newestReadable()) {
    newest ??= made;
    if (!fits(use, made, item, { bytes, ...how })) continue;
    use.count(made.version);
    return { valid: true, ...use.warning(made), keyVersion: made.version };
  }
  if (!newest) throw refusal('no version of the key may verify anything');
  use.count(newest.version);
  return { valid: false, ...use.warning(newest), keyVersion: newest.version };
}

function fits(
  use: KeyInUse,
  made: KeyVersion,
  item: KeyItem,
  { bytes, isMac, scheme }: Compared & { readonly bytes: Uint8Array },
): boolean {
  if (!isMac) return verifies(use, made, item, bytes, scheme);
  return isHmac(macHash(use.type, scheme.hash), macKey(use, made), inputBytes(item.input ?? ''), bytes);
}

function verifies(
  use: KeyInUse,
  stored: KeyVersion,
  { input }: KeyItem,
  signature: Uint8Array,
  scheme: Scheme,
): boolean {
  const type = signingType(use.type, 'verification');
  return use.work.run('verify', {
    type,
    publicKey: use.publicKey(stored),
    input: signable(type, input, scheme.prehashed),
    options: optionsOf(type, scheme),
    signature,
  });
}

export function* macWithKey(
  ctx: Context,
  { key: ref, input, items, keyVersion = 0, hash }: NamedKey & Body<'macWithKey'>,
  work: KeyWork = inPlace(ctx.world),
): Slices<Answer<'macWithKey'>> {
  const use = new KeyInUse(ctx, { key: ref }, 'mac', work);
  const name = macHash(use.type, hash);
  const make = (item: KeyItem) => {
    const stored = use.toMake(item.keyVersion ?? keyVersion);
    const made = hmac(name, macKey(use, stored), inputBytes(item.input ?? ''));
    use.count(stored.version);
    return { mac: prefixed(stored.version, made), keyVersion: stored.version };
  };
  return yield* oneOrEach(ctx, { input, items }, make, 'missing input for HMAC');
}

function macKey(use: KeyInUse, stored: KeyVersion): Uint8Array {
  return use.opened(stored);
}

/** The hash of a MAC: the key's own. Throws `invalid` for a type that makes none, or another hash. */
function macHash(type: KeyType, wanted: HashName | undefined): HashName {
  const [own] = keyTypeFacts[type].hashes;
  if (!type.startsWith('hmac-') || own === undefined || own === 'sha1') {
    throw refusal(`key type ${keyTypeFacts[type].vault?.type ?? type} does not support HMAC creation`);
  }
  if (wanted === undefined || wanted === own) return own;
  throw refusal(`hash: a key of the type ${type} makes MACs with ${own}`);
}

function signingType(type: KeyType, work: 'signing' | 'verification'): SigningType {
  if (isRsa(type) || type.startsWith('ecdsa-') || type.startsWith('ml-dsa-') || type === 'ed25519') {
    // Cast: these are the types that sign.
    return type as SigningType;
  }
  throw refusal(`key type ${keyTypeFacts[type].vault?.type ?? type} does not support ${work}`);
}

/** The options that the type takes, with those usual for it. Vault's clients name all of them for every type. */
function optionsOf(type: SigningType, { hash, padding, saltLength, encoding }: Scheme): SignatureOptions {
  const { hashes, paddings, encodings } = keyTypeFacts[type];
  if (hashes.length === 0) return {};
  const [usual] = hashes;
  const named = hash ?? (usual === 'sha1' ? undefined : usual);
  const [usualPadding] = paddings;
  const chosen = usualPadding && (padding ?? usualPadding);
  return {
    ...(named !== undefined && { hash: named }),
    ...(chosen !== undefined && { padding: chosen }),
    ...(chosen === 'pss' && saltLength !== undefined && { saltLength }),
    ...(encodings.length > 0 && encoding !== undefined && { encoding }),
  };
}

/** Ed25519 signs whatever comes as the message. */
function signable(type: SigningType, input: string | undefined, prehashed = false) {
  return { bytes: inputBytes(input ?? ''), isDigest: prehashed && keyTypeFacts[type].prehashed !== 'none' };
}

interface Made {
  readonly keyVersion: number;
}

/** Does one thing, recorded as the request, or each of the items. `missing` is said of an item without input. */
function* oneOrEach<M extends Made>(
  ctx: Context,
  { items, ...one }: { readonly items?: readonly KeyItem[] | undefined } & KeyItem,
  work: (item: KeyItem) => M,
  missing: string,
): Slices<M | { items: M[] }> {
  if (items === undefined) {
    const made = work(one);
    ctx.note(versionDeed(made.keyVersion));
    return made;
  }
  const answer = yield* each(ctx, items, (item) => {
    if (item.input === undefined) throw refusal(missing);
    const made = work(item);
    return { made, deed: versionDeed(made.keyVersion) };
  });
  // Cast: each item is what `work` made, or an error.
  return answer as { items: unknown[] } as { items: M[] };
}

export function wrapWithKey(
  ctx: Context,
  { key: ref, plaintext, keyVersion = 0, hash = 'sha2-256' }: NamedKey & Body<'wrapWithKey'>,
  work: KeyWork = inPlace(ctx.world),
): Answer<'wrapWithKey'> {
  const use = new KeyInUse(ctx, { key: ref }, 'wrap', work);
  const bytes = exactBytes(plaintext, 'plaintext');
  const stored = use.toMake(keyVersion);
  const { type } = use;
  const wrapped = isRsa(type)
    ? bytes.length <= longestOaepMessage(type, hash)
      ? work.run('oaepEncrypt', { type, publicKey: use.publicKey(stored), hash, bytes })
      : work.run('wrap', { type, publicKey: use.publicKey(stored), hash, bytes })
    : work.run('wrapKwp', { key: use.opened(stored), bytes });
  use.count(stored.version);
  ctx.note(versionDeed(stored.version));
  return { wrapped: toBase64(wrapped), keyVersion: stored.version };
}

export function unwrapWithKey(
  ctx: Context,
  { key: ref, wrapped, keyVersion = 0, hash = 'sha2-256' }: NamedKey & Body<'unwrapWithKey'>,
  work: KeyWork = inPlace(ctx.world),
): Answer<'unwrapWithKey'> {
  const use = new KeyInUse(ctx, { key: ref }, 'unwrap', work);
  const sealed = exactBytes(wrapped, 'wrapped');
  const version = keyVersion === 0 ? use.key.latestVersion : keyVersion;
  if (version > use.key.latestVersion) throw refusal('keyVersion: the key has no such version');
  if (version < use.key.minDecryptVersion) throw refusal('keyVersion: this version is disallowed by policy (too old)');
  const stored = use.toRead(version);
  const { type } = use;
  const key = use.opened(stored);
  const plaintext = isRsa(type)
    ? work.run('unwrap', { type, key, hash, sealed })
    : work.run('unwrapKwp', { key, bytes: sealed });
  if (!plaintext) throw invalidField('wrapped', 'was not wrapped with this version of the key, or altered');
  use.count(version);
  ctx.note(versionDeed(version));
  return { plaintext: toBase64(plaintext), keyVersion: version, ...use.warning(stored) };
}

export function deriveWithKey(
  ctx: Context,
  { key: ref, context = '', salt, length = 32, hash, publicKey, keyVersion = 0 }: NamedKey & Body<'deriveWithKey'>,
  work: KeyWork = inPlace(ctx.world),
): Answer<'deriveWithKey'> {
  const use = new KeyInUse(ctx, { key: ref }, 'derive', work);
  const stored = use.toMake(keyVersion);
  const { type } = use;
  const derived = keyTypeFacts[type].isAsymmetric
    ? sharedSecret(use, stored, publicKey)
    : hkdfBytes(use.opened(stored), {
        hash: hash ?? 'sha2-256',
        ...(salt !== undefined && { salt: exactBytes(salt, 'salt') }),
        info: exactBytes(context, 'context'),
        length: checkedLength(length, hash ?? 'sha2-256'),
      });
  use.count(stored.version);
  ctx.note(versionDeed(stored.version));
  return { derived: toBase64(derived), keyVersion: stored.version };
}

function checkedLength(length: number, hash: HashName): number {
  const most = 255 * digestLengths[hash];
  if (length <= most) return length;
  throw invalidField('length', `expected at most ${most} bytes with ${hash}`);
}

function sharedSecret(use: KeyInUse, stored: KeyVersion, text: string | undefined): Uint8Array {
  const { type } = use;
  if (!type.startsWith('ecdsa-')) throw new KmsError('internal', 'expected a key of a curve');
  if (text === undefined) throw invalidField('publicKey', 'is required: the public key of the other side');
  // Cast: the types of curves.
  const curve = type as Parameters<typeof ecdhShared>[0];
  const der = isPem(text) ? keyDerOfPem(text, 'public') : exactBytes(text, 'publicKey');
  return ecdhShared(curve, use.opened(stored), importPublicKey(curve, 'der', der));
}

function exactBytes(text: string, field: string): Uint8Array {
  const bytes = fromBase64(text);
  if (bytes) return bytes;
  throw invalidField(field, 'expected base64');
}
