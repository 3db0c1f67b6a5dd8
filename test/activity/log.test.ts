// The activity log in memory: staged records, replay, and checkpoints that move records into segments.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ActivityLog, emptyHead, openActivityLog } from '../../src/store/activity/activity-log.ts';
import type { ActivityFilter } from '../../src/store/port.ts';
import { activity, checkpoint, emptyOn, fill, filling, testId, testLog } from './appliance-log.ts';

async function seqs(log: ActivityLog, filter: ActivityFilter = {}, limit = 10_000): Promise<number[]> {
  return (await log.search(filter, { limit })).items.map((record) => record.seq);
}

const down = (from: number, to: number): number[] => Array.from({ length: from - to + 1 }, (_, index) => from - index);

describe('staged records', () => {
  it('are in the chain but not in the log until they are committed', async () => {
    const { log } = testLog();
    log.stage(activity(1));
    assert.deepEqual([log.stagedCount, log.count, log.head], [1, 0, emptyHead]);
    assert.deepEqual(await seqs(log), []);
    assert.equal(await log.find(testId(1)), undefined);
    log.commitStaged();
    assert.deepEqual([log.stagedCount, log.count, log.head.seq], [0, 1, 1]);
    assert.deepEqual(await seqs(log), [1]);
    assert.equal((await log.find(testId(1)))?.seq, 1);
  });

  it('are taken back as if they had never been', () => {
    const { log } = testLog();
    const { log: other } = testLog();
    log.stage(activity(1));
    log.stage(activity(2));
    log.stage(activity(3));
    log.discardStaged(1);
    assert.equal(log.stagedCount, 1);
    log.stage(activity(4));
    log.commitStaged();
    other.stage(activity(1));
    other.stage(activity(4));
    other.commitStaged();
    assert.deepEqual(log.head, other.head);
    log.stage(activity(5));
    log.discardStaged();
    assert.deepEqual(log.head, other.head);
  });

  it('can be committed in part, the oldest first', async () => {
    const { log } = testLog();
    for (const number of [1, 2, 3]) log.stage(activity(number));
    log.commitStaged(2);
    assert.deepEqual([log.count, log.stagedCount], [2, 1]);
    log.discardStaged();
    assert.deepEqual(await seqs(log), [2, 1]);
  });

  it('that cannot be said in JSON leave nothing behind', () => {
    const { log } = testLog();
    assert.throws(() => log.stage(activity(1, { props: { a: '\udc00' } })), { code: 'invalid' });
    assert.equal(log.stagedCount, 0);
  });
});

describe('replay', () => {
  it('leads to the same head as staging', () => {
    const { log } = testLog();
    const { log: again } = testLog();
    for (let number = 1; number <= 20; number++) {
      log.stage(activity(number));
      log.commitStaged();
      again.replay(activity(number));
    }
    assert.deepEqual(again.head, log.head);
    assert.deepEqual(again.tailLines(), log.tailLines());
  });
});

describe('a checkpoint', () => {
  it('moves full runs into segments and keeps the rest, on both sides', async () => {
    const { log, files } = testLog();
    const options = { ...emptyOn(files), segmentRecords: 10 };
    fill(log, 1, 35);
    const worker = await checkpoint(log, options);
    assert.deepEqual(
      log.segments.map(({ file, firstSeq, lastSeq }) => [file, firstSeq, lastSeq]),
      [
        ['activity-000000000001.kms', 1, 10],
        ['activity-000000000011.kms', 11, 20],
        ['activity-000000000021.kms', 21, 30],
      ],
    );
    assert.equal(log.tailLines().length, 5);
    assert.deepEqual(worker.tailLines(), log.tailLines());
    assert.deepEqual(worker.head, log.head);
    assert.deepEqual(await seqs(log), down(35, 1));
    assert.equal(
      log.bytes,
      [...files.contents.values()].reduce((sum, bytes) => sum + bytes.length, 0),
    );
    assert.equal((await log.find(testId(14)))?.seq, 14);
    assert.equal(await log.find(testId(36)), undefined);
  });

  it('leaves what was added meanwhile, committed and staged', async () => {
    const { log, files } = testLog();
    fill(log, 1, 25);
    const options = { ...emptyOn(files), segmentRecords: 10 };
    const worker = openActivityLog({ ...options, tail: log.tailLines(), head: log.head });
    fill(log, 26, 33);
    log.stage(filling(34));
    log.adopt(await worker.roll());
    assert.equal(log.stagedCount, 1);
    assert.deepEqual(await seqs(log), down(33, 1));
    log.commitStaged();
    const { log: straight } = testLog();
    fill(straight, 1, 34);
    assert.deepEqual(log.head, straight.head);
    assert.deepEqual(await seqs(log, { keyids: ['apik_3'] }), [31, 24, 17, 10, 3]);
  });

  it('is read in order while records move into segments, wherever the reader is', async () => {
    for (const at of [0, 1, 126, 127, 128, 255]) {
      const { log, files } = testLog();
      fill(log, 1, 300);
      const worker = openActivityLog({ ...emptyOn(files), segmentRecords: 10, tail: log.tailLines(), head: log.head });
      const segments = await worker.roll();
      const seen: number[] = [];
      const reading = log.read(1);
      for (;;) {
        const step = reading.next();
        if (seen.length === at) log.adopt(segments);
        const { done, value } = await step;
        if (done) break;
        seen.push(value.record.seq);
      }
      assert.deepEqual(seen, down(300, 1).reverse(), `adopted behind record ${at}`);
    }
  });

  it('closes a segment early when its lines are long', async () => {
    const { log, files } = testLog();
    fill(log, 1, 30);
    const options = emptyOn(files);
    await checkpoint(log, { ...options, segmentText: 1000 });
    assert.ok(log.segments.length >= 4);
    assert.deepEqual(await seqs(log), down(30, 1));
  });

  it('repeated after a crash writes the same bytes', async () => {
    const { log, files } = testLog();
    const { files: others } = testLog();
    fill(log, 1, 20);
    for (const target of [files, others]) {
      const options = { ...emptyOn(target), segmentRecords: 10 };
      await openActivityLog({ ...options, tail: log.tailLines(), head: log.head }).roll();
    }
    assert.deepEqual(files.contents, others.contents);
  });

  it('of another history is not adopted', async () => {
    const { log, files } = testLog();
    const { log: other } = testLog();
    fill(log, 1, 20);
    fill(other, 2, 21);
    const options = { ...emptyOn(files), segmentRecords: 10 };
    const worker = openActivityLog({ ...options, tail: other.tailLines(), head: other.head });
    const segments = await worker.roll();
    await log.hashed();
    assert.throws(() => log.adopt(segments), { code: 'corrupt' });
    assert.equal(log.tailLines().length, 20);
  });
});

