// An upgrade, step by step, each noted in the journal before it is taken; and the way back, taken when a step fails, or
// when an upgrade that was cut off is resumed. Starting and querying a server is left to its ports.
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { toHex } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { KmsError, reasonOf, systemError } from '../errors.ts';
import { dataDirState, inDir, upgradeLock } from '../platform/data-dir.ts';
import { type DirectoryLock, lockDirectory } from '../platform/lock.ts';
import {
  asOwner,
  clearData,
  copyAside,
  digestOf,
  forgetCopy,
  forgetStaged,
  hasCopy,
  keepOrders,
  needRoomForCopy,
  putBack,
  type Reached,
  removeJournal,
  stageExecutable,
  swapExecutable,
  swapExecutableBack,
  underOwnOrders,
  writeJournal,
} from './files.ts';
import { type Journal, type Probe, readJournal, type Service, type Step } from './journal.ts';
import { isBefore, newerFormat, olderFormat, type Release } from './release.ts';

/** Operations that the caller of an upgrade provides. */
export interface UpgradePorts {
  /** Makes a backup of this name in the data directory. */
  backUp(name: string): Promise<void>;
  /** Encrypts samples, and returns them with their decryptions. */
  probe(): Promise<readonly Probe[]>;
  /** Stops the server, whichever executable it runs, within the time limit. */
  stop(service: Service): Promise<void>;
  /** Starts the server as `service` says; for `none` as a child, for the trial. */
  start(journal: Journal): Promise<void>;
  /** Throws unless this version serves and decrypts the probes as before, within the time limit. */
  check(journal: Journal, version: string): Promise<void>;
  /** Releases the server: for `none` it ends, otherwise it continues. */
  release(service: Service): Promise<void>;
  say(line: string): Promise<void>;
  readonly now: () => number;
  readonly reached?: Reached;
}

interface UpgradeInput {
  readonly data: string;
  readonly executable: string;
  /** Version of the current executable. */
  readonly version: string;
  readonly release: Release;
  readonly service: Service;
  /** Whether a version before the current one is accepted. */
  readonly allowDowngrade: boolean;
  /** Whether the directory is a node's: the data in the database are shared, so they are neither copied nor changed. */
  readonly isNode?: boolean;
}

/** The end of an upgrade, or of one that had been cut off. */
export interface Outcome {
  readonly outcome: 'upgraded' | 'unchanged' | 'returned';
  /** Version of the executable now in use. */
  readonly version: string;
  /** Why it is not the new one. */
  readonly reason?: string;
  readonly backup?: string;
}

/**
 * Takes all steps. If one fails before the server is stopped, everything stays as it was, and its error is thrown; if
 * one fails later, the former state is restored. Throws `refused` for a version that could not open the data.
 */
export async function upgrade(input: UpgradeInput, ports: UpgradePorts): Promise<Outcome> {
  const { data, executable, version, release, service } = input;
  const to = { version: release.manifest.version, sha256: toHex(sha256(release.executable)) };
  const sum = await digestOf(executable);
  if (sum === undefined)
    throw new KmsError('refused', `${executable}: there is no such file`, { hint: 'check the path' });
  if (sum === to.sha256) return { outcome: 'unchanged', version };
  const older = olderFormat(release.manifest);
  if (older !== undefined) {
    throw new KmsError('refused', `${older}: it could not open what this version wrote`, {
      hint: 'install that version elsewhere, and restore a backup that it made into a new directory',
    });
  }
  if (!input.allowDowngrade && isBefore(to.version, version)) {
    throw new KmsError('refused', `version ${to.version} is older than ${version}, which is in use`, {
      hint: 'it may have faults that have been fixed since; --allow-downgrade accepts it all the same',
    });
  }
  const newer = input.isNode ? newerFormat(release.manifest) : undefined;
  if (newer !== undefined) {
    throw new KmsError('refused', `${newer}: the other nodes cannot read what it writes in the database`, {
      hint: 'stop one node after the other, replace its executable and start it: see docs/nodes.md',
    });
  }
  await needRoomForCopy(data);
  const at = new Date(ports.now()).toISOString();
  const run = new Run(data, ports, {
    format: 1,
    step: 'staging',
    token: toHex(randomBytes(16)),
    executable,
    from: { version, sha256: sum },
    to,
    service,
    probes: [],
    ...(!input.isNode && { backup: `before-upgrade-${at.replace(/[-:]|\.\d+/g, '')}.kms-backup` }),
    startedAt: at,
  });
  return letGo(ports, service, () => run.forward(release.executable));
}

