// The checkpoint thread yields to the serving thread, except for a checkpoint that a caller waits for.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { CheckpointThread } from '../../src/platform/threads/checkpoint.ts';
import { createTestStore, openEmbedded, testDir, testOptions } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { threadPriorities } from '../support/thread-priorities.ts';
import { until } from '../support/until.ts';
import { sqlWasm } from '../support/wasm.ts';

const root = mkdtempSync(join(tmpdir(), 'kms-checkpoints-'));
after(() => rmSync(root, { recursive: true, force: true }));
// The tests themselves may have been started with `nice`.
const ownPriority = getPriority();
const lowered = Math.min(19, ownPriority + 10);

test('its priority is low for those that are due, and the usual one for those that are asked for', async () => {
  // Only Linux has priorities of single threads.
  if (process.platform !== 'linux') return;
  const files = nodeFiles(root);
  const generator = prng(1);
  await files.makeDir(testDir);
  await createTestStore(files, generator);
  const thread = CheckpointThread.embedded(root, sqlWasm);
  after(() => thread.end());
  const jobs: (boolean | undefined)[] = [];
  const store = await openEmbedded(
    testOptions(files, generator, {
      limits: { checkpointBytes: 20_000 },
      runCheckpoint(job) {
        jobs.push(job.yields);
        return thread.run(testDir, testStoreKeys(), job);
      },
    }),
  );
  after(() => store.close());
  const isLow = (): boolean => ownPriority < lowered && threadPriorities().includes(lowered);

  for (const notes of ['a', 'b', 'c']) await store.transaction((tx) => tx.notes.add(notes, notes.repeat(8000)));
  await until('a checkpoint is due, and made', () => store.status().snapshotBytes > 20_000);
  assert.deepEqual([jobs, isLow()], [[true], true]);
  await store.transaction((tx) => tx.notes.add('d'));
  await store.checkpoint();
  assert.deepEqual([jobs, isLow()], [[true, false], false]);
});