describe('opening', () => {
  it('reads no segment, and hashes and indexes the tail when it is needed', async () => {
    const { log, files } = testLog();
    fill(log, 1, 1000);
    const options = { ...emptyOn(files), segmentRecords: 300 };
    await checkpoint(log, options);
    files.reads = 0;
    const again = openActivityLog({ ...options, segments: log.segments, tail: log.tailLines(), head: log.head });
    again.stage(activity(1001));
    again.commitStaged();
    log.stage(activity(1001));
    log.commitStaged();
    assert.deepEqual(again.head, log.head);
    assert.equal(files.reads, 0);
    assert.deepEqual(await seqs(again), down(1001, 1));
  });

  it('adopts a checkpoint before its own tail was indexed', async () => {
    const { log } = testLog();
    fill(log, 1, 1000);
    for (const indexed of [0, 1]) {
      const { files } = testLog();
      const options = { ...emptyOn(files), segmentRecords: 300 };
      const open = () => openActivityLog({ ...options, tail: log.tailLines(), head: log.head });
      const again = open();
      const worker = open();
      fill(again, 1001, 1010);
      const searching = indexed ? seqs(again, {}, 1) : undefined;
      again.adopt(await worker.roll());
      await searching;
      assert.deepEqual(await seqs(again), down(1010, 1));
      assert.deepEqual(await seqs(again, { keyids: ['apik_3'] }, 3), [1004, 997, 990]);
      assert.equal((await again.find(testId(950)))?.seq, 950);
      assert.equal(again.tailLines().length, 110);
    }
  });

  it('refuses parts that do not fit together', async () => {
    const { log, files } = testLog();
    fill(log, 1, 25);
    const options = { ...emptyOn(files), segmentRecords: 10 };
    await checkpoint(log, options);
    const whole = { ...options, segments: log.segments, tail: log.tailLines(), head: log.head };
    const [first, second] = log.segments;
    assert.ok(first && second);
    openActivityLog(whole);
    for (const broken of [
      { ...whole, segments: [first] },
      { ...whole, segments: [second] },
      { ...whole, segments: [second, first] },
      { ...whole, segments: [first, { ...second, prevHash: first.prevHash }] },
      { ...whole, tail: whole.tail.slice(1) },
      { ...whole, tail: [] },
      { ...whole, head: { ...whole.head, seq: 26 } },
      { ...whole, head: { ...whole.head, hash: 'x' } },
      { ...options, segments: [first], head: { seq: 10, hash: second.hash } },
    ]) {
      assert.throws(() => openActivityLog(broken), { code: 'corrupt' });
    }
  });

  it('finds a tail that does not fit the chain when the chain is first asked for', async () => {
    const { log, files } = testLog();
    fill(log, 1, 5);
    const lines = log.tailLines();
    const changed = lines.map((line) => line.replace('"seq":3,"status":200', '"seq":3,"status":201'));
    const swapped = [lines[0], lines[2], lines[1], lines[3], lines[4]].map((line) => line ?? '');
    for (const tail of [changed, swapped]) {
      const again = openActivityLog({ ...emptyOn(files), tail, head: log.head });
      await assert.rejects(again.hashed(), { code: 'corrupt', message: /does not match the hash chain/ });
      await assert.rejects(again.read(1).next(), { code: 'corrupt' });
    }
  });
});

describe('reading in chain order', () => {
  it('gives every record once, over checkpoints and additions on the way, up to the head at its start', async () => {
    const { log, files } = testLog();
    const options = { ...emptyOn(files), segmentRecords: 10 };
    fill(log, 1, 25);
    await checkpoint(log, options);
    fill(log, 26, 57);
    const read: number[] = [];
    let last = '';
    for await (const { record, hash } of log.read(4)) {
      read.push(record.seq);
      last = hash;
      if (record.seq === 12) fill(log, 58, 60);
      if (record.seq === 27) await checkpoint(log, options);
    }
    assert.deepEqual(read, down(57, 4).reverse());
    const { log: straight } = testLog();
    fill(straight, 1, 57);
    assert.equal(last, straight.head.hash);
  });

  it('gives nothing after the head', async () => {
    const { log } = testLog();
    fill(log, 1, 3);
    for await (const link of log.read(4)) assert.fail(`record ${link.record.seq}`);
  });
});
