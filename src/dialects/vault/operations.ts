// Operations of the transit engine: the paths of Vault and OpenBao under a mount, each with the endpoint of ours that
// serves it and the translation of request and response bodies.
import type { EndpointId } from '../../api/endpoints.ts';
import type { KeyResult } from '../../api/key-operations.ts';
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { WrittenItems } from '../../core/pages.ts';
import { toBase64 } from '../../crypto/bytes.ts';
import { pemBlock } from '../../crypto/pem.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { type KeyType, keyTypeFacts, keyTypes, signingHashes } from '../../model/key-types.ts';
import { epochTimeOf } from '../../model/timestamp.ts';
import { done, found, hasNoBody, invalid, nothing, problem, type VaultResponse } from './answers.ts';
import {
  batchOf,
  booleanOf,
  countOf,
  isAbsent,
  itemOf,
  madeVersionOf,
  numberOf,
  rotationOf,
  textOf,
} from './fields.ts';

/** One of our endpoints in the engine's terms. */
export interface Operation {
  readonly id: EndpointId;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Translates the client's body into ours. Throws `invalid`. */
  readonly body?: (given: JsonObject) => object;
  /** The part of a list item that is written. */
  readonly item?: (item: ManagedKey) => unknown;
  /** Translates our response into theirs. */
  readonly answer: (ours: JsonObject, given: JsonObject) => VaultResponse;
  /** The error message if the ring does not exist. Default: 404 without a body. */
  readonly missing?: string;
}

export function isWrite(method: string): boolean {
  return method === 'POST' || method === 'PUT';
}

const noKey = 'encryption key not found';

/**
 * The operation that a path names; a string gives the reason for a refusal, undefined means that there is none. A mount
 * may have any name of several parts: the shortest mount that leaves a known operation is taken.
 */
export function operationOf(method: string, path: readonly string[], isList: boolean): Operation | string | undefined {
  // At most three parts follow a mount.
  for (let mount = Math.max(1, path.length - 3); mount < path.length; mount++) {
    const operation = behindMount(method, path.slice(mount), isList);
    if (operation) return operation;
  }
  return refusedFor(method, path);
}

function behindMount(method: string, rest: readonly string[], isList: boolean): Operation | undefined {
  const [what = '', name = '', more = ''] = rest;
  const writes = isWrite(method);
  const lists = method === 'GET' && isList;
  if (rest.length === 1) return what === 'keys' && lists ? listRings : undefined;
  if (rest.length === 2) {
    if (what === 'keys' && method === 'GET') return lists ? undefined : readRing(name);
    if (what === 'keys' && method === 'DELETE') return deleteRing(name);
    if (!writes) return undefined;
    if (what === 'keys') return makeRing(name);
    if (what === 'encrypt') return onItems('encryptWithKey', name, ['plaintext']);
    if (what === 'decrypt') return onItems('decryptWithKey', name, ['ciphertext']);
    if (what === 'rewrap') return onItems('rewrapWithKey', name, ['ciphertext']);
    if (what === 'sign') return sign(name, undefined);
    return what === 'verify' ? verify(name, undefined) : undefined;
  }
  if (rest.length !== 3 || !writes) return undefined;
  if (what === 'keys' && more === 'rotate') return rotate(name);
  if (what === 'keys' && more === 'config') return configure(name);
  if (what === 'datakey' && (name === 'plaintext' || name === 'wrapped')) return dataKey(more, name === 'wrapped');
  if (!hashName.test(more)) return undefined;
  if (what === 'sign') return sign(name, more);
  return what === 'verify' ? verify(name, more) : undefined;
}

/** The name of a Vault hash, supported or not. */
const hashName = /^(?:none|sha[0-9-]+)$/;

/** Whether the path has an operation for any method. */
export function isKnownPath(path: readonly string[]): boolean {
  return ['GET', 'POST', 'DELETE'].some((method) => operationOf(method, path, true) !== undefined);
}

/** The reason for refusing an operation that Vault has but this appliance has not; undefined for any other path. */
function refusedFor(method: string, path: readonly string[]): string | undefined {
  if (path.length < 2) return undefined;
  if (path.includes('export', 1)) return notExportable;
  const [last = '', before = '', earlier = ''] = path.toReversed();
  if (isWrite(method) && path.length > 3 && (earlier === 'sign' || earlier === 'verify')) return noHash(last);
  if (before === 'backup') return 'plaintext backup is disallowed: keys never leave the appliance';
  if (before === 'restore' || last === 'restore')
    return 'restore is not supported: keys are made by the appliance alone';
  if (last === 'import' || last === 'import_version')
    return 'import is not supported: keys are made by the appliance alone';
  return undefined;
}

