// Cuts a run of records into the blocks of a segment, and gathers on the way what the root and the summary say of them.
import { concatBytes } from '../../crypto/bytes.ts';
import { utf8 } from '../../crypto/encoding.ts';
import { KmsError } from '../../errors.ts';
import type { ActivityRecord } from '../port.ts';
import { parseActivityLine } from './record.ts';
import { compressPart, sealedLength } from './segment-format.ts';
import { idMark } from './segment-root.ts';

const blockRecords = 128;
const blockText = 64 * 1024;

export interface SegmentRun {
  readonly firstSeq: number;
  readonly lines: readonly string[];
  /** Chain hash of a record of the run, or of the one before it. */
  hashOf(seq: number): Uint8Array;
}

/** Blocks in columns, as the root has them. */
export class SegmentBlocks {
  /** Compressed. */
  readonly parts: Uint8Array[] = [];
  readonly records: number[] = [];
  readonly lengths: number[] = [];
  readonly from: number[] = [];
  readonly to: number[] = [];
  readonly idFrom: string[] = [];
  readonly idTo: string[] = [];

  add(prevHash: Uint8Array, lines: readonly string[], records: readonly ActivityRecord[]): void {
    const part = compressPart(concatBytes(prevHash, utf8(lines.join('\n'))));
    const times = range(records.map((record) => record.createdAt));
    const ids = range(records.map((record) => idMark(record.id)));
    this.parts.push(part);
    this.records.push(lines.length);
    this.lengths.push(sealedLength(part));
    this.from.push(times.from);
    this.to.push(times.to);
    this.idFrom.push(ids.from);
    this.idTo.push(ids.to);
  }
}

/** Least and greatest of some values. */
export function range<T extends string | number>(values: readonly T[]): { from: T; to: T } {
  const [first, ...rest] = values;
  if (first === undefined) throw new KmsError('internal', 'a segment of no records');
  let from = first;
  let to = first;
  for (const value of rest) {
    if (value < from) from = value;
    if (value > to) to = value;
  }
  return { from, to };
}

/** Blocks of 128 records, or fewer when their lines are long. Throws `corrupt` for a line that is no record. */
export function makeBlocks(run: SegmentRun, each: (record: ActivityRecord, position: number) => void): SegmentBlocks {
  const blocks = new SegmentBlocks();
  let first = 0;
  let text = 0;
  let records: ActivityRecord[] = [];
  for (const [position, line] of run.lines.entries()) {
    const record = parseActivityLine(line);
    if (!record) throw new KmsError('corrupt', `activity record ${run.firstSeq + position} is not readable`);
    each(record, position);
    records.push(record);
    text += line.length;
    if (records.length < blockRecords && text < blockText && position + 1 < run.lines.length) continue;
    blocks.add(run.hashOf(run.firstSeq + first - 1), run.lines.slice(first, position + 1), records);
    first = position + 1;
    text = 0;
    records = [];
  }
  return blocks;
}
