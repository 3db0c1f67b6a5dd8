// Where a master key's custodians may be found without asking anybody: key files, the environment, a credential of
// systemd, and commands whose output is the secret. A command is run by its name and a list of arguments, with no shell
// in between, and nothing of what it prints is ever shown.

import { spawn } from 'node:child_process';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { concatBytes, equalBytes, utf8 } from '../crypto/bytes.ts';
import { type ErrorDetails, KmsError, systemCode, systemError, systemRefusal } from '../errors.ts';
import type { CustodianKind } from '../model/custodian-kinds.ts';
import { exposureOf, sealFile } from '../platform/data-dir.ts';
import { environment } from '../platform/environment.ts';
import { parseSecret } from '../seal/custodian-secret.ts';
import type { Slot } from '../seal/slot.ts';
import { defaultKeyFile, keyFilePlaces, readKeyFile, readNotedKeyFile } from './key-file.ts';

export interface KeySources {
  /** The one key file to look at; without it, where `init` put it and the default place. */
  readonly keyFile?: string | undefined;
  /** A passphrase that was given, such as in a file: before all that is only found. Undefined = none was. */
  readonly passphrase?: (() => Promise<string | undefined>) | undefined;
  /** Asked for the passphrase where nothing else opens; undefined = there is nobody to ask. */
  readonly askPassphrase?: (() => Promise<string | undefined>) | undefined;
  /**
   * Whether the commands that the seal names may be run, or why not. Absent: they are not, as if there were none. They
   * run before anything of the seal is verified, so that whoever wrote it chooses them.
   */
  readonly commands?: 'run' | CommandRefusal | undefined;
  /** The id of the appliance that is expected: the seal of any other is refused, before anybody is asked for a key. */
  readonly appliance?: string | undefined;
  /** Whether a key file that others can read is used all the same, as by who only looks; false when absent. */
  readonly exposed?: boolean | undefined;
  /** The environment; that of the process when absent. */
  readonly env?: (name: string) => string | undefined;
}

/** Why a command was not run: "the command X was not run: …". */
interface CommandRefusal {
  readonly why: string;
  readonly hint: string;
}

/** The directory that has the seal was found and not named. */
export const unnamedDirectory: CommandRefusal = {
  why: 'nobody named the data directory that says so',
  hint: 'if you know who made it, name it with --data DIR (KMS_DATA)',
};

/** Whoever can write to the database would choose what each node runs. */
export const inDatabase: CommandRefusal = {
  why: 'it is named in a database, by whoever can write there',
  hint: 'give what it prints with --key-file <(COMMAND), or in KMS_MASTER_KEY',
};

export interface KeySource {
  readonly name: string;
  readonly place?: string;
  /** The seal alone says that a key is there: where a key was given that does not fit, it is not looked at. */
  readonly isNoted?: true;
  /** Somebody gave it to this process: one that does not fit is what is wrong. */
  readonly isGiven?: true;
  /** The secret; undefined where there is none. Throws when there is something else. */
  find(): Promise<Uint8Array | undefined>;
}

const variable = 'KMS_MASTER_KEY';
const credential = 'kms-master-key';

export function environmentSource(env: NonNullable<KeySources['env']> = environment): KeySource {
  return {
    name: variable,
    isGiven: true,
    async find() {
      const text = env(variable);
      return text ? parseSecret(utf8(text), variable) : undefined;
    },
  };
}

/** See systemd.exec(5), LoadCredentialEncrypted= and SetCredentialEncrypted=. */
export function credentialSource(env: NonNullable<KeySources['env']> = environment): KeySource {
  const name = `the credential ${credential}`;
  return {
    name,
    isGiven: true,
    async find() {
      const dir = env('CREDENTIALS_DIRECTORY');
      if (!dir) return undefined;
      try {
        return parseSecret(await readFile(join(dir, credential)), name);
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return undefined;
        throw systemError(error, name);
      }
    },
  };
}

function fileSource(place: string, exposed = false): KeySource {
  return { name: place, place, find: () => readKeyFile(place, exposed) };
}

function commandSource(place: SealPlace, slot: Slot, rule: 'run' | CommandRefusal): KeySource {
  const command = commandOf(slot);
  const { data, seal } = place;
  return {
    name: `the output of ${command.command}`,
    isNoted: true,
    async find() {
      if (rule !== 'run') throw notRun(command, rule);
      return execSecret(command, { as: data === undefined ? undefined : await runnerOf(data, seal, command) });
    },
  };
}

function notRun({ command }: SecretCommand, { why, hint }: CommandRefusal): KmsError {
  return new KmsError('sealed', `the command ${command} was not run: ${why}`, { hint });
}

