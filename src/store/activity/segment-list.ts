// The sealed segments of a log, oldest first, as the snapshot lists them: they must follow each other without gap or break.
import { fromBase64Url, toBase64Url } from '../../crypto/encoding.ts';
import { KmsError } from '../../errors.ts';
import { genesisHash, hashLength } from './chain.ts';
import type { SegmentSummary } from './segment-root.ts';
import type { ChainPlace } from './tail.ts';

/** The hash of a base64url text. Throws `corrupt`. */
export function decodeHash(text: string): Uint8Array {
  const hash = fromBase64Url(text);
  if (hash?.length !== hashLength) throw new KmsError('corrupt', 'a hash of the activity log is not readable');
  return hash;
}

/** The place of the last record that the segments cover. Throws `corrupt` when they do not follow each other. */
export function endOfSegments(segments: readonly SegmentSummary[]): ChainPlace {
  let seq = 0;
  let hash = toBase64Url(genesisHash());
  for (const segment of segments) {
    if (segment.firstSeq !== seq + 1 || segment.prevHash !== hash || segment.lastSeq < segment.firstSeq) {
      throw new KmsError('corrupt', `activity segment ${segment.file} does not follow record ${seq}`, {
        hint: 'restore the data directory from a backup',
      });
    }
    seq = segment.lastSeq;
    hash = segment.hash;
  }
  return { seq, hash: decodeHash(hash) };
}

/** The segment that holds a record, if one does. */
export function segmentOf(segments: readonly SegmentSummary[], seq: number): SegmentSummary | undefined {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((segments[middle]?.lastSeq ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return segments[low];
}

/** What they take on disk. */
export function bytesOfSegments(segments: readonly SegmentSummary[]): number {
  return segments.reduce((sum, { bytes }) => sum + bytes, 0);
}
