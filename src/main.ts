// The program: what was typed goes to the command line, its answer is the exit code.
import { makeRoom, stuckThreads } from './appliance/threads/ending.ts';
import { processIo } from './cli/process-io.ts';
import { runCli } from './cli/run.ts';

void runCli(processIo()).then((code) => {
  // It would wait for them for ever.
  if (stuckThreads() > 0) process.kill(process.pid, 'SIGKILL');
  makeRoom();
  process.exit(code);
});
