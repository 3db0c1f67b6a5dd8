// Recovery from the files on disk to the database in memory: the newest snapshot, then every record of the logs after
// it, in order. A start, a checkpoint and the recovery from a failed write all use it.
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import type { Mark } from '../model/store-mark.ts';
import type { Files } from './files.ts';
import { GroupReplayer } from './group-replay.ts';
import { readLog } from './log-file.ts';
import type { LogPlace } from './log-format.ts';
import { type RecoveredState, type RecoveryOptions, recoverState } from './recovered-state.ts';
import { readSnapshot } from './snapshot.ts';
import { corrupt, type FileHeader, listStoreFiles, logName, snapshotName } from './store-files.ts';

export interface RecoverOptions extends Omit<RecoveryOptions, 'uid' | 'files'> {
  readonly files: Files;
  /** The uid of the store that must be in the directory; absent = any that the keys open. */
  readonly uid?: Uint8Array;
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

export interface Recovered extends RecoveredState {
  readonly uid: Uint8Array;
  /** The last log file. */
  readonly log: { readonly header: FileHeader; readonly place: LogPlace; readonly torn: number };
  /** The logs since the snapshot, without the last. */
  readonly closed: readonly ClosedLog[];
  /** Files that the snapshot replaces, left by a crash before their removal. */
  readonly superseded: readonly string[];
}

/** Throws `corrupt` for anything that does not verify, `not-found` if there is no store. Changes nothing on disk. */
export async function recover(options: RecoverOptions): Promise<Recovered> {
  const { files, dir, keys } = options;
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const generation = snapshots.at(-1);
  if (generation === undefined) throw noSnapshot(dir, logs);
  const snapshot = await readSnapshot(files, dir, generation, keys);
  const { header, manifest } = snapshot;
  if (options.uid && !equalBytes(options.uid, header.uid)) {
    throw corrupt(snapshotName(dir, generation), 16, 'the file belongs to another store');
  }
  const { uid } = header;
  const recovered = await recoverState({ ...options, uid }, snapshot, (state, activity) => {
    const start = { ...header, runs: manifest.runs };
    const replayer = () => new GroupReplayer(state, activity);
    return replay(options, start, logs, replayer, async () => options.rolls && activity.roll());
  });
  const superseded = [
    ...snapshots.filter((number) => number < generation).map((number) => snapshotName(dir, number)),
    ...logs.filter((number) => number <= generation).map((number) => logName(dir, number)),
  ];
  return { ...recovered, uid, superseded };
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
