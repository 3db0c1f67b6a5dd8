// The format of a backup file, version 1, and its self-description: in clear the files with their digests and the
// required keys, sealed the counts that a restored appliance must have. Read strictly, since the file is untrusted. See
// docs/backup-format.md.
//
//   file = header 32 | part* | end
//   part = 1 | name length u16 | name | length u64 | bytes
//   end  = 0 | manifest length u32 | manifest | sealed length u32 | nonce 24 | sealed summary | hash
//   hash = SHA-256 of all but the parts' bytes

import { setImmediate } from 'node:timers/promises';
import { equalBytes, fromUtf8, toHex, utf8 } from '../crypto/bytes.ts';
import { KmsError, systemCode } from '../errors.ts';
import { isCount, isHex, isJsonObject, jsonOf } from '../model/json.ts';
import { parseTimestamp } from '../model/timestamp.ts';
import type { Files } from '../store/files.ts';

const formatVersion = 1;
export const headerLength = 32;
export const nonceLength = 24;
export const digestLength = 32;
export const partMark = 1;
export const endMark = 0;
/** Bytes in the head of a part, without its name. */
export const partHeadLength = 1 + 2 + 8;
export const summaryLabel = utf8('kms/backup/v1');

const magic = utf8('KMS-BKUP');
/** Limit of a manifest in bytes: it names each file in about 150 bytes. */
export const longestManifest = 64 * 1024 * 1024;
/** Limit of parts, as many as a manifest can name. */
export const mostParts = 500_000;

/** magic 8 | version u16 | zero u16 | appliance id 16 | zero u32. */
export function encodeHeader(applianceId: string): Uint8Array {
  const bytes = new Uint8Array(headerLength);
  bytes.set(magic);
  new DataView(bytes.buffer).setUint16(8, formatVersion);
  bytes.set(Uint8Array.fromHex(applianceId), 12);
  return bytes;
}

/** Returns the appliance's id. */
export function decodeHeader(name: string, bytes: Uint8Array): string {
  if (bytes.length < headerLength || !equalBytes(bytes.subarray(0, 8), magic)) {
    throw new KmsError('corrupt', `${name}: this is not a backup of kms`, {
      hint: 'give a file that `kms backup create` made',
    });
  }
  const version = new DataView(bytes.buffer, bytes.byteOffset).getUint16(8);
  if (version > formatVersion) {
    throw new KmsError('refused', `${name}: backup format ${version}, this program reads up to ${formatVersion}`, {
      hint: 'it was made by a newer kms, or is damaged: use that program',
    });
  }
  if (version !== formatVersion || bytes.subarray(10, 12).some(Boolean) || bytes.subarray(28, 32).some(Boolean)) {
    throw damaged(name, 'its header is malformed');
  }
  return toHex(bytes.subarray(12, 28));
}

export function partHead(name: string, length: number): Uint8Array {
  const text = utf8(name);
  const bytes = new Uint8Array(partHeadLength + text.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, partMark);
  view.setUint16(1, text.length);
  bytes.set(text, 3);
  view.setBigUint64(3 + text.length, BigInt(length));
  return bytes;
}

export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

export function damaged(name: string, what: string): KmsError {
  return new KmsError('corrupt', `${name}: the backup is damaged: ${what}`, {
    hint: 'use another backup; nothing was changed',
  });
}

