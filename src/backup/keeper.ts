// Backups of an open appliance: on request, as a drill, and on schedule. Each is restored on trial before it gets the
// name of a backup; of those on schedule and on request, the newest few are kept.
import { join, resolve } from 'node:path';
import { Cron } from 'croner';
import type { Backups } from '../api/backups.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { toHex } from '../crypto/bytes.ts';
import type { SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError, systemError } from '../errors.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { tryFileSystem } from '../platform/file-system.ts';
import { type ForeignFiles, foreignFiles } from '../platform/foreign-files.ts';
import { recordInTenants } from '../storage/served-tenants.ts';
import { needWhole } from './prove.ts';
import { openBackup, sealOf } from './read.ts';
import { readVerified, type VerifiedBackup } from './verified-backup.ts';
import { tryRestore } from './verify.ts';
import { type Collecting, collect, writeBackup } from './write.ts';

export interface KeeperDeps extends Collecting {
  /** The data directory. */
  readonly root: string;
  readonly seal: SealKeeper;
  readonly world: World;
  /** Aborted when the appliance closes: pending drills are given up then. */
  readonly closing?: AbortSignal;
}

/** Prefix of a drill's files in the data directory, also of those that a crash leaves. */
export const drillPrefix = 'drill-';

/** Milliseconds that a reader may take nothing. */
const stallTimeout = 10 * 60 * 1000;

export class BackupKeeper {
  readonly #deps: KeeperDeps;
  #last: VerifiedBackup | undefined;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  /** The data directory. */
  get root(): string {
    return this.#deps.root;
  }

  /** Loads the notes of earlier runs, and removes a drill left over from a crash. */
  async open(): Promise<void> {
    const place = this.#drillPlace;
    for (const name of await place.names('.')) if (name.startsWith(drillPrefix)) await place.removeDir(name);
    const text = await this.#deps.system.transaction(({ settings }) => settings.get('backup'));
    if (text !== undefined) this.#last = readVerified(text);
  }

  /** The last kept backup that restored without a gap. */
  get lastVerified(): VerifiedBackup | undefined {
    return this.#last;
  }

  /** In epoch milliseconds. */
  now(): number {
    return this.#deps.world.now();
  }

