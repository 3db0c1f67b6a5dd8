// What runs on worker threads: one entry for every kind of work, so that the executable carries one more script and no
// other file.
import { parentPort, workerData } from 'node:worker_threads';
import { passphraseSecret } from '../../crypto/argon2id.ts';
import { systemRandom } from '../../crypto/random.ts';
import { KmsError } from '../../errors.ts';
import { problemOfSegment } from '../../store/activity/segment-watch.ts';
import { type CheckpointResult, writeCheckpoint } from '../../store/checkpoint.ts';
import type { WholeFiles } from '../../store/files.ts';
import { nodeFiles } from '../../store/node-files.ts';
import { proveBackup } from '../backup/verify.ts';
import type { Examination } from '../doctor/finding.ts';
import { examineHeld } from '../doctor/stores.ts';
import { takeCrypto } from '../native-crypto.ts';
import {
  type CheckpointOrder,
  type CheckpointWork,
  keysFromData,
  type PassphraseWork,
  type ProveAnswer,
  type SegmentOrder,
  type SegmentsWork,
  type Work,
  type WorkAnswer,
  type WorkAnswerOf,
  type WorkerData,
} from './jobs.ts';
import { lowerPriority, servePasswords } from './passwords.ts';

// Cast: whoever starts this thread sends nothing else.
const { work, crypto } = workerData as WorkerData;
takeCrypto(crypto);
run(work);

function run(work: Work): void {
  switch (work.kind) {
    case 'checkpoints':
      parentPort?.on('message', (order: CheckpointOrder) => {
        void checkpoint(work, order).then(
          (result) => answer({ ok: true, result }),
          (error: unknown) =>
            answer({ ok: false, code: error instanceof KmsError ? error.code : 'internal', message: `${error}` }),
        );
      });
      break;
    case 'segments':
      lowerPriority();
      parentPort?.on('message', (order: SegmentOrder) => {
        void verifySegment(work, order).then(
          (result) => answer({ ok: true, result }),
          (error: unknown) =>
            answer({ ok: false, code: error instanceof KmsError ? error.code : 'internal', message: `${error}` }),
        );
      });
      break;
    case 'examine':
      void examineHeld(work).then(
        (result) => answer({ ok: true, result }),
        (error: unknown) => answer({ ok: false, code: 'internal', message: `${error}` }),
      );
      break;
    case 'prove':
      void proveBackup(work).then(
        (result) => answer({ ok: true, result }),
        (error: unknown) => answer(proveAnswer(error)),
      );
      break;
    case 'passwords':
      if (parentPort) servePasswords(parentPort);
      break;
    case 'passphrase':
      parentPort?.postMessage(tryPassphrase(work));
  }
}

function tryPassphrase({ passphrase, salt, cost }: PassphraseWork): Uint8Array | string {
  try {
    return passphraseSecret(passphrase, salt, cost);
  } catch (error) {
    return error instanceof KmsError ? error.message : 'the passphrase could not be tried';
  }
}

/** The keys are forgotten with each order, as far as the runtime lets them be. */
async function checkpoint({ root, wasm }: CheckpointWork, { keys, job }: CheckpointOrder): Promise<CheckpointResult> {
  try {
    return await writeCheckpoint(
      { files: nodeFiles(root, { ofItsOwner: true }), keys: keysFromData(keys), wasm, random: systemRandom },
      job,
    );
  } finally {
    for (const { key } of keys.held) key.fill(0);
  }
}

async function verifySegment(
  { root }: SegmentsWork,
  { check, keys, bytes }: SegmentOrder,
): Promise<string | undefined> {
  try {
    return await problemOfSegment(check, bytes ? readersOf(bytes) : nodeFiles(root), keysFromData(keys));
  } finally {
    for (const { key } of keys.held) key.fill(0);
  }
}

/** Of the one file that is read. */
function readersOf(bytes: Uint8Array): Pick<WholeFiles, 'size' | 'read' | 'readAt'> {
  return {
    size: async () => bytes.length,
    read: async () => bytes,
    readAt: async (_name, offset, length) => bytes.slice(offset, offset + length),
  };
}

function proveAnswer(error: unknown): ProveAnswer {
  const known = error instanceof KmsError ? error : undefined;
  const message = error instanceof Error ? error.message : String(error);
  return { ok: false, code: known?.code ?? 'internal', message, hint: known?.hint };
}

function answer(
  message: WorkAnswer | ProveAnswer | WorkAnswerOf<Examination> | WorkAnswerOf<string | undefined>,
): void {
  parentPort?.postMessage(message);
}