export interface ManifestFile {
  /** Path within the data directory. */
  readonly name: string;
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

export interface ManifestStore {
  /** Its directory within the data directory. */
  readonly dir: string;
  /** In hexadecimal. */
  readonly uid: string;
  /** Number of transactions at the commit; absent for a store that was not open. */
  readonly sequence?: number;
  readonly files: readonly ManifestFile[];
}

export interface Manifest {
  readonly format: 'kms-backup';
  readonly version: 1;
  /** Version of the program that made it. */
  readonly program: string;
  /** RFC 3339. */
  readonly createdAt: string;
  /** The appliance's id. */
  readonly appliance: string;
  /** The fingerprint of the master key. */
  readonly master: string;
  /** Custodians of the master key, any of which opens the backup. */
  readonly custodians: readonly { readonly kind: string; readonly fingerprint: string }[];
  /** Epoch of the key of the appliance's own store that seals the summary. */
  readonly keyEpoch: number;
  readonly seal: ManifestFile;
  readonly stores: readonly ManifestStore[];
  /** Activity log segments that were missing or known to be changed; absent if there were none. */
  readonly faulty?: readonly string[];
}

/** By store directory; only for stores that were open. */
export type Summary = Readonly<Record<string, StoreSummary>>;

export interface StoreSummary {
  readonly tables: Readonly<Record<string, number>>;
  readonly activity: { readonly seq: number; readonly hash: string };
}

/** Undefined if it is not a valid manifest. */
export function readManifest(value: unknown): Manifest | undefined {
  if (!isJsonObject(value)) return undefined;
  const { format, version, program, createdAt, appliance, master, custodians, keyEpoch, seal, stores, faulty } = value;
  if (format !== 'kms-backup' || version !== 1 || typeof program !== 'string') return undefined;
  if (typeof createdAt !== 'string' || parseTimestamp(createdAt) === undefined) return undefined;
  if (!isHex(appliance, 32) || !isHex(master, 16) || !isCount(keyEpoch)) return undefined;
  if (!Array.isArray(custodians) || !Array.isArray(stores)) return undefined;
  const sealRead = readFile(seal);
  const custodiansRead = custodians.map(readCustodian).filter((each) => each !== undefined);
  const storesRead = stores.map(readStore).filter((each) => each !== undefined);
  if (!sealRead || custodiansRead.length !== custodians.length || storesRead.length !== stores.length) return undefined;
  return {
    format,
    version,
    program,
    createdAt,
    appliance,
    master,
    custodians: custodiansRead,
    keyEpoch,
    seal: sealRead,
    stores: storesRead,
    ...(isTexts(faulty) && faulty.length > 0 ? { faulty } : {}),
  };
}

function readCustodian(value: unknown): Manifest['custodians'][number] | undefined {
  if (!isJsonObject(value)) return undefined;
  const { kind, fingerprint } = value;
  return typeof kind === 'string' && typeof fingerprint === 'string' ? { kind, fingerprint } : undefined;
}

function readStore(value: unknown): ManifestStore | undefined {
  if (!isJsonObject(value)) return undefined;
  const { dir, uid, sequence, files } = value;
  if (!isStoreDir(dir) || !isHex(uid, 32) || !Array.isArray(files)) return undefined;
  const read = files.map(readFile).filter((file) => file !== undefined);
  if (read.length !== files.length || !read.every(({ name }) => isFileOf(dir, name))) return undefined;
  if (sequence === undefined) return { dir, uid, files: read };
  return isCount(sequence) ? { dir, uid, sequence, files: read } : undefined;
}

function readFile(value: unknown): ManifestFile | undefined {
  if (!isJsonObject(value)) return undefined;
  const { name, bytes, sha256 } = value;
  return typeof name === 'string' && isCount(bytes) && isHex(sha256, 64) ? { name, bytes, sha256 } : undefined;
}

/** `system`, or the random name of a tenant's directory: nothing outside the data directory. */
export function isStoreDir(value: unknown): value is string {
  return typeof value === 'string' && /^(?:system|tenants\/[0-9a-f]{16})$/.test(value);
}

/** Whether the name is that of a store's file. */
function isFileOf(dir: string, name: string): boolean {
  return name.startsWith(`${dir}/`) && /^(?:snapshot|log|activity)-[0-9]{10,12}\.kms$/.test(name.slice(dir.length + 1));
}

/** Whether the file is a segment of the activity log. */
export function isSegment({ name }: { readonly name: string }): boolean {
  return /\/activity-[0-9]{12}\.kms$/.test(name);
}

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/** Undefined if the bytes are not JSON. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = fromUtf8(bytes);
  return text === undefined ? undefined : jsonOf(text);
}

/** Small, so that hashing a piece on the serving thread takes about a millisecond. */
export const pieceLength = 128 * 1024;

/**
 * A file's bytes from `from` up to offset `bytes`. Throws `unavailable` if the file is shorter, `corrupt` if it is
 * missing.
 */
export async function* pieces(
  files: Pick<Files, 'readAt'>,
  name: string,
  bytes: number,
  from = 0,
): AsyncGenerator<Uint8Array> {
  for (let offset = from; offset < bytes; ) {
    const piece = await files.readAt(name, offset, Math.min(pieceLength, bytes - offset)).catch((cause: unknown) => {
      if (systemCode(cause) !== 'ENOENT') throw cause;
      throw new KmsError('corrupt', `${name}: the file is missing`, { hint: 'see what `kms doctor` says', cause });
    });
    if (piece.length === 0) {
      throw new KmsError('unavailable', `${name}: the file became shorter while it was copied`, { hint: 'try again' });
    }
    offset += piece.length;
    yield piece;
    await setImmediate();
  }
}
