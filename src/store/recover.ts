// Recovery of a store's state from its journal: the newest snapshot, then the log after it, in order. A start, a
// checkpoint and the recovery from a failed write all use it. No statement of a newer program runs.
import type { Mark } from '../model/store-mark.ts';
import { type ActivityLog, emptyHead, openActivityLog } from './activity/activity-log.ts';
import type { WholeFiles } from './files.ts';
import type { readSnapshot } from './snapshot.ts';
import { openState, type State } from './state.ts';
import type { StoreKeys } from './store-files.ts';
import { type Migration, needSchema, refuseNewer } from './tables/migrations.ts';

export interface RecoverOptions {
  readonly wasm: Uint8Array | ArrayBuffer;
  /** Given to refuse a newer schema before any statement runs on it. */
  readonly migrations?: readonly Migration[] | undefined;
  /** The last log file or row to read, which must exist, and a file be closed; absent = all there are. */
  readonly through?: number | undefined;
  /** Whether full runs of activity become segments along the way, as in a checkpoint. */
  readonly rolls?: boolean | undefined;
  /** Records in an activity segment. */
  readonly segmentRecords?: number | undefined;
  /** Cache for activity segments that were read, in bytes. */
  readonly activityCacheBytes?: number | undefined;
}

/** The store to recover, and its place. */
interface Recovering extends RecoverOptions {
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  /** The files to read and write activity segments in. */
  readonly files: WholeFiles;
  readonly dir: string;
  readonly keys: StoreKeys;
}

export interface RecoveredState {
  readonly state: State;
  readonly activity: ActivityLog;
  /** Generation 0: no snapshot is needed yet. */
  readonly snapshot: { readonly generation: number; readonly bytes: number; readonly savedAt: number };
}

/** The end of a log that was read. */
export interface LogEnd {
  /** The name of the log, or of its last file, in errors. */
  readonly name: string;
  /** Where it ends in that, for errors: an offset, or a row's number. */
  readonly offset: number;
  /** Number of the last file or row. */
  readonly generation: number;
  readonly place: Mark & { readonly chain: Uint8Array };
}

export interface Recovered<E extends LogEnd = LogEnd> extends RecoveredState {
  readonly uid: Uint8Array;
  readonly log: E;
}

type Snapshot = Awaited<ReturnType<typeof readSnapshot>>;

/** Without a snapshot the log begins with the store. `replay` runs the log after it, and returns its end. */
export async function recoverState<E extends LogEnd>(
  options: Recovering,
  snapshot: Snapshot | undefined,
  replay: (state: State, activity: ActivityLog) => Promise<E>,
): Promise<Recovered<E>> {
  const { uid, files, dir, keys, wasm, migrations, segmentRecords, activityCacheBytes: cacheBytes } = options;
  const { header, manifest, image, size } = snapshot ?? {};
  if (manifest && migrations) refuseNewer(manifest.schema, migrations, dir);
  const state = await openState(wasm, image && image.length > 0 ? image : undefined);
  const check = async (): Promise<void> => {
    if (!migrations) return;
    refuseNewer(state.schemaVersion, migrations, dir);
    await needSchema(state, migrations, wasm, dir);
  };
  try {
    await check();
    const activity = openActivityLog({
      ...{ files, dir, keys, uid },
      ...(manifest?.activity ?? { segments: [], head: emptyHead }),
      tail: snapshot?.tail ?? [],
      ...(segmentRecords === undefined ? {} : { segmentRecords }),
      ...(cacheBytes === undefined ? {} : { cacheBytes }),
    });
    const log = await replay(state, activity);
    // A newer program's migration may stand only in the log.
    await check();
    const described = { generation: header?.generation ?? 0, bytes: size ?? 0, savedAt: manifest?.savedAt ?? 0 };
    return { uid, state, activity, snapshot: described, log };
  } catch (error) {
    state.close();
    throw error;
  }
}