/**
 * Ends an upgrade that was cut off: one that had passed stays, any other is taken back. Throws `refused` if root has
 * only another user's journal and no orders of its own.
 */
export async function resume(journal: Journal, data: string, ports: UpgradePorts): Promise<Outcome> {
  const own = await underOwnOrders(data, journal);
  return letGo(ports, own.service, () => new Run(data, ports, own).end());
}

/** If the run fails, a server that the upgrade runs itself ends with it. */
async function letGo(ports: UpgradePorts, service: Service, run: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await run();
  } catch (error) {
    await ports.release(service).catch(() => {});
    throw error;
  }
}

class Run {
  readonly #data: string;
  readonly #ports: UpgradePorts;
  readonly #reached: Reached;
  #journal: Journal;

  constructor(data: string, ports: UpgradePorts, journal: Journal) {
    this.#data = data;
    this.#ports = ports;
    this.#reached = ports.reached ?? (() => {});
    this.#journal = journal;
  }

  async forward(executable: Uint8Array): Promise<Outcome> {
    const { from, service, backup } = this.#journal;
    try {
      await keepOrders(this.#data, this.#journal);
      await this.#step('staging');
      await stageExecutable(this.#journal.executable, executable);
      if (backup !== undefined) {
        await this.#step('backing-up');
        await this.#ports.backUp(backup);
      }
      await this.#step('probing');
      this.#journal = { ...this.#journal, probes: await this.#ports.probe() };
    } catch (error) {
      await this.#unchanged();
      throw error;
    }
    try {
      await this.#step('stopping');
      await this.#ports.stop(service);
      await this.#step('copying');
      await this.#locked(() => copyAside(this.#data, this.#reached));
      await this.#step('swapping');
      await swapExecutable(this.#journal.executable, from.sha256, this.#reached);
      await this.#step('trying');
      await this.#ports.start(this.#journal);
      await this.#ports.check(this.#journal, this.#journal.to.version);
      await this.#notePassed();
    } catch (error) {
      const hint = error instanceof KmsError && error.hint !== undefined ? ` (${error.hint})` : '';
      return this.#back(`${reasonOf(error)}${hint}`);
    }
    return this.#passed();
  }

  /** Clients are served as soon as the note is in place, so a failure after that takes nothing back. */
  async #notePassed(): Promise<void> {
    const before = this.#journal;
    try {
      await this.#step('passed');
    } catch (error) {
      if ((await readJournal(this.#data).catch(() => undefined))?.step === 'passed') return;
      this.#journal = before;
      throw error;
    }
  }

  /** Ends the upgrade from its current step. */
  async end(): Promise<Outcome> {
    const { step, reason = `the upgrade was cut off (${step})` } = this.#journal;
    switch (step) {
      case 'staging':
      case 'backing-up':
      case 'probing':
        await this.#unchanged();
        return { outcome: 'returned', version: this.#journal.from.version, reason };
      case 'passed':
        return this.#passed();
      case 'returned':
        return this.#returned(reason);
      default:
        return this.#back(reason);
    }
  }

  async #step(step: Step, more: Partial<Journal> = {}): Promise<void> {
    await this.#reached(`${step}: note`);
    this.#journal = { ...this.#journal, ...more, step };
    await writeJournal(this.#data, this.#journal);
    await this.#reached(`${step}: begin`);
  }

  /** Nothing but files beside the executable had been changed. */
  async #unchanged(): Promise<void> {
    await forgetStaged(this.#journal.executable);
    await this.#reached('remove the journal');
    await removeJournal(this.#data, this.#journal);
  }

  async #passed(): Promise<Outcome> {
    const { to, backup, service } = this.#journal;
    await this.#ports.release(service);
    await forgetCopy(this.#data);
    await forgetStaged(this.#journal.executable);
    await this.#reached('remove the journal');
    await removeJournal(this.#data, this.#journal);
    return { outcome: 'upgraded', version: to.version, ...(backup !== undefined && { backup }) };
  }

  async #back(reason: string): Promise<Outcome> {
    try {
      return await this.#goBack(reason);
    } catch (error) {
      if (!(error instanceof KmsError)) throw error;
      const then = 'no client is served until `kms upgrade --resume` has put back what was before';
      throw new KmsError(error.code, error.message, {
        hint: error.hint?.includes('--resume') ? error.hint : [error.hint, then].filter(Boolean).join('; '),
        cause: error,
      });
    }
  }

  async #goBack(reason: string): Promise<Outcome> {
    const { service, from, step } = this.#journal;
    const isAt = (...those: readonly Step[]): boolean => those.includes(step);
    await this.#ports.say(`going back to version ${from.version}: ${reason}`);
    await this.#step(isAt('clearing', 'putting-back') ? step : 'ending-trial', { reason });
    await this.#ports.stop(service);
    // Without a whole copy, no server that could have changed the data had been started.
    if (await hasCopy(this.#data)) {
      await this.#locked(async () => {
        if (!isAt('putting-back')) {
          await this.#step('clearing');
          await clearData(this.#data, this.#reached);
        }
        await this.#step('putting-back');
        await putBack(this.#data, this.#reached);
        await forgetCopy(this.#data);
      });
    }
    await this.#step('swapping-back');
    await swapExecutableBack(this.#journal.executable, from.sha256, this.#reached);
    await this.#step('starting-again');
    await this.#ports.start(this.#journal);
    await this.#ports.check(this.#journal, from.version);
    return this.#returned(reason);
  }

  async #returned(reason: string): Promise<Outcome> {
    const { from, service, backup } = this.#journal;
    await this.#step('returned');
    await this.#ports.release(service);
    await forgetCopy(this.#data);
    await forgetStaged(this.#journal.executable);
    await this.#reached('remove the journal');
    await removeJournal(this.#data, this.#journal);
    return { outcome: 'returned', version: from.version, reason, ...(backup !== undefined && { backup }) };
  }

  /** Runs `work` as the data directory's owner, under its lock. */
  #locked(work: () => Promise<void>): Promise<void> {
    return asOwner(this.#data, async () => {
      const lock = await lockSoon(this.#data);
      try {
        await work();
      } finally {
        lock.release();
      }
    });
  }
}

/** A process that just ended may need a moment to release the lock. */
async function lockSoon(data: string): Promise<DirectoryLock> {
  for (const until = performance.now() + 5000; ; ) {
    try {
      return lockDirectory(data, { onlyLooks: true });
    } catch (error) {
      if (!(error instanceof KmsError) || error.code !== 'in-use' || performance.now() > until) throw error;
      await delay(50);
    }
  }
}

/**
 * Runs `work` unless another upgrade of this directory is running, and keeps others from starting in the meantime: by a
 * system lock, which ends with the process.
 */
export async function alone<T>(data: string, work: () => Promise<T>): Promise<T> {
  await needDirectory(data);
  const path = inDir(data, upgradeLock);
  const lock = await asOwner(data, async () => {
    try {
      return await takeAlone(data);
    } catch (error) {
      throw systemError(error, path);
    }
  });
  try {
    return await work();
  } finally {
    await asOwner(data, () => rm(path, { force: true })).catch(() => {});
    lock.release();
  }
}

/** Milliseconds: a starting server takes the lock for a moment, to see whether it is held. */
const lookedAt = 500;

async function takeAlone(data: string): Promise<DirectoryLock> {
  for (const until = performance.now() + lookedAt; ; await delay(20)) {
    try {
      const lock = lockDirectory(data, { onlyLooks: true, name: upgradeLock });
      if (lock.isInPlace()) return lock;
      // The lock file of an upgrade that ended in between and removed it.
      lock.release();
    } catch (cause) {
      if (!(cause instanceof KmsError) || cause.code !== 'in-use') throw cause;
      if (performance.now() < until) continue;
      throw new KmsError('in-use', `${data}: another \`kms upgrade\` is running`, {
        hint: '`kms upgrade --status` says how far it is',
        cause,
      });
    }
  }
}

async function needDirectory(data: string): Promise<void> {
  if ((await dataDirState(data)) !== 'missing') return;
  throw new KmsError('unavailable', `${data}: there is no data directory here`, {
    hint: 'give another one with --data',
  });
}
