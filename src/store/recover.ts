// Recovery from the files on disk to the database in memory: the newest snapshot, then every record of the logs after
// it, in order. A start, a checkpoint and the recovery from a failed write all use it.
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import type { Mark } from '../model/store-mark.ts';
import { type ActivityLog, openActivityLog } from './activity/activity-log.ts';
import type { Files } from './files.ts';
import { GroupReplayer } from './group-replay.ts';
import { readLog } from './log-file.ts';
import type { LogPlace } from './log-format.ts';
import { readSnapshot } from './snapshot.ts';
import { openState, type State } from './state.ts';
import { corrupt, type FileHeader, listStoreFiles, logName, type StoreKeys, snapshotName } from './store-files.ts';
import { type Migration, needSchema, refuseNewer } from './tables/migrations.ts';

export interface RecoverOptions {
  readonly files: Files;
  readonly dir: string;
  readonly keys: StoreKeys;
  readonly wasm: Uint8Array | ArrayBuffer;
  /** The uid of the store that must be in the directory; absent = any that the keys open. */
  readonly uid?: Uint8Array;
  /** Given to refuse a newer schema before any statement runs on it. */
  readonly migrations?: readonly Migration[];
  /** Records in an activity segment. */
  readonly segmentRecords?: number;
  /** Cache for activity segments that were read, in bytes. */
  readonly activityCacheBytes?: number;
  /** The last log file to read, which must be closed; absent = all there are. */
  readonly through?: number;
  /** Whether full runs of activity become segments along the way, as in a checkpoint. */
  readonly rolls?: boolean;
}

export interface ClosedLog {
  readonly generation: number;
  readonly bytes: number;
  /** The tag of its last record, at its end. */
  readonly chain: Uint8Array;
}

export interface Recovered {
  readonly state: State;
  readonly activity: ActivityLog;
  readonly uid: Uint8Array;
  readonly snapshot: { readonly generation: number; readonly bytes: number; readonly savedAt: number };
  /** The last log file. */
  readonly log: { readonly header: FileHeader; readonly place: LogPlace; readonly torn: number };
  /** The logs since the snapshot, without the last. */
  readonly closed: readonly ClosedLog[];
  /** Files that the snapshot replaces, left by a crash before their removal. */
  readonly superseded: readonly string[];
}

/** Throws `corrupt` for anything that does not verify, `not-found` if there is no store. Changes nothing on disk. */
export async function recover(options: RecoverOptions): Promise<Recovered> {
  const { files, dir, keys, wasm } = options;
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const generation = snapshots.at(-1);
  if (generation === undefined) throw noSnapshot(dir, logs);
  const snapshot = await readSnapshot(files, dir, generation, keys);
  const { header, manifest } = snapshot;
  if (options.uid && !equalBytes(options.uid, header.uid)) {
    throw corrupt(snapshotName(dir, generation), 16, 'the file belongs to another store');
  }
  if (options.migrations) refuseNewer(manifest.schema, options.migrations, dir);
  const state = await openState(wasm, snapshot.image.length > 0 ? snapshot.image : undefined);
  const check = async (): Promise<void> => {
    if (!options.migrations) return;
    refuseNewer(state.schemaVersion, options.migrations, dir);
    await needSchema(state, options.migrations, wasm, dir);
  };
  try {
    await check();
    const activity = openActivityLog({
      ...options,
      ...manifest.activity,
      uid: header.uid,
      tail: snapshot.tail,
      ...(options.activityCacheBytes === undefined ? {} : { cacheBytes: options.activityCacheBytes }),
    });
    const start = { ...header, runs: manifest.runs };
    const replayer = () => new GroupReplayer(state, activity);
    const between = async () => options.rolls && activity.roll();
    const replayed = await replay(options, start, logs, replayer, between);
    // A newer program's migration may stand only in the log.
    await check();
    return {
      state,
      activity,
      uid: header.uid,
      snapshot: { generation, bytes: snapshot.size, savedAt: manifest.savedAt },
      ...replayed,
      superseded: [
        ...snapshots.filter((number) => number < generation).map((number) => snapshotName(dir, number)),
        ...logs.filter((number) => number <= generation).map((number) => logName(dir, number)),
      ],
    };
  } catch (error) {
    state.close();
    throw error;
  }
}

async function replay(
  options: RecoverOptions,
  header: FileHeader & Pick<Mark, 'runs'>,
  logs: readonly number[],
  replayer: () => GroupReplayer,
  between: () => Promise<unknown>,
): Promise<Pick<Recovered, 'log' | 'closed'>> {
  const { files, dir, keys } = options;
  const first = header.generation + 1;
  const last = options.through ?? Math.max(first, logs.at(-1) ?? 0);
  let { sequence, chain, runs } = header;
  const closed: ClosedLog[] = [];
  // The checkpoint exists, but its caller did not learn of it and asks again. There is no later log to read.
  if (last === header.generation)
    return { log: { header, place: { offset: 0, sequence, chain, runs }, torn: 0 }, closed };
  for (let generation = first; ; generation++) {
    const name = logName(dir, generation);
    if (!logs.includes(generation)) throw corrupt(name, 0, 'the file is missing');
    const start = { uid: header.uid, generation, sequence, chain, runs };
    const open = generation === last && options.through === undefined;
    const groups = replayer();
    const apply = groups.apply.bind(groups);
    const end = await readLog(files, name, keys, start, open, apply, between);
    groups.finish();
    if (generation === last) return { log: { header: end.header, place: end, torn: end.torn }, closed };
    closed.push({ generation, bytes: end.offset, chain: end.chain });
    ({ sequence, chain, runs } = end);
  }
}

function noSnapshot(dir: string, logs: readonly number[]): KmsError {
  if (logs.length > 0) return corrupt(dir, 0, 'there are log files but no snapshot');
  return new KmsError('not-found', `no store in ${dir}`, {
    hint: 'nothing was changed; put its files back, or restore from a backup',
  });
}
