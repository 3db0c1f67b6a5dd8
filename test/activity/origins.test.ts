// Addresses in closed segments: what goes in comes out, by which positions they are found, and what they cost.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { chainHash, genesisHash } from '../../src/store/activity/chain.ts';
import { decodeOrigins, OriginCollector, positionsFrom, withOrigin } from '../../src/store/activity/origins.ts';
import { activityLine, parseActivityLine } from '../../src/store/activity/record.ts';
import { makeSegment } from '../../src/store/activity/segment-writer.ts';
import { testWorld } from '../support/context.ts';
import { prng } from '../support/prng.ts';
import { activity, testKeys, uid } from './appliance-log.ts';

/** The lines as they are stored, and as they are read again; positions 10 and 11 are looked up. */
function roundTrip(lines: readonly string[]): { stored: string[]; read: string[]; bytes: Uint8Array } {
  const collector = new OriginCollector(lines.length);
  const stored = lines.map((line) => collector.add(line, parseActivityLine(line) ?? assert.fail(line)));
  const bytes = collector.bytes();
  const origins = bytes.length === 0 ? undefined : (decodeOrigins(bytes, lines.length) ?? assert.fail());
  return { stored, read: stored.map((line, at) => (origins ? withOrigin(line, origins, at) : line)), bytes };
}

describe('origins', () => {
  it('come back as they went in, whatever else is in the lines', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('a', '"', '\\', '","address":"192.0.2.1",', '{"action":"a",'));
    const address = fc.oneof(fc.constantFrom('192.0.2.1', '2001:db8::1', '198.51.100.7'), text);
    const inputs = fc.record(
      { action: text, keyid: text, ringname: text, address, props: fc.dictionary(text, text) },
      { requiredKeys: ['action', 'keyid', 'ringname', 'props'] },
    );
    fc.assert(
      fc.property(fc.array(inputs, { maxLength: 40 }), (all) => {
        const lines = all.map((each, at) => activityLine(activity(at, { address: undefined, ...each }), at + 1));
        const { stored, read } = roundTrip(lines);
        assert.deepEqual(read, lines);
        for (const [at, each] of all.entries()) {
          if (each.address !== undefined) assert.ok((stored[at]?.length ?? 0) < (lines[at]?.length ?? 0));
        }
      }),
    );
  });

  it('are nothing where no record has an address', () => {
    assert.equal(roundTrip([1, 2, 3].map((seq) => activityLine(activity(seq), seq))).bytes.length, 0);
  });

  it('leave what is more than they can number in its line', () => {
    const lines = Array.from({ length: 65_600 }, (_, at) =>
      activityLine(activity(at, { address: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}` }), at + 1),
    );
    const { stored, read } = roundTrip(lines);
    assert.deepEqual(read, lines);
    assert.equal(stored.filter((line, at) => line === lines[at]).length, 65_600 - 65_535);
  });

  it('tell the positions of any addresses', () => {
    const origins = { addresses: ['a', 'b', 'c'], numbers: Uint16Array.from([0, 1, 2, 3, 1, 0, 3]) };
    const from = (...wanted: string[]) => positionsFrom(origins, { has: (address) => wanted.includes(address) });
    assert.deepEqual([from('a'), from('c', 'b'), from('d'), from()], [[1, 4], [2, 3, 6], [], []]);
  });

  it('that are cut or of another length are none', () => {
    const { bytes } = roundTrip([activityLine(activity(1, { address: '192.0.2.1' }), 1)]);
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
    }
  });
});

const records = 8192;

/** Bytes of a segment of encrypts and decrypts, each from any of so many addresses. */
function sizeOf(addresses: number | undefined): number {
  const clock = { now: 1_790_000_000_000 };
  const world = testWorld(clock, 1);
  const chance = prng(2);
  const keyids = Array.from({ length: 20 }, () => world.newId('apik'));
  const lines: string[] = [];
  const hashes = [genesisHash()];
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
    lines.push(line);
    hashes.push(chainHash(hashes[seq - 1] ?? genesisHash(), line));
  }
  const hashOf = (seq: number): Uint8Array => hashes[seq] ?? genesisHash();
  return makeSegment({ firstSeq: 1, lines, hashOf }, testKeys(), uid).bytes.length;
}
