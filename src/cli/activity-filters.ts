// Filters of `kms activity search`: callers by the names that its table shows, and a word about each filter that names
// a thing that is not there, since an empty answer would otherwise read as if it had never been done.
import type { AnswerTo, Client } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { ownActions } from '../model/actions.ts';
import { nearest } from '../model/nearest.ts';
import type { CliOf } from './command.ts';
import type { activity } from './grammar/activity.ts';
import { say } from './io.ts';
import { visible } from './text.ts';

type Search = CliOf<typeof activity.search>;
type Names = AnswerTo<'getNames'>;

const ids = '[0-9a-hjkmnp-tv-z]{26}';
const callerId = new RegExp(`^(?:apik|user)_${ids}$`);
const accountId = new RegExp(`^acct_${ids}$`);
const ringId = new RegExp(`^ring_${ids}$`);
/** Callers without an id: this machine, the network, and the operator in the logs of other tenants. */
const withoutId: ReadonlySet<string> = new Set(['local', 'network', 'operator']);

/** A filter that names nothing that is there, in words. */
type Doubt = string;

interface Callers {
  readonly keyid: string | undefined;
  readonly excluded: string | undefined;
  readonly doubts: readonly Doubt[];
}

/** The ids for --keyid and --exclude-keyid. Throws `refused` for a name that several callers have. */
export async function callersMeant(cli: Search, client: Client): Promise<Callers> {
  const typed = [cli.get('--keyid'), cli.get('--exclude-keyid')];
  const needsNames = typed.some((each) => each !== undefined && !callerId.test(each) && !withoutId.has(each));
  const names = needsNames ? await namesOf(client) : {};
  const doubts: Doubt[] = [];
  const [keyid, excluded] = typed.map((each) => {
    if (each === undefined || callerId.test(each) || withoutId.has(each)) return each;
    const id = callerNamed(each, names);
    if (id === undefined && isWhole(names.apikeys) && isWhole(names.users)) {
      const known = [...(names.apikeys ?? []).map(({ name }) => name), ...(names.users ?? []).map((u) => u.username)];
      doubts.push(`there is no API key or user ${each}${meant(each, known)}`);
    }
    return id ?? each;
  });
  return { keyid, excluded, doubts };
}

/** Letters of an id that a table on a terminal shows. */
const shownEnding = 6;

function callerNamed(typed: string, { apikeys = [], users = [] }: Names): string | undefined {
  const ending = typed.replace(/^(?:(?:apik|user)_)?(?:…|\.\.\.)?/, '');
  const isMeant = (id: string, name: string): boolean =>
    name === typed || (ending.length >= shownEnding && id.endsWith(ending));
  const found = [
    ...apikeys.filter(({ keyid, name }) => isMeant(keyid, name)).map(({ keyid }) => keyid),
    ...users.filter(({ id, username }) => isMeant(id, username)).map(({ id }) => id),
  ];
  if (found.length < 2) return found[0];
  throw new KmsError('refused', `${found.length} API keys or users are named by ${typed}`, {
    hint: `give the id of one: ${found.slice(0, 5).join(', ')}${found.length > 5 ? ', …' : ''}`,
  });
}

/** Says on stderr which filters leave nothing out, since what they exclude does not exist. */
export async function sayOfExcluded(cli: Search, doubts: readonly Doubt[]): Promise<void> {
  await sayAll(cli, [...doubts, ...actionDoubts(cli.get('--exclude-action'))]);
}

/**
 * Says on stderr which filters name nothing that is there. Records of what was deleted are found by its name, and so
 * this is for an empty answer. A program is told about actions alone, and leaves no record of a listing.
 */
export async function sayOfFilters(cli: Search, client: Client): Promise<void> {
  const [account, ring] = [cli.get('--account'), cli.get('--ring')];
  const doubts = [...actionDoubts(cli.get('--action'))];
  if ((account !== undefined || ring !== undefined) && cli.io.stderr.isTTY) {
    const names = await namesOf(client);
    const uids = names.accounts?.map(({ uid }) => uid);
    if (account !== undefined && !accountId.test(account)) doubts.push(...nameDoubts('account', account, uids));
    const rings = names.keyrings?.map(({ displayName }) => displayName);
    if (ring !== undefined && !ringId.test(ring)) doubts.push(...nameDoubts('keyring', ring, rings));
  }
  await sayAll(cli, doubts);
}

/** Nothing, where the caller may not list them. */
async function namesOf(client: Client): Promise<Names> {
  return client.getNames().catch((error) => {
    if (error instanceof KmsError && error.code === 'forbidden') return {};
    throw error;
  });
}

/** Names that an answer has at most, of each kind. */
const mostNames = 5000;

function isWhole(names: readonly unknown[] | undefined): boolean {
  return names !== undefined && names.length < mostNames;
}

function nameDoubts(noun: string, name: string, known: readonly string[] | undefined): readonly Doubt[] {
  if (known === undefined || !isWhole(known)) return [];
  if (known.some((each) => each.toLowerCase() === name.toLowerCase())) return [];
  return [`there is no ${noun} ${name}${meant(name, known)}`];
}

function actionDoubts(action: string | undefined): readonly Doubt[] {
  if (action === undefined || ownActions.has(action)) return [];
  const [, resource, operation] = /^(\*|[\w-]+)\.(\*|[\w-]+)$/.exec(action) ?? [];
  const isKnown = (own: string): boolean =>
    (resource === '*' && own.endsWith(`.${operation}`)) || (operation === '*' && own.startsWith(`${resource}.`));
  if ([...ownActions].some(isKnown)) return [];
  return [`the appliance has no action ${action} of its own${meant(action, wordsLike(action))}`];
}

/** Actions, or for a wildcard the wildcards that there are. */
function wordsLike(action: string): readonly string[] {
  if (!action.includes('*')) return [...ownActions];
  const parts = [...ownActions].filter((own) => own.includes('.')).map((own) => own.split('.'));
  const all = parts.map(([resource, operation]) => (action.startsWith('*') ? `*.${operation}` : `${resource}.*`));
  return [...new Set(all)];
}

function meant(typed: string, known: readonly string[]): string {
  const near = nearest(
    typed,
    known.filter((each) => each !== ''),
  );
  return near === undefined ? '' : `; did you mean ${near}?`;
}

async function sayAll(cli: Search, doubts: readonly Doubt[]): Promise<void> {
  for (const doubt of new Set(doubts)) await say(cli.io, visible(doubt));
}
