// Files of `test/compat/activity-1` to `activity-3` were made by earlier programs and must open for ever: tenant key of
// epoch 1, records 1 to 305, the first 300 of them in a segment. Those in activity-1 are made by `activity`, without
// addresses, those in activity-2 and -3 by `auditedActivity`. KMS_WRITE_FIXTURE=1 writes the newest if it is missing.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  type ActivityLog,
  type ActivityLogOptions,
  emptyHead,
  openActivityLog,
} from '../../src/store/activity/activity-log.ts';
import { resealedSegment } from '../../src/store/activity/segment.ts';
import type { ActivityFilter, ActivityInput } from '../../src/store/port.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { activity, auditedActivity, checkpoint, collect, emptyOn, testId, testKeys, testLog } from './appliance-log.ts';

const file = 'activity-000000000001.kms';
const rootOf = (number: number): URL => new URL(`../compat/activity-${number}/`, import.meta.url);

if (process.env.KMS_WRITE_FIXTURE && !existsSync(rootOf(3))) {
  const { log, files } = testLog();
  for (let number = 1; number <= 305; number++) log.stage(auditedActivity(number));
  log.commitStaged();
  const start = { segments: [], tail: [], head: emptyHead };
  await checkpoint(log, { ...emptyOn(files), ...start, segmentRecords: 300 });
  mkdirSync(rootOf(3));
  writeFileSync(new URL(file, rootOf(3)), files.contents.get(`t/${file}`) ?? '');
  const manifest = { segments: log.segments, tail: log.tailLines(), head: log.head };
  writeFileSync(new URL('manifest.json', rootOf(3)), `${JSON.stringify(manifest, null, 2)}\n`);
}

function opened(number: number): ActivityLog {
  const files = new MemoryFiles();
  files.contents.set(`t/${file}`, readFileSync(new URL(file, rootOf(number))));
  return openActivityLog({ ...emptyOn(files), ...manifestOf(number) });
}

function manifestOf(number: number): Pick<ActivityLogOptions, 'segments' | 'tail' | 'head'> {
  return JSON.parse(readFileSync(new URL('manifest.json', rootOf(number)), 'utf8'));
}

async function verifies(log: ActivityLog, make: (number: number) => ActivityInput): Promise<void> {
  const records = await collect(log.read(1), ({ record }) => record);
  assert.deepEqual(
    records,
    Array.from({ length: 305 }, (_, index) => ({ ...make(index + 1), seq: index + 1 })),
  );
  assert.equal((await log.find(testId(200)))?.seq, 200);
}

const count = async (log: ActivityLog, filter: ActivityFilter): Promise<number> =>
  (await log.search(filter, { limit: 1000 })).items.length;

const filters: readonly ActivityFilter[] = [
  { keyids: ['apik_3'] },
  { action: 'keyring.encrypt' },
  { ringname: 'ring-2' },
  { valid: false },
  { start: activity(100).createdAt, end: activity(120).createdAt },
];
const newFilters: readonly ActivityFilter[] = [
  { address: '192.0.2.4' },
  { address: '2001:db8::/32' },
  { object: 'user_4' },
  { object: 'name 8' },
  { granted: [] },
  { granted: ['keyring.list'] },
  { revoked: ['flag.4'] },
];

describe('format 1 of the activity log', () => {
  it('opens, is searched and verifies', async () => {
    const log = opened(1);
    await verifies(log, activity);
    for (const filter of [...filters, { props: { tag: { by: 4 } } }]) {
      assert.ok((await count(log, filter)) >= 10, JSON.stringify(filter));
    }
    for (const filter of newFilters) assert.equal(await count(log, filter), 0, JSON.stringify(filter));
  });

  it('keeps its version under a new key', async () => {
    const { segments, tail, head } = manifestOf(1);
    const [summary = assert.fail()] = segments;
    const files = new MemoryFiles();
    const keys = testKeys(2);
    const old = readFileSync(new URL(file, rootOf(1)));
    const resealed = Buffer.concat([...resealedSegment(old, keys, file, summary.hash)]);
    assert.deepEqual([old.readUInt16BE(8), resealed.readUInt16BE(8), resealed.readUInt16BE(10)], [1, 1, 2]);
    files.contents.set(`t/${file}`, resealed);
    await verifies(openActivityLog({ ...emptyOn(files), keys, segments, tail, head }), activity);
  });
});

for (const number of [2, 3]) {
  describe(`format ${number} of the activity log`, () => {
    it('opens, is searched and verifies', async () => {
      const log = opened(number);
      await verifies(log, auditedActivity);
      for (const filter of [...filters, ...newFilters, { props: { object: { id: 'user_4' } } }]) {
        assert.ok((await count(log, filter)) >= 5, JSON.stringify(filter));
      }
      assert.equal(await count(log, { address: '203.0.113.0/24' }), 0);
    });

    it('keeps its version under a new key', async () => {
      const { segments, tail, head } = manifestOf(number);
      const [summary = assert.fail()] = segments;
      const files = new MemoryFiles();
      const keys = testKeys(2);
      const old = readFileSync(new URL(file, rootOf(number)));
      const resealed = Buffer.concat([...resealedSegment(old, keys, file, summary.hash)]);
      assert.deepEqual([old.readUInt16BE(8), resealed.readUInt16BE(8)], [number, number]);
      files.contents.set(`t/${file}`, resealed);
      await verifies(openActivityLog({ ...emptyOn(files), keys, segments, tail, head }), auditedActivity);
    });
  });
}
