// What runs on worker threads: one entry for every kind of work, so that the executable carries one more script and no other file.
import { parentPort, workerData } from 'node:worker_threads';
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import { type CheckpointResult, writeCheckpoint } from '../store/checkpoint.ts';
import { nodeFiles } from '../store/node-files.ts';
import type { StoreKeys } from '../store/store-keys.ts';
import { servePasswords } from './password-worker.ts';
import type { CheckpointWork, KeysAsData, Work, WorkAnswer } from './worker-jobs.ts';

// Cast: whoever starts this thread sends nothing else.
run(workerData as Work);

function run(work: Work): void {
  switch (work.kind) {
    case 'checkpoint':
      void checkpoint(work).then(
        (result) => answer({ ok: true, result }),
        (error: unknown) =>
          answer({ ok: false, code: error instanceof KmsError ? error.code : 'internal', message: `${error}` }),
      );
      break;
    case 'passwords':
      if (parentPort) servePasswords(parentPort);
  }
}

function checkpoint({ root, wasm, job, keys }: CheckpointWork): Promise<CheckpointResult> {
  return writeCheckpoint({ files: nodeFiles(root), keys: storeKeys(keys), wasm, random: systemRandom }, job);
}

function storeKeys({ epoch: current, held }: KeysAsData): StoreKeys {
  return {
    epoch: current,
    key(label, epoch = current) {
      const found = held.find((each) => each.label === label && each.epoch === epoch);
      if (!found) throw new KmsError('not-found', `no key of epoch ${epoch}`);
      return found.key;
    },
  };
}

function answer(message: WorkAnswer): void {
  parentPort?.postMessage(message);
}
