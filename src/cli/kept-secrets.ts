// What a new custodian gives people to keep: shares, a key for the environment. Shown this once, and said so.
import type { Cli } from './cli.ts';
import { say } from './io.ts';
import type { Pair } from './output.ts';

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
    await say(cli.io, 'the shares are shown this once: give each to another person, and keep none of them here');
  }
  if (masterKey !== undefined) {
    await say(cli.io, 'KMS_MASTER_KEY is shown this once: put it where the server gets its environment from');
  }
}
