// Proves a store from its files, beside whatever serves it: recovers it into memory, has SQLite look at all of it, and follows the
// chain of the activity log from its first record to its last. Changes nothing.
import { toHex } from '../crypto/encoding.ts';
import { KmsError } from '../errors.ts';
import type { ChainHead } from './activity/activity-log.ts';
import { verifyChain } from './activity/verify.ts';
import { type RecoverOptions, recover } from './recover.ts';
import type { Row } from './sql.ts';

export interface CheckedStore {
  /** Hexadecimal. */
  readonly uid: string;
  readonly sequence: number;
  /** Migrations done. */
  readonly schema: number;
  /** Rows of each table. */
  readonly tables: Readonly<Record<string, number>>;
  readonly activity: ChainHead;
  /** Epoch milliseconds of the last activity record; undefined where there is none. */
  readonly lastActivityAt: number | undefined;
  /** Bytes behind the last whole record: a write that was never acknowledged. */
  readonly torn: number;
  /** What `query` answers. */
  readonly rows: readonly Row[];
}

/** Throws `corrupt` for anything that does not verify. `query` is a constant statement that reads. */
export async function checkStore(options: RecoverOptions, query?: string): Promise<CheckedStore> {
  const { state, activity, uid, log } = await recover(options);
  try {
    const [fault] = state.faults();
    if (fault !== undefined) throw damaged(`${options.dir}: the database is damaged: ${fault}`);
    const { broken, head } = await verifyChain(activity.read(1));
    if (broken) throw damaged(`${options.dir}: the activity log does not verify: ${broken.problem}`);
    if (head.seq !== activity.head.seq || head.hash !== activity.head.hash) {
      throw damaged(`${options.dir}: the activity log ends at record ${head.seq}, expected ${activity.head.seq}`);
    }
    const last = await activity.search({}, { limit: 1 });
    return {
      uid: toHex(uid),
      sequence: log.place.sequence,
      schema: state.schemaVersion,
      tables: state.countRows(),
      activity: activity.head,
      lastActivityAt: last.items[0]?.createdAt,
      torn: log.torn,
      rows: query === undefined ? [] : state.all(state.statement(query), []),
    };
  } finally {
    state.close();
  }
}

function damaged(message: string): KmsError {
  return new KmsError('corrupt', message, { hint: 'look for the fault in the disk, and take another backup' });
}
