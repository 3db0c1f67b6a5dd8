// What a process does about itself because it holds keys: files for its user alone, core dumps without memory, no
// debugger. What only the machine can do, `kms doctor` looks at.
import { writeFile } from 'node:fs/promises';
import { url as debuggerUrl } from 'node:inspector';
import { KmsError } from '../errors.ts';

/** Flags of Node that let somebody else look into the memory, or that write parts of it into files. */
const telling =
  /^--(inspect(-brk|-wait)?(=.*)?|heapsnapshot-signal=.+|heapsnapshot-near-heap-limit=[1-9].*|heap-prof|cpu-prof|report-on-\w+|abort-on-uncaught-exception)$/;

let done = false;

/**
 * As far as Node lets it: files for its user alone, core dumps without memory, no debugger. Locking memory and the
 * limits of the system are for the unit file to set and for `kms doctor` to look at. Throws `refused` where the process
 * is open to a debugger.
 */
export async function hardenProcess(
  flags: readonly string[] = process.execArgv,
  debugger_ = debuggerUrl(),
): Promise<void> {
  const flag = flags.find((each) => telling.test(each));
  if (flag !== undefined || debugger_ !== undefined) {
    throw new KmsError('refused', `the process can be looked into: ${flag ?? `a debugger may come to ${debugger_}`}`, {
      hint: 'start it without; NODE_OPTIONS may hold it',
    });
  }
  if (done) return;
  done = true;
  process.umask(0o077);
  // Node starts a debugger at this signal unless somebody else listens to it.
  process.on('SIGUSR1', () => {});
  // No kind of memory goes into a core dump: core(5). Elsewhere than on Linux there is no such file.
  await writeFile('/proc/self/coredump_filter', '0').catch(() => {});
}
