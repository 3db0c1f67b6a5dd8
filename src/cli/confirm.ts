// The question before something is destroyed.
import { createInterface } from 'node:readline/promises';
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';
import { visible } from './visible.ts';

/** Returns once the person at the terminal said yes, or `--yes` did. `deed` completes "this …". */
export async function confirm(cli: Cli, deed: string): Promise<void> {
  if (cli.isOn('--yes')) return;
  const { stdin, stderr, signal } = cli.io;
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new KmsError('usage', `this ${deed}, and there is no terminal to ask at`, { hint: 'add --yes to do it' });
  }
  const terminal = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const answer = await terminal.question(`This ${visible(deed)}. Go on? [y/N] `, { signal });
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    terminal.close();
  }
  throw new KmsError('refused', 'not confirmed; nothing was done');
}
