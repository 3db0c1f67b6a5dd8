// Suggests the name that was probably meant if an appliance knows no thing of the given name. The names are listed over
// the connection of the command, so only callers who may list them get a suggestion; the listing is recorded.
import type { AnswerTo, Client } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { nearest } from '../model/nearest.ts';
import type { Cli } from './command.ts';
import type { NameKind } from './grammar/declaration.ts';
import { say } from './io.ts';

/** Kinds whose names people mistype, in words. */
const nouns: Readonly<Partial<Record<NameKind, string>>> = {
  ring: 'keyring',
  'managed-key': 'managed key',
  account: 'account',
  user: 'user',
  'api-key': 'API key',
  tenant: 'tenant',
};

/** The error if another thing has the name that one was to get, with that name. */
export function nameTaken(error: unknown, name: string): unknown {
  if (!(error instanceof KmsError)) return error;
  const [problem = '', ...others] = Object.values(error.fields ?? {});
  const [, noun] = /^another (.+) has this (?:name|uid)$/.exec(problem) ?? [];
  if (noun === undefined || others.length > 0) return error;
  const article = /^[aeio]/i.test(noun) ? 'an' : 'a';
  return new KmsError('conflict', `there is already ${article} ${noun} ${name}`, { cause: error });
}

/** Names of the tenants, on their machine. */
type TenantNames = () => Promise<readonly string[]>;

/**
 * The error, with the name that was probably meant if it is about one that does not exist. A program gets no
 * suggestion, and leaves no record of a listing.
 */
export async function withNearName(cli: Cli, client: Client, error: unknown, tenants: TenantNames): Promise<unknown> {
  if (!(error instanceof KmsError) || error.code !== 'not-found' || !cli.io.stderr.isTTY) return error;
  for (const { kind, name } of cli.namedThings) {
    const noun = nouns[kind];
    // Without permission to list there is nothing to suggest.
    const near = noun && (await nearName(client, kind, name, tenants).catch(() => undefined));
    if (near === undefined) continue;
    return new KmsError('not-found', `there is no ${noun} ${name}`, { hint: `did you mean ${near}?`, cause: error });
  }
  return error;
}

/** The error that there is no such keyring; undefined if there is, or if the caller may not see it. */
export async function withoutRing(client: Client, ringname: string): Promise<KmsError | undefined> {
  const problem: unknown = await client.getKeyring({ ringname }).catch((error) => error);
  if (!(problem instanceof KmsError) || problem.code !== 'not-found') return undefined;
  return new KmsError('not-found', `there is no keyring ${ringname}`, { cause: problem });
}

async function nearName(
  client: Client,
  kind: NameKind,
  name: string,
  tenants: TenantNames,
): Promise<string | undefined> {
  if (kind === 'api-key') return nearKey(client, name);
  const names = kind === 'tenant' ? await tenants() : (await namesKnownTo(client, kind)).map(({ value }) => value);
  return isAmong(names, name) ? undefined : nearest(name, names);
}

/** An API key by its id or by its name. */
async function nearKey(client: Client, typed: string): Promise<string | undefined> {
  const { apikeys: data = [] } = await client.getNames();
  if (data.some(({ keyid }) => keyid === typed)) return undefined;
  const named = nearest(
    typed,
    data.map(({ name }) => name),
  );
  const key = named === undefined || named === '' ? undefined : data.find(({ name }) => name === named);
  if (key) return `${key.keyid} (${key.name})`;
  return nearest(
    typed,
    data.map(({ keyid }) => keyid),
  );
}

/** Number of names from which on a list of them may not be whole. */
const mostKnown = 500;

/**
 * Warns about flags on keyrings and managed keys that are not there. They count once there is one of that name, so they
 * are no error. A program gets no warning, and leaves no record of a listing.
 */
export async function warnOfUnknownRings(cli: Cli, client: Client, flags: Readonly<Record<string, unknown>>) {
  const named = Object.keys(flags).map((flag) => /^(keyring|key)\.(.+)\.[^.]+$/i.exec(flag));
  if (!cli.io.stderr.isTTY || !named.some((each) => each)) return;
  const names = await client.getNames().catch(() => undefined);
  const warned = new Set<string>();
  for (const [, resource = '', ring = ''] of named.filter((each) => each !== null)) {
    const isKey = resource.toLowerCase() === 'key';
    const known = (isKey ? names?.managedKeys : names?.keyrings)?.map(({ name }) => name);
    if (ring === '*' || !known || known.length >= mostKnown || isAmong(known, ring)) continue;
    const near = nearest(ring, known);
    warned.add(
      `warning: there is no ${isKey ? 'managed key' : 'keyring'} ${ring} yet: its flags count once there is one` +
        `${near === undefined ? '' : `; did you mean ${near}?`}`,
    );
  }
  for (const line of warned) await say(cli.io, line);
}

function isAmong(names: readonly string[], name: string): boolean {
  return names.some((each) => each.toLowerCase() === name.toLowerCase());
}

/** More than people read, and than a single answer should have. */
const mostNames = 1000;

/** Names of one kind with a word about each; empty for kinds that the interface does not list. */
export async function namesKnownTo(
  client: Client,
  kind: NameKind,
): Promise<readonly { readonly value: string; readonly about: string }[]> {
  switch (kind) {
    case 'ring':
      return shown(client, 'keyrings', ({ displayName, id }) => [displayName, id]);
    case 'managed-key':
      return shown(client, 'managedKeys', ({ displayName, type }) => [displayName, type]);
    case 'account':
      return shown(client, 'accounts', ({ uid, notes }) => [uid, notes]);
    case 'user':
      return shown(client, 'users', ({ username, displayName }) => [username, displayName]);
    case 'api-key':
      return shown(client, 'apikeys', ({ keyid, name, active }) => [keyid, active ? name : 'inactive']);
    default:
      return [];
  }
}

type Names = AnswerTo<'getNames'>;

async function shown<K extends keyof Names>(
  client: Client,
  kind: K,
  textsOf: (item: NonNullable<Names[K]>[number]) => readonly [value: string, about: string],
): Promise<readonly { readonly value: string; readonly about: string }[]> {
  // Cast: the compiler does not see that each kind is a list of its items.
  const found = ((await client.getNames())[kind] ?? []) as NonNullable<Names[K]>[number][];
  return found
    .slice(0, mostNames)
    .map(textsOf)
    .map(([value, about]) => ({ value, about }));
}
