// After a failed append or fsync: makes the log on disk end where the last acknowledged group ends, and starts a new file
// behind it. Nothing that the old file may hold beyond that is believed or kept.
import { corrupt } from './file-header.ts';
import { logName } from './file-names.ts';
import type { AppendFile } from './files.ts';
import type { RecordPlace } from './log-format.ts';
import { createLog, type LogContext } from './log-writer.ts';

export interface BrokenLog {
  readonly generation: number;
  /** The end of what was acknowledged. */
  readonly place: RecordPlace;
  /**
   * After a failed fsync the system may forget what it could not write while it still shows it: then the file is made anew. Not for want
   * of room, of which that would take more than there is.
   */
  readonly syncFailed: boolean;
}

/** May be repeated until it succeeds. */
export async function repairLog(context: LogContext, uid: Uint8Array, broken: BrokenLog): Promise<void> {
  const { generation, place } = broken;
  const cutOff = !broken.syncFailed && (await cut(context, generation, place.offset));
  if (!cutOff) await rewrite(context, generation, place.offset);
  const { sequence, chain } = place;
  const log = await createLog(context, { uid, generation: generation + 1, sequence, chain });
  await log.close();
}

async function rewrite(context: LogContext, generation: number, size: number): Promise<void> {
  const name = logName(context.dir, generation);
  const bytes = await context.files.readAt(name, 0, size);
  if (bytes.length < size) throw corrupt(name, bytes.length, 'acknowledged records are missing');
  await context.files.replace(name, bytes);
}

/** Answers whether it worked. */
async function cut(context: LogContext, generation: number, size: number): Promise<boolean> {
  let file: AppendFile | undefined;
  try {
    file = await context.files.openAppend(logName(context.dir, generation), false);
    if (file.size > size) await file.truncate(size);
    await file.sync();
    return true;
  } catch {
    return false;
  } finally {
    await file?.close().catch(() => {});
  }
}
