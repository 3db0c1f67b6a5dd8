// Recovery of a store from its files: the newest snapshot, then every record of the logs after it, in order.
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import type { ClosedLog } from './file-log.ts';
import type { Files } from './files.ts';
import { GroupReplayer } from './group-replay.ts';
import { readLog } from './log-file.ts';
import type { LogPlace } from './log-format.ts';
import { type LogEnd, type Recovered, type RecoverOptions, recoverState } from './recover.ts';
import { readSnapshot } from './snapshot.ts';
import { corrupt, type FileHeader, listStoreFiles, logName, type StoreKeys, snapshotName } from './store-files.ts';

/** The directory of a store. */
export interface StoreDirectory {
  readonly files: Files;
  readonly dir: string;
  readonly keys: StoreKeys;
  /** The uid of the store that must be in the directory; absent = any that the keys open. */
  readonly uid?: Uint8Array | undefined;
}

/** The end of the last log file. */
export interface FileEnd extends LogEnd {
  readonly header: FileHeader;
  readonly place: LogPlace;
  /** Bytes after the last whole record: a write that was never acknowledged. */
  readonly torn: number;
  /** The log files since the snapshot, without the last. */
  readonly closed: readonly ClosedLog[];
}

/**
 * Recovers the store in a directory. Throws `corrupt` for anything that does not verify, `not-found` if there is no
 * store. Changes nothing on disk.
 */
export async function recoverFiles(directory: StoreDirectory, options: RecoverOptions): Promise<Recovered<FileEnd>> {
  const { files, dir, keys } = directory;
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const generation = snapshots.at(-1);
  if (generation === undefined) throw noSnapshot(dir, logs);
  const snapshot = await readSnapshot(files, dir, generation, keys);
  const { header, manifest } = snapshot;
  if (directory.uid && !equalBytes(directory.uid, header.uid)) {
    throw corrupt(snapshotName(dir, generation), 16, 'the file belongs to another store');
  }
  const { uid } = header;
  return recoverState({ ...options, files, dir, keys, uid }, snapshot, async (state, activity) => {
    const first = generation + 1;
    const last = options.through ?? Math.max(first, logs.at(-1) ?? 0);
    let { sequence, chain } = header;
    let { runs } = manifest;
    const closed: ClosedLog[] = [];
    // The checkpoint exists, but its caller did not learn of it and asks again. There is no later log to read.
    if (last === generation) {
      const name = logName(dir, last);
      return { name, offset: 0, generation, header, place: { offset: 0, sequence, chain, runs }, torn: 0, closed };
    }
    for (let generation = first; ; generation++) {
      const name = logName(dir, generation);
      if (!logs.includes(generation)) throw corrupt(name, 0, 'the file is missing');
      const start = { uid, generation, sequence, chain, runs };
      const isOpen = generation === last && options.through === undefined;
      const groups = new GroupReplayer(state, activity);
      const apply = groups.apply.bind(groups);
      const between = async (): Promise<unknown> => options.rolls && activity.roll();
      const { header, torn, ...place } = await readLog(files, name, keys, start, isOpen, apply, between);
      groups.finish();
      if (generation === last) return { name, offset: place.offset, generation, header, place, torn, closed };
      closed.push({ generation, bytes: place.offset, chain: place.chain });
      ({ sequence, chain, runs } = place);
    }
  });
}

function noSnapshot(dir: string, logs: readonly number[]): KmsError {
  if (logs.length > 0) return corrupt(dir, 0, 'there are log files but no snapshot');
  return new KmsError('not-found', `no store in ${dir}`, {
    hint: 'nothing was changed; put its files back, or restore from a backup',
  });
}