const notExportable = 'private key material is not exportable';

function refuseExport(given: JsonObject): void {
  if (booleanOf(given, 'exportable')) throw invalid(`${notExportable}: keys never leave the appliance`);
  if (booleanOf(given, 'allow_plaintext_backup')) {
    throw invalid('plaintext backup is disallowed: keys never leave the appliance');
  }
}

function makeRing(name: string): Operation {
  return {
    id: 'createManagedKey',
    body(given) {
      const type = textOf(given, 'type') || 'aes256-gcm96';
      const known = keyTypes.find((each) => keyTypeFacts[each].vault?.type === type);
      if (!known) throw invalid(`unknown key type ${type.slice(0, 100)}`);
      if (booleanOf(given, 'convergent_encryption')) {
        throw invalid('convergent encryption is not supported: the same plaintext would show as the same ciphertext');
      }
      refuseExport(given);
      const derived = booleanOf(given, 'derived') ?? false;
      return { name, type: known, derived, keepExisting: true, ...rotationOf(given) };
    },
    answer: () => done,
  };
}

const listRings: Operation = {
  id: 'listManagedKeys',
  query: { limit: '10000' },
  item: ({ name }) => name,
  answer(ours) {
    if ((ours.pagination as JsonObject).hasMore) throw invalid('more keys than can be listed at once: 10000');
    // Cast: `item` wrote names only.
    const keys = (ours.data as WrittenItems<ManagedKey>).parsed().sort();
    return keys.length === 0 ? nothing : found({ keys });
  },
};

function readRing(key: string): Operation {
  return {
    id: 'getManagedKey',
    params: { key },
    answer(ours) {
      const held = ours.key as ManagedKey;
      return held.deletedAt === undefined ? found(keyData(held)) : nothing;
    },
  };
}

function keyData(ring: ManagedKey): object {
  const { type, versions = [] } = ring;
  const encrypts = ring.uses.includes('encrypt');
  const keys: Record<string, unknown> = {};
  for (const { version: n, state, createdAt, publicKey } of versions.toReversed()) {
    if (n < ring.minDecryptVersion || state === 'destroyed') continue;
    keys[n] =
      publicKey === undefined
        ? Math.floor(epochTimeOf(createdAt) / 1000)
        : { certificate_chain: '', creation_time: createdAt, name: publicName(type), ...publicKeyOf(type, publicKey) };
  }
  return {
    allow_plaintext_backup: false,
    auto_rotate_period: ring.rotateAfter ?? 0,
    deletion_allowed: ring.deletionAllowed,
    derived: ring.derived,
    exportable: false,
    imported_key: false,
    ...(ring.derived && { kdf: 'hkdf_sha256', convergent_encryption: false }),
    keys,
    latest_version: ring.latestVersion,
    min_available_version: 0,
    min_decryption_version: ring.minDecryptVersion,
    min_encryption_version: ring.minEncryptVersion,
    name: ring.name,
    soft_deleted: false,
    supports_decryption: encrypts,
    supports_derivation: encrypts,
    supports_encryption: encrypts,
    supports_signing: !encrypts,
    type: keyTypeFacts[type].vault?.type ?? type,
  };
}

/** Go's name of the curve or type, and the public key as PEM, or for Ed25519 as base64 of its 32 bytes. */
function publicName(type: KeyType): string {
  const { kmip } = keyTypeFacts[type];
  return kmip?.curve ?? type;
}

function publicKeyOf(type: KeyType, pem: string): object {
  if (type !== 'ed25519') return { public_key: pem };
  const spki = pemBlock(pem, 'PUBLIC KEY');
  return { public_key: toBase64((spki ?? new Uint8Array(0)).subarray(-32)) };
}

function rotate(key: string): Operation {
  return { id: 'rotateManagedKey', params: { key }, answer: () => done, missing: 'key not found' };
}

function configure(key: string): Operation {
  return {
    id: 'configureManagedKey',
    params: { key },
    body(given) {
      const decrypts = countOf(given, 'min_decryption_version', 'min decryption version cannot be negative');
      const encrypts = countOf(given, 'min_encryption_version', 'min encryption version cannot be negative');
      const deletionAllowed = booleanOf(given, 'deletion_allowed');
      refuseExport(given);
      return {
        ...(decrypts !== undefined && { minDecryptVersion: decrypts }),
        ...(encrypts !== undefined && { minEncryptVersion: encrypts }),
        ...(deletionAllowed !== undefined && { deletionAllowed }),
        ...rotationOf(given),
      };
    },
    answer: () => done,
    missing: `no existing key named ${key.slice(0, 128)} could be found`,
  };
}

