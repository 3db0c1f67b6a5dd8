// The short form of activity records in the log: every record is read back unchanged, and text in neither form is
// refused.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { utf8 } from '../../src/crypto/bytes.ts';
import { activityLine } from '../../src/store/activity/record.ts';
import { type ActivityHead, Group, GroupActivity, Numbering } from '../../src/store/commit-group.ts';
import { GroupReplayer, type ReplayedActivity, readRecord } from '../../src/store/group-replay.ts';
import type { ActivityInput } from '../../src/store/port.ts';
import { openState } from '../../src/store/state.ts';
import { sqlWasm } from '../support/wasm.ts';

const state = await openState(sqlWasm);

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

/** Usual records and odd ones. */
const text = fc.oneof(fc.string(), fc.constantFrom('a', 'b', 'c d', '\n', '{', '\ud800', '😀'));
const plain = fc.record({
  id: fc.oneof(text, fc.constantFrom('act_1', 'act_2', one.id, one.keyid, `${one.id}0`)),
  createdAt: fc.oneof(fc.maxSafeInteger(), fc.constantFrom(one.createdAt, 0, -1, 2 ** 53 + 2)),
  keyid: text,
  action: text,
  ringname: text,
  validAction: fc.boolean(),
  status: fc.constantFrom(200, 403, 500),
  props: fc.oneof(
    fc.constant({}),
    fc.record({ keyVersion: fc.oneof(fc.constantFrom<unknown>(1, 12, 0, -1, 1.5, '1', null), fc.maxSafeInteger()) }),
    fc.constantFrom({ keyVersion: 2, fromKeyVersion: 1 }, { object: 'x', keyVersion: 3 }),
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

/** Lines that a replay gets from a group's text. */
function replayed(records: readonly ActivityInput[]): string[] {
  const group = new Group(new Numbering());
  group.add({ statements: [], params: [], records, counts: [] });
  const lines: string[] = [];
  const take = (each: ActivityInput | string) =>
    lines.push(typeof each === 'string' ? each : activityLine(each, lines.length + 1));
  const activity: ReplayedActivity = {
    replay: take,
    replayAlike(alike, createdAt, bytes, idAt, keyVersion) {
      const props = keyVersion === undefined ? {} : { keyVersion };
      take({ ...alike, createdAt, id: String.fromCharCode(...bytes.subarray(idAt, idAt + 30)), props });
    },
  };
  const payload = Buffer.concat([group.payload(false), Buffer.from('\n\n\n')]);
  const applied = new GroupReplayer(state, activity).apply(payload, 'log', 0);
  assert.deepEqual(applied, { transactions: 1, begins: false });
  return lines;
}

/** Encodes and decodes the records; returns canonical lines, so that the hashed form is compared. */
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

  it('are short with the version of a key too', () => {
    const group = new GroupActivity();
    for (const props of [{ keyVersion: 1 }, { keyVersion: 12 }, {}]) group.add({ ...one, props });
    assert.equal(group.lines, `0 0 ${one.id} 1\n0 0 ${one.id} 12\n0 0 ${one.id}\n`);
    group.add({ ...one, props: { keyVersion: 2, fromKeyVersion: 1 } });
    assert.match(group.lines, /\n\{.*"fromKeyVersion":1.*\}\n$/);
  });

  it('are whole where somebody reported them', () => {
    const group = new GroupActivity();
    group.add(one);
    group.add({ ...one, reporter: 'apik_2' });
    assert.equal(group.lines, `0 0 ${one.id}\n${JSON.stringify({ ...one, reporter: 'apik_2' })}\n`);
  });

  it('come back as they went in', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 60 }), (records) => {
        const lines = records.map((each, at) => activityLine(each, at + 1));
        assert.deepEqual(roundTrip(records), lines);
        assert.deepEqual(replayed(records), lines);
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

  for (const line of [
    '',
    '0',
    '0 1',
    '1 0 act_1',
    '-1 0 act_1',
    '0 x act_1',
    '0 1 act_1 more',
    '0 1 act_1 0',
    '0 1 act_1 1 2',
    '{"id":',
  ]) {
    it(`refuses ${JSON.stringify(line)}`, () => {
      const head: ActivityHead = { at: one.createdAt, alike: [['a', 'k', 'r', 200, true]] };
      assert.throws(() => readRecord(head, line));
    });
  }
});

describe('what a group counts', () => {
  const nothing: ReplayedActivity = { replay: () => assert.fail(), replayAlike: () => assert.fail() };
  const group = (tx: unknown[], counts: unknown[]) =>
    utf8(
      JSON.stringify({ from: 0, sql: ['UPDATE n SET n = n + ?1, by = ?3 WHERE id = ?2', 'DELETE FROM n'], tx, counts }),
    );

  it('is run with that of others, and before what comes after it', async () => {
    const state = await openState(sqlWasm);
    for (const text of [
      'CREATE TABLE n (id TEXT, n INTEGER, by TEXT)',
      "INSERT INTO n VALUES ('a', 0, ''), ('b', 0, '')",
    ])
      state.run(state.statement(text), []);
    const rows = () => state.all(state.statement('SELECT n, by FROM n ORDER BY id'), []);
    const replayer = new GroupReplayer(state, nothing);
    replayer.apply(
      group(
        [[]],
        [
          [0, 2, 'a', 'x'],
          [0, 1, 'b', 'x'],
        ],
      ),
      'log',
      0,
    );
    replayer.apply(group([[], []], [[0, 3, 'a', 'y']]), 'log', 1);
    replayer.finish();
    assert.deepEqual(rows(), [
      { n: 5, by: 'y' },
      { n: 1, by: 'x' },
    ]);
    const next = new GroupReplayer(state, nothing);
    next.apply(group([[]], [[0, 1, 'a', 'z']]), 'log', 0);
    next.apply(group([[[0, 10, 'a', 'tx']]], [[0, 1, 'a', 'late']]), 'log', 1);
    assert.deepEqual(rows(), [
      { n: 16, by: 'tx' },
      { n: 1, by: 'x' },
    ]);
    next.finish();
    assert.deepEqual(rows(), [
      { n: 17, by: 'late' },
      { n: 1, by: 'x' },
    ]);
    next.apply(group([[[1]]], [[0, 1, 'a', 'gone']]), 'log', 2);
    next.finish();
    assert.deepEqual(rows(), []);
  });
});
