// Reads every store of an appliance into memory and compares it with the rollback guard's notes, before the first file
// changes: anything that prevents a start prevents it here. A store found older is only served if the administrator
// accepted that.
import { activityRecord } from '../core/activity.ts';
import { expireAnswered } from '../core/approval-ends.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import type { SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import { systemDir, tenantDir, witnessFile } from '../platform/data-dir.ts';
import { nextEpoch } from '../platform/epoch.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { ActivityInput, ReadStore, Store, Tables } from '../store/port.ts';
import type { Row } from '../store/sql.ts';
import type { SystemTables } from '../store/tables/databases.ts';
import { type MarkRow, marksOf, type NotedMark } from '../store/tables/marks.ts';
import { type Noted, olderThanNoted, readRollbackNotes } from './rollback-guard.ts';
import type { Tenants } from './served-tenants.ts';
import { readSystemStore, readTenantStore, type StoreWorld, type SystemStore } from './stores.ts';
import { returnPlaces } from './streamed-positions.ts';

/** A store that is behind its noted position. */
interface OlderStore {
  /** `system`, or the tenant's directory. */
  readonly dir: string;
  /** The name for people. */
  readonly name: string;
  /** A description of what was found. */
  readonly what: string;
  readonly from: number;
  readonly to: number;
}

export interface ReadStores {
  readonly system: ReadStore<SystemTables>;
  /** Keyed by directory, without deleted tenants unless an older store of theirs was accepted. */
  readonly tenants: ReadonlyMap<string, ReadStore<Tables>>;
  /** The older stores that were accepted. */
  readonly accepted: readonly OlderStore[];
  /** Accepted names for which no store is older. */
  readonly needless: readonly string[];
  /**
   * The tenants' marks in the appliance's own store, and the marks of all stores in the witness file, if there is one.
   */
  readonly marks: Noted;
  readonly rollbackNotes: Noted | undefined;
  /** Releases the stores that were not opened. */
  discard(): Promise<void>;
}

type Looked = Pick<ReadStore<object>, 'mark' | 'log'>;

interface TenantRow extends Row {
  id: string;
  name: string;
  dir: string;
  deleted_at: number | null;
}

/** Query for the tenants' marks; a store whose creation was interrupted has no tables. */
export const marksQuery = (schema: number): string =>
  schema === 0
    ? `SELECT '' AS dir, 0 AS sequence, '[]' AS runs, 0 AS noted_at WHERE 0`
    : 'SELECT dir, sequence, runs, noted_at FROM marks';

/**
 * `accept` names tenants, and `system` for the appliance's own store. `known` holds the marks that this process knew
 * before it was sealed. Changes nothing.
 */
export async function readStores(
  world: StoreWorld,
  seal: SealKeeper,
  accept: readonly string[] = [],
  known: Noted = new Map(),
): Promise<ReadStores> {
  const keys = seal.keysFor(systemDir);
  const wanted = new Set(accept.map((name) => name.toLowerCase()));
  const rollbackNotes = await readRollbackNotes(world.files, keys).catch((error: unknown) => {
    if (wanted.has(systemDir) && error instanceof KmsError && error.code === 'corrupt') return undefined;
    throw error;
  });
  const read: ReadStore<object>[] = [];
  const discard = async (): Promise<void> => {
    for (const store of read) await store.discard();
  };
  try {
    const system = await readSystemStore(world, keys);
    read.push(system);
    const marks = marksOf(system.rows<MarkRow>(marksQuery));
    const records = system.rows<TenantRow>((schema) =>
      schema === 0 ? 'SELECT 0 WHERE 0' : 'SELECT id, name, dir, deleted_at FROM tenants ORDER BY seq',
    );
    const isNamed = ({ id, name, deleted_at: deletedAt }: TenantRow): boolean =>
      wanted.has(id) || (deletedAt === null && name !== systemDir && wanted.has(name));
    needKnown(wanted, records.filter(isNamed), records);
    const older: OlderStore[] = [];
    const look = (store: Looked, dir: string, name: string, noted: readonly (NotedMark | undefined)[]) => {
      const all = [...noted, known.get(dir)].filter((each) => each !== undefined);
      const what = olderThanNoted({ ...store.mark, log: store.log }, all);
      const from = Math.max(...all.map(({ sequence }) => sequence));
      if (what !== undefined) older.push({ dir, name, what, from, to: store.mark.sequence });
    };
    // A joining node has no witness file yet.
    if (!rollbackNotes && marks.size > 0 && world.place.hasNotes) {
      const { sequence } = system.mark;
      older.push({
        dir: systemDir,
        name: systemDir,
        what: `there is no ${witnessFile} to compare it with`,
        from: sequence,
        to: sequence,
      });
    } else {
      look(system, systemDir, systemDir, [rollbackNotes?.get(systemDir)]);
    }
    const tenants = new Map<string, ReadStore<Tables>>();
    for (const record of records) {
      const { dir, name, id, deleted_at: deletedAt } = record;
      if (deletedAt !== null && !isNamed(record)) continue;
      const store = await readTenantStore(world, tenantDir(dir), seal.keysFor(dir));
      read.push(store);
      tenants.set(dir, store);
      look(store, dir, deletedAt === null && name !== systemDir ? name : id, [rollbackNotes?.get(dir), marks.get(dir)]);
    }
    const named = new Set([
      ...records.filter(isNamed).map(({ dir }) => dir),
      ...(wanted.has(systemDir) ? [systemDir] : []),
    ]);
    const refused = older.filter(({ dir }) => !named.has(dir));
    if (refused.length > 0) throw refusal(refused, 'refused', world.place.whyOlder);
    const olderDirs = new Set(older.map(({ dir }) => dir));
    const isNeedless = (name: string): boolean =>
      !records.some((record) => olderDirs.has(record.dir) && [record.id, record.name].includes(name)) &&
      !(name === systemDir && (olderDirs.has(systemDir) || rollbackNotes === undefined));
    return {
      system,
      tenants,
      accepted: older,
      needless: [...wanted].filter(isNeedless),
      marks,
      rollbackNotes,
      discard,
    };
  } catch (error) {
    await discard();
    throw error;
  }
}