/**
 * Who runs a command that the seal in a data directory names: this process, where the directory is its user's or
 * root's alone; where this is root, the user whom it belongs to, who is not to choose what root runs. Throws `sealed`
 * for a directory of anybody else, and where the seal there is not the one that was read: its path may lead elsewhere
 * by now.
 */
async function runnerOf(data: string, seal: Uint8Array, command: SecretCommand): Promise<User | undefined> {
  const found = await ownersOf(data, seal);
  if (!found) throw notRun(command, { why: `the seal in ${data} was changed meanwhile`, hint: 'try again' });
  const me = process.geteuid?.() ?? 0;
  const others = found.filter(({ uid }) => uid !== 0 && uid !== me);
  const [other] = others;
  const isForeign = other && (me !== 0 || others.some(({ uid }) => uid !== other.uid));
  const isOpen = found.some((info) => exposureOf({ ...info, mode: info.mode & writable }) !== 'none');
  if (!isForeign && !isOpen) return other && { uid: other.uid, gid: other.gid };
  throw notRun(command, {
    why: `${data} ${isForeign ? 'belongs to another user' : 'can be written to by others'}`,
    hint: 'give what holds the key with --key-file, or make the directory your own (mode 0700)',
  });
}

/** The directory and the seal in it, each as it was opened; undefined where that is another seal. */
async function ownersOf(data: string, seal: Uint8Array): Promise<readonly Stats[] | undefined> {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const directory = await open(data, O_RDONLY | O_DIRECTORY);
  let file: FileHandle | undefined;
  try {
    file = await open(`/proc/self/fd/${directory.fd}/${sealFile}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const info = await file.stat();
    if (!info.isFile() || info.size !== seal.length || !equalBytes(await file.readFile(), seal)) return undefined;
    return [await directory.stat(), info];
  } finally {
    await file?.close();
    await directory.close();
  }
}

/** The bits of a mode by which group and others can write. */
const writable = 0o022;

/** Where the seal says that a key file is, and nobody else does. */
function notedSource(data: string, place: string, exposed: boolean): KeySource {
  const check = (handle: FileHandle, info: Stats) => refusePlanted(data, place, handle, info);
  return { name: place, place, isNoted: true, find: () => readNotedKeyFile(place, exposed, check) };
}

/**
 * Throws `refused` for a key file that whoever wrote the seal may have put there, with a seal of their own: it would
 * open that, and nobody would be asked. A data directory that is yet to be made has no owner.
 */
async function refusePlanted(data: string, place: string, handle: FileHandle, info: Stats): Promise<void> {
  const me = process.geteuid?.();
  if (me === undefined) return;
  const owner = await stat(data).catch(() => undefined);
  const mayOwn = [0, me, ...(me === 0 && owner ? [owner.uid] : [])];
  const [real, root] = await Promise.all([
    realpath(`/proc/self/fd/${handle.fd}`).catch(() => realpath(place)),
    realpath(data).catch(() => undefined),
  ]);
  const isInside = root !== undefined && `${real}/`.startsWith(`${root}/`);
  if (mayOwn.includes(info.uid) && !isInside) return;
  const why = isInside ? 'it lies in the data directory' : 'it belongs to another user';
  throw new KmsError('refused', `${place}: the seal alone says that the key file is there, and ${why}`, {
    hint: 'if it is yours, name it with --key-file',
  });
}

/** A seal as it was read, and the data directory that it is of. */
interface SealPlace {
  readonly data: string | undefined;
  readonly seal: Uint8Array;
}

/** All there are for these slots, those that cost least first; or the key file given and nothing else. */
export function sourcesFor(place: SealPlace, slots: readonly Slot[], given: KeySources): readonly KeySource[] {
  const { data } = place;
  const { keyFile, env, commands, exposed = false } = given;
  if (keyFile !== undefined) return keyFilePlaces('', keyFile, slots).map((place) => fileSource(place, exposed));
  const places = data === undefined ? [] : keyFilePlaces(data, undefined, slots);
  const files = places.map((place) =>
    data === undefined || place === defaultKeyFile(data)
      ? fileSource(place, exposed)
      : notedSource(data, place, exposed),
  );
  const named = commands === undefined ? [] : slots.filter(({ kind }) => kind === 'exec');
  const run = named.map((slot) => commandSource(place, slot, commands ?? unnamedDirectory));
  return [environmentSource(env), credentialSource(env), ...files, ...run];
}

const kept: Readonly<Record<CustodianKind, string>> = {
  keyfile: 'a key file',
  env: `the environment variable ${variable}`,
  credential: `the systemd credential ${credential}`,
  passphrase: 'a passphrase',
  shares: 'shares',
  exec: 'a command',
  'recovery-kit': 'a recovery kit',
};

/** The appliance stays sealed, for that reason. */
export class StaysSealed extends KmsError {
  readonly reason: string;

  constructor(reason: string, details: ErrorDetails = {}) {
    super('sealed', `the appliance is sealed: ${reason}`, details);
    this.reason = reason;
  }
}

/** The error of a data directory whose key nobody gave. */
export function missingKey(slots: readonly Slot[], sources: readonly KeySource[], given: KeySources): KmsError {
  const kinds = new Set(slots.map(({ kind }) => kind));
  const places = sources.map(({ place }) => place).filter((place) => place !== undefined);
  if (kinds.has('keyfile') || given.keyFile !== undefined) {
    return new KmsError('sealed', `the master key file is missing: looked for ${places.join(', then ')}`, {
      hint: 'put the key file there, or name it with --key-file (KMS_KEY_FILE)',
    });
  }
  const keepers = [...kinds].map((kind) => kept[kind]).join(' or ');
  const hint = kinds.has('shares')
    ? 'serve it with `kms serve` and enter shares with `kms unseal`'
    : kinds.has('passphrase')
      ? 'give the passphrase in KMS_PASSPHRASE, or serve it with `kms serve` and run `kms unseal`'
      : 'give what holds the key, or a recovery kit with --key-file';
  return new StaysSealed(`its master key is with ${keepers}`, { hint });
}

export interface SecretCommand {
  readonly command: string;
  readonly args: readonly string[];
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Milliseconds. */
const commandTimeout = 30_000;
const most = 64 * 1024;

function commandOf({ params }: Slot): SecretCommand {
  const { command, args } = params;
  if (typeof command !== 'string' || !Array.isArray(args)) {
    throw new KmsError('corrupt', 'the seal file names no command for its custodian of the kind exec');
  }
  return { command, args };
}

/**
 * Throws `sealed` when the command cannot be run, fails, or takes over 30 seconds. `as`: who runs it; then it has
 * neither the terminal of this process nor its environment, which are root's.
 */
export async function execSecret(
  { command, args }: SecretCommand,
  { as, timeout = commandTimeout }: { readonly as?: User | undefined; readonly timeout?: number } = {},
): Promise<Uint8Array> {
  const output = await outputOf(command, args, as, timeout);
  try {
    return parseSecret(output, `the output of ${command}`);
  } finally {
    output.fill(0);
  }
}

/** Variables that a command of another user gets of this process's. */
const harmless: readonly string[] = ['PATH', 'LANG', 'LC_ALL', 'TZ'];

function outputOf(
  command: string,
  args: readonly string[],
  as: User | undefined,
  timeout: number,
): Promise<Uint8Array> {
  const env = as && Object.fromEntries(harmless.map((name) => [name, environment(name)]));
  const child = spawn(command, [...args], {
    // In a session of its own it has no terminal. One's own command may ask there.
    detached: as !== undefined,
    stdio: ['ignore', 'pipe', 'ignore'],
    ...(as && { ...as, env, cwd: '/' }),
  });
  const pieces: Buffer[] = [];
  let ended: CommandEnd | undefined;
  const stop = (end: CommandEnd): void => {
    ended ??= end;
    child.kill('SIGKILL');
    child.stdout.destroy();
  };
  const timer = setTimeout(() => stop('late'), timeout);
  return new Promise<Uint8Array>((resolve, reject) => {
    child.stdout.on('data', (piece: Buffer) => {
      pieces.push(piece);
      if (pieces.reduce((sum, { length }) => sum + length, 0) > most) stop('long');
    });
    child.on('error', (error) => reject(failure(command, error, timeout)));
    child.on('close', (code) => {
      if (code === 0 && ended === undefined) resolve(concatBytes(...pieces));
      else reject(failure(command, ended ?? code, timeout));
    });
  }).finally(() => {
    clearTimeout(timer);
    for (const piece of pieces) piece.fill(0);
  });
}

/** Why a command was ended: it took too long, or printed too much. */
type CommandEnd = 'late' | 'long';

/** Neither the arguments nor what the command said: both may hold secrets. */
function failure(command: string, end: Error | CommandEnd | number | null, timeout: number): KmsError {
  const what =
    end === 'long'
      ? `it printed more than ${most} bytes`
      : end === 'late'
        ? `it took more than ${timeout / 1000} s`
        : end instanceof Error
          ? systemCode(end) === 'ENOENT'
            ? 'there is no such command'
            : (systemRefusal(end)?.[0] ?? 'it could not be run')
          : `it ended with ${end === null ? 'a signal' : `exit code ${end}`}`;
  return new KmsError('sealed', `the command ${command} gave no master key: ${what}`, {
    hint: 'run it by hand as the user of the appliance',
  });
}
