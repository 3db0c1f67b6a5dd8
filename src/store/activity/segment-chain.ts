// A whole segment as links of the chain, each hash computed anew and compared wherever a stored one is known.
import { setImmediate } from 'node:timers/promises';
import { equalBytes } from '../../crypto/bytes.ts';
import { toBase64Url } from '../../crypto/encoding.ts';
import type { ActivityRecord } from '../port.ts';
import { chainHash } from './chain.ts';
import { parseActivityLine } from './record.ts';
import { decodeHash } from './segment-list.ts';
import { corruptSegment, type SegmentReader } from './segment-read.ts';
import type { SegmentSummary } from './segment-root.ts';

/** The records of a segment in chain order. Throws `corrupt` where the file does not verify or the chain breaks. */
export async function* readSegmentChain(
  reader: SegmentReader,
  summary: SegmentSummary,
): AsyncGenerator<{ record: ActivityRecord; line: string; hash: string }> {
  const path = reader.path(summary);
  let seq = summary.firstSeq;
  let hash = decodeHash(summary.prevHash);
  for await (const block of reader.blocks(summary)) {
    if (!equalBytes(block.prevHash, hash)) throw corruptSegment(path, `breaks the hash chain before record ${seq}`);
    for (const line of block.lines) {
      const record = parseActivityLine(line);
      if (record?.seq !== seq) throw corruptSegment(path, `has another record where record ${seq} should be`);
      hash = chainHash(hash, line);
      yield { record, line, hash: toBase64Url(hash) };
      seq++;
    }
    await setImmediate();
  }
  if (seq !== summary.lastSeq + 1 || !equalBytes(hash, decodeHash(summary.hash))) {
    throw corruptSegment(path, `breaks the hash chain at record ${seq - 1}`);
  }
}
