// The code of worker threads: one entry for every kind of work, so that the executable carries one extra script and no
// other file.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type ProveWork, proveBackup } from '../backup/verify.ts';
import { passphraseSecret } from '../crypto/argon2id.ts';
import { systemRandom } from '../crypto/random.ts';
import { type ExamineWork, examineHeld } from '../doctor/stores.ts';
import { KmsError } from '../errors.ts';
import { takeCrypto } from '../platform/native-crypto.ts';
import { startRsa } from '../platform/native-rsa.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { postgresConfig, type SourceData, sourceOf } from '../platform/store-url.ts';
import { takeOrders } from '../platform/threads/ending.ts';
import {
  type CheckpointOrder,
  type CheckpointWork,
  keysFromData,
  type ManagedKeyWork,
  type PassphraseWork,
  type PasswordWork,
  type SegmentOrder,
  type SegmentsWork,
  type WorkAnswerOf,
  type WorkerData,
} from '../platform/threads/jobs.ts';
import { serveKeyWork } from '../platform/threads/key-work.ts';
import { lowerPriority, servePasswords } from '../platform/threads/passwords.ts';
import { trimHeap } from '../platform/trim-heap.ts';
import { problemOfSegment } from '../store/activity/segment-watch.ts';
import { type CheckpointJournal, type CheckpointResult, writeCheckpoint } from '../store/checkpoint.ts';
import { FileJournal } from '../store/file-journal.ts';
import type { WholeFiles } from '../store/files.ts';
import { checkpointRows } from '../store/shared/checkpoint.ts';
import type { SharedEngine } from '../store/shared/engine.ts';
import type { StoreKeys } from '../store/store-files.ts';

type Work = CheckpointWork | PasswordWork | ManagedKeyWork | PassphraseWork | ProveWork | ExamineWork | SegmentsWork;

// Cast: `startWorker` sends nothing else.
const { work, crypto } = workerData as WorkerData<Work>;
takeCrypto(crypto);
if (parentPort) run(work, parentPort);

function run(work: Work, port: MessagePort): void {
  switch (work.kind) {
    case 'checkpoints':
      takeOrders<CheckpointOrder>(
        port,
        (order) => answer(checkpoint(work, order), trimHeap),
        async () => engine?.close(),
      );
      return;
    case 'segments':
      lowerPriority();
      takeOrders<SegmentOrder>(port, (order) => answer(verifySegment(work, order)));
      return;
    case 'examine':
      answer(examineHeld(work));
      break;
    case 'prove':
      answer(proveBackup(work));
      break;
    case 'passwords':
      servePasswords(port);
      return;
    case 'keys':
      if (work.hasRsa) startRsa();
      serveKeyWork(port);
      return;
    case 'passphrase':
      port.postMessage(tryPassphrase(work));
  }
  // The work gives one answer: the only order left is to end.
  takeOrders(port, () => {});
}

function tryPassphrase({ passphrase, salt, cost }: PassphraseWork): Uint8Array | string {
  try {
    return passphraseSecret(passphrase, salt, cost);
  } catch (error) {
    return error instanceof KmsError ? error.message : 'the passphrase could not be tried';
  }
}

/** The keys are dropped after each order, as far as the runtime allows. */
async function checkpoint(
  { place, wasm }: CheckpointWork,
  { dir, keys, job }: CheckpointOrder,
): Promise<CheckpointResult | undefined> {
  if (job.yields) lowerPriority();
  try {
    const journal = await journalIn(place, dir, keysFromData(keys));
    return await writeCheckpoint(journal, { wasm, random: systemRandom }, job);
  } finally {
    for (const { key } of keys.held) key.fill(0);
  }
}

async function journalIn(place: CheckpointWork['place'], dir: string, keys: StoreKeys): Promise<CheckpointJournal> {
  if ('root' in place) {
    return new FileJournal({ files: nodeFiles(place.root, { ofItsOwner: true }), dir, keys });
  }
  return checkpointRows({ engine: await reached(place.source), uid: Uint8Array.fromHex(dir), keys });
}

let engine: (SharedEngine & { close(): Promise<void> }) | undefined;

/** The thread's own connection to the database, which ends with it. */
async function reached(source: SourceData): Promise<SharedEngine> {
  if (engine) return engine;
  const { openPostgres } = await import('../store/shared/postgres.ts');
  engine = await openPostgres(await postgresConfig(sourceOf(source)));
  return engine;
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

/** Reads the one file from memory. */
function readersOf(bytes: Uint8Array): Pick<WholeFiles, 'size' | 'read' | 'readAt'> {
  return {
    size: async () => bytes.length,
    read: async () => bytes,
    readAt: async (_name, offset, length) => bytes.slice(offset, offset + length),
  };
}

/** Sends the outcome once the work settles, then calls `after`. */
function answer<R>(work: Promise<R>, after?: () => void): void {
  const settled = work.then((result) => ({ ok: true, result }) as const, failure);
  void settled.then((sent) => parentPort?.postMessage(sent)).then(after);
}

function failure(error: unknown): WorkAnswerOf<never> {
  const known = error instanceof KmsError ? error : undefined;
  const message = error instanceof Error ? error.message : String(error);
  return { ok: false, code: known?.code ?? 'internal', message, hint: known?.hint };
}
