// Brings every file of a store under its newest key while it serves: snapshot and log by a checkpoint, then the segments of the activity
// log one after the other, each replaced whole. Cut off anywhere, the next one goes on where it was.
import { KmsError } from '../errors.ts';
import { headerLength as segmentHeaderLength } from './activity/segment-format.ts';
import { segmentPath } from './activity/segment-read.ts';
import { resealedSegment, segmentEpoch } from './activity/segment-reseal.ts';
import type { Checkpointer } from './checkpointer.ts';
import type { EmbeddedWorld } from './embedded-options.ts';
import { decodeFileHeader, headerLength } from './file-header.ts';
import { listStoreFiles, logName, snapshotName } from './file-names.ts';
import type { Live } from './live.ts';

export class Resealer<T extends object> {
  readonly #world: EmbeddedWorld<T>;
  readonly #checkpoints: Checkpointer<T>;
  readonly #live: () => Promise<Live<T>>;
  #running: Promise<readonly number[]> | undefined;
  #stopped = false;

  constructor(world: EmbeddedWorld<T>, checkpoints: Checkpointer<T>, live: () => Promise<Live<T>>) {
    this.#world = world;
    this.#checkpoints = checkpoints;
    this.#live = live;
  }

  /** Answers the key epochs that the files need from then on, the newest alone unless a newer one came meanwhile. */
  async run(): Promise<readonly number[]> {
    while (this.#running) await this.#running.catch(() => {});
    this.#running = this.#once();
    try {
      return await this.#running;
    } finally {
      this.#running = undefined;
    }
  }

  /** Ends what is under way after the file at hand. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#checkpoints.wake();
    await this.#running?.catch(() => {});
  }

  async #once(): Promise<readonly number[]> {
    await this.#checkpoints.run();
    const { activity } = await this.#live();
    for (const { file } of activity.segments) await this.#reseal(segmentPath(this.#world.dir, file));
    // Whoever copies the files now may have those of before.
    await this.#free();
    return this.#epochs();
  }

  async #reseal(path: string): Promise<void> {
    const { files } = this.#world;
    const { keys } = this.#world.context;
    if (segmentEpoch(await files.readAt(path, 0, segmentHeaderLength), path) === keys.epoch) return;
    await this.#free();
    const bytes = await files.read(path);
    await files.replace(path, pieces(resealedSegment(bytes, keys, path)));
  }

  async #free(): Promise<void> {
    await this.#checkpoints.free(() => this.#stopped);
    if (this.#stopped) throw new KmsError('unavailable', 'the store was closed before all its files had the new key');
  }

  /** Of the files that a recovery reads. */
  async #epochs(): Promise<readonly number[]> {
    const { files, dir } = this.#world;
    const { activity, snapshot } = await this.#live();
    const found = new Set<number>();
    const { logs } = await listStoreFiles(files, dir);
    const start = async (name: string, length: number): Promise<Uint8Array> => files.readAt(name, 0, length);
    const name = snapshotName(dir, snapshot.generation);
    found.add(decodeFileHeader('snapshot', name, await start(name, headerLength)).epoch);
    for (const generation of logs.filter((number) => number > snapshot.generation)) {
      const log = logName(dir, generation);
      found.add(decodeFileHeader('log', log, await start(log, headerLength)).epoch);
    }
    for (const { file } of activity.segments) {
      const path = segmentPath(dir, file);
      found.add(segmentEpoch(await start(path, segmentHeaderLength), path));
    }
    return [...found].sort((a, b) => a - b);
  }
}

async function* pieces(parts: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* parts;
}
