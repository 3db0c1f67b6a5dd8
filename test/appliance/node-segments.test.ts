// Segments of a shared store are verified like those of a data directory: the node reads them, and a thread checks
// them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { SegmentVerifier } from '../../src/platform/threads/segments.ts';
import { activityInput } from '../store/contract.ts';
import { sharedUid, simShared } from '../support/shared-store.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { until } from '../support/until.ts';

test('a segment that was changed in the database is found, and found well again', async () => {
  const { database, node } = await simShared({ limits: { segmentRecords: 2 } });
  const { engine, store } = await node();
  for (let i = 1; i <= 6; i++) {
    await store.transaction((tx) => tx.record(activityInput(`act_${i}`)));
  }
  await store.checkpoint();
  const dir = toHex(sharedUid);
  const [segment = ''] = [...database.contents.files.keys()].filter((name) => name.includes('activity-'));
  assert.ok(segment.startsWith(`${dir}/`), segment);
  const asked = new Set<string>();
  const verifier = new SegmentVerifier(
    {
      root: '/nowhere',
      stores: () => [store],
      keysFor(name) {
        asked.add(name);
        return testStoreKeys();
      },
      read: (path, most) => engine.files.read(path, most),
      onEvent: ({ message, cause }) => assert.fail(`${message}: ${cause}`),
    },
    { firstAfter: 1, passEvery: 50, againEvery: 50, lookEvery: 1000, bytesPerSecond: 1e9 },
  );
  verifier.start();
  const faults = () => store.status().activityFaults.map(({ path }) => path);
  await until('it is verified', () => store.status().activityVerifiedAt !== undefined);
  assert.deepEqual(faults(), []);
  assert.deepEqual([...asked], [dir]);
  const well = await engine.files.read(segment, 2 ** 20);
  const changed = well.slice();
  changed[changed.length - 20] = (changed.at(-20) ?? 0) ^ 1;
  await engine.files.replace(segment, changed);
  await until('the fault is found', () => faults().length > 0);
  assert.deepEqual(faults(), [segment]);
  await engine.files.replace(segment, well);
  await until('it is well again', () => faults().length === 0);
  await verifier.close();
  await store.close();
});
