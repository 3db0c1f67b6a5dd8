// Where a master key's custodians may be found without asking anybody: key files, the environment, a credential of
// systemd, and commands whose output is the secret. A command is run by its name and a list of arguments, with no shell
// in between, and nothing of what it prints is ever shown.

import { execFile } from 'node:child_process';
import { readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { utf8 } from '../../crypto/bytes.ts';
import { type ErrorDetails, KmsError, systemCode, systemError, systemRefusal } from '../../errors.ts';
import type { CustodianKind } from '../../model/custodian-kinds.ts';
import { parseSecret } from '../../seal/custodian-secret.ts';
import type { Slot } from '../../seal/slot.ts';
import { exposureOf, inDir, sealFile } from '../data-dir.ts';
import { environment } from '../environment.ts';
import { defaultKeyFile, keyFilePlaces, readKeyFile } from './key-file.ts';

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
  /** The secret; undefined where there is none. Throws when there is something else. */
  find(): Promise<Uint8Array | undefined>;
}

const variable = 'KMS_MASTER_KEY';
const credential = 'kms-master-key';

export function environmentSource(env: NonNullable<KeySources['env']> = environment): KeySource {
  return {
    name: variable,
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

function commandSource(data: string | undefined, slot: Slot, rule: 'run' | CommandRefusal): KeySource {
  const command = commandOf(slot);
  return {
    name: `the output of ${command.command}`,
    async find() {
      if (rule !== 'run') throw notRun(command, rule);
      return execSecret(command, { as: data === undefined ? undefined : await runnerOf(data, command) });
    },
  };
}

function notRun({ command }: SecretCommand, { why, hint }: CommandRefusal): KmsError {
  return new KmsError('sealed', `the command ${command} was not run: ${why}`, { hint });
}

/**
 * Who runs a command that the seal in a data directory names: this process, where the directory is its user's or
 * root's alone; where this is root, the user whom it belongs to, who is not to choose what root runs. Throws `sealed`
 * for a directory of anybody else.
 */
async function runnerOf(data: string, command: SecretCommand): Promise<User | undefined> {
  const found = await Promise.all([stat(data), stat(inDir(data, sealFile))]);
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

/** The bits of a mode by which group and others can write. */
const writable = 0o022;

/** Where the seal says that a key file is, and nobody else does. */
function notedSource(data: string, place: string, exposed: boolean): KeySource {
  const source = fileSource(place, exposed);
  return {
    ...source,
    async find() {
      await refusePlanted(data, place);
      return source.find();
    },
  };
}

/**
 * Throws `refused` for a key file that whoever wrote the seal may have put there, with a seal of their own: it would
 * open that, and nobody would be asked.
 */
async function refusePlanted(data: string, place: string): Promise<void> {
  const [real, info, owner] = await Promise.all([realpath(place), stat(place), stat(data)]).catch(() => []);
  if (real === undefined || info === undefined || owner === undefined) return;
  const me = process.geteuid?.();
  const mayOwn = [0, me, ...(me === 0 ? [owner.uid] : [])];
  const isInside = `${real}/`.startsWith(`${await realpath(data)}/`);
  if (me === undefined || (mayOwn.includes(info.uid) && !isInside)) return;
  const why = isInside ? 'it lies in the data directory' : 'it belongs to another user';
  throw new KmsError('refused', `${place}: the seal alone says that the key file is there, and ${why}`, {
    hint: 'if it is yours, name it with --key-file',
  });
}

/** All there are for these slots, those that cost least first; or the key file given and nothing else. */
export function sourcesFor(data: string | undefined, slots: readonly Slot[], given: KeySources): readonly KeySource[] {
  const { keyFile, env, commands, exposed = false } = given;
  if (keyFile !== undefined) return keyFilePlaces('', keyFile, slots).map((place) => fileSource(place, exposed));
  const places = data === undefined ? [] : keyFilePlaces(data, undefined, slots);
  const files = places.map((place) =>
    data === undefined || place === defaultKeyFile(data)
      ? fileSource(place, exposed)
      : notedSource(data, place, exposed),
  );
  const named = commands === undefined ? [] : slots.filter(({ kind }) => kind === 'exec');
  const run = named.map((slot) => commandSource(data, slot, commands ?? unnamedDirectory));
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

/** Throws `sealed` when the command cannot be run, fails, or takes over 30 seconds. `as`: who runs it. */
export async function execSecret(
  { command, args }: SecretCommand,
  { as, timeout = commandTimeout }: { readonly as?: User | undefined; readonly timeout?: number } = {},
): Promise<Uint8Array> {
  const output = await new Promise<Buffer>((resolve, reject) => {
    const options = { timeout, killSignal: 'SIGKILL', maxBuffer: most, encoding: 'buffer', shell: false } as const;
    const child = execFile(command, [...args], { ...options, ...as }, (error, stdout) => {
      if (error) {
        stdout.fill(0);
        reject(failure(command, error, timeout));
      } else resolve(stdout);
    });
    child.stdin?.end();
  });
  try {
    return parseSecret(output, `the output of ${command}`);
  } finally {
    output.fill(0);
  }
}

/** Neither the arguments nor what the command said: both may hold secrets. */
function failure(command: string, error: Error, timeout: number): KmsError {
  const code = systemCode(error);
  const exit = 'code' in error && typeof error.code === 'number' ? error.code : undefined;
  const killed = 'killed' in error && error.killed === true;
  const what =
    code === 'ENOENT'
      ? 'there is no such command'
      : code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'
        ? `it printed more than ${most} bytes`
        : killed
          ? `it took more than ${timeout / 1000} s`
          : exit !== undefined
            ? `it ended with exit code ${exit}`
            : (systemRefusal(error)?.[0] ?? 'it could not be run');
  return new KmsError('sealed', `the command ${command} gave no master key: ${what}`, {
    hint: 'run it by hand as the user of the appliance',
  });
}
