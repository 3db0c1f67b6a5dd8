// Self-protection of a process that holds keys: files for its user alone, core dumps without memory, no debugger.
// Measures that only the machine can take are checked by `kms doctor`.
import { writeFile } from 'node:fs/promises';
import { url as debuggerUrl } from 'node:inspector';
import { KmsError } from '../errors.ts';

/** Flags of Node that expose the memory, or write parts of it to files. */
const telling =
  /^--(inspect(-brk|-wait)?(=.*)?|heapsnapshot-signal=.+|heapsnapshot-near-heap-limit=[1-9].*|heap-prof|cpu-prof|report-on-\w+|abort-on-uncaught-exception)$/;

let done = false;

/**
 * Hardens the process as far as Node allows: files for its user alone, core dumps without memory, no debugger. Locking
 * memory and system limits are up to the unit file, and checked by `kms doctor`. Throws `refused` if a debugger can
 * attach.
 */
export async function hardenProcess(
  flags: readonly string[] = process.execArgv,
  debugger_ = debuggerUrl(),
): Promise<void> {
  const flag = flags.find((each) => telling.test(each));
  if (flag !== undefined || debugger_ !== undefined) {
    throw new KmsError('refused', `the process can be inspected: ${flag ?? `a debugger may attach at ${debugger_}`}`, {
      hint: 'start it without that; it may be in NODE_OPTIONS',
    });
  }
  if (done) return;
  done = true;
  process.umask(0o077);
  // Node starts a debugger at this signal unless there is another listener.
  process.on('SIGUSR1', () => {});
  // Excludes all memory from core dumps (core(5)). Only Linux has this file.
  await writeFile('/proc/self/coredump_filter', '0').catch(() => {});
}
