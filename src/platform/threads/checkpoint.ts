// CheckpointThread runs checkpoints of stores on a thread of its own, so that the serving thread never pauses for one.
// The thread stays for a while: under load, checkpoints follow each other, and starting and compiling again would be a
// good part of each one's cost.
import type { Worker } from 'node:worker_threads';
import type { CheckpointJob, CheckpointResult } from '../../store/checkpoint.ts';
import { SerialQueue } from '../../store/serial-queue.ts';
import type { StoreKeys } from '../../store/store-files.ts';
import { startWorker } from '../program-files.ts';
import { type StoreSource, sourceData } from '../store-url.ts';
import { endThread } from './ending.ts';
import {
  answerOf,
  type CheckpointOrder,
  type CheckpointWork,
  keysAsData,
  resultOf,
  type WorkAnswerOf,
} from './jobs.ts';

/** In milliseconds. At full speed the next checkpoint comes sooner; otherwise its memory is better freed. */
const idleTimeout = 20_000;

export class CheckpointThread {
  readonly #work: CheckpointWork;
  readonly #queue = new SerialQueue();
  #worker: Worker | undefined;
  #leaving: NodeJS.Timeout | undefined;
  /** Whether the thread has lowered its priority, which cannot be raised again. */
  #yields = false;

  private constructor(place: CheckpointWork['place'], wasm: Uint8Array) {
    this.#work = { kind: 'checkpoints', place, wasm };
  }

  /** `root` is the data directory. */
  static embedded(root: string, wasm: Uint8Array): CheckpointThread {
    return new CheckpointThread({ root }, wasm);
  }

  static shared(source: StoreSource, wasm: Uint8Array): CheckpointThread {
    return new CheckpointThread({ source: sourceData(source) }, wasm);
  }

  /** Runs one checkpoint at a time. `dir` is the store's directory there. */
  run(dir: string, keys: StoreKeys, job: CheckpointJob): Promise<CheckpointResult | undefined> {
    return this.#queue.run(() => this.#run(dir, keys, job));
  }

  async #run(dir: string, keys: StoreKeys, job: CheckpointJob): Promise<CheckpointResult | undefined> {
    const { yields = false } = job;
    if (this.#yields && !yields) await this.end();
    clearTimeout(this.#leaving);
    this.#yields = yields;
    this.#worker ??= startWorker(this.#work);
    const worker = this.#worker;
    worker.ref();
    try {
      const answered = answerOf<WorkAnswerOf<CheckpointResult | undefined>>(worker, 'the checkpoint');
      worker.postMessage({ dir, keys: keysAsData(keys), job } satisfies CheckpointOrder);
      const result = resultOf(await answered);
      worker.unref();
      this.#leaving = setTimeout(() => void this.end(), idleTimeout).unref();
      return result;
    } catch (error) {
      await this.end();
      throw error;
    }
  }

  /** Ends the thread with its caches. The next checkpoint starts another. */
  async end(): Promise<void> {
    clearTimeout(this.#leaving);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#yields = false;
    if (worker) await endThread(worker);
  }
}
