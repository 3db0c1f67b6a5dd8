// The encoding of KMIP: recorded messages come out as they went in, malformed ones are refused, and mutated ones end in
// an item or a refusal.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { Refusal, reasons } from '../../src/dialects/kmip/reasons.ts';
import {
  decodeItem,
  encodeItem,
  type Item,
  integer,
  structure,
  text,
  ttlvLimits,
} from '../../src/dialects/kmip/ttlv.ts';
import { prng } from '../support/prng.ts';
import { hex } from '../support/vectors.ts';

const directory = new URL('../vectors/kmip/', import.meta.url);
const recorded: { readonly request: string; readonly response: string }[] = readdirSync(directory)
  .filter((name) => name !== 'malformed.json')
  .flatMap((name) => JSON.parse(readFileSync(new URL(name, directory), 'utf8')));

test('recorded messages are read, and written as they were', () => {
  assert.ok(recorded.length >= 340);
  for (const { request, response } of recorded) {
    for (const message of [request, response]) assert.equal(toHex(encodeItem(decodeItem(hex(message)))), message);
  }
});

test('values of each type have the encoding of the specification', () => {
  const examples: [Item, string][] = [
    [{ tag: 0x420020, type: 'integer', value: 8 }, '42002002000000040000000800000000'],
    [{ tag: 0x420020, type: 'long', value: 123456789000000000n }, '420020030000000801b69b4ba5749200'],
    [
      { tag: 0x420020, type: 'big', value: hex('0000000003fd35eb6bc2df4618080000') },
      '42002004000000100000000003fd35eb6bc2df4618080000',
    ],
    [{ tag: 0x420020, type: 'enumeration', value: 255 }, '4200200500000004000000ff00000000'],
    [{ tag: 0x420020, type: 'boolean', value: true }, '42002006000000080000000000000001'],
    [text(0x420020, 'Hello World'), '420020070000000b48656c6c6f20576f726c640000000000'],
    [{ tag: 0x420020, type: 'bytes', value: hex('010203') }, '42002008000000030102030000000000'],
    [{ tag: 0x420020, type: 'date', value: 0x47da67f8n }, '42002009000000080000000047da67f8'],
    [{ tag: 0x420020, type: 'interval', value: 864000 }, '4200200a00000004000d2f0000000000'],
    [
      structure(0x420020, { tag: 0x420004, type: 'enumeration', value: 254 }, integer(0x420005, 255)),
      '42002001000000204200040500000004000000fe000000004200050200000004000000ff00000000',
    ],
  ];
  for (const [item, bytes] of examples) {
    assert.equal(toHex(encodeItem(item)), bytes);
    assert.deepEqual(decodeItem(hex(bytes)), item);
  }
});

function isRefused(bytes: Uint8Array, name: string): void {
  assert.throws(
    () => decodeItem(bytes),
    (error) => error instanceof Refusal && error.reason === reasons.invalidMessage,
    name,
  );
}

test('malformed items are refused', () => {
  const wrong = {
    empty: '',
    'a head that is cut off': '42007801000000',
    'a value that is cut off': '4200780100000008420078',
    'bytes after the item': '420020020000000400000008000000000000000000000000',
    'a tag of no kind': '43002002000000040000000800000000',
    'type 0': '42002000000000040000000800000000',
    'type 12': '4200200c000000040000000800000000',
    'an integer of 3 bytes': '42002002000000030000000800000000',
    'an integer of 8 bytes': '42002002000000080000000800000000',
    'a boolean of 2': '42002006000000080000000000000002',
    'a boolean of 2^32': '42002006000000080000000100000000',
    'padding that is not zero': '42002002000000040000000800000001',
    'a big integer of nothing': '4200200400000000',
    'a big integer of 4 bytes': '42002004000000040000000800000000',
    'a structure of 4 bytes': '42002001000000040000000000000000',
    'a child beyond its parent': '42002001000000084200040500000004000000fe00000000',
    'a text that is not UTF-8': '4200200700000002c328000000000000',
    'a surrogate': '4200200700000003eda0800000000000',
    'a length of 2^32 - 1': '42002008ffffffff0000000000000000',
  };
  for (const [name, bytes] of Object.entries(wrong)) isRefused(hex(bytes), name);
});

/** Empty structures within each other; the encoder would need as deep a stack. */
function nested(levels: number): Uint8Array {
  const bytes = new Uint8Array(levels * 8);
  const view = new DataView(bytes.buffer);
  for (let level = 0; level < levels; level++) {
    view.setUint32(level * 8, 0x42007901);
    view.setUint32(level * 8 + 4, (levels - level - 1) * 8);
  }
  return bytes;
}

test('depth and number of items are bounded', () => {
  decodeItem(nested(ttlvLimits.depth));
  isRefused(nested(ttlvLimits.depth + 1), 'one level more');
  isRefused(nested(5000), '5,000 levels');
  const many = (items: number) => encodeItem(structure(0x420079, Array(items).fill(structure(0x420079))));
  decodeItem(many(ttlvLimits.items - 1));
  isRefused(many(ttlvLimits.items), 'one item more');
});

test('mutated messages end in an item of the same bytes, or in a refusal', () => {
  const { int, pick, chance } = prng(Number(process.env.KMS_KMIP_SEED ?? 20261129));
  const runs = Number(process.env.KMS_KMIP_MUTANTS ?? 20_000);
  let read = 0;
  for (let n = 0; n < runs; n++) {
    const bytes = hex(pick(recorded).request);
    const changes = 1 + int(4);
    for (let i = 0; i < changes; i++)
      bytes[int(bytes.length)] = chance(0.5) ? int(256) : pick([0, 1, 0x42, 0x7f, 0x80, 0xff]);
    const mutant = chance(0.1) ? bytes.subarray(0, int(bytes.length)) : bytes;
    try {
      assert.equal(toHex(encodeItem(decodeItem(mutant))), toHex(mutant));
      read++;
    } catch (error) {
      if (!(error instanceof Refusal)) assert.fail(`seeded run ${n}: ${toHex(mutant)}: ${error}`);
    }
  }
  assert.ok(read > 0 && read < runs);
});
