// Runs a store's checkpoints on a thread of their own, so that the serving thread never pauses for one.
import { once } from 'node:events';
import { KmsError } from '../errors.ts';
import type { CheckpointJob, CheckpointResult } from '../store/checkpoint.ts';
import type { StoreKeyLabel, StoreKeys } from '../store/store-keys.ts';
import { startWorker } from './runtime.ts';
import type { KeysAsData, Work, WorkAnswer } from './worker-jobs.ts';

const labels: readonly StoreKeyLabel[] = ['log', 'snapshot', 'activity'];

export function checkpointThread(
  root: string,
  keys: StoreKeys,
  wasm: Uint8Array,
): (job: CheckpointJob) => Promise<CheckpointResult> {
  return async (job) => {
    const work: Work = { kind: 'checkpoint', root, keys: asData(keys), wasm, job };
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

function asData(keys: StoreKeys): KeysAsData {
  const epochs = Array.from({ length: keys.epoch }, (_, i) => i + 1);
  return { epoch: keys.epoch, held: epochs.flatMap((epoch) => labels.flatMap((label) => heldKey(keys, label, epoch))) };
}

function heldKey(keys: StoreKeys, label: StoreKeyLabel, epoch: number): KeysAsData['held'] {
  try {
    return [{ label, epoch, key: keys.key(label, epoch) }];
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return [];
    throw error;
  }
}
