// Makes the files of a new, empty store: the first log, then the snapshot, whose presence says that the store exists.
import { KmsError } from '../errors.ts';
import { emptyHead } from './activity/activity-log.ts';
import { tagLength, uidLength } from './file-header.ts';
import { listStoreFiles, logName } from './file-names.ts';
import type { Files } from './files.ts';
import { logHeaderLength } from './log-format.ts';
import { createLog, type LogContext } from './log-writer.ts';
import { writeSnapshot } from './snapshot.ts';

export interface CreateOptions extends LogContext {
  /** 16 bytes to bind the store's files to; random when absent. */
  readonly uid?: Uint8Array;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The store is on disk, durably, when this resolves. Throws `refused` where one is. */
export async function createEmbedded(options: CreateOptions): Promise<void> {
  const { files, dir, at } = options;
  await files.makeDir(dir);
  await refuseExisting(files, dir);
  const uid = options.uid ?? options.random(uidLength);
  const start = { uid, sequence: 0, chain: new Uint8Array(tagLength) };
  const log = await createLog(options, { ...start, generation: 1 });
  await log.close();
  const content = { schema: 0, savedAt: at, activity: { segments: [], head: emptyHead } };
  await writeSnapshot(options, { ...start, generation: 0 }, content, [], new Uint8Array(0));
}

/** A first log without a record may be there: a crash came while the store was being made. */
async function refuseExisting(files: Files, dir: string): Promise<void> {
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const empty = snapshots.length === 0 && logs.every((number) => number === 1);
  if (empty && (logs.length === 0 || (await files.size(logName(dir, 1))) <= logHeaderLength)) return;
  throw new KmsError('refused', `there is a store in ${dir} already`);
}
