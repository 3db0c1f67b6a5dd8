// The files of a store: the keys that seal them, their names, and the 64-byte clear header of every snapshot and log,
// which each kind authenticates in its own way.

import { equalBytes, utf8 } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import type { WholeFiles } from './files.ts';

export type StoreKeyLabel = 'log' | 'snapshot' | 'activity';

export interface StoreKeys {
  /** The epoch of the key for new files. Fits 16 bits. */
  readonly epoch: number;
  /**
   * The 32-byte key for `label` in `epoch` (default: the current one). Throws `not-found` for an epoch whose key is not
   * held.
   */
  key(label: StoreKeyLabel, epoch?: number): Uint8Array;
}

interface StoreFiles {
  /** Generations, ascending. */
  readonly snapshots: readonly number[];
  readonly logs: readonly number[];
  /** Temporary files that a crash left while files were being replaced. */
  readonly leftovers: readonly string[];
}

const pattern = /^(snapshot|log)-([0-9]{10,12})\.kms$/;

export function snapshotName(dir: string, generation: number): string {
  return `${dir}/snapshot-${String(generation).padStart(10, '0')}.kms`;
}

export function logName(dir: string, generation: number): string {
  return `${dir}/log-${String(generation).padStart(10, '0')}.kms`;
}

/** Lists the snapshots, logs and leftovers in `dir`; other files are not the store's and are left alone. */
export async function listStoreFiles(files: Pick<WholeFiles, 'list'>, dir: string): Promise<StoreFiles> {
  const snapshots: number[] = [];
  const logs: number[] = [];
  const leftovers: string[] = [];
  for (const name of await files.list(dir)) {
    const match = pattern.exec(name);
    if (match) (match[1] === 'log' ? logs : snapshots).push(Number(match[2]));
    else if (name.endsWith('.tmp')) leftovers.push(`${dir}/${name}`);
  }
  const ascending = (a: number, b: number) => a - b;
  return { snapshots: snapshots.sort(ascending), logs: logs.sort(ascending), leftovers };
}

export const headerLength = 64;
export const uidLength = 16;
export const nonceLength = 24;
export const tagLength = 16;

export const formatVersion = 1;
/** XChaCha20-Poly1305. */
const cipherId = 1;
const magics = { log: utf8('KMS-LOGF'), snapshot: utf8('KMS-SNAP') };

export interface FileHeader {
  readonly epoch: number;
  /** The store's own 16 random bytes. */
  readonly uid: Uint8Array;
  readonly generation: number;
  /** Number of transactions made durable before this file (a log) or up to it (a snapshot). */
  readonly sequence: number;
  /** The tag of the last record, or log header, before this file or up to it. */
  readonly chain: Uint8Array;
}

/** magic 8 | version u16 | cipher u16 | epoch u16 | zero u16 | uid 16 | generation u64 | sequence u64 | chain 16. */
export function encodeFileHeader(kind: 'log' | 'snapshot', header: FileHeader): Uint8Array {
  const bytes = new Uint8Array(headerLength);
  const view = new DataView(bytes.buffer);
  bytes.set(magics[kind]);
  view.setUint16(8, formatVersion);
  view.setUint16(10, cipherId);
  view.setUint16(12, header.epoch);
  bytes.set(header.uid, 16);
  view.setBigUint64(32, BigInt(header.generation));
  view.setBigUint64(40, BigInt(header.sequence));
  bytes.set(header.chain, 48);
  return bytes;
}

/** Decodes a header from `encodeFileHeader`. Nothing in it is verified yet. */
export function decodeFileHeader(kind: 'log' | 'snapshot', name: string, bytes: Uint8Array): FileHeader {
  if (bytes.length < headerLength) throw corrupt(name, bytes.length, 'the file ends inside its header');
  if (!equalBytes(bytes.subarray(0, 8), magics[kind])) throw corrupt(name, 0, `this is no ${kind} file`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint16(8);
  if (version !== formatVersion) {
    throw corrupt(
      name,
      8,
      `format version ${version}, this program reads ${formatVersion}: damaged, or written by a newer one`,
    );
  }
  if (view.getUint16(10) !== cipherId) throw corrupt(name, 10, `unknown cipher ${view.getUint16(10)}`);
  return {
    epoch: view.getUint16(12),
    uid: bytes.slice(16, 32),
    generation: Number(view.getBigUint64(32)),
    sequence: Number(view.getBigUint64(40)),
    chain: bytes.slice(48, 64),
  };
}

/** The key that a header names. Throws `corrupt` if it is not held. */
export function keyOf(keys: StoreKeys, label: StoreKeyLabel, epoch: number, name: string): Uint8Array {
  try {
    return keys.key(label, epoch);
  } catch (cause) {
    if (cause instanceof KmsError && cause.code === 'not-found') {
      throw corrupt(name, 12, `sealed under key epoch ${epoch}, which is not held`);
    }
    throw cause;
  }
}

export function corrupt(name: string, offset: number, what: string): KmsError {
  return new KmsError('corrupt', `${name} at offset ${offset}: ${what}`, {
    hint: 'nothing was changed; keep a copy of the data directory, check the disk for faults, and restore from a backup',
  });
}
