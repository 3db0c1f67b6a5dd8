// Records in columns and addresses in closed segments: they are read back byte for byte, addresses are found at the
// right positions, and their cost is bounded.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { idFromBytes } from '../../src/crypto/ulid.ts';
import { genesisHash } from '../../src/store/activity/chain.ts';
import { BlockMaker, decodeBlock, decodeTexts, TextCollector } from '../../src/store/activity/columns.ts';
import { decodeOrigins, OriginCollector, positionsFrom } from '../../src/store/activity/origins.ts';
import { activityLine, parseActivityLine } from '../../src/store/activity/record.ts';
import { SegmentMaker } from '../../src/store/activity/segment-writer.ts';
import { testWorld } from '../support/context.ts';
import { prng } from '../support/prng.ts';
import { activity, testKeys, uid } from './appliance-log.ts';

/** The encoded lines, and the lines decoded again. */
function roundTrip(lines: readonly string[]): { bytes: Uint8Array; read: string[] } {
  const all = lines.map((line) => parseActivityLine(line) ?? assert.fail(line));
  const texts = new TextCollector(lines.length);
  const prevHash = new Uint8Array(32).fill(7);
  const maker = new BlockMaker(prevHash);
  for (const [at, record] of all.entries()) {
    const numbers = texts.numbersOf(record);
    texts.add(numbers);
    maker.add(lines[at] ?? '', record, numbers.isBare, at + 1);
  }
  const bytes = maker.bytes();
  const decoded = decodeTexts(texts.bytes(), lines.length) ?? assert.fail();
  const block = decodeBlock(bytes, { first: 0, seq: 1, records: lines.length }, decoded) ?? assert.fail();
  assert.deepEqual(block.prevHash, prevHash);
  return { bytes, read: Array.from({ length: block.records }, (_, at) => block.line(at)) };
}

describe('columns', () => {
  it('give back each line to the byte, whatever is in it', () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom('a', '"', '\\', '"address":"192.0.2.1",', '{"action":"a",', '\n'),
    );
    const address = fc.oneof(fc.constantFrom('192.0.2.1', '2001:db8::1', '198.51.100.7'), text);
    const id = fc.oneof(
      fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => idFromBytes('act', bytes)),
      fc.nat(300).map((n) =>
        idFromBytes(
          'act',
          Uint8Array.from({ length: 16 }, (_, at) => (at === 15 ? n : 1)),
        ),
      ),
      fc.constantFrom('act_1', 'act_', '', 'act_0000000001000000000000000o', 'ACT_00000000010000000000000000'),
    );
    const createdAt = fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true }));
    const inputs = fc.record(
      {
        id,
        createdAt,
        action: text,
        keyid: text,
        ringname: text,
        address,
        props: fc.dictionary(text, text),
        reporter: text,
      },
      { requiredKeys: ['id', 'createdAt', 'action', 'keyid', 'ringname', 'props'] },
    );
    fc.assert(
      fc.property(fc.array(inputs, { minLength: 1, maxLength: 128 }), (all) => {
        const lines = all.map((each, at) => activityLine(activity(at, { address: undefined, ...each }), at + 1));
        assert.deepEqual(roundTrip(lines).read, lines);
      }),
      { numRuns: 200 },
    );
  });

  it('keep lines as they are that no writer of this program made', () => {
    const good = activityLine(activity(1), 1);
    const odd = [
      good.replace('"seq":1', '"seq":1.0'),
      good.replace('"createdAt":', '"createdAt": '),
      good.replace('"keyid":"', '"keyid":"\\u0061'),
      good.replace('{', '{"a":1,'),
      good.replace('"ringname":"', '"ringname":"\\ud800'),
    ];
    for (const line of odd) assert.deepEqual(roundTrip([line, activityLine(activity(2), 2)]).read[0], line);
  });

  it('take of an ordinary record little more than the random bytes of its id, of ids that count up almost nothing', () => {
    const clock = { now: 1_790_000_000_000 };
    const linesOf = (steps: number): string[] => {
      const world = testWorld(clock, 1);
      return Array.from({ length: 128 }, (_, at) => {
        clock.now += steps;
        const same = {
          keyid: 'apik_1',
          action: 'keyring.encrypt',
          ringname: 'payroll',
          props: {},
          address: '192.0.2.1',
        };
        const fields = { ...same, validAction: true, status: 200, id: world.newId('act'), createdAt: clock.now };
        return activityLine(activity(at, fields), at + 1);
      });
    };
    assert.ok(roundTrip(linesOf(7)).bytes.length < 128 * 11.5);
    assert.ok(roundTrip(linesOf(0)).bytes.length < 128 * 2);
  });

  it('that are cut or of another length are none', () => {
    const texts = new TextCollector(2);
    for (const seq of [1, 2]) texts.add(texts.numbersOf(activity(seq, { address: '192.0.2.1' })));
    const bytes = texts.bytes();
    assert.ok(decodeTexts(bytes, 2));
    for (let length = 0; length < bytes.length; length++)
      assert.equal(decodeTexts(bytes.subarray(0, length), 2), undefined);
    assert.equal(decodeTexts(bytes, 3), undefined);
  });
});

