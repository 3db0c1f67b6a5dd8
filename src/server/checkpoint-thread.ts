// Runs a store's checkpoints on a thread of their own, so that the serving thread never pauses for one. The thread stays a while for the
// next: under load they follow each other, and starting and compiling anew would be a good part of what each one costs.
import type { Worker } from 'node:worker_threads';
import { KmsError } from '../errors.ts';
import type { CheckpointJob, CheckpointResult } from '../store/checkpoint.ts';
import type { StoreKeys } from '../store/store-keys.ts';
import { keysAsData } from './keys-as-data.ts';
import { startWorker } from './runtime.ts';
import type { CheckpointOrder, Work, WorkAnswer } from './worker-jobs.ts';

const staysMilliseconds = 60_000;

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
      const answered = answerOf(worker);
      worker.postMessage({ keys: keysAsData(this.#keys), job } satisfies CheckpointOrder);
      const answer = await answered;
      if (!answer.ok) throw new KmsError('internal', `the checkpoint's thread failed: ${answer.message}`);
      worker.unref();
      this.#leaving = setTimeout(() => void this.end(), staysMilliseconds).unref();
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

function answerOf(worker: Worker): Promise<WorkAnswer> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number): void =>
      settle(() => reject(new KmsError('internal', `the checkpoint's thread ended early, with code ${code}`)));
    const onError = (error: unknown): void => settle(() => reject(error));
    const onMessage = (answer: WorkAnswer): void => settle(() => resolve(answer));
    const settle = (done: () => void): void => {
      worker.off('exit', onExit).off('error', onError).off('message', onMessage);
      done();
    };
    worker.on('exit', onExit).on('error', onError).on('message', onMessage);
  });
}
