// Sources of a master key that need no person: key files, the environment, a systemd credential, and commands whose
// output is the secret. A command is run by name with a list of arguments, without a shell, and its output is never
// shown.

import { spawn } from 'node:child_process';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { concatBytes, equalBytes, utf8 } from '../crypto/bytes.ts';
import { type ErrorDetails, KmsError, systemCode, systemError, systemRefusal } from '../errors.ts';
import type { CustodianKind } from '../model/custodian-kinds.ts';
import { sealFile } from '../platform/data-dir.ts';
import { environment } from '../platform/environment.ts';
import { readFileWithin, readFully } from '../platform/node-files.ts';
import { exposureOf } from '../platform/ownership.ts';
import { parseSecret } from '../seal/custodian-secret.ts';
import { mostOfKind, type Slot } from '../seal/slot.ts';
import { defaultKeyFile, keyFilePlaces, readKeyFile, readNotedKeyFile } from './key-file.ts';

export interface KeySources {
  /** The only key file to try. Default: the one noted by `init`, then the default path. */
  readonly keyFile?: string | undefined;
  /**
   * A passphrase given to this process, such as in a file; tried before all other sources. Undefined: none was given.
   */
  readonly passphrase?: (() => Promise<string | undefined>) | undefined;
  /** Asks for the passphrase if nothing else opens the seal; undefined if there is no one to ask. */
  readonly askPassphrase?: (() => Promise<string | undefined>) | undefined;
  /**
   * Whether to run commands that the seal names, or why not. Absent: they are ignored. They run before the seal is
   * verified, so its writer chooses them.
   */
  readonly commands?: 'run' | CommandRefusal | undefined;
  /** Id of the expected appliance: the seal of another one is refused before anything asks for a key. */
  readonly appliance?: string | undefined;
  /** Whether to use a key file even if others can read it, as in read-only commands. Default: false. */
  readonly exposed?: boolean | undefined;
  /** Ends the search for a key: it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Looks up environment variables. Default: the process's. */
  readonly env?: (name: string) => string | undefined;
}

/** Why a command is not run: "the command X was not run: …". */
interface CommandRefusal {
  readonly why: string;
  readonly hint: string;
}

/** For a data directory that was found, not named. */
export const unnamedDirectory: CommandRefusal = {
  why: 'the data directory that names it was not given explicitly',
  hint: 'if you know who made it, name it with --data DIR (KMS_DATA)',
};

/** Anyone who can write to the database would choose what each node runs. */
export const inDatabase: CommandRefusal = {
  why: 'it is named in a database, where anybody with write access may have put it',
  hint: 'give what it prints with --key-file <(COMMAND), or in KMS_MASTER_KEY',
};

