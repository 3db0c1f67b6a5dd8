// The part of a recovery that every kind of log shares: the snapshot's database and activity log, with the log replayed
// on them. No statement of a newer program runs.
import { type ActivityLog, emptyHead, openActivityLog } from './activity/activity-log.ts';
import type { WholeFiles } from './files.ts';
import type { readSnapshot } from './snapshot.ts';
import { openState, type State } from './state.ts';
import type { StoreKeys } from './store-files.ts';
import { type Migration, needSchema, refuseNewer } from './tables/migrations.ts';

export interface RecoveryOptions {
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  /** The files to read and write activity segments in. */
  readonly files: WholeFiles;
  readonly dir: string;
  readonly keys: StoreKeys;
  readonly wasm: Uint8Array | ArrayBuffer;
  /** Given to refuse a newer schema before any statement runs on it. */
  readonly migrations?: readonly Migration[] | undefined;
  /** Records in an activity segment. */
  readonly segmentRecords?: number | undefined;
  /** Cache for activity segments that were read, in bytes. */
  readonly activityCacheBytes?: number | undefined;
}

export interface RecoveredState {
  readonly state: State;
  readonly activity: ActivityLog;
  /** Generation 0: no snapshot is needed yet. */
  readonly snapshot: { readonly generation: number; readonly bytes: number; readonly savedAt: number };
}

type Snapshot = Awaited<ReturnType<typeof readSnapshot>>;

/** Without a snapshot the log begins with the store. `replay` runs the log after it; the result has what it returns. */
export async function recoverState<R extends object>(
  options: RecoveryOptions,
  snapshot: Snapshot | undefined,
  replay: (state: State, activity: ActivityLog) => Promise<R>,
): Promise<RecoveredState & R> {
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
    const replayed = await replay(state, activity);
    // A newer program's migration may stand only in the log.
    await check();
    const described = { generation: header?.generation ?? 0, bytes: size ?? 0, savedAt: manifest?.savedAt ?? 0 };
    return { state, activity, snapshot: described, ...replayed };
  } catch (error) {
    state.close();
    throw error;
  }
}
