// A segment under another key: every part opened and sealed again, with the same compressed bytes at the same offsets, so that nothing
// that is known of the segment changes. Read only after it was verified; what does not verify is not touched.
import { concatBytes } from '../../crypto/bytes.ts';
import { fromUtf8 } from '../../crypto/encoding.ts';
import {
  type ActivityKeys,
  decodeHeader,
  encodeHeader,
  headerLength,
  inflatePart,
  openPart,
  type PartKind,
  partSealer,
} from './segment-format.ts';
import { corruptSegment } from './segment-read.ts';
import type { SegmentRoot } from './segment-root.ts';

/** Bytes that are handed on at once. */
const pieceLength = 256 * 1024;

/** The key epoch that the first bytes of a segment's file name. Throws `corrupt`. */
export function segmentEpoch(start: Uint8Array, path: string): number {
  const header = decodeHeader(start);
  if (typeof header === 'string') throw corruptSegment(path, header);
  return header.epoch;
}

/** The bytes of the segment's new file, under the newest key, piece by piece. Throws `corrupt`. */
export function* resealedSegment(bytes: Uint8Array, keys: ActivityKeys, path: string): Generator<Uint8Array> {
  const header = decodeHeader(bytes);
  if (typeof header === 'string') throw corruptSegment(path, header);
  const before = bytes.subarray(0, headerLength);
  const after = encodeHeader({ ...header, epoch: keys.epoch });
  const from = keys.key('activity', header.epoch);
  const seal = partSealer(keys.key('activity'));

  function open(kind: PartKind, index: number, start: number, length: number): Uint8Array {
    const part = openPart(from, before, kind, index, bytes.subarray(start, start + length));
    if (!part) throw corruptSegment(path, `does not verify: ${kind} ${index} was changed or cut`);
    return part;
  }

  const rootPart = open('root', 0, headerLength, header.rootLength);
  const root: SegmentRoot = JSON.parse(fromUtf8(inflatePart(rootPart)) ?? 'null');
  let piece = [after, seal(after, 'root', 0, rootPart)];
  let filled = 0;
  let offset = headerLength + header.rootLength;
  for (const [kind, lengths] of [
    ['block', root.lengths],
    ['page', root.pageLengths],
  ] as const) {
    for (const [index, length] of lengths.entries()) {
      piece.push(seal(after, kind, index, open(kind, index, offset, length)));
      offset += length;
      filled += length;
      if (filled < pieceLength) continue;
      yield concatBytes(...piece);
      piece = [];
      filled = 0;
    }
  }
  if (offset !== bytes.length) throw corruptSegment(path, `has ${bytes.length} bytes, expected ${offset}`);
  if (piece.length > 0) yield concatBytes(...piece);
}
