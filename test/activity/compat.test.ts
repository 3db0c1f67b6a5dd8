// The files of `test/compat/activity-1` were made by the first release of the format and must open for ever: tenant key
// of epoch 1, records 1 to 305 as `activity` makes them, the first 300 of them in a segment.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { type ActivityLogOptions, openActivityLog } from '../../src/store/activity/activity-log.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { activity, collect, testId, testKeys, uid } from './appliance-log.ts';

const root = new URL('../compat/activity-1/', import.meta.url);

describe('format 1 of the activity log', () => {
  it('opens, is searched and verifies', async () => {
    const files = new MemoryFiles();
    const file = 'activity-000000000001.kms';
    files.contents.set(`t/${file}`, await readFile(new URL(file, root)));
    const manifest: Pick<ActivityLogOptions, 'segments' | 'tail' | 'head'> = JSON.parse(
      await readFile(new URL('manifest.json', root), 'utf8'),
    );
    const log = openActivityLog({ files, dir: 't', keys: testKeys(), uid, ...manifest });
    const records = await collect(log.read(1), ({ record }) => record);
    assert.deepEqual(
      records,
      Array.from({ length: 305 }, (_, index) => ({ ...activity(index + 1), seq: index + 1 })),
    );
    for (const filter of [
      { keyids: ['apik_3'] },
      { action: 'keyring.encrypt' },
      { ringname: 'ring-2' },
      { valid: false },
      { props: { tag: { by: 4 } } },
      { start: activity(100).createdAt, end: activity(120).createdAt },
    ]) {
      assert.ok((await log.search(filter, { limit: 1000 })).items.length >= 10, JSON.stringify(filter));
    }
    assert.equal((await log.find(testId(200)))?.seq, 200);
  });
});
