// The outcome of a drift check as metrics in a file, for the textfile collector of Prometheus's node exporter: the
// appliance itself knows no configuration files, and a job that no longer runs must be noticed, too.
import { randomBytes } from 'node:crypto';
import { chmod, rename, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileError } from '../files.ts';
import type { PlannedChanges } from './plan.ts';

/** Replaces the file as a whole, so that no half of it is read. */
export async function writeDriftMetrics(
  path: string,
  { steps, kept }: Pick<PlannedChanges, 'steps' | 'kept'>,
  now: number,
): Promise<void> {
  const actions = ['create', 'update', 'remove'] as const;
  const counts = actions.map((action) => {
    const count = steps.filter((step) => step.action === action).length;
    return `kms_drift_changes{action="${action}"} ${count}\n`;
  });
  const text = [
    '# HELP kms_drift_changes Changes that would make the appliance what its files say, at the last look; keep: it is in no file, and stays.\n',
    '# TYPE kms_drift_changes gauge\n',
    ...counts,
    `kms_drift_changes{action="keep"} ${kept.length}\n`,
    '# HELP kms_drift_checked_timestamp_seconds When that look was, in seconds since 1970.\n',
    '# TYPE kms_drift_checked_timestamp_seconds gauge\n',
    `kms_drift_checked_timestamp_seconds ${Math.floor(now / 1000)}\n`,
  ].join('');
  const draft = join(dirname(path), `.${basename(path).slice(0, 100)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await writeFile(draft, text, { flag: 'wx' });
    // Others read it, whatever this process would keep from them: it holds counts alone.
    await chmod(draft, 0o644);
    await rename(draft, path);
  } catch (error) {
    await unlink(draft).catch(() => undefined);
    throw fileError('write', path, error);
  }
}
