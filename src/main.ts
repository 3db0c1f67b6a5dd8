// The program: what was typed goes to the command line, its answer is the exit code.
import { processIo } from './cli/process-io.ts';
import { runCli } from './cli/run.ts';

void runCli(processIo()).then((code) => process.exit(code));
