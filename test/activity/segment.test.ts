// Closed segments of the activity log on disk: rolled, reopened, and refused if damaged, cut or exchanged.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ActivityLogOptions, emptyHead, openActivityLog } from '../../src/store/activity/activity-log.ts';
import { compressPart, inflatePart } from '../../src/store/activity/compression.ts';
import { encodeHeader, openPart, partSealer } from '../../src/store/activity/segment.ts';
import type { MemoryFiles } from '../support/memory-files.ts';
import { checkpoint, emptyOn, fill, testId, testKeys, testLog, uid } from './appliance-log.ts';

const first = 't/activity-000000000001.kms';
const second = 't/activity-000000000301.kms';

/** A log of two segments of 300 records (3 blocks each) and a tail. */
async function rolled(): Promise<{ files: MemoryFiles; options: ActivityLogOptions }> {
  const { log, files } = testLog();
  const options = { ...emptyOn(files), segmentRecords: 300 };
  fill(log, 1, 620);
  await checkpoint(log, options);
  return { files, options: { ...options, segments: log.segments, tail: log.tailLines(), head: log.head } };
}

async function readAll(options: ActivityLogOptions): Promise<number> {
  let count = 0;
  for await (const { record } of openActivityLog(options).read(1)) {
    count++;
    assert.equal(record.seq, count);
  }
  return count;
}

function corrupt(path: string) {
  return (error: Error & { code?: string; hint?: string }): boolean => {
    assert.equal(error.code, 'corrupt', `${error.stack}`);
    assert.ok(error.message.includes(path), error.message);
    assert.ok(error.hint?.includes(path));
    return true;
  };
}

describe('a sealed part', () => {
  it('opens nowhere but in its place', () => {
    const key = testKeys().key('activity');
    const header = encodeHeader({ epoch: 1, uid, firstSeq: 1, records: 2, blocks: 2, pages: 1, rootLength: 100 });
    const sealed = partSealer(key)(header, 'block', 1, compressPart(Buffer.from('text')));
    const opened = openPart(key, header, 'block', 1, sealed);
    assert.deepEqual(opened && Buffer.from(inflatePart(opened)).toString(), 'text');
    assert.equal(openPart(key, header, 'block', 0, sealed), undefined);
    assert.equal(openPart(key, header, 'page', 1, sealed), undefined);
    assert.equal(openPart(key, header, 'root', 1, sealed), undefined);
    assert.equal(openPart(testKeys(2).key('activity'), header, 'block', 1, sealed), undefined);
    for (let at = 0; at < header.length; at++) {
      const changed = header.with(at, (header[at] ?? 0) ^ 1);
      assert.equal(openPart(key, changed, 'block', 1, sealed), undefined);
    }
    for (let length = 0; length < sealed.length; length++) {
      assert.equal(openPart(key, header, 'block', 1, sealed.subarray(0, length)), undefined);
    }
  });

  it('has a nonce of its own for each text', () => {
    const key = testKeys().key('activity');
    const header = encodeHeader({ epoch: 1, uid, firstSeq: 1, records: 2, blocks: 2, pages: 1, rootLength: 100 });
    const seal = partSealer(key);
    const nonces = new Set<string>();
    for (let number = 0; number < 50; number++) {
      for (const [kind, index] of [
        ['block', 0],
        ['block', 1],
        ['page', 0],
      ] as const) {
        nonces.add(Buffer.from(seal(header, kind, index, Buffer.from(`${number}`)).subarray(0, 24)).toString('hex'));
      }
    }
    assert.equal(nonces.size, 150);
  });
});

