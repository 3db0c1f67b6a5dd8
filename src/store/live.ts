// A store in service: the state recovered from disk with the log that continues it. When its log fails it is thrown away
// whole, and a new one takes its place.
import type { ActivityLog } from './activity/activity-log.ts';
import { CommitLog, type CommitLogEvents } from './commit-log.ts';
import type { EmbeddedWorld } from './embedded-options.ts';
import { logName } from './file-names.ts';
import { continueLog } from './log-writer.ts';
import { migrate } from './migrate.ts';
import { type Recovered, recover } from './recover.ts';
import { Session } from './session.ts';
import type { State } from './state.ts';

export interface Live<T extends object> {
  readonly state: State;
  readonly session: Session<T>;
  readonly activity: ActivityLog;
  readonly log: CommitLog;
  readonly uid: Uint8Array;
  snapshot: Recovered['snapshot'];
  /** Its log failed: nothing that it holds may be shown. */
  dead: boolean;
  /** A transaction is running on it. */
  inUse: boolean;
}

/** Recovers the store, cuts off a torn end, and runs the migrations that are missing. */
export async function openLive<T extends object>(world: EmbeddedWorld<T>, events: CommitLogEvents): Promise<Live<T>> {
  const { uid, limits, migrations } = world;
  const recovered = await recover({
    ...world.context,
    wasm: world.wasm,
    migrations,
    ...(uid ? { uid } : {}),
    ...limits,
  });
  const { state, activity, log: end } = recovered;
  let log: CommitLog | undefined;
  try {
    const isNew = state.schemaVersion === 0 && end.place.sequence === 0;
    if (state.schemaVersion < migrations.length && !isNew) await world.beforeMigration();
    const writer = await continueLog(world.context, end.header, end.place);
    log = new CommitLog(world.context, recovered.uid, writer, recovered.closed, events);
    noticeTorn(world, recovered);
    const session = new Session(state, (sql) => world.tables(sql), activity);
    if (await migrate(state, session, migrations)) await log.add(session.written);
    const { snapshot } = recovered;
    return { state, session, activity, log, uid: recovered.uid, snapshot, dead: false, inUse: false };
  } catch (error) {
    await log?.close();
    state.close();
    throw error;
  }
}

function noticeTorn<T extends object>(world: EmbeddedWorld<T>, { log }: Recovered): void {
  if (log.torn === 0) return;
  const name = logName(world.dir, log.header.generation);
  world.onNotice({
    kind: 'torn-tail',
    message: `${name}: cut off ${log.torn} bytes at offset ${log.place.offset}, a write that was never acknowledged`,
  });
}
