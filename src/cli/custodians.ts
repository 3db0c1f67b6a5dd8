// Custodians from options, for `init` and `master add-custodian`, and the secrets given to people: shares, a key for
// the environment, a recovery kit. Each is shown once.
import { renderSVG, renderUnicodeCompact } from 'uqr';
import type { CustodianRequest } from '../custody/new-custodian.ts';
import { KmsError } from '../errors.ts';
import { custodianKindsByName } from '../model/custodian-kinds.ts';
import type { Cli, CliOf } from './command.ts';
import { fileError, type NewFile, newFile } from './files.ts';
import { notAmong } from './grammar/declaration.ts';
import type { custodian } from './grammar/option-sets.ts';
import { pathFrom, say, write } from './io.ts';
import type { Pair } from './output.ts';
import { newPassphrase } from './secrets.ts';

/** `typed` is the kind; `option` names it in errors. Asks for a passphrase if the kind needs one. */
export async function custodianRequest(
  cli: CliOf<typeof custodian>,
  typed: string,
  option: string,
  keyFile: { readonly file: string; readonly make?: boolean },
): Promise<CustodianRequest> {
  refuseStray(cli, typed);
  const kind = custodianKindsByName.find((known) => known === typed);
  if (!kind) throw cli.wrong(`${option}: ${notAmong(typed, custodianKindsByName)}`);
  switch (kind) {
    case 'keyfile':
      return { kind, ...keyFile };
    case 'env':
    case 'credential':
      return { kind, env: (name) => cli.io.env[name] };
    case 'passphrase':
      return { kind, passphrase: await newPassphrase(cli) };
    case 'shares':
      return { kind, ...sharesWanted(cli) };
    case 'exec':
      return { kind, command: { command: commandPath(cli), args: cli.get('--exec-arg') } };
  }
}

function sharesWanted(cli: CliOf<typeof custodian>): { count: number; threshold: number } {
  const count = cli.get('--shares');
  const threshold = cli.get('--threshold');
  if (count === undefined || threshold === undefined) {
    throw cli.wrong('shares need both --shares N and --threshold K');
  }
  if (threshold < 2 || threshold > count || count > 255) {
    throw cli.wrong('expected 2 to 255 shares, and a threshold from 2 to their number');
  }
  return { count, threshold };
}

/** A name without a slash is looked up in PATH at each run. */
function commandPath(cli: CliOf<typeof custodian>): string {
  const command = cli.get('--exec');
  if (command === undefined) throw cli.wrong('--exec is missing');
  return command.includes('/') ? pathFrom(cli.io, command) : command;
}

function refuseStray(cli: CliOf<typeof custodian>, kind: string): void {
  const belongs = [
    ['--shares', 'shares'],
    ['--threshold', 'shares'],
    ['--exec', 'exec'],
    ['--exec-arg', 'exec'],
  ] as const;
  for (const [option, wanted] of belongs) {
    if (kind !== wanted && cli.isTyped(option)) {
      throw cli.wrong(`${option} goes with the custodian ${wanted}`);
    }
  }
}

export interface KeptSecrets {
  readonly shares?: readonly string[];
  readonly masterKey?: string;
}

export function secretPairs({ shares = [], masterKey }: KeptSecrets): Pair[] {
  return [...shares.map((share, at): Pair => [`share ${at + 1}`, share]), ['KMS_MASTER_KEY', masterKey]];
}

export function secretFields({ shares, masterKey }: KeptSecrets): KeptSecrets {
  return { ...(shares && { shares }), ...(masterKey !== undefined && { masterKey }) };
}

export async function sayHowToKeep(cli: Cli, { shares, masterKey }: KeptSecrets): Promise<void> {
  if (shares) {
    await say(cli.io, 'the shares are shown this once: give each to a different person, and keep none of them here');
  }
  if (masterKey !== undefined) {
    await say(cli.io, 'KMS_MASTER_KEY is shown this once: put it where the server gets its environment from');
  }
}

/** The files of a recovery kit, mode 0600. */
interface KitFiles {
  /** Writes kit and picture, then gives the files their names. */
  commit(text: string, code: string): Promise<void>;
  discard(): Promise<void>;
}

const code = /kms-recovery-1(?:-[0-9a-z]{4})+/;

/** The code in the text of a kit. */
export function codeOf(text: string): string {
  const [found] = code.exec(text) ?? [];
  if (found === undefined) throw new KmsError('internal', 'a recovery kit without a code');
  return found;
}

/** Reserves the files before the kit is made. */
export async function kitFiles(text: string | undefined, svg: string | undefined): Promise<KitFiles> {
  if (text !== undefined && text === svg)
    throw new KmsError('usage', 'the kit and its picture cannot be the same file');
  const files: { path: string; file: NewFile; content(kit: string, code: string): string }[] = [];
  const add = async (path: string | undefined, content: (kit: string, code: string) => string): Promise<void> => {
    if (path !== undefined) files.push({ path, file: await newFile(path, 0o600), content });
  };
  const discard = async (): Promise<void> => {
    for (const { file } of files) await file.discard();
  };
  try {
    await add(text, (kit) => kit);
    await add(svg, (_kit, code) => `${renderSVG(code, { ecc: 'M' })}\n`);
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    async commit(kit, code) {
      // All are written before any gets its name.
      for (const { path, file, content } of files) {
        await file.handle.writeFile(content(kit, code)).catch((error: unknown) => {
          throw fileError('write', path, error);
        });
      }
      for (const { file } of files) await file.commit();
    },
    discard,
  };
}

/** Prints the kit, with the QR code on a terminal. */
export async function showKit(cli: Cli, kit: string): Promise<void> {
  const { stdout } = cli.io;
  await write(stdout, kit);
  if (stdout.isTTY) await write(stdout, `\n${renderUnicodeCompact(codeOf(kit), { ecc: 'M', border: 2 })}\n`);
  await say(cli.io, 'the recovery kit is shown this once: print it and keep it in a safe, apart from the backups');
}
