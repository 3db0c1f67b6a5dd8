// The options that say who is to keep the master key, of `init` and of `master add-custodian` alike.
import { KmsError } from '../errors.ts';
import type { CustodianRequest } from '../server/custody/new-custodian.ts';
import type { Cli } from './cli.ts';
import { pathFrom } from './io.ts';
import { newPassphrase } from './passphrase.ts';

export const askedKinds = ['keyfile', 'passphrase', 'shares', 'exec', 'env', 'credential'] as const;

/** `kind` as typed; `option` is what errors call it. Asks for a passphrase where that is what it takes. */
export async function custodianRequest(
  cli: Cli,
  kind: string,
  option: string,
  keyFile: { readonly file: string; readonly make?: boolean },
): Promise<CustodianRequest> {
  refuseStray(cli, kind);
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
      return { kind, command: { command: commandPath(cli), args: cli.list('--exec-arg') } };
    default:
      throw new KmsError('usage', `${option}: expected ${askedKinds.join(', ')}, got "${kind}"`, {
        hint: cli.seeHelp,
      });
  }
}

function sharesWanted(cli: Cli): { count: number; threshold: number } {
  const count = cli.integer('--shares');
  const threshold = cli.integer('--threshold');
  if (count === undefined || threshold === undefined) {
    throw new KmsError('usage', 'shares need both --shares N and --threshold K', { hint: cli.seeHelp });
  }
  if (threshold < 2 || threshold > count || count > 255) {
    throw new KmsError('usage', 'expected 2 to 255 shares, and a threshold from 2 to their number', {
      hint: cli.seeHelp,
    });
  }
  return { count, threshold };
}

/** A name without a slash is looked for in PATH, each time that it is run. */
function commandPath(cli: Cli): string {
  const command = cli.needed('--exec');
  return command.includes('/') ? pathFrom(cli.io, command) : command;
}

function refuseStray(cli: Cli, kind: string): void {
  const belongs = { '--shares': 'shares', '--threshold': 'shares', '--exec': 'exec', '--exec-arg': 'exec' };
  for (const [option, wanted] of Object.entries(belongs)) {
    if (kind !== wanted && cli.isTyped(option)) {
      throw new KmsError('usage', `${option} goes with the custodian ${wanted}`, { hint: cli.seeHelp });
    }
  }
}
