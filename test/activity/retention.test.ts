// Dropping the oldest segments of an activity log: the rest verifies from the retained position, and nothing beyond it
// can be removed unnoticed.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type ActivityLog, openActivityLog } from '../../src/store/activity/activity-log.ts';
import { chainStart, verifyChain } from '../../src/store/activity/chain.ts';
import type { DroppedActivity } from '../../src/store/port.ts';
import type { MemoryFiles } from '../support/memory-files.ts';
import { checkpoint, collect, emptyOn, fill, testId, testLog } from './appliance-log.ts';

const never = Number.POSITIVE_INFINITY;
const timeOf = (number: number): number => 1_700_000_000_000 + number;

async function rolled(records: number): Promise<{ log: ActivityLog; files: MemoryFiles }> {
  const { log, files } = testLog();
  fill(log, 1, records);
  await checkpoint(log, { ...emptyOn(files), segmentRecords: 10 });
  return { log, files };
}

/** Opens the log again from the contents of a snapshot. */
function reopened(log: ActivityLog, files: MemoryFiles): ActivityLog {
  const stored = JSON.parse(JSON.stringify({ segments: log.segments, head: log.head, dropped: log.dropped }));
  return openActivityLog({ ...emptyOn(files), ...stored, tail: log.tailLines() });
}

function removeDropped(files: MemoryFiles, { seq }: DroppedActivity): void {
  for (const name of files.contents.keys()) if (Number(/[0-9]{12}/.exec(name)?.[0]) <= seq) files.contents.delete(name);
}

const follow = (log: ActivityLog) => {
  const { seq, hash } = log.dropped ?? chainStart;
  return verifyChain(log.read(seq + 1), { start: { seq, hash } });
};

describe('dropping segments', () => {
  it('takes whole ones from the first on, all of whose records are old enough and not needed', async () => {
    const { log } = await rolled(45);
    assert.equal(log.droppable(timeOf(10), never), undefined, 'the last record is not before it');
    assert.equal(log.droppable(timeOf(11), never)?.seq, 10);
    assert.equal(log.droppable(timeOf(30), never)?.seq, 20);
    assert.equal(log.droppable(never, 29)?.seq, 20);
    assert.equal(log.droppable(never, 9), undefined);
    assert.deepEqual(log.droppable(never, never), { seq: 40, hash: log.segments[3]?.hash, until: timeOf(40) });
    assert.equal(log.dropped, undefined, 'it only says what it would do');
  });

  it('leaves what verifies, is found and goes on', async () => {
    const { log, files } = await rolled(45);
    const whole = await collect(log.read(1), ({ hash }) => hash);
    log.drop(29);
    assert.equal(log.dropped?.seq, 20);
    assert.ok(log.dropped);
    removeDropped(files, log.dropped);
    for (const each of [log, reopened(log, files)]) {
      assert.deepEqual(await collect(each.read(1), ({ hash }) => hash), whole.slice(20));
      assert.deepEqual(await follow(each), { count: 25, head: each.head });
      assert.deepEqual((await each.search({}, { limit: 100 })).items.map(({ seq }) => seq).at(-1), 21);
      assert.equal(await each.find(testId(20)), undefined);
      assert.equal((await each.find(testId(21)))?.seq, 21);
      assert.equal(each.droppable(timeOf(21), never), undefined, 'nothing more may go');
    }
    log.drop(40);
    assert.equal(log.dropped?.seq, 40);
    assert.deepEqual(await follow(log), { count: 5, head: log.head });
  });

  it('lets whoever reads already read to the end', async () => {
    const { log } = await rolled(45);
    const reader = log.read(1);
    assert.equal((await reader.next()).value?.record.seq, 1);
    assert.equal(log.isRead, true);
    log.drop(40);
    const rest = await collect(reader, ({ record }) => record.seq);
    assert.deepEqual(
      rest,
      Array.from({ length: 44 }, (_, at) => at + 2),
    );
    assert.equal(log.isRead, false);
  });

  it('is refused where the parts do not fit: nobody passes off as dropped what was not', async () => {
    const { log, files } = await rolled(45);
    log.drop(20);
    const { segments, head, dropped } = log;
    assert.ok(dropped);
    const open = (over: object) => () =>
      openActivityLog({
        ...emptyOn(files),
        segments,
        head,
        dropped,
        tail: log.tailLines(),
        ...over,
      });
    open({})();
    for (const wrong of [
      { dropped: undefined },
      { dropped: { ...dropped, seq: 30 } },
      { dropped: { ...dropped, hash: segments[0]?.hash } },
      { segments: segments.slice(1) },
    ]) {
      assert.throws(open(wrong), { code: 'corrupt' }, JSON.stringify(wrong));
    }
    const another = open({ segments: [], dropped: { ...dropped, seq: 40 } })();
    await assert.rejects(follow(another), { code: 'corrupt', message: /does not match the hash chain/ });
  });

  it('verifies wherever it ends, and misses each further segment by its name', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 20, max: 120 }),
        fc.array(fc.nat(120), { maxLength: 3 }),
        fc.nat(),
        async (records, drops, at) => {
          const { log, files } = await rolled(records);
          for (const seq of drops) log.drop(seq);
          const dropped = Math.min(Math.floor(Math.max(0, ...drops) / 10) * 10, Math.floor(records / 10) * 10);
          assert.equal(log.dropped?.seq ?? 0, dropped);
          if (log.dropped) removeDropped(files, log.dropped);
          const kept = reopened(log, files);
          assert.deepEqual(await follow(kept), { count: records - dropped, head: kept.head });
          const victim = kept.segments[at % Math.max(1, kept.segments.length)];
          if (!victim) return;
          files.contents.delete(`t/${victim.file}`);
          await assert.rejects(follow(kept), { code: 'corrupt', message: new RegExp(`${victim.file} is missing`) });
        },
      ),
      { numRuns: 40 },
    );
  });
});
