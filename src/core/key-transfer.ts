// Managed keys on their way in: wrapped to the wrapping key, or in clear on the local socket. For export see
// key-export.ts.
import type { Answer, Body } from '../api/endpoints.ts';
import { concatBytes, fromBase64, toBase64, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/fast-hash.ts';
import { importPublicKey, type KeyFormat, keyDerOfPem, publicKeyOf, publicKeyPem } from '../crypto/managed/keys.ts';
import { openKey, sealKey } from '../crypto/managed/sealed-keys.ts';
import { isPem } from '../crypto/pem.ts';
import type { OaepHash } from '../crypto/primitives.ts';
import { invalidField, KmsError } from '../errors.ts';
import type { ResourceRef } from '../model/activity-details.ts';
import type { JsonObject } from '../model/json.ts';
import { type KeyType, keyTypeFacts, typeOfWrappingKey, type WrappingKeyType } from '../model/key-types.ts';
import type { Tables } from '../store/port.ts';
import type { KeyVersion } from '../store/tables/managed-key-versions.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import type { WrappingKey } from '../store/tables/wrapping-keys.ts';
import { authorizeFurther } from './authorization.ts';
import type { Context } from './context.ts';
import { dayLength } from './key-dependents.ts';
import { addVersion, isAsymmetric, type KeyMaterial, openVersion } from './key-versions.ts';
import { inPlace, type KeyWork } from './key-work.ts';
import { needManyValues } from './kmip-names.ts';
import { isKeyId, lookUpManagedKey } from './managed-key-names.ts';
import {
  findManagedKey,
  insertKey,
  keyRef,
  livingKey,
  mustFind,
  type NamedKey,
  needGrowing,
  shown,
  versionRef,
} from './managed-keys.ts';

/** Bytes. */
const moduli: Readonly<Record<WrappingKeyType, number>> = { 'rsa-2048': 256, 'rsa-3072': 384, 'rsa-4096': 512 };

/** How long something wrapped to a wrapping key can be imported, in milliseconds: its day, and the day after. */
const wrappingLife = 2 * dayLength;

/** The place that a wrapping key's seal is bound to. */
const placeOf = (id: string) => ({ keyId: `wrapping ${id}`, version: 1 });

/** The wrapping key of this day and type, made if there is none yet. */
export function getWrappingKey(
  ctx: Context,
  { type = 'rsa-4096', key: wanted }: { readonly type?: WrappingKeyType; readonly key?: string },
  work: KeyWork = inPlace(ctx.world),
): Answer<'getWrappingKey'> {
  const { tx, world } = ctx;
  if (wanted !== undefined) {
    const asked = wanted.toLowerCase();
    const found = lookUpManagedKey(tx, wanted);
    if (found) ctx.note({ object: keyRef(found) });
    const subject = { kind: 'named', name: found?.name ?? asked, asked } as const;
    authorizeFurther(ctx, 'key.import', subject, found && keyRef(found));
    livingKey(ctx, wanted);
  }
  const now = world.now();
  const today = new Date(now).toISOString().slice(0, 10);
  const id = type === 'rsa-4096' ? today : `${today} ${type}`;
  const there = tx.wrappingKeys.list().find((each) => each.id === id);
  const { publicKey, createdAt } = there ?? makeWrappingKey(ctx, id, work);
  const spki = fromBase64(publicKey);
  if (!spki) throw new KmsError('corrupt', 'the public key of a stored wrapping key is not one');
  return { id, algorithm: type, publicKey: publicKeyPem(spki), expiresAt: createdAt + wrappingLife };
}

function makeWrappingKey({ tx, tenant, world }: Context, id: string, work: KeyWork): WrappingKey {
  const now = world.now();
  const { epoch } = tenant.keys;
  const type = typeOfWrappingKey(id);
  const key = work.newKey(type);
  try {
    const sealed = sealKey(tenant.keys.key('transit', epoch), placeOf(id), type, key, world.random);
    const made = { id, epoch, sealed, publicKey: toBase64(publicKeyOf(type, key)), createdAt: now };
    eraseOldWrappingKeys(tx, now);
    tx.wrappingKeys.insert(made);
    return made;
  } finally {
    key.fill(0);
  }
}

/** Erases the wrapping keys whose time is over. */
export function eraseOldWrappingKeys({ wrappingKeys }: Pick<Tables, 'wrappingKeys'>, now: number): void {
  wrappingKeys.eraseUntil(now - wrappingLife);
}

/** Bytes that were wrapped to a wrapping key that is still good. Throws `invalid`. */
function unwrapped(ctx: Context, text: string, hash: OaepHash, work: KeyWork): Uint8Array {
  const { tx, tenant, world } = ctx;
  const sealed = fromBase64(text);
  if (!sealed) throw invalidField('wrapped', 'expected base64');
  const since = world.now() - wrappingLife;
  for (const { id, epoch, sealed: stored, createdAt } of tx.wrappingKeys.list()) {
    if (createdAt <= since) continue;
    const type = typeOfWrappingKey(id);
    // OAEP alone has the length of the modulus, and what is longer goes on with AES-KWP.
    if (sealed.length < moduli[type]) continue;
    const key = openKey(tenant.keys.key('transit', epoch), placeOf(id), type, stored);
    if (!key) throw new KmsError('corrupt', 'a stored wrapping key was altered');
    try {
      const bytes = work.run('unwrap', { type, key, hash, sealed });
      if (bytes) return bytes;
    } finally {
      key.fill(0);
    }
  }
  throw invalidField('wrapped', 'expected something wrapped to the wrapping key of this day or the day before');
}

type ImportInput = NamedKey & Body<'importManagedKey'>;

export function importManagedKey(
  ctx: Context,
  input: ImportInput,
  work: KeyWork = inPlace(ctx.world),
): Answer<'importManagedKey'> {
  const { tx } = ctx;
  const there = lookUpManagedKey(tx, input.key);
  const living = there?.deletedAt === undefined ? there : undefined;
  if (!living && (input.isNewVersion === true || isKeyId(input.key))) throw noneToGrow(findManagedKey(tx, input.key));
  if (input.isNewVersion === false && living && living.latestVersion > 0) {
    throw new KmsError('conflict', 'there is a managed key of this name: import a new version of it');
  }
  if (living) needGrowing(ctx, living);
  const erased = living && input.isNewVersion !== true ? erasedVersion(ctx, living) : undefined;
  if (living && !erased) needManyValues(tx, living.id);
  const key = living ?? newImported(ctx, input);
  needSameKind(key, input);
  const { material, transfer } = materialOf(ctx, key.type, input, work);
  try {
    const made = erased
      ? broughtBack(ctx, living ?? key, erased, material)
      : addVersion(ctx, key, material, 'imported');
    if (input.allowPlaintextFormat === 'vault') tx.managedKeys.setVaultFormat(key.id);
    ctx.note({
      object: keyRef(key),
      objects: [versionRef(made)],
      transfer,
      ...(!living && { custody: 'server' as const }),
      ...(living && { changed: ['latestVersion'] }),
    });
  } finally {
    if ('key' in material) material.key.fill(0);
  }
  return { key: shown(ctx, mustFind(tx, key.id)) };
}

/**
 * The body of an import that was just done, with a hash of the key instead of its wrapping: the same key wrapped again
 * makes the same body.
 */
export function withoutWrapping(
  { tx, tenant }: Pick<Context, 'tx' | 'tenant'>,
  body: JsonObject,
  imported: ResourceRef | undefined,
): JsonObject {
  const key = imported && tx.managedKeys.byId(imported.id);
  const made = key && tx.keyVersions.get(key.id, key.latestVersion);
  if (body.wrapped === undefined || !made) return body;
  return { ...body, wrapped: toBase64(sha256(openVersion(tenant.keys, key.type, made))) };
}

/** The newest version of a key, if its bytes were erased. */
function erasedVersion({ tx }: Pick<Context, 'tx'>, { id, latestVersion }: ManagedKey): KeyVersion | undefined {
  const newest = tx.keyVersions.get(id, latestVersion);
  return newest?.state === 'destroyed' && newest.origin === 'imported' ? newest : undefined;
}

/** The version with the bytes that it had. Throws `conflict` for others: what they made would not open. */
function broughtBack(ctx: Context, { type }: ManagedKey, erased: KeyVersion, material: KeyMaterial): KeyVersion {
  const { tx, tenant, world } = ctx;
  if (!('key' in material)) throw new KmsError('conflict', 'expected the private key that was erased');
  if (knownBy(type, erased, material.key) !== erased.publicKey) throw new KmsError('conflict', otherMaterial);
  const { epoch } = tenant.keys;
  const sealed = sealKey(tenant.keys.key('transit', epoch), erased, type, material.key, world.random);
  tx.keyVersions.bringBack(erased.id, { epoch, sealed, publicKey: isAsymmetric(type) ? erased.publicKey : '' });
  return versionOf(ctx, erased);
}

export const otherMaterial = 'expected the same key that was erased';

/** A text by which the bytes of an erased version are known again: the public key, or a hash. */
function knownBy(type: KeyType, { keyId, version }: KeyVersion, key: Uint8Array): string {
  if (isAsymmetric(type)) return toBase64(publicKeyOf(type, key));
  return toBase64(sha256(concatBytes(utf8(`kms/erased-key/1\0${keyId}\0${version}\0`), key)));
}

function versionOf({ tx }: Pick<Context, 'tx'>, { keyId, version }: KeyVersion): KeyVersion {
  const stored = tx.keyVersions.get(keyId, version);
  if (stored) return stored;
  throw new KmsError('internal', 'expected a version in the database, found none');
}

/** Erases the bytes of an imported key. It does nothing until the same key is imported again. */
export function eraseKeyMaterial(ctx: Context, { key: ref }: NamedKey): Answer<'eraseKeyMaterial'> {
  const { tx, tenant } = ctx;
  const key = livingKey(ctx, ref);
  if (key.origin !== 'imported') throw new KmsError('conflict', 'the key was not imported: its bytes are nowhere else');
  needManyValues(tx, key.id);
  const newest = tx.keyVersions.get(key.id, key.latestVersion);
  if (newest && newest.state !== 'destroyed') {
    if (key.latestVersion > 1) throw new KmsError('conflict', 'the key has several versions: delete it');
    if (newest.origin !== 'imported') throw new KmsError('conflict', 'the version was not imported');
    const known =
      newest.sealed === '' ? newest.publicKey : knownBy(key.type, newest, openVersion(tenant.keys, key.type, newest));
    tx.keyVersions.erase(newest.id, known);
    ctx.note({ object: keyRef(key), objects: [versionRef(newest)], keyVersion: newest.version });
  } else ctx.note({ object: keyRef(key) });
  return { key: shown(ctx, mustFind(tx, key.id)) };
}

/** The refusal of a new version of a deleted key: a new key in its place would keep it from being restored. */
function noneToGrow({ destroyAt }: ManagedKey): KmsError {
  const problem = destroyAt === undefined ? 'is destroyed' : 'is pending deletion';
  const rest = destroyAt === undefined ? '' : ': restore it first';
  return new KmsError('conflict', `the key ${problem}, so it gets no new version${rest}`);
}

function newImported(ctx: Context, input: ImportInput): ManagedKey {
  const { key: name, type, uses, derived, exportable, rotateAfter, allowPlaintextFormat } = input;
  return insertKey(ctx, {
    name,
    origin: 'imported',
    vaultFormat: allowPlaintextFormat === 'vault',
    ...(type && { type }),
    ...(uses && { uses }),
    ...(derived !== undefined && { derived }),
    ...(exportable !== undefined && { exportable }),
    ...(rotateAfter !== undefined && { rotateAfter }),
  });
}

function needSameKind(key: ManagedKey, { type, derived }: ImportInput): void {
  if (type !== undefined && type !== key.type) throw invalidField('type', `expected ${key.type}, the type of the key`);
  if (derived !== undefined && derived !== key.derived) {
    throw invalidField('derived', `expected ${key.derived}, as the key is`);
  }
}

interface Imported {
  readonly material: KeyMaterial;
  readonly transfer: 'wrapped' | 'plaintext' | 'public';
}

function materialOf(ctx: Context, type: KeyType, input: ImportInput, work: KeyWork): Imported {
  const { wrapped, plaintext, publicKey, hash = 'sha2-256', format } = input;
  if ([wrapped, plaintext, publicKey].filter((each) => each !== undefined).length !== 1) {
    throw new KmsError('invalid', 'expected one of wrapped, plaintext and publicKey');
  }
  if (publicKey !== undefined) return { material: { publicKey: publicOf(type, publicKey) }, transfer: 'public' };
  if (plaintext !== undefined && !ctx.isLocal) {
    throw new KmsError(
      'forbidden',
      'a key is imported in clear on the local socket alone: wrap it to the wrapping key',
    );
  }
  const bytes = wrapped === undefined ? fromBase64(plaintext ?? '') : unwrapped(ctx, wrapped, hash, work);
  if (!bytes) throw invalidField('plaintext', 'expected base64');
  const key = work.run('import', { type, ...formOf(type, format, bytes) });
  bytes.fill(0);
  return { material: { key }, transfer: wrapped === undefined ? 'plaintext' : 'wrapped' };
}

/** The key's form, found out where it is not said. */
function formOf(
  type: KeyType,
  format: 'raw' | 'der' | 'pem' | undefined,
  bytes: Uint8Array,
): { readonly format: KeyFormat; readonly bytes: Uint8Array } {
  // A scalar or a seed may begin like DER, which is longer.
  const isSeed = format === undefined && bytes.length === keyTypeFacts[type].length;
  if (!isAsymmetric(type) || format === 'raw' || isSeed) return { format: 'raw', bytes };
  const text = new TextDecoder().decode(bytes);
  if (format === 'pem' || (format === undefined && isPem(text))) {
    return { format: 'der', bytes: keyDerOfPem(text, 'private') };
  }
  return { format: format === 'der' || bytes[0] === 0x30 ? 'der' : 'raw', bytes };
}

function publicOf(type: KeyType, text: string): Uint8Array {
  if (!isAsymmetric(type)) throw invalidField('publicKey', `a key of the type ${type} has no public key`);
  return importPublicKey(type, 'der', publicDer(text));
}

/** DER of a public key in PEM or base64. Throws `invalid`. */
export function publicDer(text: string): Uint8Array {
  if (isPem(text)) return keyDerOfPem(text, 'public');
  const bytes = fromBase64(text);
  if (bytes) return bytes;
  throw invalidField('publicKey', 'expected a public key: SPKI, PEM or base64 of DER');
}
