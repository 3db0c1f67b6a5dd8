// Runs a store's checkpoints on a thread of their own, so that the serving thread never pauses for one. The thread
// stays a while for the next: under load they follow each other, and starting and compiling anew would be a good part
// of what each one costs.
import type { Worker } from 'node:worker_threads';
import { KmsError } from '../../errors.ts';
import type { CheckpointJob, CheckpointResult } from '../../store/checkpoint.ts';
import type { StoreKeys } from '../../store/store-files.ts';
import { startWorker } from '../program-files.ts';
import { answerOf, type CheckpointOrder, keysAsData, type Work, type WorkAnswer } from './jobs.ts';

/** Milliseconds. At full speed the next one comes sooner, and else its memory is wanted back. */
const idleTimeout = 10_000;

export class CheckpointThread {
  readonly #root: string;
  readonly #keys: StoreKeys;
  readonly #wasm: Uint8Array;
  #worker: Worker | undefined;
  #leaving: NodeJS.Timeout | undefined;

  /** @param root the data directory. */
  constructor(root: string, keys: StoreKeys, wasm: Uint8Array) {
    this.#root = root;
    this.#keys = keys;
    this.#wasm = wasm;
  }

  /** One at a time. */
  async run(job: CheckpointJob): Promise<CheckpointResult> {
    clearTimeout(this.#leaving);
    this.#worker ??= startWorker({ kind: 'checkpoints', root: this.#root, wasm: this.#wasm } satisfies Work);
    const worker = this.#worker;
    worker.ref();
    try {
      const answered = answerOf<WorkAnswer>(worker, 'the checkpoint');
      worker.postMessage({ keys: keysAsData(this.#keys), job } satisfies CheckpointOrder);
      const answer = await answered;
      if (!answer.ok) throw new KmsError('internal', `the checkpoint's thread failed: ${answer.message}`);
      worker.unref();
      this.#leaving = setTimeout(() => void this.end(), idleTimeout).unref();
      return answer.result;
    } catch (error) {
      await this.end();
      throw error;
    }
  }

  /** Ends the thread and what it remembers. The next checkpoint starts another. */
  async end(): Promise<void> {
    clearTimeout(this.#leaving);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}
