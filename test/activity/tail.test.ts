// The newest records, kept in memory, always agree with the canonical lines, whatever is staged, taken back, replayed
// or dropped, also across block boundaries.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { idFromBytes } from '../../src/crypto/ulid.ts';
import { chainHash, genesisHash } from '../../src/store/activity/chain.ts';
import { activityLine, parseActivityLine } from '../../src/store/activity/record.ts';
import { SegmentMaker } from '../../src/store/activity/segment-writer.ts';
import { ActivityTail } from '../../src/store/activity/tail.ts';
import { blockRecords, TailBlock } from '../../src/store/activity/tail-block.ts';
import type { ActivityInput } from '../../src/store/port.ts';
import { activity, testId, testKeys, uid } from './appliance-log.ts';

/** An id as the appliance makes them, several per millisecond. */
function ulid(number: number): string {
  return idFromBytes(
    'act',
    Uint8Array.from({ length: 16 }, (_, at) => (at === 5 ? number >> 3 : at === 15 ? number : 1)),
  );
}

const start = { seq: 0, hash: genesisHash() };

/** Usual names and odd ones. */
const text = fc.oneof(fc.constantFrom('keyring.encrypt', 'bench', '', 'local', 'ß"\\', '\ud800x'), fc.string());

const record: fc.Arbitrary<ActivityInput> = fc
  .record(
    {
      id: fc.oneof(fc.nat(10_000).map(testId), text),
      createdAt: fc.oneof(fc.integer({ min: 0, max: 2 ** 45 }), fc.constant(0.5)),
      keyid: text,
      action: text,
      ringname: text,
      validAction: fc.boolean(),
      status: fc.constantFrom(0, 200, 403, 99_999),
      props: fc.oneof(
        fc.constantFrom({}, {}, {}, { a: 1 }, { text: 'ü\n' }),
        fc.constantFrom({ keyVersion: 1 }, { keyVersion: 1 }, { keyVersion: 12 }, { fromKeyVersion: 1, keyVersion: 2 }),
        fc.constantFrom({ keyVersion: 0 }, { keyVersion: 1.5 }, { keyVersion: 1e30 }, { keyVersion: '1' }),
      ),
      address: fc.oneof(fc.constant(undefined), text),
      reporter: text,
    },
    { requiredKeys: ['id', 'createdAt', 'keyid', 'action', 'ringname', 'validAction', 'status', 'props'] },
  )
  // Cast: the types allow no property that is present and undefined, but programs do.
  .map((value) => value as ActivityInput);

/** Checks all answers of a tail against its lines. */
function holds(tail: ActivityTail, lines: readonly string[], first: number): void {
  assert.deepEqual(tail.lines(), lines);
  assert.equal(tail.firstSeq, first);
  assert.equal(tail.headSeq, first + lines.length - 1);
  while (tail.indexSome(7));
  for (const [at, line] of lines.entries()) {
    assert.equal(tail.lineOf(first + at), line);
    const known = parseActivityLine(line);
    // Ids may repeat: the newest record is found.
    const newest = lines.findLast((each) => parseActivityLine(each)?.id === known?.id);
    assert.deepEqual(tail.find(known?.id ?? ''), parseActivityLine(newest ?? ''));
  }
  const bytes = lines.map((line) => Buffer.byteLength(line));
  for (let count = 1; count <= lines.length; count++) {
    const length = bytes.slice(0, count).reduce((sum, each) => sum + each, 0);
    assert.equal(tail.runOf(lines.length + 1, length), count);
  }
}

function chain(lines: readonly string[], before = genesisHash()): Uint8Array {
  return lines.reduce((hash, line) => chainHash(hash, line), before);
}

