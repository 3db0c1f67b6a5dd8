// Backups on schedule: made into a directory, each restored on trial, and only then called by the name of a backup; of those the newest
// few are kept.
import { readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Cron } from 'croner';
import { KmsError } from '../../errors.ts';
import { nodeFiles } from '../../store/node-files.ts';
import { makeDirs } from '../make-dirs.ts';
import type { Notice } from '../notices.ts';
import { fileTrouble } from '../trouble.ts';
import type { BackupKeeper, VerifiedBackup } from './keeper.ts';

export interface ScheduleSettings {
  /** Where backups go. */
  readonly to: string;
  /** A cron expression, in UTC. */
  readonly schedule: string;
  /** How many are kept. */
  readonly keep: number;
}

export const defaultSchedule = '0 3 * * *';
export const defaultKeep = 7;

/** Behind the name of a backup that was not found to restore yet. */
const untried = '.unverified';

/** Throws `usage` for an expression that is none, or that never comes. */
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

export class BackupSchedule {
  readonly #keeper: BackupKeeper;
  readonly #settings: ScheduleSettings;
  readonly #applianceId: string;
  readonly #onNotice: (notice: Notice) => void;
  #cron: Cron | undefined;
  #running: Promise<unknown> = Promise.resolve();

  constructor(
    keeper: BackupKeeper,
    settings: ScheduleSettings,
    applianceId: string,
    onNotice: (notice: Notice) => void,
  ) {
    this.#keeper = keeper;
    this.#settings = settings;
    this.#applianceId = applianceId;
    this.#onNotice = onNotice;
  }

  start(): void {
    const run = (): void => {
      this.#running = this.run().catch((cause: unknown) => {
        const message = cause instanceof Error ? cause.message : String(cause);
        this.#onNotice({ level: 'error', message: `the scheduled backup failed: ${message}`, cause });
      });
    };
    this.#cron = new Cron(this.#settings.schedule, { timezone: 'UTC', protect: true, unref: true }, async () => {
      run();
      await this.#running;
    });
  }

  async close(): Promise<void> {
    this.#cron?.stop();
    await this.#running;
  }

  /** Makes one now. */
  async run(): Promise<VerifiedBackup> {
    const dir = resolve(this.#settings.to);
    try {
      await makeDirs(dir);
      await this.#removeUntried(dir);
      const time = new Date(this.#keeper.now()).toISOString().replace(/[-:]|\.[0-9]+/g, '');
      const name = `${this.#prefix}${time}.kms-backup`;
      const file = join(dir, name);
      await this.#keeper.record({ operation: 'scheduled' });
      const made = await this.#keeper.makeVerified(`${file}${untried}`, async () => {
        await rename(`${file}${untried}`, file);
        await nodeFiles(dir).syncDir('.');
        return file;
      });
      await this.#removeOld(dir);
      this.#onNotice({ level: 'info', message: `${file}: ${made.bytes} bytes, restored on trial` });
      return made;
    } catch (error) {
      throw fileTrouble(error, dir);
    }
  }

  get #prefix(): string {
    return `kms-${this.#applianceId.slice(0, 8)}-`;
  }

  /** What a crash or a failure left: it counts for nothing, and the newest of it was there to be looked into until now. */
  async #removeUntried(dir: string): Promise<void> {
    for (const name of await readdir(dir)) {
      if (name.startsWith(this.#prefix) && name.includes(`.kms-backup${untried}`)) {
        await rm(join(dir, name), { recursive: true, force: true });
      }
    }
  }

  async #removeOld(dir: string): Promise<void> {
    const own = (await readdir(dir)).filter((name) => name.startsWith(this.#prefix) && name.endsWith('.kms-backup'));
    for (const name of own.sort().slice(0, -this.#settings.keep)) await rm(join(dir, name), { force: true });
  }
}
