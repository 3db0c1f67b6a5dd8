// The confirmation before something is destroyed.
import { boundedJson, longestAnswer } from '../client/bounded.ts';
import type { Client } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';
import { isLabel } from '../model/label.ts';
import type { Cli, CliOf } from './command.ts';
import { type Local, localUrl, withClient, withLocal } from './connect.ts';
import { chosenTenant } from './default-tenants.ts';
import { remoteFetch } from './fetch.ts';
import type { destroying } from './grammar/option-sets.ts';
import { fitted, write } from './io.ts';
import { socketFetch } from './local-socket.ts';
import { askLine } from './secrets.ts';
import { dataDirectory, remoteAddress, remoteOf } from './target.ts';
import { visible } from './text.ts';

interface Confirmation {
  /** Name to be typed as confirmation, for the most destructive commands. */
  readonly name?: string;
  /** Concerns the appliance on this machine, or only files of this user. Default: the appliance that is chosen. */
  readonly of?: 'this machine' | 'this user';
  /** Further lines to show before the question; computed only if it is asked. */
  details?(): Promise<readonly string[]>;
}

/** Returns once the person at the terminal agreed, or `--yes` was given. `deed` completes "this …". */
export async function confirm(
  cli: CliOf<typeof destroying>,
  deed: string,
  { name, of, details }: Confirmation = {},
): Promise<void> {
  if (cli.get('--yes')) return;
  const { stdin, stderr } = cli.io;
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new KmsError('usage', `this ${deed}, and there is no terminal to ask at`, { hint: 'add --yes to do it' });
  }
  for (const line of (await details?.()) ?? []) await write(stderr, `${fitted(stderr, visible(line))}\n`);
  await askAtTerminal(cli, deed, { ...(name !== undefined && { name }), ...(of && { of }) });
}

/** The same for a command that goes on without a terminal, since scripts run it: it asks only on one. */
export async function confirmAtTerminal(
  cli: CliOf<typeof destroying>,
  deed: string | (() => Promise<string>),
  confirmation: Confirmation = {},
): Promise<void> {
  const { stdin, stderr } = cli.io;
  if (!stdin.isTTY || !stderr.isTTY || cli.get('--yes')) return;
  await confirm(cli, typeof deed === 'string' ? deed : await deed(), confirmation);
}

/**
 * Lines from the appliance to show before the question. A missing thing, or one in use, ends the command. If the caller
 * may not see it, or the appliance does not answer, the question is asked: the command itself will say why.
 */
export function detailsFrom(cli: Cli, see: (client: Client) => Promise<readonly string[]>): Promise<readonly string[]> {
  return unlessUnseen(withClient(cli, see));
}

/** The same for a command of the operator, from the appliance of this machine. */
export function localDetails(cli: Cli, see: (local: Local) => Promise<readonly string[]>): Promise<readonly string[]> {
  return unlessUnseen(withLocal(cli, see));
}

async function unlessUnseen(lines: Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await lines;
  } catch (error) {
    if (error instanceof KmsError && (error.code === 'not-found' || error.code === 'conflict')) throw error;
    return [];
  }
}

async function askAtTerminal(cli: Cli, deed: string, { name, of }: Pick<Confirmation, 'name' | 'of'> = {}) {
  const { stderr, stdin, signal } = cli.io;
  const address = of === undefined ? await remoteAddress(cli) : undefined;
  const label = of === 'this user' ? undefined : await labelOf(cli, address !== undefined);
  const tenant = of === undefined && address === undefined ? await chosenTenant(cli) : undefined;
  const places = [
    ...(label === undefined ? [] : [`on ${label}`]),
    ...(tenant === undefined ? [] : [`in the tenant ${tenant}`]),
    ...(address === undefined ? [] : [`at ${address}`]),
  ].join(', ');
  const what = places === '' ? `This ${deed}.` : `${places.charAt(0).toUpperCase()}${places.slice(1)}, this ${deed}.`;
  const request = name === undefined ? 'Go on? [y/N]' : `To go on, type ${visible(name)}:`;
  const question = fitted(stderr, `${visible(what)} ${request}`);
  const answer = (await askLine({ input: stdin, output: stderr, terminal: false }, `${question} `, signal)).trim();
  if (name === undefined ? /^y(es)?$/i.test(answer) : answer === name) return;
  throw new KmsError('refused', 'not confirmed; nothing was done');
}

/** Milliseconds that the question waits for the label. */
const patience = 3000;

/** The appliance's label; undefined if it has none, or does not tell. The command itself will say why. */
async function labelOf(cli: Cli, isRemote: boolean): Promise<string | undefined> {
  try {
    const { baseUrl, fetch } = await publicFetch(cli, isRemote);
    const signal = AbortSignal.any([cli.io.signal, AbortSignal.timeout(patience)]);
    const body = await boundedJson(await fetch(new Request(`${baseUrl}/readyz`, { signal })), longestAnswer, baseUrl);
    const text = isJsonObject(body) && isJsonObject(body.label) ? body.label.text : undefined;
    return typeof text === 'string' && isLabel(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

async function publicFetch(cli: Cli, isRemote: boolean) {
  const remote = isRemote ? await remoteOf(cli) : undefined;
  if (remote) return { baseUrl: remote.baseUrl, fetch: remoteFetch(remote) };
  return { baseUrl: localUrl, fetch: socketFetch(await dataDirectory(cli)) };
}
