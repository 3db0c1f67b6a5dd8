// Service is an embedded store's time in service: the store recovered from the disk, and the log that continues it.
// When the log fails, it is repaired and the store is recovered again.
import type { Mark } from '../model/store-mark.ts';
import type { ActivityLog } from './activity/activity-log.ts';
import { Availability } from './availability.ts';
import { CommitLog } from './commit-log.ts';
import type { EmbeddedWorld } from './embedded-options.ts';
import { FileLost } from './files.ts';
import { needAllKnown, needEnd } from './known-end.ts';
import { continueLog, repairLog } from './log-file.ts';
import { type Maintained, Maintenance, type Serving } from './maintenance.ts';
import type { StoreStatus } from './port.ts';
import { type Recovered, recover } from './recover.ts';
import { Session } from './session.ts';
import type { State } from './state.ts';
import { listStoreFiles, logName } from './store-files.ts';
import { migrate } from './tables/migrations.ts';

/** The store in service. */
export interface Live<T extends object> extends Maintained {
  readonly state: State;
  readonly session: Session<T>;
  readonly log: CommitLog;
  /** Its log failed: nothing in it may be shown. */
  dead: boolean;
  /** A transaction is running on it. */
  inUse: boolean;
}

export class Service<T extends object> implements Serving<Live<T>> {
  readonly maintenance: Maintenance<Live<T>>;
  readonly #world: EmbeddedWorld<T>;
  readonly #availability: Availability<Live<T>>;
  /** The end of the log when the store was last in service. */
  #mark: Mark = { sequence: 0, runs: [] };
  #status: ServiceStatus | undefined;

