// Completion of names from the running server, or from the server or profile on the line. It never opens the data
// directory, asks the person, or writes anything, and gives up on a slow server.
import type { AnswerOf } from '../../api/endpoints.ts';
import type { LocalId, LocalOf } from '../../api/local-endpoints.ts';
import { localPaths } from '../../api/paths.ts';
import { boundedJson, longestAnswer } from '../../client/bounded.ts';
import { type Client, createClient } from '../../client/client.ts';
import { flagTable } from '../../model/flags.ts';
import type { Cli } from '../command.ts';
import { localHeaders, localUrl } from '../connect.ts';
import { remoteFetch } from '../fetch.ts';
import type { NameKind } from '../grammar/declaration.ts';
import { isServing, socketFetch } from '../local-socket.ts';
import { namesKnownTo } from '../near-names.ts';
import { profileNames, readProfile } from '../profiles.ts';
import { dataDirectory, namedRemote, remoteOf } from '../target.ts';
import type { Candidate } from './line.ts';

/** Timeout in milliseconds. */
const timeoutMs = 1500;

/** `word` is the part typed so far. */
export async function namesOf(cli: Cli, kind: NameKind, word: string): Promise<readonly Candidate[]> {
  switch (kind) {
    case 'profile':
      return profiles(cli);
    case 'action':
      return actions;
    case 'flag':
      return flags(cli, word);
    case 'tenant':
      return onThisMachine(cli, 'listTenants').then((answer) =>
        (answer?.data ?? []).map(({ name, hosts }) => ({ value: name, about: hosts.join(' ') })),
      );
    case 'custodian':
      return onThisMachine(cli, 'getMaster').then((answer) =>
        (answer?.custodians ?? []).map(({ id, kind }) => ({ value: id, about: kind })),
      );
    case 'tang-pair':
      return tangPairs(cli);
    case 'secret':
      return secrets(cli, word);
    case 'ring':
    case 'managed-key':
    case 'account':
    case 'user':
    case 'api-key':
      return listed(cli, kind);
  }
}

async function tangPairs(cli: Cli): Promise<readonly Candidate[]> {
  const answer = await (await quickClient(cli))?.listTangPairs();
  return (answer?.pairs ?? []).map(({ thumbprint, advertised, createdAt }) => ({
    value: thumbprint,
    about: advertised ? 'advertised' : createdAt,
  }));
}

/** The secrets and folders in the folder typed so far. */
async function secrets(cli: Cli, word: string): Promise<readonly Candidate[]> {
  const folder = word.slice(0, Math.max(0, word.lastIndexOf('/')));
  const answer = await (await quickClient(cli))?.listSecrets(folder === '' ? {} : { folder });
  const before = folder === '' ? '' : `${folder}/`;
  return (answer?.names ?? []).map((name) => ({ value: before + name, about: name.endsWith('/') ? 'folder' : '' }));
}

async function profiles(cli: Cli): Promise<readonly Candidate[]> {
  const names = await profileNames(cli.io);
  const about = (name: string): Promise<string> =>
    readProfile(cli.io, name).then(
      ({ server }) => server,
      () => '',
    );
  return Promise.all(names.map(async (value) => ({ value, about: await about(value) })));
}

const ofRings = '<ringname>.';

/** Actions in the activity log carry no ring names. */
const actions: readonly Candidate[] = [
  ...flagTable
    .filter(({ flag }) => flag !== '*' && !flag.startsWith('kmip.'))
    .map(({ flag, grants }) => ({ value: flag.replace(ofRings, ''), about: grants })),
  { value: 'kmip.query', about: 'ask what KMIP serves' },
  { value: 'tang.recover', about: 'unlock something as a client of Tang' },
  { value: 'session.refresh', about: 'refresh a session' },
  { value: 'session.end', about: "log out, or end a session of one's own" },
  { value: 'session.watch', about: 'keep the console open, or complete names' },
  { value: 'system.overview', about: 'look at the overview' },
  { value: 'system.names', about: 'look up names' },
  { value: 'session.read', about: "list one's own sessions" },
  { value: 'user.add-second-factor', about: "add a second factor of one's own" },
  { value: 'user.remove-second-factor', about: "remove a second factor of one's own" },
  { value: 'user.reset-second-factor', about: 'take the second factors of a user away' },
  { value: 'user.password', about: "change one's own password" },
];

/** Rings are requested only once the flag begins like one of theirs. */
async function flags(cli: Cli, word: string): Promise<readonly Candidate[]> {
  const general = flagTable.map(({ flag, grants }) => ({ value: flag.replace(ofRings, '*.'), about: grants }));
  if (!word.startsWith('keyring.')) return general;
  const ofRing = (await listed(cli, 'ring')).flatMap(({ value: ring }) =>
    flagTable
      .filter(({ flag }) => flag.startsWith(`keyring.${ofRings}`))
      .map(({ flag, grants }) => ({ value: flag.replace('<ringname>', ring.toLowerCase()), about: grants })),
  );
  return [...general, ...ofRing];
}

async function listed(cli: Cli, kind: NameKind): Promise<readonly Candidate[]> {
  const client = await quickClient(cli);
  return client ? namesKnownTo(client, kind) : [];
}

/** Undefined if no server is in reach. */
async function quickClient(cli: Cli): Promise<Client | undefined> {
  // A poll: the appliance records it once an hour.
  const quick = { retries: 0, timeout: timeoutMs };
  const poll = { 'if-none-match': '"none"' };
  const remote = await remoteOf(cli);
  if (remote === undefined) {
    const fetch = await fetchHere(cli);
    return (
      fetch && createClient({ ...quick, baseUrl: localUrl, fetch, headers: { ...poll, ...(await localHeaders(cli)) } })
    );
  }
  const { baseUrl, apiKey, certificate } = remote;
  if (apiKey === undefined && certificate === undefined) return undefined;
  const key = apiKey === undefined ? {} : { apiKey };
  return createClient({ ...quick, ...key, baseUrl, headers: poll, fetch: remoteFetch(remote) });
}

async function onThisMachine<Id extends LocalId>(cli: Cli, id: Id): Promise<AnswerOf<LocalOf<Id>> | undefined> {
  const fetch = namedRemote(cli) === undefined ? await fetchHere(cli) : undefined;
  if (!fetch) return undefined;
  const init = { headers: await localHeaders(cli), signal: AbortSignal.timeout(timeoutMs) };
  const answer = await fetch(new Request(localUrl + localPaths[id][1], init));
  // Cast: completions look only for the fields that they offer.
  return (await boundedJson(answer, longestAnswer, localUrl)) as AnswerOf<LocalOf<Id>> | undefined;
}

async function fetchHere(cli: Cli): Promise<((request: Request) => Promise<Response>) | undefined> {
  const data = await dataDirectory(cli);
  return (await isServing(data)) ? socketFetch(data) : undefined;
}
