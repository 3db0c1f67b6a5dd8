// The end of a log after a crash, for every way in which a record can span sectors: each loss of sectors or of length
// is a torn end, and no damaged byte is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concatBytes } from '../../src/crypto/bytes.ts';
import { damageAt, endOfContent, prefixLength, RecordSealer, sectorLength } from '../../src/store/log-format.ts';
import { prng } from '../support/prng.ts';

const generator = prng(1);
const sealer = new RecordSealer(generator.bytes(32), generator.bytes(16), 1);
const chain = generator.bytes(16);

/** A file with one record, sealed at `offset`, after bytes that don't matter. */
function fileWith(offset: number, payloadLength: number): Uint8Array {
  const record = sealer.seal(generator.bytes(payloadLength), { offset, sequence: 0, chain }, generator.bytes(24));
  return concatBytes(new Uint8Array(offset).fill(1), record);
}

/** The log reader's verdict on a record that does not open. */
function verdict(file: Uint8Array, offset: number): string | undefined {
  const length = file.length - offset < prefixLength ? undefined : sealer.lengthAt(file.subarray(offset), offset);
  const whole = length !== undefined && offset + prefixLength + length <= file.length;
  if (whole && sealer.open(file.subarray(offset), length, { offset, sequence: 0, chain })) return 'it is whole';
  return damageAt(file, offset, length, sealer);
}

/** The same with preallocated space after it, as in the file being written. */
function withRoom(file: Uint8Array): Uint8Array {
  return concatBytes(file, new Uint8Array(1500));
}

/** Ends of records, where the next ones start: 8 to 504 bytes into a sector, or at its start. */
const offsets = [...Array.from({ length: 497 }, (_, i) => 512 + 8 + i), 1024];

test('records start and end well inside a sector or at its end', () => {
  for (let length = 1; length < 600; length++) {
    const into = fileWith(520, length).length % sectorLength;
    assert.ok(into === 0 || (into >= 8 && into <= 504), `${length}: ${into}`);
  }
});

test('every loss of sectors is a torn end', () => {
  for (const offset of offsets) {
    const file = fileWith(offset, generator.int(1500) + 1);
    const first = Math.floor(offset / sectorLength);
    const count = Math.ceil(file.length / sectorLength) - first;
    for (let lost = 1; lost < 1 << count; lost++) {
      const torn = file.slice();
      for (let sector = 0; sector < count; sector++) {
        if ((lost >> sector) & 1)
          torn.fill(0, Math.max(offset, (first + sector) * sectorLength), (first + sector + 1) * sectorLength);
      }
      for (const found of [torn, withRoom(torn)]) {
        const what = `offset ${offset}, length ${found.length - offset}, lost ${lost.toString(2)}`;
        assert.equal(verdict(found, offset), undefined, what);
      }
    }
  }
});

test('every shorter file is a torn end, also with sectors lost in what is left', () => {
  for (const offset of offsets.filter((_, i) => i % 31 === 0)) {
    const file = fileWith(offset, 700);
    for (let size = offset + 1; size < file.length; size++) {
      const cut = file.slice(0, size);
      assert.equal(verdict(cut, offset), undefined, `offset ${offset}, cut to ${size}`);
      const boundary = Math.ceil(offset / sectorLength) * sectorLength;
      for (const [from, to] of [
        [offset, Math.min(boundary, size)],
        [boundary, size],
      ] as const) {
        if (from >= to) continue;
        assert.equal(
          verdict(cut.slice().fill(0, from, to), offset),
          undefined,
          `offset ${offset}, cut to ${size}, ${from} lost`,
        );
      }
    }
  }
});

test('no changed or zeroed byte of a whole record is a torn end', () => {
  for (const offset of offsets.filter((_, i) => i % 7 === 0)) {
    const file = fileWith(offset, 20 + generator.int(500));
    for (let at = offset; at < file.length; at++) {
      const byte = file[at] ?? 0;
      for (const change of [byte ^ (1 << generator.int(8)), 0]) {
        if (change === byte) continue;
        const damaged = file.slice();
        damaged[at] = change;
        for (const found of [damaged, withRoom(damaged)]) {
          assert.notEqual(verdict(found, offset), undefined, `offset ${offset}, byte ${at}, of ${found.length}`);
        }
      }
    }
  }
});

test('room without a record in it is no damage, and a byte in it is', () => {
  for (const offset of offsets) {
    const room = withRoom(new Uint8Array(offset).fill(1));
    assert.equal(verdict(room, offset), undefined);
    assert.equal(endOfContent(room, offset), offset);
    const file = withRoom(fileWith(offset, 20));
    file[offset + 90] = (file[offset + 90] ?? 0) ^ 1;
    file[file.length - 1] = 1;
    assert.notEqual(verdict(file, offset), undefined, `${offset}`);
  }
});

test('a lost sector with a record behind it is damage', () => {
  const first = fileWith(520, 600);
  const offset = 520;
  const second = sealer.seal(generator.bytes(50), { offset: first.length, sequence: 1, chain }, generator.bytes(24));
  const file = concatBytes(first, second).fill(0, offset, 1024);
  assert.match(verdict(file, offset) ?? '', new RegExp(`the next one is at offset ${first.length}`));
});
