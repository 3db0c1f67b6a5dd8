// Every store, proven from its files: each seal opened, the database checked, the activity log's chain followed from
// the first record to the last; and the records' evidence about clock and backups. For a running appliance this runs on
// a worker thread, over held files. Changes nothing.
import { rmSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readVerified } from '../backup/verified-backup.ts';
import { KmsError } from '../errors.ts';
import { epochTimeOf } from '../model/timestamp.ts';
import { sealName, systemDir, tenantDir, witnessFile } from '../platform/data-dir.ts';
import { listedFiles } from '../platform/file-ports.ts';
import { type Examination, type Examined, type Find, Findings } from '../platform/finding.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { type KeysAsData, keysFromData } from '../platform/threads/jobs.ts';
import { marksQuery } from '../storage/read-stores.ts';
import { type Noted, olderThanNoted } from '../storage/rollback-guard.ts';
import type { StoreOf } from '../storage/stores.ts';
import { type CheckedStore, checkStore } from '../store/check.ts';
import type { Files } from '../store/files.ts';
import type { HeldFile, SegmentProblem } from '../store/port.ts';
import { type MarkRow, marksOf } from '../store/tables/marks.ts';
import { systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';

interface StoresToExamine {
  readonly files: Files;
  readonly wasm: Uint8Array;
  readonly stores: readonly StoreOf[];
  /** The log positions noted beside the stores; absent if the stores are being written to, and so are not compared. */
  readonly rollbackNotes?: () => Promise<Noted | undefined>;
  /** In epoch milliseconds. */
  readonly now: number;
}

const minute = 60_000;
const day = 24 * 60 * minute;
const oldBackup = 7 * day;
const restore = 'keep a copy of the data directory, check the disk for faults, and restore from a backup';

/** Tenants, the note of the last verified backup, and the log position of each tenant's store. */
const query = (schema: number): string =>
  `SELECT dir, CASE WHEN deleted_at IS NULL THEN name ELSE id END AS name, deleted_at,
  NULL AS backup, NULL AS sequence, NULL AS runs, NULL AS noted_at FROM tenants
UNION ALL SELECT NULL, NULL, NULL, value, NULL, NULL, NULL FROM settings WHERE name = 'backup'
UNION ALL SELECT dir, NULL, NULL, NULL, sequence, runs, noted_at FROM (${marksQuery(schema)})`;

/** Names shown of each kind. */
const mostNamed = 5;
/** Client certificates are reported from this long before their end until this long after. */
const endsSoon = 14 * day;
const endedLately = 3 * day;

/** A tenant's rings that a quantum computer could open: their number, and the first names. */
const queryRings = `SELECT * FROM (SELECT 'ring' AS kind, count(*) OVER () AS n, display_name AS name, NULL AS ends
  FROM rings WHERE service = 'ks' AND kem = 'x25519' AND deleted_at IS NULL ORDER BY seq LIMIT ${mostNamed})`;

/** The same of API keys that are proved by a certificate or authority at its end: the first to end. */
const queryProofs = (now: number): string =>
  `SELECT * FROM (SELECT 'proof', count(*) OVER (), CASE k.name WHEN '' THEN k.id ELSE k.name END,
    json_extract(p.settings, '$.notAfter') AS ends FROM api_key_proofs p JOIN api_keys k ON k.id = p.apikey_id
    WHERE p.kind = 'certificate' AND p.active = 1 AND k.active = 1
    AND json_extract(p.settings, '$.notAfter') BETWEEN ${Math.floor(now - endedLately)} AND ${Math.floor(now + endsSoon)}
    ORDER BY ends LIMIT ${mostNamed})`;

/** Proofs by client certificates that are compared with those of other tenants. */
const mostCompared = 10_000;

/** When each was made, its API key, and the certificates that it is for. */
const queryCertificates = `SELECT * FROM (SELECT 'certificate', p.created_at, CASE k.name WHEN '' THEN k.id ELSE k.name END,
  p.subject || ' ' || ifnull(json_extract(p.settings, '$.san') || json_extract(p.settings, '$.fingerprint'), '')
  FROM api_key_proofs p JOIN api_keys k ON k.id = p.apikey_id WHERE p.kind = 'certificate'
  ORDER BY p.seq LIMIT ${mostCompared})`;

/** The first schema with proofs. */
const proofsSince = 4;

const queryTenant =
  (now: number) =>
  (schema: number): string => {
    if (schema === 0) return 'SELECT 0 WHERE 0';
    return schema < proofsSince ? queryRings : [queryRings, queryProofs(now), queryCertificates].join(' UNION ALL ');
  };

export async function examineStores(
  { files, wasm, stores, rollbackNotes, now }: StoresToExamine,
  find: Find,
): Promise<Examined> {
  let activities = 0;
  let dropped = 0;
  const there = new Set<string>();
  const sound = new Map<string, CheckedStore>();
  for (const { dir, keys } of stores) {
    const isSystem = dir === systemDir;
    const migrations = isSystem ? systemMigrations : tenantMigrations;
    let checked: CheckedStore;
    try {
      checked = await checkStore({ files, dir, keys, wasm, migrations }, isSystem ? query : queryTenant(now));
    } catch (error) {
      // A deleted tenant's store may already be erased.
      if (error instanceof KmsError && error.code === 'not-found' && !isSystem) continue;
      there.add(dir);
      findFault(dir, error, find);
      continue;
    }
    there.add(dir);
    const gone = checked.dropped?.seq ?? 0;
    activities += checked.activity.seq - gone;
    dropped += gone;
    for (const fault of checked.faults) findSegment(fault, find);
    if (checked.torn > 0) {
      const message = `the log ends in ${checked.torn} bytes of a write that was never acknowledged`;
      find('advice', 'torn-tail', dir, message, 'nothing: the next start cuts them off');
    }
    if (checked.schema < migrations.length) {
      const message = `its schema is version ${checked.schema}, this program's ${migrations.length}`;
      find('advice', 'migration-due', dir, message, 'nothing: the next start brings it up, after a backup');
    }
    const ahead = (checked.lastActivityAt ?? 0) - now;
    if (ahead > 5 * minute) {
      const message = `the clock is ${Math.round(ahead / minute)} minutes behind the last activity`;
      find('error', 'clock-behind', dir, message, 'set the clock; sessions and backups go by it');
    }
    sound.set(dir, checked);
  }
  const system = sound.get(systemDir);
  if (system) await examineRecords(system, there, now, find);
  if (system) examineTenants(sound, system, find);
  if (system) examineShared(sound, system, find);
  if (system && rollbackNotes) await examineAges(sound, system, rollbackNotes, find);
  return { stores: stores.length, activities, dropped };
}

export function findSegment({ path, problem }: Pick<SegmentProblem, 'path' | 'problem'>, find: Find): void {
  const name = problem === 'is missing' ? 'segment-missing' : 'segment-damaged';
  const advice = `put ${path} back from a backup in which it is intact; everything else goes on without it`;
  find('error', name, path, `this segment of the activity log ${problem}`, advice);
}

/** For copies of sealed files from elsewhere: a temporary directory private to this process. */
export async function withCopies<R>(run: (root: string) => Promise<R>): Promise<R> {
  const root = await mkdtemp(join(tmpdir(), 'kms-doctor-'));
  const leave = (): void => rmSync(root, { recursive: true, force: true });
  process.once('exit', leave);
  try {
    return await run(root);
  } finally {
    process.off('exit', leave);
    await rm(root, { recursive: true, force: true });
  }
}

export function findFault(dir: string, error: unknown, find: Find): void {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof KmsError ? error.hint : undefined;
  if (/schema version|newer/.test(message)) {
    find('error', 'newer-format', dir, message, 'use the newer program that wrote it');
  } else if (/activity (log|record)/.test(message)) {
    find('error', 'broken-chain', dir, message, restore);
  } else {
    find('error', 'damaged', dir, message, hint ?? restore);
  }
}

async function examineRecords(
  { rows }: CheckedStore,
  there: ReadonlySet<string>,
  now: number,
  find: Find,
): Promise<void> {
  let noted: string | undefined;
  for (const { dir, name, deleted_at: deletedAt, backup } of rows) {
    if (typeof backup === 'string') noted = backup;
    if (typeof dir !== 'string' || name === null || deletedAt !== null || there.has(tenantDir(dir))) continue;
    find('error', 'store-missing', tenantDir(dir), 'a tenant has no store', restore);
  }
  await examineBackup(noted, now, find);
}

function examineTenants(sound: ReadonlyMap<string, CheckedStore>, { rows }: CheckedStore, find: Find): void {
  for (const tenant of rows) {
    if (typeof tenant.dir !== 'string' || tenant.name === null || tenant.deleted_at !== null) continue;
    const found = sound.get(tenantDir(tenant.dir))?.rows ?? [];
    const subject = `tenant ${tenant.name}`;
    const rings = someOf(found.filter(({ kind }) => kind === 'ring'));
    if (rings !== undefined) {
      const message = `keyrings of x25519, whose keys a quantum computer could unwrap one day: ${rings}`;
      const advice = '`kms keyring upgrade NAME` makes one hybrid, once all programs that use it support that';
      // Advice, not a fault: their protection is good today.
      find('advice', 'ring-x25519', subject, message, advice);
    }
    const proofs = someOf(found.filter(({ kind }) => kind === 'proof'));
    if (proofs === undefined) continue;
    const message = `client certificates of API keys, or their authorities, that end within 14 days or just ended: ${proofs}`;
    const advice = 'see `kms apikey proof list KEY`; issue or add the next one, and remove or disable what is over';
    find('warning', 'proof-expiring', subject, message, advice);
  }
}

/** Reports proofs by certificates for which another tenant has an older one, which alone counts over KMIP. */
function examineShared(sound: ReadonlyMap<string, CheckedStore>, { rows }: CheckedStore, find: Find): void {
  const proofs = rows.flatMap(({ dir, name: tenant, deleted_at: deletedAt }) => {
    if (typeof dir !== 'string' || tenant === null || deletedAt !== null) return [];
    const found = (sound.get(tenantDir(dir))?.rows ?? []).filter(({ kind }) => kind === 'certificate');
    return found.map(({ n: since, name: key, ends: of }) => ({ tenant, key, of, since: Number(since) }));
  });
  const oldestFirst = proofs.toSorted((a, b) => a.since - b.since);
  const shared = [...Map.groupBy(oldestFirst, ({ of }) => of).values()].flatMap(([first, ...others]) =>
    others.flatMap(({ tenant, key }) =>
      first && tenant !== first.tenant ? [{ tenant, key, older: first.tenant }] : [],
    ),
  );
  for (const those of Map.groupBy(shared, ({ tenant, older }) => `${tenant} ${older}`).values()) {
    const [first] = those;
    const keys = [...new Set(those.map(({ key }) => key))];
    const named = [...keys.slice(0, mostNamed), ...(keys.length > mostNamed ? ['…'] : [])].join(', ');
    const message = `client certificates that are older proofs of the tenant ${first?.older}: ${keys.length} (${named})`;
    const advice = 'over KMIP they belong to that tenant: let clients of KMIP have certificates that are issued here';
    find('advice', 'proof-elsewhere', `tenant ${first?.tenant}`, message, advice);
  }
}

/** The number of rows, with the names and ends of the first; undefined for none. */
function someOf(rows: CheckedStore['rows']): string | undefined {
  const [first] = rows;
  if (!first) return undefined;
  const names = rows.map(({ name, ends }) =>
    typeof ends === 'number' ? `${name} at ${new Date(ends).toISOString().slice(0, 10)}` : name,
  );
  return `${first.n} (${names.join(', ')}${Number(first.n) > rows.length ? ', …' : ''})`;
}

/** Reports files from an older copy, which a start would refuse. */
async function examineAges(
  sound: ReadonlyMap<string, CheckedStore>,
  { rows }: CheckedStore,
  readRollbackNotes: () => Promise<Noted | undefined>,
  find: Find,
): Promise<void> {
  // Cast: these are the rows of marks.
  const marks = marksOf(rows.filter(({ sequence }) => sequence !== null) as MarkRow[]);
  let rollbackNotes: Noted | undefined;
  try {
    rollbackNotes = await readRollbackNotes();
  } catch (error) {
    findFault(witnessFile, error, find);
    return;
  }
  if (!rollbackNotes && marks.size > 0) {
    const message = `there is no ${witnessFile}, which says how far the stores were`;
    find(
      'error',
      'store-older',
      systemDir,
      message,
      `put it back; \`kms serve --accept-older ${systemDir}\` goes on without`,
    );
  }
  for (const [dir, { mark, log }] of sound) {
    const name = sealName(dir);
    const noted = [rollbackNotes?.get(name), marks.get(name)].filter((each) => each !== undefined);
    const what = olderThanNoted({ ...mark, log }, noted);
    if (what === undefined) continue;
    const tenant = rows.find((row) => row.dir === name && row.name !== null)?.name ?? systemDir;
    const advice = `find the newer files, or restore a backup; \`kms serve --accept-older ${tenant}\` goes on with these`;
    find('error', 'store-older', dir, `an older copy was put back: ${what}`, advice);
  }
}

async function examineBackup(noted: string | undefined, now: number, find: Find): Promise<void> {
  const how = '`kms serve --backup-to DIR` makes one each night and restores it on trial';
  if (noted === undefined) {
    find('advice', 'no-backup', 'backups', 'the server has not made and tested one yet', how);
    return;
  }
  const { file, madeAt } = readVerified(noted);
  const age = now - epochTimeOf(madeAt);
  const subject = file ?? 'backups';
  if (age > oldBackup) {
    const message = `the last one that was found to restore is ${Math.floor(age / day)} days old`;
    find('warning', 'backup-old', subject, message, `see in the log why no newer one was made; ${how}`);
  }
  if (file !== undefined && !(await stat(file).catch(() => undefined))) {
    find('warning', 'backup-missing', file, 'the last backup that was found to restore is gone', 'make another one');
  }
}

function heldFiles(files: Files, held: readonly HeldFile[]): Files {
  const byName = new Map(held.map((file) => [file.name, file]));
  return listedFiles(byName, 'who only looks writes nothing', (fileOf) => ({
    read: async (name) => files.readAt(name, 0, fileOf(name).bytes),
    readAt: async (name, offset, length) =>
      files.readAt(name, offset, Math.max(0, Math.min(length, fileOf(name).bytes - offset))),
  }));
}

/** Examines held stores. */
export interface ExamineWork {
  readonly kind: 'examine';
  /** The data directory. */
  readonly root: string;
  readonly held: readonly HeldFile[];
  readonly keys: readonly (readonly [dir: string, keys: KeysAsData])[];
  readonly wasm: Uint8Array;
  /** In epoch milliseconds. */
  readonly now: number;
}

export async function examineHeld({ root, held, keys, wasm, now }: ExamineWork): Promise<Examination> {
  const findings = new Findings();
  const stores = keys.map(([dir, data]) => ({ dir, keys: keysFromData(data) }));
  const files = heldFiles(nodeFiles(root), held);
  const examined = await examineStores({ files, wasm, stores, now }, findings.add);
  return { ...examined, findings: findings.all };
}
