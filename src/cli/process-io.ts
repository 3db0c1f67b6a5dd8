// The Io of this process: its arguments, environment and streams, and its signals (SIGINT, SIGTERM, SIGHUP). The one
// file of the command line that reads `process`.
import { homedir } from 'node:os';
import { basename, isAbsolute } from 'node:path';
import { KmsError } from '../errors.ts';
import { interruptedBy } from './exit.ts';
import type { Io } from './io.ts';

/** A first SIGINT or SIGTERM aborts the command's signal; a second ends the process at once. */
export function processIo(): Io {
  const stop = new AbortController();
  const given = process.argv.slice(2);
  let hangup: (() => void) | undefined;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (signal === 'SIGHUP' && hangup) return hangup();
      if (stop.signal.aborted) process.exit(interruptedBy(signal));
      stop.abort(signal);
    });
  }
  // A reader that goes away (`kms … | head`) fails the write that meets it; the event itself has nothing to add.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  // It would have Node take every certificate for good, whatever name and authority a command was given.
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  return {
    args: [...commandOf(process.argv0, given), ...given],
    env: process.env,
    get cwd() {
      return found(process.cwd, 'the directory in which this was typed is gone', 'change to one that is there');
    },
    get home() {
      return found(homeDirectory, 'this user has no home directory', 'set HOME');
    },
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: stop.signal,
    onHangup(run) {
      hangup = run;
    },
  };
}

/** What the executable is told by the name that it was started under: age finds its plugins by their names. */
function commandOf(name: string, given: readonly string[]): readonly string[] {
  if (basename(name) !== 'age-plugin-kms') return [];
  // age asks for no help, a person does.
  return [given.some((each) => each === '--help' || each === '-h') ? 'age-plugin' : '__age-plugin'];
}

/** Throws where it is not a place of its own: `HOME` may be set to nothing, or to what depends on where one is. */
function homeDirectory(): string {
  const home = homedir();
  if (!isAbsolute(home)) throw new Error('expected an absolute path');
  return home;
}

function found(look: () => string, otherwise: string, hint?: string): string {
  try {
    return look();
  } catch (cause) {
    throw new KmsError('refused', otherwise, hint === undefined ? { cause } : { hint, cause });
  }
}