  /** The whole appliance as a backup. Holds nothing before the first piece is read. */
  async *stream(): AsyncGenerator<Uint8Array> {
    const { files, seal, world } = this.#deps;
    const { stores, release } = await collect(this.#deps, { counted: true });
    // Old files accumulate while they are held, so a stalled reader loses them.
    const stallTimer = setTimeout(release, stallTimeout).unref();
    try {
      const input = { files, seal: () => seal.current, stores, at: world.now(), random: world.random };
      for await (const piece of writeBackup(input)) {
        yield piece;
        stallTimer.refresh();
      }
    } finally {
      clearTimeout(stallTimer);
      release();
    }
  }

  /** Records the backup in every tenant's activity log, since all their data leave the appliance, though sealed. */
  async record(props: Readonly<Record<string, unknown>>): Promise<void> {
    const { tenants, world } = this.#deps;
    await recordInTenants(tenants, world, { action: 'system.backup', keyid: localCaller.id, props });
  }

  /** Makes the backup `name`, restores it beside itself, and remembers it if nothing is lacking. */
  async makeVerified(
    place: ForeignFiles,
    name: string,
    finish: (made: Pick<VerifiedBackup, 'lacks'>) => Promise<string>,
  ): Promise<VerifiedBackup> {
    const made = await this.#makeAndTry(place, name);
    const kept: VerifiedBackup = { ...made, file: await finish(made) };
    if (kept.lacks.length > 0) return kept;
    this.#last = kept;
    await this.#deps.system.transaction(({ settings }) => settings.set('backup', JSON.stringify(kept)));
    return kept;
  }

  /** Makes and restores a backup, then removes it: proves that backups restore, but leaves none. */
  async drill(): Promise<VerifiedBackup> {
    await this.record({ operation: 'drill' });
    const place = this.#drillPlace;
    const name = `${drillPrefix}${toHex(this.#deps.world.random(6))}.kms-backup`;
    try {
      const tried = await this.#makeAndTry(place, name, this.#deps.closing);
      needWhole(tried, 'a backup would restore, but for the records of a segment');
      return tried;
    } catch (error) {
      throw systemError(error, resolve(this.#deps.root));
    } finally {
      await place.removeDir(name);
    }
  }

  /** The data directory as the place for drills; no other process writes there. */
  get #drillPlace(): ForeignFiles {
    return foreignFiles({ path: this.#deps.root });
  }

  async #makeAndTry(files: ForeignFiles, name: string, signal?: AbortSignal): Promise<VerifiedBackup> {
    const { world, seal } = this.#deps;
    await files.replace(name, unlessGivenUp(this.stream(), signal));
    const backup = await openBackup(files, name);
    const own = seal.current.openOther(await sealOf(files, backup), `the seal in ${name}`);
    try {
      const restoreTo = `${name}.${toHex(world.random(6))}.restored`;
      const proof = await tryRestore({ files, name }, own, { restoreTo, signal });
      const { bytes, manifest } = backup;
      return { ...proof, bytes, madeAt: manifest.createdAt, verifiedAt: new Date(world.now()).toISOString() };
    } finally {
      own.wipe();
    }
  }
}

async function* unlessGivenUp(pieces: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) {
  for await (const piece of pieces) {
    signal?.throwIfAborted();
    yield piece;
  }
}

export interface ScheduleSettings {
  /** The directory for backups. */
  readonly to: string;
  /** A cron expression, in UTC. */
  readonly schedule: string;
  /** Number kept of each kind. */
  readonly keep: number;
}

/** Suffix of a backup that has not been verified yet. */
const untried = '.unverified';
const whole = '.kms-backup';
/** Suffix of a backup that restores, but lacks segments of an activity log. */
const incomplete = `.incomplete${whole}`;
/** Precedes these suffixes in the name of a backup on request. */
const requested = '.requested';

/** Throws `usage` for a malformed expression, or one that never occurs. */
export function checkSchedule(schedule: string): void {
  let next: Date | null;
  try {
    next = new Cron(schedule, { paused: true, timezone: 'UTC' }).nextRun();
  } catch {
    next = null;
  }
  if (next) return;
  throw new KmsError('usage', `--backup-schedule: expected a cron expression such as "0 3 * * *", got "${schedule}"`);
}

/**
 * Throws `refused` if backups cannot or must not be written there, as in the data directory `root`: better at the start
 * than at night.
 */
export async function checkPlace(to: string, root: string): Promise<void> {
  const files = foreignFiles({ path: to, own: [root] });
  try {
    await files.makeDir('.');
    await tryFileSystem(resolve(to), { isPrivate: false, files });
  } catch (error) {
    throw systemError(error, `--backup-to ${resolve(to)}`);
  }
}

interface BackupRequest {
  /** Made on request, which is already in the activity logs, and not by the schedule. */
  readonly isRequested?: boolean;
}

export class BackupSchedule {
  readonly #keeper: BackupKeeper;
  readonly #settings: ScheduleSettings;
  readonly #to: ForeignFiles;
  readonly #applianceId: string;
  readonly #onEvent: (event: ApplianceEvent) => void;
  #cron: Cron | undefined;
  /** One at a time: each begins by removing leftovers of another. */
  #underWay: Promise<VerifiedBackup> | undefined;
  #failure: Backups['lastFailure'] = null;

  constructor(
    keeper: BackupKeeper,
    settings: ScheduleSettings,
    applianceId: string,
    onEvent: (event: ApplianceEvent) => void,
  ) {
    this.#keeper = keeper;
    this.#settings = settings;
    this.#to = foreignFiles({ path: settings.to, own: [keeper.root] });
    this.#applianceId = applianceId;
    this.#onEvent = onEvent;
  }

  start(): void {
    this.#cron = new Cron(this.#settings.schedule, { timezone: 'UTC', protect: true, unref: true }, async () => {
      this.begin();
      await this.#underWay?.catch(() => {});
    });
  }

  async close(): Promise<void> {
    this.#cron?.stop();
    await this.#underWay?.catch(() => {});
  }

  status(): Pick<Backups, 'configured' | 'running' | 'lastFailure'> {
    const { to, schedule, keep } = this.#settings;
    const nextAt = this.#cron?.nextRun()?.toISOString() ?? null;
    return {
      configured: { directory: resolve(to), schedule, keep, nextAt },
      running: this.#underWay !== undefined,
      lastFailure: this.#failure,
    };
  }

  /** Makes a backup now, or joins the one under way; a failure is reported as an event. */
  begin(asked: BackupRequest = {}): void {
    this.run(asked).catch((cause: unknown) => {
      const message = cause instanceof Error ? cause.message : String(cause);
      this.#onEvent({ level: 'error', message: `the scheduled backup failed: ${message}`, cause });
    });
  }

  /** Makes a backup now, or joins the one under way. */
  run(asked: BackupRequest = {}): Promise<VerifiedBackup> {
    this.#underWay ??= this.#make(asked)
      .then(
        (made) => {
          const [first] = made.lacks;
          this.#failed(first === undefined ? undefined : `it lacks activity segment ${first}`);
          return made;
        },
        (error: unknown) => {
          this.#failed(error instanceof KmsError ? error.message : 'the log of the service says why');
          throw error;
        },
      )
      .finally(() => {
        this.#underWay = undefined;
      });
    return this.#underWay;
  }

  #failed(message: string | undefined): void {
    const at = new Date(this.#keeper.now()).toISOString();
    this.#failure = message === undefined ? null : { at, message };
  }

  async #make({ isRequested = false }: BackupRequest): Promise<VerifiedBackup> {
    const dir = resolve(this.#settings.to);
    try {
      await this.#to.makeDir('.');
      await this.#removeUntried();
      const time = new Date(this.#keeper.now()).toISOString().replace(/[-:]|\.[0-9]+/g, '');
      const named = `${this.#prefix}${time}`;
      const name = isRequested ? `${named}${requested}` : named;
      if (!isRequested) await this.#keeper.record({ operation: 'scheduled' });
      const draft = `${name}${whole}${untried}`;
      const made = await this.#keeper.makeVerified(this.#to, draft, async ({ lacks }) => {
        const kept = `${name}${lacks.length > 0 ? incomplete : whole}`;
        await this.#to.rename(draft, kept);
        return join(dir, kept);
      });
      await this.#removeOld(named);
      this.#report(made);
      return made;
    } catch (error) {
      throw systemError(error, dir);
    }
  }

