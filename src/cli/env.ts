// The edge of the command line: the one file of it that reads `process`.
import { homedir } from 'node:os';
import type { Io } from './io.ts';

/** The streams, arguments and environment of this process. A second signal ends it at once. */
export function processIo(): Io {
  const stop = new AbortController();
  let hangup: (() => void) | undefined;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (signal === 'SIGHUP' && hangup) return hangup();
      if (stop.signal.aborted) process.exit(130);
      stop.abort(signal);
    });
  }
  // A reader that goes away (`kms … | head`) fails the write that meets it; the event itself has nothing to add.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  return {
    args: process.argv.slice(2),
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: stop.signal,
    onHangup(run) {
      hangup = run;
    },
  };
}