describe('origins', () => {
  it('number no more than they can, and no text that a list cannot hold', () => {
    const collector = new OriginCollector(65_540);
    for (let at = 0; at < 65_535; at++) assert.equal(collector.numberOf(`a${at}`), at + 1);
    assert.equal(collector.numberOf('one more'), 0);
    assert.equal(collector.numberOf('a7'), 8);
    assert.equal(collector.numberOf(undefined), 0);
    const small = new OriginCollector(3);
    const numbers = ['a\nb', '\ud800', ''].map((text) => small.numberOf(text));
    assert.deepEqual(numbers, [0, 0, 1]);
    for (const number of numbers) small.add(number);
    assert.deepEqual(decodeOrigins(small.bytes(), 3), { addresses: [''], numbers: Uint16Array.from([0, 0, 1]) });
  });

  it('tell the positions of any addresses', () => {
    const origins = { addresses: ['a', 'b', 'c'], numbers: Uint16Array.from([0, 1, 2, 3, 1, 0, 3]) };
    const from = (...wanted: string[]) => positionsFrom(origins, { has: (address) => wanted.includes(address) });
    assert.deepEqual([from('a'), from('c', 'b'), from('d'), from()], [[1, 4], [2, 3, 6], [], []]);
  });

  it('that are cut or of another length are none', () => {
    const collector = new OriginCollector(1);
    collector.add(collector.numberOf('192.0.2.1'));
    const bytes = collector.bytes();
    assert.ok(decodeOrigins(bytes, 1));
    for (let length = 0; length < bytes.length; length++) {
      assert.equal(decodeOrigins(bytes.subarray(0, length), 1), undefined);
    }
    assert.equal(decodeOrigins(bytes, 2), undefined);
    assert.equal(decodeOrigins(bytes.with(0, 255), 1), undefined);
  });

  it('cost a closed segment at most 4 bytes a record', () => {
    const plain = sizeOf(undefined);
    for (const [addresses, most] of [
      [1, 0.1],
      [20, 1],
      [300, 2],
      [1000, 3],
    ] as const) {
      const cost = (sizeOf(addresses) - plain) / records;
      assert.ok(cost < most, `${addresses} addresses: ${cost} bytes a record`);
      assert.ok(sizeOf(addresses) / records < 30, 'addresses and all');
    }
  });
});

const records = 8192;

/** Bytes of a segment of encrypts and decrypts, each from one of this many addresses. */
function sizeOf(addresses: number | undefined): number {
  const clock = { now: 1_790_000_000_000 };
  const world = testWorld(clock, 1);
  const chance = prng(2);
  const keyids = Array.from({ length: 20 }, () => world.newId('apik'));
  const segment = new SegmentMaker({ seq: 0, hash: genesisHash() }, records);
  for (let seq = 1; seq <= records; seq++) {
    clock.now += chance.int(20);
    const key = chance.int(20);
    const from = chance.int(addresses ?? 1);
    const line = activityLine(
      {
        id: world.newId('act'),
        createdAt: clock.now,
        keyid: keyids[key] ?? '',
        action: chance.int(5) > 0 ? 'keyring.encrypt' : 'keyring.decrypt',
        ringname: `ring-${key % 5}`,
        validAction: true,
        status: 200,
        props: {},
        address: addresses === undefined ? undefined : `10.${from % 7}.${from % 256}.${from % 251}`,
      },
      seq,
    );
    segment.add(line);
  }
  return segment.finish(testKeys(), uid).bytes.length;
}
