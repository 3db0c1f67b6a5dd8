// The Io of this process: its arguments, environment, streams and signals (SIGINT, SIGTERM, SIGHUP). The only file of
// the command line that reads `process`.
import { fstatSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, isAbsolute } from 'node:path';
import { KmsError } from '../errors.ts';
import { interruptedBy } from './exit.ts';
import type { Io } from './io.ts';

/**
 * Threads for waiting on the system. Each directory of others (shipping, its fence, backups, each target of activity)
 * can hold one for as long as its file system hangs; the runtime's usual four would soon leave none for the data.
 */
const threads = '16';

/** A first SIGINT or SIGTERM aborts the command's signal; a second ends the process at once. */
export function processIo(): Io {
  const stop = new AbortController();
  const given = process.argv.slice(2);
  const implied = commandOf(process.argv0, given);
  let hangup: (() => void) | undefined;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // Ctrl-C reaches the provider, too, but OpenTofu itself tells it when to stop.
      if (signal === 'SIGINT' && implied[0] === '__terraform-provider') return;
      if (signal === 'SIGHUP' && hangup) return hangup();
      if (stop.signal.aborted) process.exit(interruptedBy(signal));
      stop.abort(signal);
    });
  }
  // A closed reader (`kms … | head`) fails the write itself; the event adds nothing.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  // Otherwise Node would accept every certificate, whatever name and authority the command was given.
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  // Has no effect once the first thread was needed. An administrator's own number counts.
  process.env.UV_THREADPOOL_SIZE ??= threads;
  return {
    get args() {
      checkGiven(given);
      return [...implied, ...given];
    },
    env: process.env,
    get cwd() {
      return found(workingDirectory, 'the directory in which this was typed is gone', 'change to one that is there');
    },
    get home() {
      return found(homeDirectory, 'this user has no home directory', 'set HOME');
    },
    stdin: process.stdin,
    stdout: process.stdout,
    get isStdoutClosed() {
      return isReopened(1);
    },
    stderr: process.stderr,
    signal: stop.signal,
    onHangup(run) {
      hangup = run;
    },
  };
}

/** Command implied by the executable's name: age and OpenTofu find their plugins by name. */
function commandOf(name: string, given: readonly string[]): readonly string[] {
  const [, plugin] = /^(age-plugin|terraform-provider)-kms(?:_v[\w.+-]*)?$/.exec(basename(name)) ?? [];
  if (plugin === undefined) return [];
  // Only a person asks for help.
  if (!given.some((each) => each === '--help' || each === '-h')) return [`__${plugin}`];
  return [plugin === 'age-plugin' ? plugin : 'tofu-provider'];
}

/** Substituted for invalid UTF-8, but it may also have been typed. */
const standIn = '\ufffd';

/**
 * Throws `usage` for arguments and variables of this command that are not UTF-8: their substitutes would name something
 * else, and different names would become the same.
 */
function checkGiven(given: readonly string[]): void {
  if (given.some((each) => each.includes(standIn))) {
    const raw = nullTerminated('/proc/self/cmdline').slice(-given.length);
    const at = given.findIndex((each, n) => !isText(each, raw[n]));
    if (at >= 0) throw notText(`argument ${at + 1}`, given[at], raw[at]);
  }
  const variables = Object.entries(process.env).filter(
    ([name, value]) => /^KMS_/.test(name) && value?.includes(standIn),
  );
  for (const [name, value = ''] of variables) {
    const raw = rawVariable(name);
    if (!isText(value, raw)) throw notText(`the variable ${name}`, secretVariable.test(name) ? undefined : value, raw);
  }
}

const secretVariable = /KEY|PASS|SHARE|TOKEN|SECRET/;

/** Whether the text is the exact decoding of the bytes; if the bytes are unknown, only text without a substitute is. */
function isText(text: string, raw: Buffer | undefined): boolean {
  return !text.includes(standIn) || raw?.equals(Buffer.from(text)) === true;
}

function notText(what: string, text: string | undefined, raw?: Buffer): KmsError {
  const shown = text === undefined ? '' : `, got "${raw === undefined ? text : shownBytes(raw)}"`;
  return new KmsError('usage', `${what}: expected UTF-8${shown}`, {
    hint: 'set the terminal to UTF-8, rename the file, or give what it holds on stdin',
  });
}

/** Bytes as in the shell's `$'…'`: printable ASCII, and `\\x` with two digits for the rest. */
function shownBytes(bytes: Buffer): string {
  return Array.from(bytes, (byte) =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
  ).join('');
}

/** Empty if the system does not tell. */
function nullTerminated(path: string): readonly Buffer[] {
  try {
    const text = readFileSync(path, 'latin1').replace(/\0$/, '');
    return text.split('\0').map((each) => Buffer.from(each, 'latin1'));
  } catch {
    return [];
  }
}

/** Raw value of a variable, as of the start of the process. */
function rawVariable(name: string): Buffer | undefined {
  const beginning = Buffer.from(`${name}=`);
  const found = nullTerminated('/proc/self/environ').find((each) =>
    each.subarray(0, beginning.length).equals(beginning),
  );
  return found?.subarray(beginning.length);
}

function workingDirectory(): string {
  const path = process.cwd();
  if (!path.includes(standIn)) return path;
  const raw = rawWorkingDirectory();
  if (isText(path, raw)) return path;
  throw notText('the directory in which this was typed', path, raw);
}

function rawWorkingDirectory(): Buffer | undefined {
  try {
    return readlinkSync('/proc/self/cwd', { encoding: 'buffer' });
  } catch {
    return undefined;
  }
}

/** Throws unless it is an absolute path: `HOME` may be empty or relative. */
function homeDirectory(): string {
  const home = homedir();
  if (!isAbsolute(home)) throw new Error('expected an absolute path');
  const raw = home.includes(standIn) ? rawVariable('HOME') : undefined;
  if (!isText(home, raw)) throw notText('the home directory', home, raw);
  return home;
}

const bothWays = 2;

/** Whether it is /dev/null opened for reading and writing, as the runtime opens closed streams. */
function isReopened(file: number): boolean {
  try {
    const { rdev } = fstatSync(file);
    const [, flags = '0'] = /^flags:\t([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${file}`, 'utf8')) ?? [];
    return rdev === statSync('/dev/null').rdev && (Number.parseInt(flags, 8) & 3) === bothWays;
  } catch {
    return false;
  }
}

function found(look: () => string, otherwise: string, hint?: string): string {
  try {
    return look();
  } catch (cause) {
    if (cause instanceof KmsError) throw cause;
    throw new KmsError('refused', otherwise, hint === undefined ? { cause } : { hint, cause });
  }
}