function deleteRing(key: string): Operation {
  const missing = `error deleting policy ${key.slice(0, 128)}: could not delete key; not found`;
  return { id: 'deleteManagedKey', params: { key }, body: () => ({ used: true }), answer: () => done, missing };
}

function onItems(
  id: 'encryptWithKey' | 'decryptWithKey' | 'rewrapWithKey',
  key: string,
  own: readonly string[],
): Operation {
  return {
    id,
    params: { key },
    missing: noKey,
    body: (given) => ({ items: (batchOf(given) ?? [given]).map((item) => itemOf(item, own)) }),
    answer(ours, given) {
      const items = ours.items as readonly KeyResult[];
      const batch = batchOf(given);
      const [only] = items;
      if (!batch) {
        const { error } = only ?? {};
        return error === undefined ? found(madeData(only ?? {})) : problem(400, error);
      }
      const batch_results = items.map((made, n) => {
        const item = batch[n];
        const reference = isJsonObject(item) && typeof item.reference === 'string' ? item.reference : '';
        return { ...madeData(made), reference };
      });
      const isWhole = items.every(({ error }) => error === undefined);
      const partial = numberOf(given, 'partial_failure_response_code') ?? 400;
      const takes = partial >= 200 && partial <= 499 && !hasNoBody(partial);
      const status = isWhole ? 200 : takes ? partial : 400;
      return { status, data: { batch_results } };
    },
  };
}

function madeData({ ciphertext, keyVersion, plaintext, error }: KeyResult): object {
  if (error !== undefined) return { error };
  return plaintext === undefined ? { ciphertext, key_version: keyVersion } : { plaintext };
}

function dataKey(key: string, isWrapped: boolean): Operation {
  return {
    id: isWrapped ? 'generateWrappedDataKey' : 'generateDataKey',
    params: { key },
    missing: noKey,
    body(given) {
      const bits = numberOf(given, 'bits');
      const associatedData = textOf(given, 'associated_data');
      const context = textOf(given, 'context');
      const keyVersion = madeVersionOf(given);
      return {
        ...(keyVersion !== undefined && { keyVersion }),
        ...(bits !== undefined && { bits }),
        ...(associatedData !== undefined && { associatedData }),
        ...(context !== undefined && { context }),
      };
    },
    answer: ({ ciphertext, keyVersion, plaintext }) =>
      found({ ciphertext, key_version: keyVersion, ...(!isWrapped && { plaintext }) }),
  };
}

/** The hash may be in the path or in either of two fields. */
function signedOf(given: JsonObject, inPath: string | undefined): object {
  if (!(given.batch_input === undefined || given.batch_input === null)) {
    throw invalid('batch_input is not supported for signatures: send one request for each');
  }
  for (const name of ['context', 'associated_data'] as const) {
    if (textOf(given, name)) throw invalid(`${name} is not supported for signatures: it would not be bound to one`);
  }
  const hash = inPath ?? (textOf(given, 'hash_algorithm') || textOf(given, 'algorithm') || 'sha2-256');
  const known = signingHashes.find((each) => each === hash);
  if (!known) throw invalid(noHash(hash));
  const marshaling = textOf(given, 'marshaling_algorithm') || 'asn1';
  if (marshaling !== 'asn1')
    throw invalid(`marshaling algorithm ${marshaling.slice(0, 100)} is not supported: asn1 is`);
  const input = textOf(given, 'input');
  if (input === undefined) throw invalid('missing input');
  return { input, hash: known, prehashed: booleanOf(given, 'prehashed') ?? false };
}

function noHash(name: string): string {
  return `invalid hash algorithm "${name.slice(0, 100)}"`;
}

function sign(key: string, hash: string | undefined): Operation {
  return {
    id: 'signWithKey',
    params: { key },
    missing: 'signing key not found',
    body(given) {
      const keyVersion = countOf(given, 'key_version', 'requested version for signing is negative') ?? 0;
      return { ...signedOf(given, hash), keyVersion };
    },
    answer: ({ signature, keyVersion }) => found({ signature, key_version: keyVersion }),
  };
}

function verify(key: string, hash: string | undefined): Operation {
  return {
    id: 'verifyWithKey',
    params: { key },
    missing: 'signature verification key not found',
    body(given) {
      const signature = textOf(given, 'signature');
      if (isAbsent(signature)) throw invalid("neither a 'signature' nor an 'hmac' were given to verify");
      return { ...signedOf(given, hash), signature };
    },
    answer: ({ valid }) => found({ valid }),
  };
}