  constructor(world: EmbeddedWorld<T>) {
    const { limits, later, onEvent } = world;
    this.#world = world;
    this.#availability = new Availability({
      retry: limits.recoveryRetry,
      later,
      onEvent,
      words: { failed: 'a write failed', mended: 'the store was recovered from the disk and writes again' },
      kindOf: (cause) => (cause instanceof FileLost ? 'log-lost' : undefined),
      release: (dead) => {
        if (!dead.inUse) dead.state.close();
      },
      recover: (dead) => this.#recover(dead),
    });
    this.maintenance = new Maintenance(world, this);
  }

  async open(recovered: Recovered): Promise<Live<T>> {
    const { files, dir } = this.#world;
    const { leftovers } = await listStoreFiles(files, dir);
    for (const name of leftovers) await files.remove(name);
    const live = await this.#goLive(recovered);
    this.#availability.begin(live);
    this.#mark = markOf(live.log.writer.place);
    // Remains of a checkpoint that a crash interrupted; if this fails, they only cost space.
    await this.maintenance.removeUpTo(live.snapshot.generation, live.activity).catch(() => {});
    return live;
  }

  /** Undefined while nothing is in service. */
  get live(): Live<T> | undefined {
    return this.#availability.live;
  }

  /** Why nothing is in service. */
  get reason(): string {
    return this.#availability.reason;
  }

  serving(): Promise<Live<T>> {
    return this.#availability.serving();
  }

  /** For callers outside the store: throws once the store is closing, too. */
  inService(): Promise<Live<T>> {
    return this.#availability.inService();
  }

  get mark(): Mark {
    if (this.live) this.#mark = this.live.log.writer.place;
    return this.#mark;
  }

  status(): ServiceStatus {
    const { live, reason } = this.#availability;
    if (!live) return { ...(this.#status ?? emptyStatus), writable: false, reason };
    const { log, snapshot, activity } = live;
    this.#status = statusOf(log.bytes, log.writer.place.sequence, snapshot, activity);
    return this.#status;
  }

  /** Refuses calls from outside from now on. */
  beginClosing(): void {
    this.#availability.beginClosing();
  }

  /** Makes pending work durable and releases the files. No caller may use the store after that. */
  async close(): Promise<void> {
    await this.maintenance.stop();
    await this.serving().catch(() => {});
    this.status();
    const live = await this.#availability.end();
    await live?.log.trim();
    await live?.log.close();
    if (live) this.#mark = markOf(live.log.writer.place);
    live?.state.close();
    await this.#world.onClosed();
  }

  /** Discards the state and recovers it from the disk once `ready` resolves. */
  leave(live: Live<T>, cause: unknown, ready: Promise<void>): void {
    if (live.dead) return;
    this.status();
    this.#mark = this.mark;
    this.#availability.leave(live, cause, ready);
  }

  /** Takes the store out of service until the files again hold everything that was durable. */
  lost(live: Live<T>, cause: FileLost): void {
    this.leave(live, cause, live.log.close());
  }

  /** Refuses to put in service another history, or less than this process reported as durable. */
  async #recover({ log, uid }: Live<T>): Promise<Live<T>> {
    const { context } = this.#world;
    const { generation, place } = log.writer;
    this.#mark = markOf(place);
    // Before any change, so that a file that was cut stays as it was found.
    await needEnd(context, { generation, place });
    if (log.broken) await repairLog(context, uid, log.broken);
    const recovered = await recoverFor(this.#world);
    try {
      const found = { generation: recovered.log.header.generation, place: recovered.log.place };
      needAllKnown(context.dir, found, { generation, place });
    } catch (error) {
      recovered.state.close();
      throw error;
    }
    return this.#goLive(recovered);
  }

  /** Puts a recovered store in service: cuts off a torn end and runs the missing migrations. */
  async #goLive(recovered: Recovered): Promise<Live<T>> {
    const { context, migrations, beforeMigration, tables } = this.#world;
    const { state, activity, log: end, uid, snapshot } = recovered;
    let live: Live<T> | undefined;
    let log: CommitLog | undefined;
    try {
      const isNew = state.schemaVersion === 0 && end.place.sequence === 0;
      if (state.schemaVersion < migrations.length && !isNew) await beforeMigration();
      const writer = await continueLog(context, end.header, end.place);
      log = new CommitLog(context, uid, writer, recovered.closed, {
        onDurable: (commit) => {
          this.#world.onCommit(commit);
          if (live) this.maintenance.startWhenDue(live);
        },
        onFailure: (cause, takenBack) => live && this.leave(live, cause, takenBack),
      });
      this.#sayTorn(recovered);
      const session = new Session(state, (sql) => tables(sql), activity);
      const written = migrate(state, session, migrations);
      if (written) await log.add(written);
      live = { state, session, activity, log, uid, snapshot, dead: false, inUse: false };
      return live;
    } catch (error) {
      await log?.close();
      state.close();
      throw error;
    }
  }

  #sayTorn({ log }: Recovered): void {
    if (log.torn === 0) return;
    const name = logName(this.#world.dir, log.header.generation);
    this.#world.onEvent({
      kind: 'torn-tail',
      message: `${name}: cut off ${log.torn} bytes at offset ${log.place.offset}, a write that was never acknowledged`,
    });
  }
}

/** Recovers the store from its files. Changes nothing. */
export function recoverFor<T extends object>(world: EmbeddedWorld<T>): Promise<Recovered> {
  const { uid, limits, migrations } = world;
  return recover({ ...world.context, wasm: world.wasm, migrations, ...(uid ? { uid } : {}), ...limits });
}

/** The mark of everything durable up to a position. */
export function markOf({ sequence, runs }: Mark): Mark {
  return { sequence, runs };
}

/** The part of a store's status that does not come from checking its segments. */
export type ServiceStatus = Omit<StoreStatus, 'activityFaults' | 'activityVerified' | 'activityVerifiedAt'>;

/** The status of a store that can write. */
export function statusOf(
  logBytes: number,
  sequence: number,
  snapshot: Recovered['snapshot'],
  activity: ActivityLog,
): ServiceStatus {
  return {
    writable: true,
    logBytes,
    snapshotBytes: snapshot.bytes,
    activityBytes: activity.bytes,
    sequence,
    lastCheckpointAt: snapshot.generation === 0 ? undefined : snapshot.savedAt,
    activityCount: activity.count,
    activityDropped: activity.dropped,
    activitySegments: activity.segments.length,
  };
}

/** The status of a store that never served. */
export const emptyStatus: ServiceStatus = {
  writable: false,
  logBytes: 0,
  snapshotBytes: 0,
  activityBytes: 0,
  sequence: 0,
  lastCheckpointAt: undefined,
  activityCount: 0,
  activityDropped: undefined,
  activitySegments: 0,
};
