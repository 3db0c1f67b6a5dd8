// Recovery from the engine to the database in memory: the newest snapshot that belongs to the log, then every row after
// it. It takes no turn: it reads only committed rows, and a node that appends verifies its position first.
import { equalBytes, toHex } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityLog } from '../activity/activity-log.ts';
import type { WholeFiles } from '../files.ts';
import { GroupReplayer } from '../group-replay.ts';
import { type LogEnd, type Recovered, type RecoverOptions, recoverState } from '../recover.ts';
import { describeSnapshot, readSnapshot } from '../snapshot.ts';
import type { State } from '../state.ts';
import { corrupt, listStoreFiles, type StoreKeys, snapshotName } from '../store-files.ts';
import { EngineError, type SharedEngine } from './engine.ts';
import { beginning, logNameOf, type Place, readRow } from './row.ts';

/** A store in an engine. */
export interface SharedPlace {
  readonly engine: SharedEngine;
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  readonly keys: StoreKeys;
}

interface Recovering extends SharedPlace {
  /** The files to read and write activity segments in. Default: the engine's. */
  readonly files?: WholeFiles | undefined;
}

/** A row after the snapshot. */
export interface RowBytes {
  readonly seq: number;
  readonly bytes: number;
}

export interface RowEnd extends LogEnd {
  /** Position of the last row. */
  readonly at: Place;
  readonly rows: readonly RowBytes[];
  /** Names of missing segments, if no snapshot without them exists: damage, reported to their readers. */
  readonly missing: string;
}

/** Rows read at once. */
const pageOfRows = 64;
/** Attempts: a snapshot may be replaced by a newer one while it is read. */
const tries = 5;

/** The engine's id of the store, and the directory of its files. */
export function storeIdOf(uid: Uint8Array): string {
  return toHex(uid);
}

/** Throws `not-found` if there is no such store, `corrupt` for anything that does not verify. */
export function recoverRows(place: Recovering, options: RecoverOptions): Promise<Recovered<RowEnd>> {
  const { through } = options;
  const may = (generation: number): boolean => through === undefined || generation <= through;
  return withSnapshots(place, may, async (generations) => recoverOnce(place, options, generations));
}

/**
 * The manifest of the newest snapshot that `may` accepts and that covers rows of this log; undefined if there is none.
 */
export function newestSnapshot(
  place: SharedPlace,
  may: (generation: number) => boolean,
): Promise<Described | undefined> {
  return withSnapshots(place, may, (generations) => readNewest(place, generations));
}

/** Reads some of the snapshots, and retries if they were replaced by a newer one in the meantime. */
async function withSnapshots<R>(
  { engine, uid }: SharedPlace,
  may: (generation: number) => boolean,
  read: (newestFirst: readonly number[]) => Promise<R>,
): Promise<R> {
  const list = async (): Promise<readonly number[]> => {
    const { snapshots } = await listStoreFiles(engine.files, storeIdOf(uid));
    return snapshots.filter(may).reverse();
  };
  for (let attempt = 1; ; attempt++) {
    const before = await list();
    try {
      return await read(before);
    } catch (error) {
      // Always retry once: a snapshot may have been replaced by another of the same generation.
      const isSame = before.join() === (await list()).join();
      if (attempt === tries || (isSame && attempt > 1)) throw error;
    }
  }
}

/** A snapshot's manifest, with the segments missing when it was read. */
type Described = Awaited<ReturnType<typeof describeSnapshot>> & { readonly missing: readonly string[] };

/**
 * Skips snapshots from before a failover of the engine, whose row or segments it cut off: the log is never trimmed for
 * a snapshot whose row or segment is missing. If no other snapshot is left, a segment was lost in another way, and its
 * readers get the error.
 */
async function readNewest(
  { engine, uid, keys }: SharedPlace,
  generations: readonly number[],
): Promise<Described | undefined> {
  const store = storeIdOf(uid);
  let incomplete: Described | undefined;
  for (const generation of generations) {
    const snapshot = await describeSnapshot(engine.files, store, generation, keys);
    if (!equalBytes(uid, snapshot.header.uid)) {
      throw corrupt(snapshotName(store, generation), 16, 'the file belongs to another store');
    }
    const [row] = await engine.rows(store, generation, 1);
    if (row?.seq !== generation || !equalBytes(row.tag, snapshot.header.chain)) continue;
    const names = new Set(await engine.files.list(store));
    const missing = snapshot.manifest.activity.segments.map(({ file }) => file).filter((file) => !names.has(file));
    if (missing.length === 0) return { ...snapshot, missing };
    incomplete ??= { ...snapshot, missing };
  }
  // A log that still has its first row needs no snapshot.
  const [first] = incomplete ? await engine.rows(store, 1, 1) : [];
  return first?.seq === 1 ? undefined : incomplete;
}

async function recoverOnce(
  place: Recovering,
  options: RecoverOptions,
  generations: readonly number[],
): Promise<Recovered<RowEnd>> {
  const { engine, uid, keys, files = engine.files } = place;
  const dir = storeIdOf(uid);
  const newest = await readNewest(place, generations);
  const snapshot = newest && (await readSnapshot(engine.files, dir, newest.header.generation, keys));
  // A snapshot that a failover cut off may have been replaced by one of the same generation.
  if (newest && snapshot && !equalBytes(newest.header.chain, snapshot.header.chain)) throw new EngineError('retry');
  const missing = newest?.missing.join() ?? '';
  return recoverState({ ...options, files, dir, keys, uid }, snapshot, async (state, activity) => {
    let at = beginning;
    if (snapshot) {
      const { generation, chain, sequence } = snapshot.header;
      at = { seq: generation, tag: chain, sequence, runs: snapshot.manifest.runs };
    }
    const rows: RowBytes[] = [];
    at = await replay(place, at, options.through, state, activity, rows);
    const { seq, tag: chain, sequence, runs } = at;
    const name = logNameOf(uid);
    return { name, offset: seq, generation: seq, place: { sequence, runs, chain }, at, rows, missing };
  });
}

/** Replays the rows after `place`, adds them to `rows`, and returns the position of the last one. */
async function replay(
  context: SharedPlace,
  from: Place,
  through = Number.MAX_SAFE_INTEGER,
  state: State,
  activity: ActivityLog,
  rows: RowBytes[],
): Promise<Place> {
  const { engine, uid } = context;
  let place = from;
  while (place.seq < through) {
    const limit = Math.min(pageOfRows, through - place.seq);
    const page = await engine.rows(storeIdOf(uid), place.seq + 1, limit);
    for (const row of page) {
      // Each row numbers its own statements.
      const replayer = new GroupReplayer(state, activity);
      place = readRow(context, place, row, (...payload) => replayer.apply(...payload));
      replayer.finish();
      rows.push({ seq: row.seq, bytes: row.sealed.length });
    }
    if (page.length < limit) break;
  }
  if (place === beginning) throw new KmsError('not-found', `no store ${storeIdOf(uid)} in the shared database`);
  if (through < Number.MAX_SAFE_INTEGER && place.seq < through) {
    // A failover cut off the rows; the node in service will find out which.
    throw new EngineError('retry', undefined, { reason: `the log ends with row ${place.seq}, before ${through}` });
  }
  return place;
}
