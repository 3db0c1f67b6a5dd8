// The outcome of a look for drift as metrics in a file, for the textfile collector of Prometheus's node exporter: the
// appliance itself knows no files, and a job that no longer runs must be noticed, too.
import { rename, writeFile } from 'node:fs/promises';
import { fileError } from '../files.ts';
import type { PlannedChanges } from './plan.ts';

/** Replaces the file as a whole, so that no half of it is read. */
export async function writeDriftMetrics(
  path: string,
  { steps }: Pick<PlannedChanges, 'steps'>,
  now: number,
): Promise<void> {
  const actions = ['create', 'update', 'remove'] as const;
  const counts = actions.map((action) => {
    const count = steps.filter((step) => step.action === action).length;
    return `kms_drift_changes{action="${action}"} ${count}\n`;
  });
  const text = [
    '# HELP kms_drift_changes Changes that would make the appliance what its files say, at the last look.\n',
    '# TYPE kms_drift_changes gauge\n',
    ...counts,
    '# HELP kms_drift_checked_timestamp_seconds When that look was, in seconds since 1970.\n',
    '# TYPE kms_drift_checked_timestamp_seconds gauge\n',
    `kms_drift_checked_timestamp_seconds ${Math.floor(now / 1000)}\n`,
  ].join('');
  const draft = `${path}.${process.pid}.tmp`;
  try {
    // Others read it: it holds counts alone.
    await writeFile(draft, text, { mode: 0o644, flag: 'wx' });
    await rename(draft, path);
  } catch (error) {
    throw fileError('write', path, error);
  }
}
