// What a backup says of itself: in clear the files with their digests and the keys that it needs, sealed the counts that a
// restored appliance must have. Read strictly, since it comes from a file.
import { isObject } from './json.ts';

export interface ManifestFile {
  /** Within the data directory. */
  readonly name: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export interface ManifestStore {
  /** Its directory within the data directory. */
  readonly dir: string;
  /** Hexadecimal. */
  readonly uid: string;
  /** Transactions up to the commit; absent for a store that was not open. */
  readonly sequence?: number;
  readonly files: readonly ManifestFile[];
}

export interface Manifest {
  readonly format: 'kms-backup';
  readonly version: 1;
  /** The program that made it. */
  readonly program: string;
  /** RFC 3339. */
  readonly createdAt: string;
  /** The appliance's id. */
  readonly appliance: string;
  /** The fingerprint of the master key. */
  readonly master: string;
  /** The custodians of it, any of which opens the backup. */
  readonly custodians: readonly { readonly kind: string; readonly fingerprint: string }[];
  /** Which key of the appliance's own store the summary is sealed with. */
  readonly keyEpoch: number;
  readonly seal: ManifestFile;
  readonly stores: readonly ManifestStore[];
}

/** By store directory; only stores that were open have one. */
export type Summary = Readonly<Record<string, StoreSummary>>;

export interface StoreSummary {
  readonly tables: Readonly<Record<string, number>>;
  readonly activity: { readonly seq: number; readonly hash: string };
}

/** Undefined for anything but a manifest. */
export function readManifest(value: unknown): Manifest | undefined {
  if (!isObject(value)) return undefined;
  const { format, version, program, createdAt, appliance, master, custodians, keyEpoch, seal, stores } = value;
  if (format !== 'kms-backup' || version !== 1 || typeof program !== 'string') return undefined;
  if (typeof createdAt !== 'string' || Number.isNaN(Date.parse(createdAt))) return undefined;
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
  };
}

function readCustodian(value: unknown): Manifest['custodians'][number] | undefined {
  if (!isObject(value)) return undefined;
  const { kind, fingerprint } = value;
  return typeof kind === 'string' && typeof fingerprint === 'string' ? { kind, fingerprint } : undefined;
}

function readStore(value: unknown): ManifestStore | undefined {
  if (!isObject(value)) return undefined;
  const { dir, uid, sequence, files } = value;
  if (!isStoreDir(dir) || !isHex(uid, 32) || !Array.isArray(files)) return undefined;
  const read = files.map(readFile).filter((file) => file !== undefined);
  if (read.length !== files.length || !read.every(({ name }) => isFileOf(dir, name))) return undefined;
  if (sequence === undefined) return { dir, uid, files: read };
  return isCount(sequence) ? { dir, uid, sequence, files: read } : undefined;
}

function readFile(value: unknown): ManifestFile | undefined {
  if (!isObject(value)) return undefined;
  const { name, bytes, sha256 } = value;
  return typeof name === 'string' && isCount(bytes) && isHex(sha256, 64) ? { name, bytes, sha256 } : undefined;
}

/** `system`, or the random name of a tenant's directory: nothing that leads out of the data directory. */
export function isStoreDir(value: unknown): value is string {
  return typeof value === 'string' && /^(?:system|tenants\/[0-9a-f]{16})$/.test(value);
}

/** A file that a store is made of. */
export function isFileOf(dir: string, name: string): boolean {
  return name.startsWith(`${dir}/`) && /^(?:snapshot|log|activity)-[0-9]{10,12}\.kms$/.test(name.slice(dir.length + 1));
}

function isHex(value: unknown, digits: number): value is string {
  return typeof value === 'string' && value.length === digits && /^[0-9a-f]+$/.test(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