export interface KeySource {
  readonly name: string;
  readonly place?: string;
  /** Only the seal says that a key is there: not tried after a given key failed. */
  readonly isNoted?: true;
  /** Given to this process: if it does not fit, that is the error to report. */
  readonly isGiven?: true;
  /** The secret; undefined if there is none. Throws for other contents. */
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

/** In bytes, as systemd limits all of a service's together. */
const longestCredential = 1024 * 1024;

/** Provided by LoadCredentialEncrypted= and SetCredentialEncrypted=, see systemd.exec(5). */
export function credentialSource(env: NonNullable<KeySources['env']> = environment): KeySource {
  const name = `the credential ${credential}`;
  return {
    name,
    isGiven: true,
    async find() {
      const dir = env('CREDENTIALS_DIRECTORY');
      if (!dir) return undefined;
      try {
        return parseSecret(await readFileWithin(join(dir, credential), longestCredential), name);
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

function commandSource(
  place: SealPlace,
  slot: Slot,
  rule: 'run' | CommandRefusal,
  signal: AbortSignal | undefined,
): KeySource {
  const command = commandOf(slot);
  const { data, seal } = place;
  return {
    name: `the output of ${command.command}`,
    isNoted: true,
    async find() {
      if (rule !== 'run') throw notRun(command, rule);
      return execSecret(command, { as: data === undefined ? undefined : await runnerOf(data, seal, command), signal });
    },
  };
}

function notRun({ command }: SecretCommand, { why, hint }: CommandRefusal): KmsError {
  return new KmsError('sealed', `the command ${command} was not run: ${why}`, { hint });
}

/**
 * The user who runs a command named by the seal in a data directory: this process's user, if the directory belongs only
 * to it or root; if this is root, the directory's owner, who must not choose what root runs. Throws `sealed` for any
 * other directory, and if the seal there is not the one that was read: the path may lead elsewhere by now.
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

/** Ownership of the directory and of its seal, each through an open descriptor; undefined if it is another seal. */
async function ownersOf(data: string, seal: Uint8Array): Promise<readonly Stats[] | undefined> {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const directory = await open(data, O_RDONLY | O_DIRECTORY);
  let file: FileHandle | undefined;
  try {
    file = await open(`/proc/self/fd/${directory.fd}/${sealFile}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const info = await file.stat();
    if (!info.isFile() || info.size !== seal.length || !equalBytes(await readFully(file, 0, seal.length), seal))
      return undefined;
    return [await directory.stat(), info];
  } finally {
    await file?.close();
    await directory.close();
  }
}

/** The mode bits by which group and others can write. */
const writable = 0o022;

/** A key file at a path that only the seal names. */
function notedSource(data: string, place: string, exposed: boolean): KeySource {
  const check = (handle: FileHandle, info: Stats) => refusePlanted(data, place, handle, info);
  return { name: place, place, isNoted: true, find: () => readNotedKeyFile(place, exposed, check) };
}

/**
 * Throws `refused` for a key file that the seal's writer may have planted to go with a seal of their own: it would open
 * without asking anyone. A data directory that does not exist yet has no owner.
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

/** A seal as read, and its data directory. */
interface SealPlace {
  readonly data: string | undefined;
  readonly seal: Uint8Array;
}

/** All sources for these slots, the cheapest first; or only the given key file. */
export function sourcesFor(place: SealPlace, slots: readonly Slot[], given: KeySources): readonly KeySource[] {
  const { data } = place;
  const { keyFile, env, commands, signal, exposed = false } = given;
  if (keyFile !== undefined) return keyFilePlaces('', keyFile, slots).map((place) => fileSource(place, exposed));
  const places = data === undefined ? [] : keyFilePlaces(data, undefined, slots);
  const files = places.map((place) =>
    data === undefined || place === defaultKeyFile(data)
      ? fileSource(place, exposed)
      : notedSource(data, place, exposed),
  );
  const named = commands === undefined ? [] : slots.filter(({ kind }) => kind === 'exec').slice(0, mostOfKind);
  const run = named.map((slot) => commandSource(place, slot, commands ?? unnamedDirectory, signal));
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

/** The appliance stays sealed, for the given reason. */
export class StaysSealed extends KmsError {
  readonly reason: string;

  constructor(reason: string, details: ErrorDetails = {}) {
    super('sealed', `the appliance is sealed: ${reason}`, details);
    this.reason = reason;
  }
}

/** The error if no source has the key of a data directory. */
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

interface CommandRun {
  readonly as?: User | undefined;
  readonly timeout?: number;
  readonly signal?: AbortSignal | undefined;
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** In milliseconds. */
const commandTimeout = 30_000;
const most = 64 * 1024;

function commandOf({ params }: Slot): SecretCommand {
  const { command, args } = params;
  if (typeof command !== 'string' || !Array.isArray(args)) {
    throw new KmsError('corrupt', 'the seal file names no command for its exec custodian');
  }
  return { command, args };
}

/**
 * Throws `sealed` if the command cannot be run, fails, or takes over 30 seconds. `as`: the user to run it as, without
 * this process's terminal and environment, which are root's. `signal` kills it.
 */
export async function execSecret(
  { command, args }: SecretCommand,
  { as, timeout = commandTimeout, signal }: CommandRun = {},
): Promise<Uint8Array> {
  signal?.throwIfAborted();
  const output = await outputOf(command, args, { as, timeout, signal });
  try {
    return parseSecret(output, `the output of ${command}`);
  } finally {
    output.fill(0);
  }
}

/** Variables that a command run as another user inherits. */
const harmless: readonly string[] = ['PATH', 'LANG', 'LC_ALL', 'TZ'];

function outputOf(
  command: string,
  args: readonly string[],
  { as, timeout, signal }: CommandRun & { readonly timeout: number },
): Promise<Uint8Array> {
  const env = as && Object.fromEntries(harmless.map((name) => [name, environment(name)]));
  const child = spawn(command, [...args], {
    // In its own session it has no terminal. A command run as this user may prompt on it.
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
  const abort = (): void => stop('stopped');
  signal?.addEventListener('abort', abort, { once: true });
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
    signal?.removeEventListener('abort', abort);
    for (const piece of pieces) piece.fill(0);
  });
}

/** Why a command was killed: it took too long, printed too much, or the whole search was ended. */
type CommandEnd = 'late' | 'long' | 'stopped';

/** Reports neither arguments nor output: both may hold secrets. */
function failure(command: string, end: Error | CommandEnd | number | null, timeout: number): KmsError {
  const what =
    end === 'long'
      ? `it printed more than ${most} bytes`
      : end === 'late'
        ? `it took more than ${timeout / 1000} s`
        : end === 'stopped'
          ? 'it was ended'
          : end instanceof Error
            ? systemCode(end) === 'ENOENT'
              ? 'there is no such command'
              : (systemRefusal(end)?.[0] ?? 'it could not be run')
            : `it ended with ${end === null ? 'a signal' : `exit code ${end}`}`;
  return new KmsError('sealed', `the command ${command} gave no master key: ${what}`, {
    hint: 'run it by hand as the user of the appliance',
  });
}
