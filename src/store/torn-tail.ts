// Tells the torn end of a log, which a crash leaves of a write that was never acknowledged, from damage to what was.
//
// One append is under way at a time and the next starts after its fsync, so only the last record of the last file can be
// torn. Of an append that was not synced a crash leaves any of its sectors, zeros in place of the others, and maybe a shorter file.
import { prefixLength, type RecordSealer, recordOverhead, sectorLength } from './log-format.ts';

/** A run of zeros shorter than this proves nothing. */
const provingZeros = 4;

/** Why the record at `offset`, which does not verify, is damage; undefined when it is a torn end. `length` is what it says and proves of itself. */
export function damageAt(
  file: Uint8Array,
  offset: number,
  length: number | undefined,
  sealer: RecordSealer,
): string | undefined {
  if (file.length - offset < prefixLength) return undefined;
  if (length !== undefined) {
    const end = offset + prefixLength + length;
    if (end > file.length) return undefined;
    if (end < file.length) return 'a record does not verify, and more follows it';
    return zeroSector(file, offset, end) ? undefined : 'the last record does not verify';
  }
  const prefixEnd = offset + prefixLength;
  const sectorEnd = Math.ceil(prefixEnd / sectorLength) * sectorLength;
  if (!zeroSector(file, offset, Math.min(sectorEnd, file.length))) return "a record's length does not verify";
  const next = nextRecord(file, prefixEnd, sealer);
  return next === undefined ? undefined : `a record is missing; the next one is at offset ${next}`;
}

/** Whether some sector's part of the range holds nothing but zeros. */
function zeroSector(file: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; ) {
    const sectorEnd = Math.min(end, (Math.floor(at / sectorLength) + 1) * sectorLength);
    if (sectorEnd - at >= provingZeros && file.subarray(at, sectorEnd).every((byte) => byte === 0)) return true;
    at = sectorEnd;
  }
  return false;
}

/** The first place from `start` on at which a record proves its length. */
function nextRecord(file: Uint8Array, start: number, sealer: RecordSealer): number | undefined {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  for (let at = start; at + recordOverhead <= file.length; at++) {
    const length = view.getUint32(at);
    if (length < recordOverhead - prefixLength || at + prefixLength + length > file.length) continue;
    if (sealer.lengthAt(file, at) !== undefined) return at;
  }
  return undefined;
}
