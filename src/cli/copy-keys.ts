// Where the master key for a backup comes from when no appliance is open: as for `serve`, and where people hold it, from them.
import { createInterface, type Interface } from 'node:readline';
import type { KeyOptions } from '../server/backup/unseal.ts';
import type { Cli } from './cli.ts';
import { givenPassphrase } from './passphrase.ts';
import { readSecret } from './secret-input.ts';
import { dataDirectory } from './target.ts';

export function copyKeys(cli: Cli): KeyOptions {
  const { io } = cli;
  const { stdin, stderr, env } = io;
  const isTerminal = stdin.isTTY === true && stderr.isTTY === true;
  const keyFile = cli.path('--key-file');
  const lines = new Lines(stdin);
  return {
    data: dataDirectory(cli),
    keys: {
      ...(keyFile === undefined ? {} : { keyFile }),
      env: (name) => env[name],
      passphrase: async () =>
        (await givenPassphrase(cli)) ?? (isTerminal ? await readSecret(cli, 'passphrase') : undefined),
    },
    share: async (given, needed) =>
      isTerminal ? (await readSecret(cli, `share ${given + 1} of ${needed}`)) || undefined : lines.next(),
  };
}

/** Shares on stdin, one a line. */
class Lines {
  readonly #input: Cli['io']['stdin'];
  #lines: AsyncIterator<string> | undefined;
  #reader: Interface | undefined;

  constructor(input: Cli['io']['stdin']) {
    this.#input = input;
  }

  async next(): Promise<string | undefined> {
    this.#reader ??= createInterface({ input: this.#input, crlfDelay: Number.POSITIVE_INFINITY });
    this.#lines ??= this.#reader[Symbol.asyncIterator]();
    const { done, value } = await this.#lines.next();
    return done === true || value.trim() === '' ? undefined : value.trim();
  }
}
