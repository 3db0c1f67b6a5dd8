// Service is the time in which an embedded store serves: what was recovered from the disk with the log that continues
// it. When the log fails, it is repaired and all is recovered again.
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

/** What is in service. */
export interface Live<T extends object> extends Maintained {
  readonly state: State;
  readonly session: Session<T>;
  readonly log: CommitLog;
  /** Its log failed: nothing that it holds may be shown. */
  dead: boolean;
  /** A transaction is running on it. */
  inUse: boolean;
}

export class Service<T extends object> implements Serving<Live<T>> {
  readonly maintenance: Maintenance<Live<T>>;
  readonly #world: EmbeddedWorld<T>;
  readonly #availability: Availability<Live<T>>;
  /** The end of the log as it was when something was in service. */
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
    // What a crash left of a checkpoint; only space is lost when that fails.
    await this.maintenance.removeUpTo(live.snapshot.generation, live.activity).catch(() => {});
    return live;
  }

  /** Undefined while nothing is in service. */
  get live(): Live<T> | undefined {
    return this.#availability.live;
  }

  /** Why nothing is. */
  get reason(): string {
    return this.#availability.reason;
  }

  serving(): Promise<Live<T>> {
    return this.#availability.serving();
  }

  /** For whoever asks from outside: throws once the store is being closed, too. */
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

  /** Refuses whoever asks from outside from now on. */
  beginClosing(): void {
    this.#availability.beginClosing();
  }

  /** Makes durable what is under way and lets go of the files. Nobody may use what is in service any more. */
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

  /** Throws the state away and recovers it from the disk, once `ready` resolves. */
  leave(live: Live<T>, cause: unknown, ready: Promise<void>): void {
    if (live.dead) return;
    this.status();
    this.#mark = this.mark;
    this.#availability.leave(live, cause, ready);
  }

  /** Takes it out of service until the files hold again all that was durable. */
  lost(live: Live<T>, cause: FileLost): void {
    this.leave(live, cause, live.log.close());
  }

  /** Nothing is put in service behind what this process told others was durable, nor another history. */
  async #recover({ log, uid }: Live<T>): Promise<Live<T>> {
    const { context } = this.#world;
    const { generation, place } = log.writer;
    this.#mark = markOf(place);
    // Before anything is changed, so that a file that was cut stays as it was found.
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

  /** Puts what was recovered in service: cuts off a torn end, and runs the migrations that are missing. */
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

/** What the files hold. Changes nothing. */
export function recoverFor<T extends object>(world: EmbeddedWorld<T>): Promise<Recovered> {
  const { uid, limits, migrations } = world;
  return recover({ ...world.context, wasm: world.wasm, migrations, ...(uid ? { uid } : {}), ...limits });
}

/** Of what is durable up to a place. */
export function markOf({ sequence, runs }: Mark): Mark {
  return { sequence, runs };
}

/** What of a store's status does not come from looking after its segments. */
export type ServiceStatus = Omit<StoreStatus, 'activityFaults' | 'activityVerified' | 'activityVerifiedAt'>;

/** Of a store that writes. */
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

/** Of one that never served. */
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
