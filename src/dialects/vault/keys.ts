// The life of keys in the transit engine's terms: what is under keys/, but for import.
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { WrittenItems } from '../../core/pages.ts';
import { toBase64 } from '../../crypto/bytes.ts';
import { pemBlock } from '../../crypto/pem.ts';
import type { JsonObject } from '../../model/json.ts';
import { type KeyType, keyTypeFacts, keyTypes } from '../../model/key-types.ts';
import { epochTimeOf } from '../../model/timestamp.ts';
import { done, found, invalid, nothing, type VaultResponse } from './answers.ts';
import { booleanOf, countOf, isAbsent, numberOf, rotationOf, textOf, wordsOf } from './fields.ts';
import type { Operation } from './operation.ts';

/** The name of the key's type in Vault. */
export function vaultTypeOf(type: KeyType): string {
  return keyTypeFacts[type].vault?.type ?? type;
}

const leastHmacKey = 32;
const mostHmacKey = 512;

/** The type that the body names. `unknown` is the message for any other name. */
export function typeOf(given: JsonObject, unknown: string): KeyType {
  const name = textOf(given, 'type') || 'aes256-gcm96';
  const set = textOf(given, 'parameter_set') || '44';
  const size = numberOf(given, 'key_size') ?? 0;
  const type = keyTypes.find((each) => {
    const { vault } = keyTypeFacts[each];
    return vault?.type === name && (vault.parameterSet ?? set) === set && vault.isShownOnly !== true;
  });
  if (!type) throw invalid(`${unknown} ${name.slice(0, 100)}`);
  if (size === 0) return type;
  if (name !== 'hmac') throw invalid(`key_size is not valid for algorithm ${name}`);
  if (size < leastHmacKey || size > mostHmacKey) throw invalid(`invalid key_size ${size}`);
  const sized = keyTypes.find((each) => vaultTypeOf(each) === name && keyTypeFacts[each].length === size);
  if (sized) return sized;
  throw invalid(`invalid key_size ${size}: a key is as long as its hash, 32, 48 or 64 bytes; others can be imported`);
}

/** Refuses what would let keys out as no other interface does. */
export function refuseBackup(given: JsonObject): void {
  if (!booleanOf(given, 'allow_plaintext_backup')) return;
  throw invalid('plaintext backup is disallowed: `exportable` lets the key be exported');
}

export function makeKey(name: string): Operation {
  return {
    id: 'createManagedKey',
    body(given) {
      const type = typeOf(given, 'unknown key type');
      if (booleanOf(given, 'convergent_encryption')) {
        throw invalid('convergent encryption is not supported: the same plaintext would show as the same ciphertext');
      }
      refuseBackup(given);
      const derived = booleanOf(given, 'derived') ?? false;
      const exportable = booleanOf(given, 'exportable') ?? false;
      const uses = wordsOf(given, 'uses');
      return { name, type, derived, exportable, keepExisting: true, ...(uses && { uses }), ...rotationOf(given) };
    },
    answer: () => done,
  };
}

export function listKeys(query: URLSearchParams): Operation {
  const after = query.get('after') ?? '';
  const limit = Number(query.get('limit') ?? 0);
  return {
    id: 'listManagedKeys',
    query: { limit: '10000', secrets: 'false' },
    item: ({ name }) => name,
    answer(ours) {
      if ((ours.pagination as JsonObject).hasMore) throw invalid('more keys than can be listed at once: 10000');
      // Cast: `item` wrote names only.
      const names = (ours.data as WrittenItems<ManagedKey>).parsed() as unknown as string[];
      const rest = names.sort().filter((name) => name > after);
      const keys = limit > 0 ? rest.slice(0, limit) : rest;
      return keys.length === 0 ? nothing : found({ keys });
    },
  };
}

export function readKey(key: string): Operation {
  return { id: 'getManagedKey', params: { key }, answer: ({ key: held }) => keyAnswer(held) };
}

/** The key as it is read; one that was deleted is not there. */
function keyAnswer(held: unknown): VaultResponse {
  // Cast: the endpoint's answer.
  const key = held as ManagedKey;
  return key.deletedAt === undefined ? found(keyData(key)) : nothing;
}

