// Files of `test/compat/activity-1` were made by an earlier program and must open for ever: tenant key of epoch 1,
// records 1 to 305 as `auditedActivity` makes them, the first 300 of them in a segment. KMS_WRITE_FIXTURE=1 writes them
// if they are missing.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { it } from 'node:test';
import {
  type ActivityLog,
  type ActivityLogOptions,
  emptyHead,
  openActivityLog,
} from '../../src/store/activity/activity-log.ts';
import { resealedSegment } from '../../src/store/activity/segment.ts';
import type { ActivityFilter } from '../../src/store/port.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { activity, auditedActivity, checkpoint, collect, emptyOn, testId, testKeys, testLog } from './appliance-log.ts';

const file = 'activity-000000000001.kms';
const root = new URL('../compat/activity-1/', import.meta.url);

if (process.env.KMS_WRITE_FIXTURE && !existsSync(root)) {
  const { log, files } = testLog();
  for (let number = 1; number <= 305; number++) log.stage(auditedActivity(number));
  log.commitStaged();
  const start = { segments: [], tail: [], head: emptyHead };
  await checkpoint(log, { ...emptyOn(files), ...start, segmentRecords: 300 });
  mkdirSync(root);
  writeFileSync(new URL(file, root), files.contents.get(`t/${file}`) ?? '');
  const written = { segments: log.segments, tail: log.tailLines(), head: log.head };
  writeFileSync(new URL('manifest.json', root), `${JSON.stringify(written, null, 2)}\n`);
}

function opened(): ActivityLog {
  const files = new MemoryFiles();
  files.contents.set(`t/${file}`, readFileSync(new URL(file, root)));
  return openActivityLog({ ...emptyOn(files), ...manifest() });
}

function manifest(): Pick<ActivityLogOptions, 'segments' | 'tail' | 'head'> {
  return JSON.parse(readFileSync(new URL('manifest.json', root), 'utf8'));
}

async function verifies(log: ActivityLog): Promise<void> {
  const records = await collect(log.read(1), ({ record }) => record);
  assert.deepEqual(
    records,
    Array.from({ length: 305 }, (_, index) => ({ ...auditedActivity(index + 1), seq: index + 1 })),
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
  { address: '192.0.2.4' },
  { address: '2001:db8::/32' },
  { object: 'user_4' },
  { object: 'name 8' },
  { granted: [] },
  { granted: ['keyring.list'] },
  { revoked: ['flag.4'] },
  { props: { object: { id: 'user_4' } } },
];

it('opens, is searched and verifies', async () => {
  const log = opened();
  await verifies(log);
  for (const filter of filters) assert.ok((await count(log, filter)) >= 5, JSON.stringify(filter));
  assert.equal(await count(log, { address: '203.0.113.0/24' }), 0);
});

it('keeps its version under a new key', async () => {
  const { segments, tail, head } = manifest();
  const [summary = assert.fail()] = segments;
  const files = new MemoryFiles();
  const keys = testKeys(2);
  const old = readFileSync(new URL(file, root));
  const resealed = Buffer.concat([...resealedSegment(old, keys, file, summary.hash)]);
  assert.deepEqual([old.readUInt16BE(8), resealed.readUInt16BE(8), resealed.readUInt16BE(10)], [1, 1, 2]);
  files.contents.set(`t/${file}`, resealed);
  await verifies(openActivityLog({ ...emptyOn(files), keys, segments, tail, head }));
});
