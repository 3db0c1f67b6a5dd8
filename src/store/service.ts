// Service is the time in which a store serves: what was recovered from the disk with the log that continues it. When
// the log fails, what is in memory is thrown away whole and recovered again; until that works nothing is in service.
import { KmsError, reasonOf } from '../errors.ts';
import type { Mark } from '../model/store-mark.ts';
import { CommitLog } from './commit-log.ts';
import type { EmbeddedWorld } from './embedded-options.ts';
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

type ServiceStatus = Omit<StoreStatus, 'activityFaults' | 'activityVerified' | 'activityVerifiedAt'>;

export class Service<T extends object> implements Serving<Live<T>> {
  readonly maintenance: Maintenance;
  readonly #world: EmbeddedWorld<T>;
  #live: Live<T> | undefined;
  /** As it was when something was in service. */
  #mark: Mark = { sequence: 0, runs: [] };
  #status: ServiceStatus | undefined;
  #reason = 'the store is being opened';
  #recovery: Promise<void> | undefined;
  #isClosing = false;

  constructor(world: EmbeddedWorld<T>) {
    this.#world = world;
    this.maintenance = new Maintenance(world, this);
  }

  async open(recovered: Recovered): Promise<Live<T>> {
    const { files, dir } = this.#world;
    const { leftovers } = await listStoreFiles(files, dir);
    for (const name of leftovers) await files.remove(name);
    const live = await this.#goLive(recovered);
    this.#live = live;
    this.#mark = markOf(live.log.writer.place);
    // What a crash left of a checkpoint; only space is lost when that fails.
    await this.maintenance.removeUpTo(live.snapshot.generation, live.activity).catch(() => {});
    return live;
  }

  /** Undefined while nothing is in service. */
  get live(): Live<T> | undefined {
    return this.#live;
  }

  async serving(): Promise<Live<T>> {
    while (this.#recovery) await this.#recovery;
    if (this.#live) return this.#live;
    throw unavailable(this.#reason);
  }

  /** For whoever asks from outside: throws once the store is being closed, too. */
  inService(): Promise<Live<T>> {
    return this.#isClosing ? Promise.reject(storeClosed()) : this.serving();
  }

  get mark(): Mark {
    if (this.#live) this.#mark = this.#live.log.writer.place;
    return this.#mark;
  }

  status(): ServiceStatus {
    const live = this.#live;
    if (!live) {
      const known = this.#status ?? { ...nothing, lastCheckpointAt: undefined };
      return { ...known, writable: false, reason: this.#reason };
    }
    const { log, snapshot, activity } = live;
    this.#status = {
      writable: true,
      logBytes: log.bytes,
      snapshotBytes: snapshot.bytes,
      activityBytes: activity.bytes,
      sequence: log.writer.place.sequence,
      lastCheckpointAt: snapshot.generation === 0 ? undefined : snapshot.savedAt,
      activityCount: activity.count,
      activityDropped: activity.dropped,
      activitySegments: activity.segments.length,
    };
    return this.#status;
  }

  /** Refuses whoever asks from outside from now on. */
  beginClosing(): void {
    this.#isClosing = true;
  }

  /** Makes durable what is under way and lets go of the files. Nobody may use what is in service any more. */
  async close(): Promise<void> {
    await this.maintenance.stop();
    await this.#recovery;
    const live = this.#live;
    this.status();
    this.#live = undefined;
    this.#reason = 'the store is closed';
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
    live.dead = true;
    this.#live = undefined;
    this.#reason = `a write failed: ${reasonOf(cause)}`;
    this.#world.onEvent({ kind: 'write-failed', message: this.#reason, cause });
    this.#recover(live, ready);
  }

  #recover(dead: Live<T>, ready?: Promise<void>): void {
    this.#recovery = (async () => {
      await ready;
      if (!dead.inUse) dead.state.close();
      await this.#tryToRecover(dead);
      this.#recovery = undefined;
    })();
  }

  async #tryToRecover(dead: Live<T>): Promise<void> {
    const { context, limits, later, onEvent } = this.#world;
    try {
      const { broken } = dead.log;
      if (broken) await repairLog(context, dead.uid, broken);
      this.#live = await this.#goLive(await recoverFor(this.#world));
      onEvent({ kind: 'recovered', message: 'the store was recovered from the disk and writes again' });
    } catch (cause) {
      const reason = `a write failed, and the store is not recovered yet: ${reasonOf(cause)}`;
      // Said once, not at each try.
      if (reason !== this.#reason) onEvent({ kind: 'recovery-failed', message: reason, cause });
      this.#reason = reason;
      later(limits.recoveryRetry, () => {
        if (!this.#isClosing && !this.#recovery) this.#recover(dead);
      });
    }
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
      if (await migrate(state, session, migrations)) await log.add(session.written);
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

const nothing = {
  logBytes: 0,
  snapshotBytes: 0,
  activityBytes: 0,
  sequence: 0,
  activityCount: 0,
  activityDropped: undefined,
  activitySegments: 0,
};

export function storeClosed(): KmsError {
  return unavailable('the store is closed');
}

function unavailable(reason: string): KmsError {
  return new KmsError('unavailable', `the store does not serve: ${reason}`, {
    hint: 'it goes on by itself once the cause is gone',
  });
}
