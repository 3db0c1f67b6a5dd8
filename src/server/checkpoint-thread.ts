// Runs a store's checkpoints on a thread of their own, so that the serving thread never pauses for one.
import { once } from 'node:events';
import { KmsError } from '../errors.ts';
import type { CheckpointJob, CheckpointResult } from '../store/checkpoint.ts';
import type { StoreKeys } from '../store/store-keys.ts';
import { keysAsData } from './keys-as-data.ts';
import { startWorker } from './runtime.ts';
import type { Work, WorkAnswer } from './worker-jobs.ts';

export function checkpointThread(
  root: string,
  keys: StoreKeys,
  wasm: Uint8Array,
): (job: CheckpointJob) => Promise<CheckpointResult> {
  return async (job) => {
    const work: Work = { kind: 'checkpoint', root, keys: keysAsData(keys), wasm, job };
    const worker = startWorker(work);
    try {
      const [answer] = (await Promise.race([once(worker, 'message'), failed(worker)])) as [WorkAnswer];
      if (!answer.ok) throw new KmsError('internal', `the checkpoint's thread failed: ${answer.message}`);
      return answer.result;
    } finally {
      await worker.terminate();
    }
  };
}

async function failed(worker: ReturnType<typeof startWorker>): Promise<never> {
  const [code] = await once(worker, 'exit');
  throw new KmsError('internal', `the checkpoint's thread ended early, with code ${code}`);
}
