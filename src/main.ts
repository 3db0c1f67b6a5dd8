// The program: what was typed goes to the command line, its answer is the exit code.
import { processIo } from './cli/process-io.ts';
import { runCli } from './cli/run.ts';

/** Bytes in use, from which on V8's helper may wait for a collection, and the end of the process for the helper. */
const much = 32 * 1024 * 1024;

void runCli(processIo()).then((code) => {
  if (process.memoryUsage().heapUsed > much) globalThis.gc?.();
  process.exit(code);
});
