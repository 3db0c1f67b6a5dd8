// Entry point: hands argv and the terminal to the CLI, and exits with the code that it returns.
import { processIo } from './cli/process-io.ts';
import { runCli } from './cli/run.ts';

void runCli(processIo()).then((code) => process.exit(code));
