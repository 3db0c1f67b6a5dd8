// Suggests the name that was probably meant if an appliance knows no thing of the given name. The names are listed over
// the connection of the command, so only callers who may list them get a suggestion; the listing is recorded.
import type { TenantAnswer } from '../api/local/tenants.ts';
import type { AnswerTo, Client } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { nearest } from '../model/nearest.ts';
import type { Cli } from './command.ts';
import { deletedError, deletedKeyrings } from './deleted-things.ts';
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

/** Tenants, on their machine; those that are deleted, too. */
type Tenants = () => Promise<readonly Pick<TenantAnswer, 'id' | 'name' | 'deletedAt'>[]>;

/**
 * The error, with the name that was probably meant if it is about one that does not exist, or how to restore what is
 * deleted. A program gets no
 * suggestion, and leaves no record of a listing.
 */
export async function withNearName(cli: Cli, client: Client, error: unknown, tenants: Tenants): Promise<unknown> {
  if (!(error instanceof KmsError) || error.code !== 'not-found' || !cli.io.stderr.isTTY) return error;
  const sources: Sources = { tenants: once(tenants), all: once(() => client.getNames()) };
  for (const { kind, name } of cli.namedThings) {
    const restorable = await deletedOf(sources, client, kind, name).catch(() => undefined);
    if (restorable) return restorable;
    const noun = nouns[kind];
    // Without permission to list there is nothing to suggest.
    const near = noun && (await nearName(sources, kind, name).catch(() => undefined));
    if (near === undefined) continue;
    return new KmsError('not-found', `there is no ${noun} ${name}`, { hint: `did you mean ${near}?`, cause: error });
  }
  return error;
}

/** The error that the thing of this name is deleted; undefined for others. Managed keys keep their names. */
async function deletedOf({ tenants, all }: Sources, client: Client, kind: NameKind, name: string) {
  if (kind === 'ring') {
    if (isAmong((await all()).keyrings?.map((each) => each.name) ?? [], name)) return undefined;
    return deletedError(kind, name, deletedKeyrings(client));
  }
  if (kind !== 'tenant') return undefined;
  const every = await tenants();
  if (every.some((each) => each.deletedAt === undefined && isAmong([each.name], name))) return undefined;
  return deletedError(kind, name, every);
}

/** The error that there is no such keyring; undefined if there is, or if the caller may not see it. */
export async function withoutRing(client: Client, ringname: string): Promise<KmsError | undefined> {
  const problem: unknown = await client.getKeyring({ ringname }).catch((error) => error);
  if (!(problem instanceof KmsError) || problem.code !== 'not-found') return undefined;
  return new KmsError('not-found', `there is no keyring ${ringname}`, { cause: problem });
}

interface Sources {
  readonly tenants: Tenants;
  all(): Promise<Names>;
}

/** `ask`, whose first answer serves all later calls. */
function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => {
    answer ??= ask();
    return answer;
  };
}

async function nearName({ tenants, all }: Sources, kind: NameKind, name: string): Promise<string | undefined> {
  if (kind === 'api-key') return nearKey(await all(), name);
  const names =
    kind === 'tenant' ? livingNames(await tenants()) : namesAmong(await all(), kind).map(({ value }) => value);
  return isAmong(names, name) ? undefined : nearest(name, names);
}

function livingNames(tenants: Awaited<ReturnType<Tenants>>): readonly string[] {
  return tenants.filter(({ deletedAt }) => deletedAt === undefined).map(({ name }) => name);
}

/** An API key by its id or by its name. One that is named exactly is not what is missing. */
function nearKey({ apikeys: data = [] }: Names, typed: string): string | undefined {
  if (data.some(({ keyid, name }) => keyid === typed || name === typed)) return undefined;
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

type Names = AnswerTo<'getNames'>;

interface Named {
  readonly value: string;
  /** A word about it. */
  readonly about: string;
}

/** Names of one kind; empty for kinds that the interface does not list. */
export async function namesKnownTo(client: Client, kind: NameKind): Promise<readonly Named[]> {
  return listed.has(kind) ? namesAmong(await client.getNames(), kind) : [];
}

const listed: ReadonlySet<NameKind> = new Set(['ring', 'managed-key', 'account', 'user', 'api-key']);

function namesAmong(names: Names, kind: NameKind): readonly Named[] {
  const { keyrings = [], managedKeys = [], accounts = [], users = [], apikeys = [] } = names;
  switch (kind) {
    case 'ring':
      return shown(keyrings, ({ displayName, id }) => [displayName, id]);
    case 'managed-key':
      return shown(managedKeys, ({ displayName, type }) => [displayName, type]);
    case 'account':
      return shown(accounts, ({ uid, notes }) => [uid, notes]);
    case 'user':
      return shown(users, ({ username, displayName }) => [username, displayName]);
    case 'api-key':
      return shown(apikeys, ({ keyid, name, active }) => [keyid, active ? name : 'inactive']);
    default:
      return [];
  }
}

function shown<T>(
  items: readonly T[],
  textsOf: (item: T) => readonly [value: string, about: string],
): readonly Named[] {
  return items
    .slice(0, mostNames)
    .map(textsOf)
    .map(([value, about]) => ({ value, about }));
}
