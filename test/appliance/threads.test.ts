// Threads of the appliance that start at the same time.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { startWorker } from '../../src/platform/program-files.ts';

const mb = 2 ** 20;

test('each thread has the young memory that its work needs, whatever the process and others have', async () => {
  // The executable's own flag.
  setFlagsFromString('--max-semi-space-size=16');
  const threads = [
    startWorker({ kind: 'passwords' }),
    startWorker({ kind: 'segments', root: 'none' }),
    startWorker({ kind: 'passwords' }),
  ];
  await Promise.all(threads.map((thread) => once(thread, 'online')));
  // The limit is old memory plus three semi-spaces of young memory.
  const young = threads.map(async (thread) => {
    const { heap_size_limit: all } = await thread.getHeapStatistics();
    return all / mb - (thread.resourceLimits?.maxOldGenerationSizeMb ?? 0);
  });
  assert.deepEqual(await Promise.all(young), [12, 3, 12]);
  await Promise.all(threads.map((thread) => thread.terminate()));
});
