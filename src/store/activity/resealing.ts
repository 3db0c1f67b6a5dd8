// Reseals activity segments under the newest key one after the other, each replaced whole, while the log is read and
// written. After an interruption the next run continues.
import type { WholeFiles } from '../files.ts';
import type { SegmentSummary } from '../port.ts';
import {
  type ActivityKeys,
  readError,
  resealedSegment,
  SegmentFault,
  segmentEpoch,
  headerLength as segmentHeaderLength,
  segmentPath,
} from './segment.ts';
import { ByteCache, SegmentReader } from './segment-reader.ts';

interface ResealedSegments {
  readonly files: WholeFiles;
  readonly dir: string;
  readonly keys: ActivityKeys;
  readonly uid: Uint8Array;
  readonly segments: readonly SegmentSummary[];
  /** Whether retention has not dropped the segment in the meantime. */
  isKept(segment: SegmentSummary): Promise<boolean>;
  /** Resolves when no files are being copied. */
  free(): Promise<void>;
}

/** Throws the first fault, after all intact segments are under the newest key. */
export async function resealSegments(world: ResealedSegments): Promise<void> {
  const { segments, isKept } = world;
  const reader = new SegmentReader({ ...world, cache: new ByteCache(0) });
  const faults: SegmentFault[] = [];
  for (const summary of segments) {
    try {
      // Anything but the intact segment is a fault: the segment itself, under the old key, may yet come back.
      await reader.look(summary);
      await resealSegment(world, summary);
    } catch (error) {
      if (!(error instanceof SegmentFault)) throw error;
      if (await isKept(summary)) faults.push(error);
    }
  }
  const [first] = faults;
  if (first) throw first;
}

async function resealSegment(
  { files, dir, keys, free }: ResealedSegments,
  { file, hash, bytes: size }: SegmentSummary,
): Promise<void> {
  const path = segmentPath(dir, file);
  const read = (run: Promise<Uint8Array>): Promise<Uint8Array> =>
    run.catch((cause: unknown) => {
      throw readError(path, cause);
    });
  const start = await read(files.readAt(path, 0, segmentHeaderLength));
  if (segmentEpoch(start, path) === keys.epoch) return;
  await free();
  const bytes = await read(files.read(path, size));
  await files.replace(path, pieces(resealedSegment(bytes, keys, path, hash)));
}

/** The key epochs in the segments' headers. */
export async function epochsOfSegments({
  files,
  dir,
  segments,
  isKept,
}: Pick<ResealedSegments, 'files' | 'dir' | 'segments' | 'isKept'>): Promise<Set<number>> {
  const found = new Set<number>();
  for (const summary of segments) {
    const path = segmentPath(dir, summary.file);
    try {
      found.add(segmentEpoch(await files.readAt(path, 0, segmentHeaderLength), path));
    } catch (error) {
      if (await isKept(summary)) throw error;
    }
  }
  return found;
}

async function* pieces(parts: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* parts;
}
