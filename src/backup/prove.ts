// Proves that a backup restores: every store in it is recovered into memory and compared with the appliance's
// description of it from when the backup was made.
import { KmsError } from '../errors.ts';
import { systemDir, tenantDir } from '../platform/data-dir.ts';
import { type CheckedStore, checkStore } from '../store/check.ts';
import type { Files } from '../store/files.ts';
import type { ChainHead } from '../store/port.ts';
import type { StoreKeys } from '../store/store-files.ts';
import { systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';
import type { StoreSummary, Summary } from './format.ts';

interface Proving {
  /** The files of the stores: a backup or a data directory. */
  readonly files: Files;
  readonly wasm: Uint8Array;
  keysOf(dir: string): StoreKeys;
  /** Called with each store once it is proven. */
  readonly onStore?: ((dir: string, checked: CheckedStore) => void) | undefined;
  /** The point up to which a store's activity log was verified a moment ago. */
  readonly from?: ((dir: string) => ChainHead | undefined) | undefined;
}

/** Facts about a store known beforehand. */
export interface ExpectedStore {
  readonly dir: string;
  /** In hexadecimal. */
  readonly uid?: string;
  readonly sequence?: number;
}

export interface Proof {
  readonly stores: number;
  /** Transactions in all stores. */
  readonly transactions: number;
  /** Records of activity in all stores. */
  readonly activities: number;
  /** Rows in all stores. */
  readonly rows: number;
  /** Faulty segments of the activity log, with the reason: their records are missing, all else restores. */
  readonly lacks: readonly string[];
}

/** Throws `corrupt` if anything but a segment of the activity log differs or does not verify. */
export async function proveStores(
  { files, wasm, keysOf, onStore, from }: Proving,
  stores: readonly ExpectedStore[],
  summary: Summary,
): Promise<Proof> {
  let proof: Proof = { stores: 0, transactions: 0, activities: 0, rows: 0, lacks: [] };
  const dirs = new Set(stores.map(({ dir }) => dir));
  for (const expected of stores) {
    const { dir } = expected;
    const isSystem = dir === systemDir;
    const checked = await checkStore(
      { files, dir, keys: keysOf(dir), wasm, migrations: isSystem ? systemMigrations : tenantMigrations },
      isSystem ? () => 'SELECT dir, deleted_at FROM tenants' : undefined,
      from?.(dir),
    );
    compare(expected, summary[dir], checked);
    if (isSystem) compareTenants(dirs, checked.rows);
    onStore?.(dir, checked);
    proof = {
      stores: proof.stores + 1,
      transactions: proof.transactions + checked.mark.sequence,
      activities: proof.activities + checked.activity.seq - (checked.dropped?.seq ?? 0),
      rows: proof.rows + Object.values(checked.tables).reduce((sum, count) => sum + count, 0),
      lacks: [...proof.lacks, ...checked.faults.map(({ path, problem }) => `${path} ${problem}`)],
    };
  }
  if (!dirs.has(systemDir)) throw differs(systemDir, "the appliance's own store", 'missing', 'there');
  return proof;
}

/** Throws `corrupt` for a proof that lacks records. `what` names the backup. */
export function needWhole({ lacks: [first, ...others] }: Proof, what: string): void {
  if (first === undefined) return;
  const more = others.length > 0 ? `, and ${others.length} more are missing or changed` : '';
  throw new KmsError('corrupt', `${what}: activity segment ${first}${more}`, {
    hint: 'all else in it restores: put the segment back from an older backup, or use this one where there is no better one',
  });
}

/** A standby's message about segments that a proof found missing or changed; undefined if there are none. */
export function lackOf({ lacks: [first, ...others] }: Proof): string | undefined {
  if (first === undefined) return undefined;
  const more = others.length > 0 ? `, and ${others.length} more are missing or changed` : '';
  return (
    `the copy lacks activity segment ${first}${more}; all else in it opens, and a segment that is right there again is ` +
    'fetched: put it back there from a backup of the appliance, or from its data directory'
  );
}

function compare(
  { dir, uid, sequence }: ExpectedStore,
  summary: StoreSummary | undefined,
  checked: CheckedStore,
): void {
  if (uid !== undefined && checked.uid !== uid) throw differs(dir, 'the id', checked.uid, uid);
  if (sequence !== undefined && checked.mark.sequence !== sequence) {
    throw differs(dir, 'the number of transactions', checked.mark.sequence, sequence);
  }
  if (!summary) return;
  const names = new Set([...Object.keys(summary.tables), ...Object.keys(checked.tables)]);
  for (const name of names) {
    const [found, wanted] = [checked.tables[name] ?? 'none', summary.tables[name] ?? 'none'];
    if (found !== wanted) throw differs(dir, `the number of ${name}`, found, wanted);
  }
  const { activity } = summary;
  if (checked.activity.seq !== activity.seq) {
    throw differs(dir, 'the number of activity records', checked.activity.seq, activity.seq);
  }
  if (checked.activity.hash !== activity.hash) {
    throw differs(dir, 'the hash of the last activity record', checked.activity.hash, activity.hash);
  }
}

/** Checks that every tenant has its store; a deleted tenant may be half erased. */
function compareTenants(dirs: ReadonlySet<string>, rows: CheckedStore['rows']): void {
  const known = rows.map((row) => ({ dir: tenantDir(String(row.dir)), deleted: row.deleted_at !== null }));
  for (const { dir, deleted } of known) {
    if (!deleted && !dirs.has(dir)) throw differs(dir, 'the store of a tenant', 'missing', 'there');
  }
}

function differs(dir: string, what: string, found: string | number, wanted: string | number): KmsError {
  return new KmsError('corrupt', `${dir}: ${what} is ${found}, expected ${wanted}`, {
    hint: 'do not rely on this backup; make another one',
  });
}
