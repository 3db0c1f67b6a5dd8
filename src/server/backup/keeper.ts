// The backups of an appliance that is open: made on request, on trial, and on schedule.
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { World } from '../../core/context.ts';
import { localCaller } from '../../core/credential.ts';
import { toHex } from '../../crypto/encoding.ts';
import { nodeFiles } from '../../store/node-files.ts';
import { recordInTenants } from '../appliance-activity.ts';
import type { SealKeeper } from '../seal-keeper.ts';
import { type Collecting, collect } from './collect.ts';
import type { Proof } from './prove.ts';
import { openBackup, sealOf } from './read.ts';
import { tryRestore } from './trial.ts';
import { writeBackup } from './write.ts';

export interface KeeperDeps extends Collecting {
  /** The data directory. */
  readonly root: string;
  readonly seal: SealKeeper;
  readonly world: World;
}

/** A backup that was restored on trial. */
export interface VerifiedBackup extends Proof {
  /** Its file; absent for a drill whose backup was thrown away. */
  readonly file?: string;
  readonly bytes: number;
  /** RFC 3339: of when it is, and when it was found to restore. */
  readonly madeAt: string;
  readonly verifiedAt: string;
}

/** Names of what a drill makes in the data directory, and what a crash leaves of one. */
export const drillPrefix = 'drill-';

/** For how long a reader may take nothing, in milliseconds. */
const stalled = 10 * 60 * 1000;

export class BackupKeeper {
  readonly #deps: KeeperDeps;
  #last: VerifiedBackup | undefined;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  /** Reads what earlier runs left noted, and clears away what a crash left of a drill. */
  async open(): Promise<void> {
    const { root } = this.#deps;
    for (const name of await readdir(root)) {
      if (name.startsWith(drillPrefix)) await rm(join(root, name), { recursive: true, force: true });
    }
    const text = await this.#deps.system.peek(({ settings }) => settings.get('backup'));
    // Cast: only `#note` writes it.
    if (text !== undefined) this.#last = JSON.parse(text) as VerifiedBackup;
  }

  /** The last backup that was kept and found to restore. */
  get lastVerified(): VerifiedBackup | undefined {
    return this.#last;
  }

  /** Epoch milliseconds. */
  now(): number {
    return this.#deps.world.now();
  }

  /** The whole appliance as a backup. Nothing is held before the first piece is asked for. */
  async *stream(): AsyncGenerator<Uint8Array> {
    const { files, seal, world } = this.#deps;
    const { stores, release } = await collect(this.#deps, { counted: true });
    // Old files go on piling up while they are held, so whoever stops reading loses them.
    const patience = setTimeout(release, stalled).unref();
    try {
      const input = { files, seal: () => seal.current, stores, at: world.now(), random: world.random };
      for await (const piece of writeBackup(input)) {
        yield piece;
        patience.refresh();
      }
    } finally {
      clearTimeout(patience);
      release();
    }
  }

  /** Puts it into the activity log of every tenant, whose data all leave the appliance, though sealed. */
  async record(props: Readonly<Record<string, unknown>>): Promise<void> {
    const { tenants, world } = this.#deps;
    await recordInTenants(tenants, world, { action: 'system.backup', keyid: localCaller.id, props });
  }

  /** Makes the backup `file`, an absolute path, restores it beside itself, and notes it when that went well. */
  async makeVerified(file: string, finish: () => Promise<string>): Promise<VerifiedBackup> {
    const made = await this.#makeAndTry(file);
    const kept: VerifiedBackup = { ...made, file: await finish() };
    this.#last = kept;
    await this.#deps.system.transaction(({ settings }) => settings.set('backup', JSON.stringify(kept)));
    return kept;
  }

  /** The same with a backup that goes away again: it shows that backups restore, but leaves none. */
  async drill(): Promise<VerifiedBackup> {
    await this.record({ operation: 'drill' });
    const file = join(resolve(this.#deps.root), `${drillPrefix}${toHex(this.#deps.world.random(6))}.kms-backup`);
    try {
      return await this.#makeAndTry(file);
    } finally {
      await rm(file, { force: true });
    }
  }

  async #makeAndTry(path: string): Promise<VerifiedBackup> {
    const { world, seal } = this.#deps;
    const files = nodeFiles(dirname(path));
    const name = basename(path);
    await files.replace(name, this.stream());
    const backup = await openBackup(files, name);
    const own = seal.current.openOther(await sealOf(files, backup), `the seal in ${path}`);
    try {
      const proof = await tryRestore(path, own, `${path}.restored`);
      const { bytes, manifest } = backup;
      return { ...proof, bytes, madeAt: manifest.createdAt, verifiedAt: new Date(world.now()).toISOString() };
    } finally {
      own.wipe();
    }
  }
}
