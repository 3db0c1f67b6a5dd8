// Versions of managed keys: making and opening them, resealing, and erasing what is left of deleted keys.
import { fromBase64, toBase64 } from '../crypto/bytes.ts';
import { importPublicKey, publicKeyOf } from '../crypto/managed/keys.ts';
import { openKey, sealKey } from '../crypto/managed/sealed-keys.ts';
import { KmsError } from '../errors.ts';
import { type KeyType, keyTypeFacts, typeOfWrappingKey } from '../model/key-types.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Store, Tables } from '../store/port.ts';
import type { KeyVersion } from '../store/tables/managed-key-versions.ts';
import type { KeyOrigin, ManagedKey } from '../store/tables/managed-keys.ts';
import { type Context, needQuota, type World } from './context.ts';
import type { KeyWork } from './key-work.ts';

type AsymmetricName = Parameters<typeof publicKeyOf>[0];
type RsaName = Extract<KeyType, `rsa-${number}`>;

export function isRsa(type: KeyType): type is RsaName {
  return type.startsWith('rsa-');
}

export function isAsymmetric(type: KeyType): type is AsymmetricName {
  return keyTypeFacts[type].isAsymmetric;
}

/** A new version's key, or for asymmetric types the public key alone. */
export type KeyMaterial = { readonly key: Uint8Array } | { readonly publicKey: Uint8Array };

/** Makes a key and gives it to the managed key as its next version. */
export function nextVersion(ctx: Context, key: ManagedKey, work: KeyWork): KeyVersion {
  const bytes = work.newKey(key.type);
  try {
    return addVersion(ctx, key, { key: bytes }, 'generated');
  } finally {
    bytes.fill(0);
  }
}

/** Throws `quota` if the managed key may have no more versions. */
export function addVersion(ctx: Context, managed: ManagedKey, material: KeyMaterial, origin: KeyOrigin): KeyVersion {
  const { tx, tenant, world } = ctx;
  const { type, id: keyId } = managed;
  const version = managed.latestVersion + 1;
  needQuota(ctx, 'keysPerRing', () => version - 1);
  const { epoch } = tenant.keys;
  const place = { keyId, version };
  const isWhole = 'key' in material;
  const sealed = isWhole ? sealKey(tenant.keys.key('transit', epoch), place, type, material.key, world.random) : '';
  const publicKey = isAsymmetric(type) ? toBase64(isWhole ? publicKeyOf(type, material.key) : material.publicKey) : '';
  const now = world.now();
  const id = world.newId('key');
  tx.keyVersions.insert({ id, ...place, state: 'active', origin, epoch, sealed, publicKey, createdAt: now });
  tx.managedKeys.setLatest(keyId, version, now);
  const made = tx.keyVersions.get(keyId, version);
  if (!made) throw new KmsError('internal', 'expected the new version in the database, found none');
  return made;
}

/** Cache names of opened keys: long texts, built once per key. */
const openedNames = new WeakMap<KeyVersion, string>();

/** Use it at once: the tenant's keys own the buffer. Undefined if the stored key was altered. */
function openStored(keys: TenantKeys, type: KeyType, stored: KeyVersion): Uint8Array | undefined {
  const { keyId, version, sealed, epoch } = stored;
  let name = openedNames.get(stored);
  if (name === undefined) {
    name = `${keyId} ${version} ${type} ${sealed}`;
    openedNames.set(stored, name);
  }
  return keys.opened(name, () => openKey(keys.key('transit', epoch), stored, type, sealed));
}

/** The key of a version. Use it at once: the tenant's keys own the buffer. */
export function openVersion(keys: TenantKeys, type: KeyType, stored: KeyVersion): Uint8Array {
  if (stored.sealed === '') throw new KmsError('invalid', 'only the public key of this version is here');
  const key = openStored(keys, type, stored);
  if (!key) throw new KmsError('corrupt', 'a version of a stored managed key was altered');
  return key;
}

type Public = Pick<KeyVersion, 'publicKey'>;

const publicKeys = new WeakMap<Public, Uint8Array>();

/** SPKI DER: the same array each time, so that a platform can cache what it derives from it. */
export function publicKeyOfVersion(type: KeyType, stored: Public): Uint8Array | undefined {
  if (stored.publicKey === '' || !isAsymmetric(type)) return undefined;
  const known = publicKeys.get(stored);
  if (known) return known;
  const bytes = fromBase64(stored.publicKey);
  if (!bytes) throw new KmsError('corrupt', 'the public key of a stored version is not one');
  // Keys made as transit rings have the 32 bytes of Ed25519, or a point, which begins with 4. SPKI has 44 at least.
  const spki = bytes[0] === 0x30 && bytes.length > 32 ? bytes : importPublicKey(type, 'raw', bytes);
  publicKeys.set(stored, spki);
  return spki;
}

/** Keys resealed per transaction. */
const resealedAtOnce = 200;

/** Reseals all keys under the tenant's newest epoch, so that older ones can go. */
export async function resealManagedKeys(store: Store, keys: TenantKeys, random: World['random']): Promise<void> {
  const { epoch } = keys;
  const some = ({ keyVersions }: Tables): number => {
    const found = keyVersions.before(epoch, resealedAtOnce);
    for (const { type, ...stored } of found) {
      const key = openVersion(keys, type, stored);
      keyVersions.reseal(stored.id, epoch, sealKey(keys.key('transit', epoch), stored, type, key, random));
    }
    return found.length;
  };
  while ((await store.transaction(some)) > 0);
  await store.transaction(({ wrappingKeys }) => {
    for (const { id, epoch: old, sealed } of wrappingKeys.list()) {
      if (old >= epoch) continue;
      const place = { keyId: `wrapping ${id}`, version: 1 };
      const type = typeOfWrappingKey(id);
      const key = openKey(keys.key('transit', old), place, type, sealed);
      if (!key) throw new KmsError('corrupt', 'a stored wrapping key was altered');
      wrappingKeys.reseal(id, epoch, sealKey(keys.key('transit', epoch), place, type, key, random));
      key.fill(0);
    }
  });
}

/** Destroyed managed keys of which the row stays; beyond, the one deleted first is erased. */
const mostDestroyed = 10_000;

/**
 * Destroys a managed key whose time to be restored has ended, or some of its versions, or erases one that was destroyed
 * long ago. Returns how many keys it destroyed or erased; undefined if nothing was left.
 */
export function destroyDueKeys(tables: Tables, now: number): number | undefined {
  const { managedKeys, keyVersions, managedKeyUses } = tables;
  const due = managedKeys.toDestroy(now);
  if (due !== undefined) {
    if (keyVersions.destroySome(due) > 0) {
      // One that lost some keys must not be restored, not even if the clock is set back.
      const key = managedKeys.byId(due);
      if (key) managedKeys.setState(due, { ...key, destroyAt: 0 });
      return 0;
    }
    const key = managedKeys.byId(due);
    if (key) {
      managedKeys.setState(due, { ...key, state: 'destroyed', formerState: undefined, destroyAt: undefined });
    }
    managedKeys.removeAliases(due);
    managedKeyUses.eraseAll(due);
    return 1;
  }
  const old = managedKeys.destroyedBeyond(mostDestroyed);
  if (old === undefined) return undefined;
  if (keyVersions.eraseSome(old) > 0) return 0;
  tables.kmipObjects.erase(old);
  managedKeys.erase(old);
  return 1;
}
