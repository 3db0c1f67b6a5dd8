// The short form of activity records in the log: whatever goes in comes out, and what is neither form is refused.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { activityLine } from '../../src/store/activity/record.ts';
import { type ActivityHead, GroupActivity, readRecord } from '../../src/store/commit-group.ts';
import type { ActivityInput } from '../../src/store/port.ts';

const one: ActivityInput = {
  id: 'act_01m7yby3egz74dxx5pmhd6td2e',
  createdAt: 1_795_243_725_123,
  keyid: 'apik_01m7yby3egz74dxx5pmhd6td2f',
  action: 'keyring.encrypt',
  ringname: 'bench',
  validAction: true,
  status: 200,
  props: {},
};

/** As the log has them, and back: canonical lines, so that what hashing sees is compared. */
function roundTrip(records: readonly ActivityInput[]): string[] {
  const group = new GroupActivity();
  for (const record of records) group.add(record);
  const head: ActivityHead = JSON.parse(JSON.stringify(group.head ?? { at: 0, alike: [] }));
  const lines = group.lines.split('\n').slice(0, -1);
  return lines.map((line, at) => {
    const read = readRecord(head, line);
    return typeof read === 'string' ? read : activityLine(read, at + 1);
  });
}

describe('activity records of a group', () => {
  it('are short where they share everything but id and time', () => {
    const group = new GroupActivity();
    for (let i = 0; i < 5; i++) group.add({ ...one, id: `act_${i}`, createdAt: one.createdAt + i });
    assert.equal(group.lines, '0 0 act_0\n0 1 act_1\n0 2 act_2\n0 3 act_3\n0 4 act_4\n');
    assert.deepEqual(group.head, { at: one.createdAt, alike: [['keyring.encrypt', one.keyid, 'bench', 200, true]] });
  });

  it('share where they came from, as long as it is one place', () => {
    const group = new GroupActivity();
    for (const address of ['192.0.2.1', undefined, '192.0.2.1', '2001:db8::1']) group.add({ ...one, address });
    assert.deepEqual(
      group.lines.split('\n').map((line) => line.split(' ')[0]),
      ['0', '1', '0', '2', ''],
    );
    const shared = ['keyring.encrypt', one.keyid, 'bench', 200, true];
    assert.deepEqual(group.head?.alike, [[...shared, '192.0.2.1'], shared, [...shared, '2001:db8::1']]);
  });

  it('are whole where somebody reported them', () => {
    const group = new GroupActivity();
    group.add(one);
    group.add({ ...one, reporter: 'apik_2' });
    assert.equal(group.lines, `0 0 ${one.id}\n${JSON.stringify({ ...one, reporter: 'apik_2' })}\n`);
  });

  it('come back as they went in', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('a', 'b', 'c d', '\n', '{', '\ud800', '😀'));
    const plain = fc.record({
      id: fc.oneof(text, fc.constantFrom('act_1', 'act_2')),
      createdAt: fc.oneof(fc.maxSafeInteger(), fc.constantFrom(one.createdAt, 0, -1, 2 ** 53 + 2)),
      keyid: text,
      action: text,
      ringname: text,
      validAction: fc.boolean(),
      status: fc.constantFrom(200, 403, 500),
      props: fc.oneof(
        fc.constant({}),
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.constantFrom(1, -0, null, [], { a: 'b' }, 'x\ny'), {
          noNullPrototype: true,
        }),
      ),
    });
    const record: fc.Arbitrary<ActivityInput> = fc.oneof(
      plain,
      fc.record({ one: plain, address: text }).map(({ one, address }) => ({ ...one, address })),
      fc.record({ one: plain, reporter: text }).map(({ one, reporter }) => ({ ...one, reporter })),
    );
    fc.assert(
      fc.property(fc.array(record, { maxLength: 60 }), (records) => {
        assert.deepEqual(
          roundTrip(records),
          records.map((each, at) => activityLine(each, at + 1)),
        );
      }),
    );
  });

  it('of many kinds each find their own', () => {
    const records = Array.from({ length: 200 }, (_, i) => ({ ...one, ringname: `r${i % 40}`, status: 200 + (i % 3) }));
    assert.deepEqual(
      roundTrip(records),
      records.map((each, at) => activityLine(each, at + 1)),
    );
  });

  it('in the form of the first logs stay the lines that they are', () => {
    const line = activityLine(one, 7);
    assert.equal(readRecord({ at: 0, alike: [] }, line), line);
  });

  for (const line of ['', '0', '0 1', '1 0 act_1', '-1 0 act_1', '0 x act_1', '0 1 act_1 more', '{"id":']) {
    it(`refuses ${JSON.stringify(line)}`, () => {
      const head: ActivityHead = { at: one.createdAt, alike: [['a', 'k', 'r', 200, true]] };
      assert.throws(() => readRecord(head, line));
    });
  }
});
