// The question before something is destroyed.
import { KmsError } from '../errors.ts';
import { askLine } from './ask.ts';
import type { Cli } from './cli.ts';
import { visible } from './visible.ts';

/** Returns once the person at the terminal said yes, or `--yes` did. `deed` completes "this …". */
export async function confirm(cli: Cli, deed: string): Promise<void> {
  if (cli.isOn('--yes')) return;
  const { stdin, stderr, signal } = cli.io;
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new KmsError('usage', `this ${deed}, and there is no terminal to ask at`, { hint: 'add --yes to do it' });
  }
  const question = `This ${visible(deed)}. Go on? [y/N] `;
  const answer = await askLine({ input: stdin, output: stderr, terminal: false }, question, signal);
  if (/^y(es)?$/i.test(answer)) return;
  throw new KmsError('refused', 'not confirmed; nothing was done');
}
