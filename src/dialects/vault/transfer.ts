// Keys on their way in and out in the transit engine's terms: wrapping_key, import, export and byok-export.

import type { Answer } from '../../api/endpoints.ts';
import type { ManagedKey } from '../../api/managed-keys.ts';
import { concatBytes, fromBase64, toBase64 } from '../../crypto/bytes.ts';
import { ed25519PublicKey } from '../../crypto/ed25519.ts';
import { sec1OfPkcs8 } from '../../crypto/managed/ecdsa.ts';
import { type AsymmetricType, exportTraditional, importKey as keptForm } from '../../crypto/managed/keys.ts';
import { pemBlock, toPem } from '../../crypto/pem.ts';
import { KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { type KeyType, keyTypeFacts } from '../../model/key-types.ts';
import { done, found, invalid, nothing } from './answers.ts';
import { booleanOf, isAbsent, rotationOf, textOf, wordsOf } from './fields.ts';
import { publicText, refuseBackup, typeOf, vaultTypeOf } from './keys.ts';
import type { Operation } from './operation.ts';

export const wrappingKey: Operation = {
  id: 'getWrappingKey',
  answer: ({ publicKey }) => found({ public_key: publicKey }),
};

/** Hashes for OAEP, by their names in Go. */
const oaepHashes: Readonly<Record<string, string>> = {
  SHA1: 'sha1',
  SHA256: 'sha2-256',
  SHA384: 'sha2-384',
  SHA512: 'sha2-512',
};

function oaepHashOf(name: string): string | undefined {
  const upper = name.toUpperCase();
  return Object.hasOwn(oaepHashes, upper) ? oaepHashes[upper] : undefined;
}

function noOaepHash(name: string): string {
  return `unknown hash function: ${name.slice(0, 100)}`;
}

/** The key material in the body, which may be a public key. */
function materialOf(given: JsonObject): object {
  const ciphertext = textOf(given, 'ciphertext');
  const publicKey = textOf(given, 'public_key');
  if (!isAbsent(ciphertext) && !isAbsent(publicKey)) {
    throw invalid('only one of the following fields, ciphertext and public_key, can be set');
  }
  if (!isAbsent(publicKey)) return { publicKey };
  if (isAbsent(ciphertext)) throw invalid('one of the following fields, ciphertext and public_key, must be set');
  const name = textOf(given, 'hash_function') || 'SHA256';
  const hash = oaepHashOf(name);
  if (hash === undefined) throw invalid(noOaepHash(name));
  return { wrapped: ciphertext, hash };
}

/** Messages that Vault or OpenBao encrypted with the same key open here as well. */
export function importKey(key: string): Operation {
  return {
    id: 'importManagedKey',
    params: { key },
    makes: true,
    body(given) {
      if (!isAbsent(given.convergent_encryption)) {
        throw invalid('import cannot be used on keys with convergent encryption enabled');
      }
      refuseBackup(given);
      const rotation = rotationOf(given);
      const rotates = booleanOf(given, 'allow_rotation') ?? false;
      if (rotation.rotateAfter && !rotates) {
        throw invalid('allow_rotation must be set to true if auto-rotation is enabled');
      }
      const uses = wordsOf(given, 'uses');
      return {
        ...materialOf(given),
        ...(uses && { uses }),
        type: typeOf(given, 'unknown key type:'),
        derived: booleanOf(given, 'derived') ?? false,
        exportable: booleanOf(given, 'exportable') ?? false,
        allowPlaintextFormat: 'vault',
        isNewVersion: false,
        ...rotation,
      };
    },
    answer: () => done,
  };
}

export function importVersion(key: string): Operation {
  return {
    id: 'importManagedKey',
    params: { key },
    missing: `no key found with name ${key.slice(0, 128)}; to import a new key, use the import/ endpoint`,
    body(given) {
      if (!isAbsent(given.version)) throw invalid('version: a version is imported once, private key and all');
      return { ...materialOf(given), allowPlaintextFormat: 'vault', isNewVersion: true };
    },
    answer: () => done,
  };
}

/** The versions that a path asks for: all, `latest`, or one, with or without a `v`. Throws `invalid`. */
function versionOf(text: string | undefined): { allVersions: true } | { version: number } {
  if (text === undefined) return { allVersions: true };
  if (text === 'latest') return { version: 0 };
  const number = /^v?([0-9]{1,9})$/.exec(text)?.[1];
  if (number === undefined) throw invalid('invalid key version');
  if (Number(number) === 0) throw invalid('version for export is below minimum decryption version');
  return { version: Number(number) };
}

interface ExportPath {
  readonly key: string;
  readonly version: string | undefined;
}

const exportTypes = ['encryption-key', 'signing-key', 'hmac-key', 'public-key'] as const;
type ExportType = (typeof exportTypes)[number];
const formats = ['', 'raw', 'der', 'pem'] as const;
type Format = (typeof formats)[number];

/** A string is the reason for a refusal. */
export function exportKey(
  what: string,
  { key, version, format: wanted }: ExportPath & { readonly format: string },
): Operation | string {
  const type = exportTypes.find((each) => each === what);
  if (!type) return `invalid export type: ${what.slice(0, 100)}`;
  const format = formats.find((each) => each === wanted);
  if (format === undefined) return `invalid format: ${wanted.slice(0, 100)}`;
  if (type === 'public-key') return exportPublic({ key, version }, format);
  return {
    id: 'exportManagedKey',
    params: { key },
    body: () => ({ plaintext: true, ...versionOf(version) }),
    answer(ours) {
      // Cast: the endpoint's answer.
      const exported = ours as Answer<'exportManagedKey'>;
      needPurpose(exported.type, type);
      return exportAnswer(exported, ({ plaintext = '' }) => privateText(exported.type, plaintext, format));
    },
  };
}

/** The keys by version. */
function exportAnswer(
  { name, type, version, versions, ...only }: Answer<'exportManagedKey'>,
  text: (version: { readonly plaintext?: string; readonly wrapped?: string }) => string,
) {
  const all = versions ?? [{ version, ...only }];
  const keys = Object.fromEntries(all.map((each) => [each.version, text(each)]));
  return found({ keys, name, type: vaultTypeOf(type) });
}

function needPurpose(type: KeyType, wanted: Exclude<ExportType, 'public-key'>): void {
  const { purposes } = keyTypeFacts[type];
  const can = (use: 'encrypt' | 'sign' | 'mac') => purposes.some(({ possible }) => possible.includes(use));
  if (wanted === 'encryption-key' && !can('encrypt')) throw invalid('encryption not supported for the key');
  if (wanted === 'signing-key' && !can('sign')) throw invalid('signing not supported for the key');
  if (wanted === 'hmac-key' && !can('mac')) throw invalid('HMAC not supported for the key: it has no key for that');
}

/** A private or secret key as OpenBao writes it. `exported` is base64 of its bytes, or of PKCS #8. */
function privateText(type: KeyType, exported: string, format: Format): string {
  const { isAsymmetric } = keyTypeFacts[type];
  if (!isAsymmetric) {
    if (format === '' || format === 'raw') return exported;
    throw invalid('unknown key format for a symmetric key; supported values are `` or `raw`');
  }
  if (format === 'der') return exported;
  const pkcs8 = fromBase64(exported);
  if (!pkcs8) throw new KmsError('internal', 'expected an exported key in base64');
  const isRsa = type.startsWith('rsa-');
  if (format === 'pem') return trimmed(toPem('PRIVATE KEY', pkcs8), isRsa);
  if (type === 'ed25519') {
    const seed = keptForm(type, 'der', pkcs8, noRandom);
    return toBase64(concatBytes(seed, ed25519PublicKey(seed)));
  }
  if (format === 'raw') throw noRaw(type);
  return traditional(type as AsymmetricType, pkcs8, isRsa);
}

function traditional(type: AsymmetricType, pkcs8: Uint8Array, isRsa: boolean): string {
  switch (type) {
    case 'rsa-2048':
    case 'rsa-3072':
    case 'rsa-4096':
      return toPem('RSA PRIVATE KEY', exportTraditional(type, pkcs8));
    case 'ecdsa-p256':
    case 'ecdsa-p384':
    case 'ecdsa-p521':
    case 'ecdsa-secp256k1':
      return trimmed(toPem('EC PRIVATE KEY', sec1OfPkcs8(type, pkcs8)), isRsa);
    default:
      return trimmed(toPem('PRIVATE KEY', pkcs8), isRsa);
  }
}

function noRaw(type: KeyType): KmsError {
  const kind = type.startsWith('rsa-') ? 'rsa' : type.startsWith('ecdsa-') ? 'ec' : type;
  return invalid(`unknown key format for ${kind} key; supported values are \`\`, \`der\`, or \`pem\``);
}

/** OpenBao ends the PEM of RSA keys with a line end, and no other. */
function trimmed(pem: string, isRsa: boolean): string {
  return isRsa ? pem : pem.trimEnd();
}

function noRandom(): never {
  throw new KmsError('internal', 'a key that was exported is not tried again');
}

/** Public keys need no more than the flag to read the key. */
function exportPublic({ key, version }: ExportPath, format: Format): Operation {
  return {
    id: 'getManagedKey',
    params: { key },
    answer(ours) {
      // Cast: the endpoint's answer.
      const held = ours.key as ManagedKey;
      if (held.deletedAt !== undefined) return nothing;
      const { type } = held;
      if (!keyTypeFacts[type].isAsymmetric) {
        throw invalid(`unknown key type ${vaultTypeOf(type)} for export type public-key`);
      }
      const asked = versionOf(version);
      const one = 'version' in asked ? asked.version || held.latestVersion : undefined;
      if (one !== undefined && one < held.minDecryptVersion) {
        throw invalid('version for export is below minimum decryption version');
      }
      const keys: Record<string, string> = {};
      for (const { version: n, publicKey, state } of (held.versions ?? []).toReversed()) {
        const isMeant = one === undefined ? n >= held.minDecryptVersion : n === one;
        if (isMeant && publicKey !== undefined && state !== 'destroyed') keys[n] = publicForm(type, publicKey, format);
      }
      if (Object.keys(keys).length === 0) throw invalid('version does not exist or cannot be found');
      return found({ keys, name: held.name, type: vaultTypeOf(type) });
    },
  };
}

function publicForm(type: KeyType, pem: string, format: Format): string {
  const isRsa = type.startsWith('rsa-');
  if (type === 'ed25519' && (format === '' || format === 'raw')) return publicText(type, pem);
  if (format === 'raw') throw noRaw(type);
  if (format !== 'der') return trimmed(pem, isRsa);
  const spki = pemBlock(pem, 'PUBLIC KEY');
  if (!spki) throw new KmsError('internal', 'expected a public key in PEM');
  return toBase64(spki);
}

/** Wrapped to the public key of another key, as it can be imported. A string is the reason for a refusal. */
export function byokExport(
  toKey: string,
  { key, version, hash: name }: ExportPath & { readonly hash: string },
): Operation | string {
  const hash = oaepHashOf(name);
  if (hash === undefined) return noOaepHash(name);
  return {
    id: 'exportManagedKey',
    params: { key },
    missing: 'no such source key for export',
    body: () => ({ toKey, hash, wrapping: 'oaep-kwp', ...versionOf(version) }),
    answer: (ours) => exportAnswer(ours as Answer<'exportManagedKey'>, ({ wrapped = '' }) => wrapped),
  };
}
