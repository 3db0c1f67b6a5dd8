// The confirmation before something is destroyed.
import { KmsError } from '../errors.ts';
import type { Cli, CliOf } from './command.ts';
import { chosenTenant } from './default-tenants.ts';
import type { destroying } from './grammar/option-sets.ts';
import { write } from './io.ts';
import { askLine } from './secrets.ts';
import { remoteAddress } from './target.ts';
import { visible } from './text.ts';

interface Confirmation {
  /** Name to be typed as confirmation, for the most destructive commands. */
  readonly name?: string;
  /** Destroys nothing of an appliance, or only of the one on this machine. */
  readonly here?: true;
  /** Further lines to show before the question; computed only if it is asked. */
  details?(): Promise<readonly string[]>;
}

/** Returns once the person at the terminal agreed, or `--yes` was given. `deed` completes "this …". */
export async function confirm(
  cli: CliOf<typeof destroying>,
  deed: string,
  { name, here, details }: Confirmation = {},
): Promise<void> {
  if (cli.get('--yes')) return;
  const { stdin, stderr } = cli.io;
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new KmsError('usage', `this ${deed}, and there is no terminal to ask at`, { hint: 'add --yes to do it' });
  }
  for (const line of (await details?.()) ?? []) await write(stderr, `${visible(line)}\n`);
  await askAtTerminal(cli, deed, name, here);
}

/** The same for a command that goes on without a terminal, since scripts run it: it asks only on one. */
export async function confirmAtTerminal(cli: CliOf<typeof destroying>, deed: string): Promise<void> {
  const { stdin, stderr } = cli.io;
  if (stdin.isTTY && stderr.isTTY && !cli.get('--yes')) await askAtTerminal(cli, deed);
}

async function askAtTerminal(cli: Cli, deed: string, name?: string, here?: true): Promise<void> {
  const { stderr, stdin, signal } = cli.io;
  const address = here ? undefined : await remoteAddress(cli);
  const tenant = here || address !== undefined ? undefined : await chosenTenant(cli);
  const where = address === undefined ? tenant && `In the tenant ${tenant}` : `At ${address}`;
  const what = where === undefined ? `This ${deed}.` : `${where}, this ${deed}.`;
  const question = `${visible(what)} ${name === undefined ? 'Go on? [y/N]' : `To go on, type ${visible(name)}:`} `;
  const answer = (await askLine({ input: stdin, output: stderr, terminal: false }, question, signal)).trim();
  if (name === undefined ? /^y(es)?$/i.test(answer) : answer === name) return;
  throw new KmsError('refused', 'not confirmed; nothing was done');
}