  #report({ file, bytes, lacks: [first, ...others] }: VerifiedBackup): void {
    if (first === undefined) {
      this.#onEvent({ level: 'info', message: `${file}: ${bytes} bytes, restored on trial` });
      return;
    }
    const more = others.length > 0 ? ` and ${others.length} more are missing or changed` : '';
    const message = `${file}: restored on trial, but activity segment ${first}${more}: put it back from an older backup`;
    this.#onEvent({ level: 'error', message: `${message}; those that are whole are kept until then` });
  }

  get #prefix(): string {
    return `kms-${this.#applianceId.slice(0, 8)}-`;
  }

  /** Removes leftovers of a crash or a failure: they are worthless, and were kept until now only for inspection. */
  async #removeUntried(): Promise<void> {
    for (const name of await this.#to.names('.')) {
      if (name.startsWith(this.#prefix) && name.includes(`.kms-backup${untried}`)) await this.#to.removeDir(name);
    }
  }

  /**
   * Each kind replaces only its own, by suffix: an incomplete backup never replaces a whole one, which may have what it
   * lacks, and requests, however many, never replace scheduled ones. Backups dated after the one `made` now come from a
   * clock that was ahead, and count as older.
   */
  async #removeOld(made: string): Promise<void> {
    const named = (await this.#to.names('.'))
      .filter((name) => name.startsWith(this.#prefix) && name.endsWith(whole))
      .sort();
    const isLater = (name: string): boolean => !name.startsWith(made) && name > made;
    const own = [...named.filter(isLater), ...named.filter((name) => !isLater(name))];
    const kinds = Map.groupBy(own, (name) => name.slice(made.length));
    for (const alike of kinds.values()) {
      for (const name of alike.slice(0, -this.#settings.keep)) await this.#to.removeDir(name);
    }
  }
}
