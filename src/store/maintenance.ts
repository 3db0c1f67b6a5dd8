// Maintenance looks after a store's journal while it serves: checkpoints that keep the log short, and resealing under
// the newest key. No request waits for any of it.
import { KmsError } from '../errors.ts';
import { epochsOfSegments, resealSegments } from './activity/resealing.ts';
import type { CheckpointResult } from './checkpoint.ts';
import { CheckpointRuns } from './checkpoint-runs.ts';
import { FileLost } from './files.ts';
import type { CheckpointHow, Journal, JournalOwner, Log, Served, StoreWorld } from './journal.ts';
import type { SegmentSummary } from './port.ts';
import { snapshotName } from './store-files.ts';

/** Attempts to reseal: a node that does not know of the key yet may append under the old one in between. */
const rounds = 3;

export class Maintenance<L extends Log> {
  readonly #world: StoreWorld<object>;
  readonly #journal: Journal<L>;
  readonly #owner: JournalOwner<L>;
  /** If another process is making a checkpoint or has just made one, that is used instead. */
  readonly checkpoints: CheckpointRuns<CheckpointResult, CheckpointHow>;
  #resealing: Promise<readonly number[]> | undefined;
  #stopped = false;

  constructor(world: StoreWorld<object>, journal: Journal<L>, owner: JournalOwner<L>) {
    this.#world = world;
    this.#journal = journal;
    this.#owner = owner;
    this.checkpoints = new CheckpointRuns(world, (dropTo, how, yields) => this.#checkpoint(dropTo, how, yields));
  }

  /** Ends a resealing after the current file, and waits for a checkpoint and a removal under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const ended = [this.#journal.stop(), this.checkpoints.stop()];
    while (this.#resealing) await this.#resealing.catch(() => {});
    await Promise.all(ended);
  }

  async #checkpoint(
    dropTo: number | undefined,
    how: CheckpointHow = {},
    yields: boolean,
  ): Promise<CheckpointResult | undefined> {
    let made: CheckpointResult | undefined;
    const isDone = await this.#journal.alone(async () => {
      await this.#journal.adoptNewer(this.#owner);
      made = await this.#write(await this.#owner.serving(), dropTo, how, yields);
    });
    if (!isDone) await this.#journal.adoptNewer(this.#owner);
    return made;
  }

  /** Writes a snapshot and removes what it replaces. */
  async #write(
    live: Served<L>,
    dropTo: number | undefined,
    how: CheckpointHow,
    yields: boolean,
  ): Promise<CheckpointResult | undefined> {
    const { now, onEvent, limits, runCheckpoint } = this.#world;
    const covered = await this.#journal.covered(live).catch((error: unknown) => {
      if (error instanceof FileLost) this.#owner.leave(live, error);
      throw error;
    });
    const { through = 0, known } = covered;
    // A snapshot that may be held is never written again.
    if (through <= live.snapshot.generation) return undefined;
    const at = now();
    const { segmentRecords } = limits;
    const { counted = false } = how;
    const dropping = dropTo === undefined ? {} : { dropTo };
    const made = await runCheckpoint({ ...covered, at, segmentRecords, counted, yields, ...dropping });
    if (!made) return undefined;
    const { generation, segments, dropped, snapshotBytes: bytes } = made;
    const adopt = (live: Served<L>): void => {
      // A store recovered in the meantime may already use this snapshot, or a newer one of another process.
      if (live.log.generation < generation || live.snapshot.generation > generation) return;
      if (known === undefined) live.activity.adopt(segments, dropped);
      else live.activity.extend(segments, dropped);
      live.log.forget(generation);
      live.snapshot = { generation, bytes, savedAt: at };
    };
    if (!(await this.#journal.supersede(made, this.#owner, adopt, how))) return undefined;
    const message = `${snapshotName(this.#journal.dir, generation)}: ${bytes} bytes`;
    onEvent({ kind: 'checkpoint', message });
    return made;
  }

  /**
   * Brings everything under the newest key: snapshot and log by a checkpoint, then the segments of the activity log one
   * by one, each replaced whole. After an interruption the next call continues. Returns the key epochs that a recovery
   * still needs: only the newest, unless a newer one came meanwhile or another process still uses an old one.
   */
  async reseal(): Promise<readonly number[]> {
    while (this.#resealing) await this.#resealing.catch(() => {});
    this.#needUnstopped();
    this.#resealing = this.#reseal();
    try {
      return await this.#resealing;
    } finally {
      this.#resealing = undefined;
    }
  }

  async #reseal(): Promise<readonly number[]> {
    const { keys } = this.#world;
    const { dir } = this.#journal;
    for (let round = 1; ; round++) {
      await this.#free();
      const made = await this.#owner.cover({ isLast: true });
      const { uid, activity } = await this.#owner.serving();
      const resealed = {
        files: this.#journal.filesAfter(made),
        ...{ dir, keys, uid },
        segments: activity.segments,
        isKept: async ({ file }: SegmentSummary) =>
          (await this.#owner.serving()).activity.segments.some((segment) => segment.file === file),
        free: () => this.#free(),
      };
      await resealSegments(resealed);
      // A copy under way may include old versions of the files.
      await this.#free();
      const found = await epochsOfSegments(resealed);
      for (const epoch of await this.#journal.epochs(this.#owner)) found.add(epoch);
      if (found.size === 1 || round === rounds) return [...found].sort((a, b) => a - b);
    }
  }

  /** Resolves when there is no hold on the files. */
  async #free(): Promise<void> {
    await this.#journal.released(this.#owner);
    this.#needUnstopped();
  }

  #needUnstopped(): void {
    if (this.#stopped) throw new KmsError('unavailable', 'the store was closed before all its files had the new key');
  }
}
