// Verifies a store from its files while another process may serve it: recovers it into memory, has SQLite check the
// whole database, and follows the chain of the activity log from its first record to its last. Changes nothing.
import { toHex } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import type { Mark } from '../model/store-mark.ts';
import type { ActivityLog } from './activity/activity-log.ts';
import { verifyChain } from './activity/chain.ts';
import { SegmentFault, segmentPath } from './activity/segment.ts';
import { problemOfSegment } from './activity/segment-watch.ts';
import { recoverFiles, type StoreDirectory } from './file-recovery.ts';
import type { WholeFiles } from './files.ts';
import type { ChainHead, DroppedActivity } from './port.ts';
import type { Recovered, RecoverOptions } from './recover.ts';
import type { Row } from './sql.ts';
import type { StoreKeys } from './store-files.ts';

export interface CheckedStore {
  /** Hexadecimal. */
  readonly uid: string;
  readonly mark: Mark;
  /** The last log file. */
  readonly log: string;
  /** Number of migrations done. */
  readonly schema: number;
  /** Rows of each table. */
  readonly tables: Readonly<Record<string, number>>;
  readonly activity: ChainHead;
  /** The beginning of the activity log that retention dropped, if any. */
  readonly dropped: DroppedActivity | undefined;
  /** Epoch milliseconds of the last activity record; undefined if there is none or it cannot be read. */
  readonly lastActivityAt: number | undefined;
  /** Bytes after the last whole record: a write that was never acknowledged. */
  readonly torn: number;
  /** The rows that the query returned. */
  readonly rows: readonly Row[];
  /**
   * Closed files of the activity log that are missing or changed. Everything else is whole; the records in these are
   * lost.
   */
  readonly faults: readonly SegmentFault[];
  /** The end of the last closed file of the activity log; undefined if there is none or any is at fault. */
  readonly closed: ChainHead | undefined;
}

/**
 * Throws `corrupt` if anything but a closed activity file does not verify. `queryFor` returns a statement that reads a
 * database of the given schema, and has nothing in it from outside but numbers. `from`: the end of a closed file up to
 * which the activity log was verified a moment ago.
 */
export async function checkStore(
  options: StoreDirectory & RecoverOptions,
  queryFor?: (schema: number) => string,
  from?: ChainHead,
): Promise<CheckedStore> {
  const recovered = await recoverFiles(options, options);
  const { state, uid, log } = recovered;
  try {
    return {
      ...(await checkRecovered(recovered, options, from)),
      uid: toHex(uid),
      mark: { sequence: log.place.sequence, runs: log.place.runs },
      log: log.name,
      torn: log.torn,
      rows: queryFor ? state.all(state.statement(queryFor(state.schemaVersion)), []) : [],
    };
  } finally {
    state.close();
  }
}

/** The files of a store's activity log. */
interface CheckedFiles {
  readonly files: WholeFiles;
  readonly dir: string;
  readonly keys: StoreKeys;
}

/** Verifies a recovered store, whatever it was recovered from. `from` as for `checkStore`. */
export async function checkRecovered(
  { state, activity, uid }: Pick<Recovered, 'state' | 'activity' | 'uid'>,
  options: CheckedFiles,
  from?: ChainHead,
): Promise<Pick<CheckedStore, 'schema' | 'tables' | 'activity' | 'dropped' | 'lastActivityAt' | 'faults' | 'closed'>> {
  const [fault] = state.faults();
  if (fault !== undefined) throw damaged(`${options.dir}: the database is damaged: ${fault}`);
  const isThere = activity.segments.some(({ lastSeq, hash }) => lastSeq === from?.seq && hash === from.hash);
  const faults = await followActivity(activity, uid, options, isThere ? from : undefined);
  const last = faults.length === 0 ? activity.segments.at(-1) : undefined;
  return {
    schema: state.schemaVersion,
    tables: state.countRows(),
    activity: activity.head,
    dropped: activity.dropped,
    lastActivityAt: await lastRecord(activity),
    faults,
    closed: last && { seq: last.lastSeq, hash: last.hash },
  };
}

/**
 * Follows the whole chain. If it meets a faulty segment, it checks every segment, and then follows only the records
 * after the last one.
 */
async function followActivity(
  activity: ActivityLog,
  uid: Uint8Array,
  options: CheckedFiles,
  from: ChainHead | undefined,
): Promise<SegmentFault[]> {
  const { files, dir, keys } = options;
  const { head } = activity;
  const ends = (end: ChainHead): void => {
    if (end.seq === head.seq && end.hash === head.hash) return;
    throw damaged(`${dir}: the activity log ends at record ${end.seq}, expected ${head.seq}`);
  };
  const follow = async (start?: ChainHead): Promise<void> => {
    const before = start ?? activity.dropped;
    const links = activity.read((before?.seq ?? 0) + 1);
    const { broken, head: end } = await verifyChain(links, before ? { start: before } : {});
    if (broken) throw damaged(`${dir}: the activity log does not verify: ${broken.problem}`);
    ends(end);
  };
  try {
    await follow(from);
    return [];
  } catch (error) {
    if (!(error instanceof SegmentFault)) throw error;
    const faults: SegmentFault[] = [];
    for (const summary of activity.segments) {
      const problem = await problemOfSegment({ dir, uid, summary }, files, keys);
      if (problem !== undefined) faults.push(new SegmentFault(segmentPath(dir, summary.file), problem));
    }
    // All segments verify on a second reading, so the first error was transient.
    if (faults.length === 0) throw error;
    const last = activity.segments.at(-1);
    await follow(last && { seq: last.lastSeq, hash: last.hash });
    return faults;
  }
}

/** Undefined also if the last record cannot be read. */
async function lastRecord(activity: ActivityLog): Promise<number | undefined> {
  try {
    return (await activity.search({}, { limit: 1 })).items[0]?.createdAt;
  } catch (error) {
    if (error instanceof SegmentFault) return undefined;
    throw error;
  }
}

function damaged(message: string): KmsError {
  return new KmsError('corrupt', message, { hint: 'check the disk for faults, and take another backup' });
}