function keyData(key: ManagedKey): object {
  const { type, uses, versions = [] } = key;
  const { vault, length } = keyTypeFacts[type];
  const isHmac = vault?.type === 'hmac';
  const destroyed = versions.find(({ state }) => state === 'destroyed');
  const keys: Record<string, unknown> = {};
  for (const { version, state, createdAt, publicKey } of versions.toReversed()) {
    if (version < key.minDecryptVersion || state === 'destroyed') continue;
    const time = { certificate_chain: '', creation_time: createdAt };
    keys[version] =
      publicKey === undefined
        ? Math.floor(epochTimeOf(createdAt) / 1000)
        : { ...time, name: publicName(type), public_key: publicText(type, publicKey) };
  }
  return {
    allow_plaintext_backup: false,
    auto_rotate_period: key.rotateAfter ?? 0,
    deletion_allowed: key.deletionAllowed,
    derived: key.derived,
    exportable: key.exportable,
    imported_key: key.origin === 'imported',
    ...(key.origin === 'imported' && { imported_key_allow_rotation: true }),
    ...(key.derived && { kdf: 'hkdf_sha256', convergent_encryption: false }),
    ...(isHmac && key.origin === 'generated' && { key_size: length }),
    ...(vault?.parameterSet !== undefined && { parameter_set: vault.parameterSet }),
    keys,
    latest_version: key.latestVersion,
    min_available_version: destroyed ? destroyed.version + 1 : 0,
    min_decryption_version: key.minDecryptVersion,
    min_encryption_version: key.minEncryptVersion,
    name: key.name,
    soft_deleted: key.state === 'suspended',
    supports_decryption: uses.includes('decrypt'),
    supports_derivation: uses.includes('encrypt') && !keyTypeFacts[type].isAsymmetric,
    supports_encryption: uses.includes('encrypt'),
    supports_signing: uses.includes('sign'),
    type: vaultTypeOf(type),
  };
}

/** Go's name of the curve or type. */
function publicName(type: KeyType): string {
  const curve = type === 'ed25519' ? undefined : keyTypeFacts[type].kmip?.curve;
  return curve ?? type;
}

/** PEM; for Ed25519 base64 of its 32 bytes. */
export function publicText(type: KeyType, pem: string): string {
  if (type !== 'ed25519') return pem;
  const spki = pemBlock(pem, 'PUBLIC KEY');
  if (!spki) throw invalid('expected a public key in PEM');
  return toBase64(spki.subarray(-32));
}

export function rotate(key: string): Operation {
  return { id: 'rotateManagedKey', params: { key }, answer: () => done, missing: 'key not found' };
}

export function configure(key: string): Operation {
  return {
    id: 'configureManagedKey',
    params: { key },
    body(given) {
      const decrypts = countOf(given, 'min_decryption_version', 'min decryption version cannot be negative');
      const encrypts = countOf(given, 'min_encryption_version', 'min encryption version cannot be negative');
      const deletionAllowed = booleanOf(given, 'deletion_allowed');
      refuseBackup(given);
      return {
        ...(decrypts !== undefined && { minDecryptVersion: decrypts }),
        ...(encrypts !== undefined && { minEncryptVersion: encrypts }),
        ...(deletionAllowed !== undefined && { deletionAllowed }),
        // Vault's `false` takes nothing back, and clients send it with every change.
        ...(booleanOf(given, 'exportable') && { exportable: true }),
        ...rotationOf(given),
      };
    },
    answer: () => done,
    missing: `no existing key named ${key.slice(0, 128)} could be found`,
  };
}

/** Vault never asks whether the key is in use. */
export function deleteKey(key: string): Operation {
  const missing = `error deleting policy ${key.slice(0, 128)}: could not delete key; not found`;
  return { id: 'deleteManagedKey', params: { key }, body: () => ({ used: true }), answer: () => done, missing };
}

/** A key that is deleted softly does nothing until it is restored: it is suspended. */
export function softDelete(key: string): Operation {
  return {
    id: 'setManagedKeyState',
    params: { key },
    body: () => ({ state: 'suspended', used: true }),
    answer: ({ key: held }) => keyAnswer(held),
  };
}

export function softDeleteRestore(key: string): Operation {
  return {
    id: 'setManagedKeyState',
    params: { key },
    body: () => ({ state: 'active' }),
    answer: ({ key: held }) => keyAnswer(held),
  };
}

export function trim(key: string): Operation {
  return {
    id: 'trimManagedKey',
    params: { key },
    body(given) {
      if (isAbsent(given.min_available_version)) throw invalid('missing min_available_version');
      const negative = 'minimum available version cannot be negative';
      const minAvailableVersion = countOf(given, 'min_available_version', negative);
      if (minAvailableVersion === 0) throw invalid('minimum available version should be positive');
      return { minAvailableVersion };
    },
    answer: ({ key: held }) => keyAnswer(held),
    missing: 'invalid key name',
  };
}