describe('a segment file', () => {
  it('shows no text of a record', async () => {
    const { files } = await rolled();
    for (const bytes of files.contents.values()) {
      const text = Buffer.from(bytes).toString('latin1');
      for (const secret of ['apik_', 'keyring', 'ring-', testId(5), 'props', '192.0.2', '2001:db8'])
        assert.ok(!text.includes(secret));
    }
  });

  it('has a summary of about a kilobyte at most', async () => {
    const { options } = await rolled();
    for (const summary of options.segments) assert.ok(JSON.stringify(summary).length < 1500);
  });

  it('is found changed, whichever byte is flipped, when everything is read', async () => {
    const { files, options } = await rolled();
    assert.equal(await readAll(options), 620);
    const whole = files.contents.get(first) ?? new Uint8Array();
    for (let at = 0; at < whole.length; at += at < 60 ? 1 : 37) {
      const changed = whole.slice();
      changed[at] = (changed[at] ?? 0) ^ (1 << (at & 7));
      files.contents.set(first, changed);
      await assert.rejects(readAll(options), corrupt(first), `byte ${at}`);
    }
  });

  it('is found changed when the part that a search needs is flipped; no wrong answer ever', async () => {
    const { files, options } = await rolled();
    const whole = files.contents.get(first) ?? new Uint8Array();
    const filter = { keyids: ['apik_2'], props: { tag: { even: true } }, address: '0.0.0.0/0' };
    const expected = await openActivityLog(options).search(filter, { limit: 10_000 });
    const unlimited = await openActivityLog(options).search({}, { limit: 10_000 });
    let found = 0;
    for (let at = 0; at < whole.length; at += at < 60 ? 1 : 53) {
      const changed = whole.slice();
      changed[at] = (changed[at] ?? 0) ^ (128 >>> (at & 7));
      files.contents.set(first, changed);
      for (const [wanted, answer] of [
        [filter, expected],
        [{}, unlimited],
      ] as const) {
        try {
          assert.deepEqual(await openActivityLog(options).search(wanted, { limit: 10_000 }), answer);
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          corrupt(first)(error as Error);
          found++;
        }
      }
    }
    assert.ok(found > 20);
  });

  it('is found cut or extended', async () => {
    const { files, options } = await rolled();
    const whole = files.contents.get(first) ?? new Uint8Array();
    const cuts = [0, 1, 51, 52, 53, 200, whole.length >>> 1, whole.length - 1].map((length) => whole.slice(0, length));
    for (const changed of [...cuts, Buffer.concat([whole, Buffer.from([0])])]) {
      files.contents.set(first, changed);
      await assert.rejects(readAll(options), corrupt(first));
    }
    // A search notices cuts in the pages it needs: the last pages hold the greatest terms, and the first block is at
    // the front.
    for (const changed of cuts.slice(0, -1)) {
      files.contents.set(first, changed);
      await assert.rejects(openActivityLog(options).search({}, { limit: 10_000 }), corrupt(first));
    }
    for (const changed of cuts.slice(0, 6)) {
      files.contents.set(first, changed);
      await assert.rejects(openActivityLog(options).find(testId(3)), corrupt(first));
    }
  });

  it('is found missing, and named', async () => {
    const { files, options } = await rolled();
    await files.remove(first);
    await assert.rejects(readAll(options), corrupt(first));
    await assert.rejects(openActivityLog(options).search({ keyids: ['apik_2'] }, { limit: 10_000 }), corrupt(first));
    assert.equal((await openActivityLog(options).search({}, { limit: 300 })).items.length, 300);
  });

  it('is found to be another one', async () => {
    const { files, options } = await rolled();
    const other = files.contents.get(second) ?? new Uint8Array();
    files.contents.set(first, other);
    await assert.rejects(readAll(options), corrupt(first));
    await assert.rejects(openActivityLog(options).search({}, { limit: 10_000 }), corrupt(first));
  });

  it('is found to be of another store or another history', async () => {
    const { files, options } = await rolled();
    const foreign = openActivityLog({ ...options, uid: uid.map((byte) => byte ^ 1) });
    await assert.rejects(foreign.find(testId(3)), corrupt(first));
    await assert.rejects(readAll({ ...options, uid: uid.map((byte) => byte ^ 1) }), corrupt(first));
    const { log: altered, files: others } = testLog();
    fill(altered, 1, 4);
    fill(altered, 6, 6);
    fill(altered, 6, 620);
    const { segments } = openActivityLog(options);
    await checkpoint(altered, { ...options, files: others, segments: [], tail: [], head: emptyHead });
    for (const [name, bytes] of others.contents) files.contents.set(name, bytes);
    const sized = segments.map((summary) => ({
      ...summary,
      bytes: files.contents.get(`t/${summary.file}`)?.length ?? 0,
    }));
    await assert.rejects(openActivityLog({ ...options, segments: sized }).find(testId(3)), corrupt(first));
  });

  it('opens under the key of its epoch, and only with it', async () => {
    const { options } = await rolled();
    assert.equal(await readAll({ ...options, keys: testKeys(3) }), 620);
    await assert.rejects(readAll({ ...options, keys: { epoch: 2, key: () => new Uint8Array(32) } }), corrupt(first));
    await assert.rejects(readAll({ ...options, keys: testKeys(0, 0) }), corrupt(first));
  });

  it('that cannot be read for another reason says that reason', async () => {
    const { files, options } = await rolled();
    files.readAt = async () => {
      throw Object.assign(new Error('i/o error'), { code: 'EIO' });
    };
    await assert.rejects(openActivityLog(options).find(testId(3)), {
      code: 'unavailable',
      message: `activity segment ${first} cannot be read: the device failed`,
    });
  });

  it('that the process is too short of something to read is at no fault', async () => {
    const { files, options } = await rolled();
    files.readAt = async () => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    };
    await assert.rejects(openActivityLog(options).find(testId(3)), { code: 'unavailable' });
  });
});