describe('the newest records', () => {
  it('take no line of their own where many share what they say', () => {
    const block = new TailBlock();
    const rows: readonly (readonly [props: ActivityInput['props'], hasMore: boolean])[] = [
      [{}, false],
      [{ keyVersion: 1 }, false],
      [{ keyVersion: 2 }, false],
      [{ fromKeyVersion: 1, keyVersion: 2 }, true],
      [{ keyVersion: '2' }, true],
    ];
    for (const [at, [props, hasMore]] of rows.entries()) {
      block.push({ ...activity(at + 1), props }, at + 1);
      assert.equal(block.hasMore(at), hasMore);
      assert.deepEqual(block.record(at, at + 1)?.props, props);
    }
  });

  it('are what their lines say', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 40 }), fc.nat(40), (records, loaded) => {
        const lines = records.map((each, at) => activityLine(each, at + 1));
        const known = lines.slice(0, loaded);
        const tail = new ActivityTail(start, known, { seq: known.length, hash: chain(known) });
        for (const [at, each] of records.entries()) {
          if (at < loaded) continue;
          tail.replay(each);
        }
        holds(tail, lines, 1);
        while (tail.hashSome(5));
        assert.deepEqual(tail.head, { seq: lines.length, hash: chain(lines) });
      }),
    );
  });

  it('make the same segment in parts as by their lines, to the byte', () => {
    const own = fc.record({ id: fc.nat(10_000).map(ulid), createdAt: fc.nat(2 ** 41) });
    const many = fc.array(fc.tuple(record, fc.option(own)), { minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(many, fc.nat(20), fc.constantFrom(0, 8, 99_999_900), (drawn, loaded, before) => {
        const records = drawn.map(([each, usual], at) => ({ ...each, ...(at % 3 > 0 && usual) }));
        const place = { seq: before, hash: new Uint8Array(32).fill(9) };
        const lines = records.map((each, at) => activityLine(each, before + at + 1));
        const known = lines.slice(0, loaded);
        const head = { seq: before + known.length, hash: chain(known, place.hash) };
        const tail = new ActivityTail(place, known, head);
        for (const each of records.slice(loaded)) tail.stage(each);
        tail.commit();
        const segment = new SegmentMaker(place, lines.length);
        tail.addTo(segment, lines.length);
        const plain = new SegmentMaker(place, lines.length);
        for (const line of lines) plain.add(line);
        assert.deepEqual(segment.end, { seq: before + lines.length, hash: chain(lines, place.hash) });
        assert.deepEqual(segment.finish(testKeys(), uid), plain.finish(testKeys(), uid));
      }),
      { numRuns: 60 },
    );
  });

  it('are in no segment where the snapshot has others than its head says', () => {
    const lines = [1, 2, 3].map((seq) => activityLine(activity(seq), seq));
    const head = { seq: 3, hash: chain(lines.with(1, activityLine(activity(9), 2))) };
    const tail = new ActivityTail(start, lines, head);
    assert.throws(() => tail.addTo(new SegmentMaker(start, 3), 3), /record 3 does not match the hash chain/);
  });

  it('are the committed ones, whatever is staged and taken back', () => {
    const step = fc.record({ staged: fc.array(record, { maxLength: 6 }), kept: fc.nat(6) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const tail = new ActivityTail(start, [], start);
        const lines: string[] = [];
        for (const { staged, kept } of steps) {
          for (const each of staged) tail.stage(each);
          tail.discard(kept);
          assert.equal(tail.stagedCount, Math.min(kept, staged.length));
          for (const each of staged.slice(0, kept)) lines.push(activityLine(each, lines.length + 1));
          tail.commit();
        }
        holds(tail, lines, 1);
        assert.deepEqual(tail.head.hash, chain(lines));
      }),
    );
  });

  for (const dropped of [1, blockRecords - 1, blockRecords, blockRecords + 1, 3 * blockRecords, 3 * blockRecords + 9]) {
    it(`go on behind ${dropped} that were dropped`, () => {
      const tail = new ActivityTail(start, [], start);
      const total = 3 * blockRecords + 9;
      const lines = Array.from({ length: total }, (_, at) => activityLine(activity(at + 1), at + 1));
      for (let seq = 1; seq <= total; seq++) tail.stage(activity(seq));
      tail.commit();
      const hash = chain(lines.slice(0, dropped));
      tail.dropTo({ seq: dropped, hash });
      assert.equal(tail.firstSeq, dropped + 1);
      for (let seq = total + 1; seq <= total + blockRecords; seq++) {
        tail.stage(activity(seq));
        lines.push(activityLine(activity(seq), seq));
      }
      tail.stage(activity(0));
      tail.discard(blockRecords);
      tail.commit();
      assert.deepEqual(tail.lines(), lines.slice(dropped));
      assert.equal(tail.find(testId(dropped)), undefined);
      assert.equal(tail.find(testId(dropped + 1))?.seq, dropped + 1);
      assert.equal(tail.find(testId(total + blockRecords))?.seq, total + blockRecords);
      assert.equal(tail.find(testId(0)), undefined);
      assert.deepEqual(tail.head.hash, chain(lines.slice(dropped), hash));
    });
  }

  it('are refused where JSON cannot say them, with nothing kept', () => {
    const block = new TailBlock();
    assert.throws(() => block.push(activity(1, { props: { a: '\udc00' } }), 1), { code: 'invalid' });
    assert.equal(block.count, 0);
    block.push(activity(2), 1);
    assert.equal(block.line(0, 1), activityLine(activity(2), 1));
  });

  it('take back as often as they like', () => {
    const block = new TailBlock();
    block.push(activity(1), 1);
    for (let i = 0; i < 70_000; i++) {
      block.push(activity(2, { keyid: `apik_${i}` }), 2);
      block.cut(1);
    }
    block.push(activity(2, { keyid: 'apik_last' }), 2);
    assert.equal(block.line(0, 1), activityLine(activity(1), 1));
    assert.equal(block.record(1, 2)?.keyid, 'apik_last');
  });
});