function needKnown(wanted: Iterable<string>, named: readonly TenantRow[], records: readonly TenantRow[]): void {
  for (const name of wanted) {
    if (name === systemDir || named.some((record) => record.id === name || record.name === name)) continue;
    const isClear = ({ deleted_at, name }: TenantRow): boolean => deleted_at === null && name !== systemDir;
    const names = records.map((record) => (isClear(record) ? record.name : record.id));
    throw new KmsError('refused', `--accept-older: there is no tenant ${name}`, {
      hint: `name one of ${[...names, systemDir].join(', ')}; nothing was changed`,
    });
  }
}

/** One error line about all of them. */
function refusal(older: readonly OlderStore[], code: 'refused' | 'conflict', whyOlder: string): KmsError {
  const whose = ({ dir, name, what }: OlderStore): string =>
    dir === systemDir
      ? `the appliance's own store is older than it was: ${what}`
      : `the tenant ${name} is older than it was: ${what}`;
  const options = older.map(({ name }) => `--accept-older ${name}`).join(' ');
  return new KmsError(code, `${older.map(whose).join('; ')}; nothing was changed`, {
    hint: `${whyOlder}; to go on with what is there, once: kms serve ${options}`,
  });
}

/** Throws `conflict` if the store of a returning tenant is behind its noted position. */
export function needNotOlder(
  store: Looked,
  { id, dir }: { id: string; dir: string },
  marks: Noted,
  whyOlder: string,
): void {
  const noted = marks.get(dir);
  const what = noted && olderThanNoted({ ...store.mark, log: store.log }, [noted]);
  if (noted && what !== undefined) {
    throw refusal([{ dir, name: id, what, from: noted.sequence, to: store.mark.sequence }], 'conflict', whyOlder);
  }
}

interface Accepting {
  readonly system: SystemStore;
  readonly tenants: Pick<Tenants, 'all'>;
  readonly read: ReadStores;
  readonly world: World;
}

/**
 * Records each accepted older store in its own log and in the appliance's, and begins a new epoch: clients that
 * remember the later state learn that this was on purpose, as after a restore. Earlier marks no longer count.
 */
export async function acceptOlder({ system, tenants, read, world }: Accepting): Promise<void> {
  if (read.accepted.length === 0) return;
  const ends = tenants.all.map(({ record: { id }, handle }) => [id, handle.store.status().activityCount] as const);
  const served = new Map<string, Store>(tenants.all.map(({ record: { dir }, handle }) => [dir, handle.store]));
  const deleted = read.accepted.filter(({ dir }) => !served.has(dir));
  await returnPlaces(
    system,
    new Map(ends),
    deleted.map(({ name }) => name),
  );
  const record = (props: Readonly<Record<string, unknown>>): ActivityInput =>
    activityRecord(world, { keyid: localCaller.id, action: 'system.accept-older', props });
  const marks = new Map<string, NotedMark>();
  for (const { dir, name, from, to } of read.accepted) {
    const props = { tenant: name, from, to };
    // An older system store concerns every tenant.
    for (const [each, store] of served) {
      if (each !== dir && dir !== systemDir) continue;
      await store.transaction((tx) => {
        tx.record(record(props));
        expireAnswered({ tx, world });
      });
    }
    if (dir === systemDir) continue;
    const store = served.get(dir) ?? (await recordedAtRest(read.tenants.get(dir), record(props), world));
    if (store) marks.set(dir, { ...store.mark, at: world.now() });
  }
  await system.transaction((tx) => {
    for (const [dir, mark] of marks) tx.marks.set(dir, mark);
    nextEpoch(tx.settings, world.now());
    for (const { name, from, to } of read.accepted) tx.record(record({ tenant: name, from, to }));
  });
}

export function reportAccepted(
  { accepted, needless }: ReadStores,
  onEvent: ((event: ApplianceEvent) => void) | undefined,
): void {
  for (const { name, what, from, to } of accepted) {
    const outcome = `it goes on from transaction ${to}, and what came up to ${from} is lost`;
    onEvent?.({ level: 'warn', message: `--accept-older ${name}: ${what}; ${outcome}` });
  }
  for (const name of needless) {
    const advice = 'leave it out, or it will accept an older copy one day';
    const message = `--accept-older ${name} has no effect, nothing of it is older than it was: ${advice}`;
    onEvent?.({ level: 'warn', message });
  }
}

/** Records in the store of a deleted tenant, which is not served. */
async function recordedAtRest(
  read: ReadStore<Tables> | undefined,
  activity: ActivityInput,
  world: World,
): Promise<Store | undefined> {
  const store = await read?.open();
  await store
    ?.transaction((tx) => {
      tx.record(activity);
      expireAnswered({ tx, world });
    })
    .finally(() => store.close());
  return store;
}
