// Decides when a checkpoint is due, has it run beside the serving thread, and puts its result in the place of the old files.
import type { EmbeddedWorld } from './embedded-options.ts';
import { listStoreFiles, logName, snapshotName } from './file-names.ts';
import type { Live } from './live.ts';
import { inWords } from './notice.ts';

export class Checkpointer<T extends object> {
  readonly #world: EmbeddedWorld<T>;
  readonly #live: () => Promise<Live<T>>;
  #running: Promise<void> | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;
  /** How many want the files to stay, and up to where files have to go when nobody does any more. */
  #holders = 0;
  #superseded: number | undefined;
  #removing: Promise<void> = Promise.resolve();
  #waiting: (() => void)[] = [];

  /** `live` waits for a store in service, or throws. */
  constructor(world: EmbeddedWorld<T>, live: () => Promise<Live<T>>) {
    this.#world = world;
    this.#live = live;
  }

  /** Starts a checkpoint when the logs have outgrown the snapshot. */
  startWhenDue({ log, snapshot }: Live<T>): void {
    const { limits, now } = this.#world;
    if (this.#running || log.bytes <= Math.max(limits.checkpointBytes, snapshot.bytes)) return;
    if (now() < this.#notBefore) return;
    this.run().catch(() => {});
  }

  /** Runs one, after the one under way if there is one. */
  async run(): Promise<void> {
    while (this.#running) await this.#running.catch(() => {});
    this.#running = this.#once();
    try {
      await this.#running;
      this.#notBefore = Number.NEGATIVE_INFINITY;
    } catch (cause) {
      this.#notBefore = this.#world.now() + this.#world.limits.checkpointRetry;
      const message = `a checkpoint failed, nothing is lost, the log grows on: ${inWords(cause)}`;
      this.#world.onNotice({ kind: 'checkpoint-failed', message, cause });
      throw cause;
    } finally {
      this.#running = undefined;
    }
  }

  /** Waits for the one under way. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running.catch(() => {});
  }

  /** From now on no file goes away, until what this answers is called. */
  hold(): () => void {
    this.#holders++;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holders--;
      this.wake();
      // What stays behind is removed by the next checkpoint or the next start.
      this.#removeSuperseded().catch(() => {});
    };
  }

  /** Resolves when nobody wants the files to stay, or `enough` says so once `wake` was called. */
  async free(enough: () => boolean): Promise<void> {
    while (this.#holders > 0 && !enough()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Has those who wait for free files look again. */
  wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** One after the other: two at once would list the same files, and each remove them. */
  #removeSuperseded(): Promise<void> {
    this.#removing = this.#removing
      .catch(() => {})
      .then(async () => {
        const through = this.#superseded;
        if (this.#holders > 0 || through === undefined) return;
        this.#superseded = undefined;
        await removeSuperseded(this.#world, through);
      });
    return this.#removing;
  }

  async #once(): Promise<void> {
    const { dir, now, runCheckpoint, limits } = this.#world;
    const { log, snapshot } = await this.#live();
    const through = await log.rotate();
    if (through <= snapshot.generation) return;
    const at = now();
    const result = await runCheckpoint({ dir, through, at, segmentRecords: limits.segmentRecords });
    // A write may have failed meanwhile: what is in service now was recovered from the old snapshot or from this one.
    const live = await this.#live();
    if (live.snapshot.generation < through) {
      live.activity.adopt(result.segments);
      live.log.forget(through);
      live.snapshot = { generation: through, bytes: result.snapshotBytes, savedAt: at };
    }
    this.#superseded = through;
    await this.#removeSuperseded();
    this.#world.onNotice({
      kind: 'checkpoint',
      message: `${snapshotName(dir, through)}: ${result.snapshotBytes} bytes`,
    });
  }
}

/** Removes what the durable snapshot `generation` stands for. What stays behind is removed next time. */
export async function removeSuperseded<T extends object>(world: EmbeddedWorld<T>, generation: number): Promise<void> {
  const { files, dir } = world;
  const { snapshots, logs } = await listStoreFiles(files, dir);
  for (const number of snapshots) if (number < generation) await files.remove(snapshotName(dir, number));
  for (const number of logs) if (number <= generation) await files.remove(logName(dir, number));
}
