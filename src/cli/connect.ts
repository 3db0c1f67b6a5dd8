// The three ways to an appliance: over the network with an API key, through the socket of the server that runs on this
// machine, or by opening the data directory in this very process. All three end in the same app and answer alike.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Client, type ClientOptions, createClient } from '../client/client.ts';
import type { RollbackWatch } from '../client/rollback.ts';
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';
import { say } from './io.ts';
import { networkFetch } from './network-fetch.ts';
import { keySources } from './passphrase.ts';
import { watchRollbacks } from './seen-states.ts';
import { dataDirectory, isOpenToOthers, type Remote, remoteOf } from './target.ts';
import { answers, unixFetch } from './unix-fetch.ts';
import { visible } from './visible.ts';

export type Way = 'network' | 'socket' | 'in-process';

export interface Connection {
  readonly way: Way;
  readonly client: Client;
  /** The same client, which shows each answer to `see` before it is read. */
  clientThatShows(see: (response: Response) => void): Client;
  readonly baseUrl: string;
  /** A request as the client sends it, but for the API key; for what is not part of the API. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** What shows who asks; empty on this machine. */
  readonly headers: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** The name under which a local request goes; the tenant comes from a header. */
export const localUrl = 'http://kms.local';
export const tenantHeader = 'kms-tenant';

/** How long a data directory that another command holds is waited for, and how often it is looked at, in milliseconds. */
const patience = 5000;
const pause = 50;

/** Whoever typed a command ends it with Ctrl-C. */
const unlimited = Number.POSITIVE_INFINITY;

/** Runs `use` with a client by whichever way the options and the data directory leave, and lets go of it afterwards. */
export async function withClient<T>(
  cli: Cli,
  use: (client: Client, connection: Connection) => Promise<T>,
  open = openConnection,
): Promise<T> {
  const connection = await open(cli);
  try {
    return await use(connection.client, connection);
  } catch (error) {
    // How a local request names its tenant is a matter between this file and the server.
    if (!(error instanceof KmsError) || !error.message.includes(tenantHeader)) throw error;
    const message = error.message.replace(`in the header ${tenantHeader}`, 'with --tenant');
    throw new KmsError('usage', message, { hint: cli.seeHelp });
  } finally {
    await connection.close();
  }
}

export async function openConnection(cli: Cli): Promise<Connection> {
  const remote = await remoteOf(cli);
  return remote === undefined ? openHere(cli) : overNetwork(cli, remote);
}

/** The appliance of this machine, whatever else is configured. */
export async function openHere(cli: Cli): Promise<Connection> {
  for (const option of ['--api-key-file', '--ca-file']) {
    if (cli.isTyped(option)) throw new KmsError('usage', `${option} goes with --server`, { hint: cli.seeHelp });
  }
  const data = dataDirectory(cli);
  for (const until = Date.now() + patience; ; ) {
    const socketPath = join(data, 'kms.sock');
    if (await answers(socketPath)) return locally(cli, 'socket', unixFetch(socketPath), async () => undefined);
    await mustBeThere(data);
    try {
      return await inProcess(cli, data);
    } catch (error) {
      // Another command, or a server that is just starting or ending: both are done soon.
      if (!(error instanceof KmsError) || error.code !== 'in-use' || Date.now() > until) throw error;
      await setTimeout(pause, undefined, { signal: cli.io.signal });
    }
  }
}

async function inProcess(cli: Cli, data: string): Promise<Connection> {
  const { openAppliance } = await import('../server/appliance.ts');
  const appliance = await openAppliance({
    data,
    keyFile: cli.path('--key-file'),
    sources: keySources(cli),
    onNotice: ({ level, message }) => {
      if (level !== 'info') void say(cli.io, `${level === 'warn' ? 'warning' : level}: ${visible(message)}`);
    },
  });
  return locally(
    cli,
    'in-process',
    (request) => appliance.fetchLocal(request),
    () => appliance.close(),
  );
}

/** Says it before the server's code is loaded, and with all three ways in the hint. */
async function mustBeThere(data: string): Promise<void> {
  const found = await stat(data).then(
    () => true,
    () => false,
  );
  if (found) return;
  throw new KmsError('unavailable', `nothing to talk to: the data directory ${data} does not exist`, {
    hint: 'make one with `kms init`, name another with --data DIR, or a server with --server URL',
  });
}

export function localHeaders(cli: Cli): Record<string, string> {
  const tenant = cli.text('--tenant');
  return tenant === undefined ? {} : { [tenantHeader]: tenant };
}

function locally(cli: Cli, way: Way, fetch: Connection['fetch'], close: () => Promise<void>): Connection {
  const headers = localHeaders(cli);
  const watch = watchRollbacks(cli.io);
  const send = watched(watch, stoppable(cli, fetch));
  return {
    way,
    ...clients({ baseUrl: localUrl, fetch: send, headers, retries: 0, timeout: unlimited }),
    baseUrl: localUrl,
    fetch: send,
    headers: {},
    close: () => watch.save().finally(close),
  };
}

async function overNetwork(cli: Cli, remote: Remote): Promise<Connection> {
  const { baseUrl, apiKey, authorities, profile } = remote;
  if (cli.isTyped('--tenant')) {
    throw new KmsError('usage', '--tenant is for the local appliance; over the network the host name decides', {
      hint: `use the tenant's own address ${profile === undefined ? 'with --server' : 'in a profile'}`,
    });
  }
  const url = new URL(baseUrl);
  if (apiKey !== undefined && isOpenToOthers(url)) {
    await say(cli.io, `warning: the API key goes to ${url.host} unencrypted; use an https address`);
  }
  const watch = watchRollbacks(cli.io);
  const send = watched(watch, stoppable(cli, networkFetch(baseUrl, authorities)));
  const options = { baseUrl, fetch: send, timeout: unlimited, ...(apiKey === undefined ? {} : { apiKey }) };
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return { way: 'network', ...clients(options), baseUrl, fetch: send, headers, close: () => watch.save() };
}

function clients(options: ClientOptions & Pick<Connection, 'fetch'>): Pick<Connection, 'client' | 'clientThatShows'> {
  return {
    client: createClient(options),
    clientThatShows(see) {
      const fetch = async (request: Request): Promise<Response> => {
        const response = await options.fetch(request);
        see(response);
        return response;
      };
      return createClient({ ...options, fetch });
    },
  };
}

/** Ctrl-C ends a request that is under way. No request goes to another address than the one that was named. */
function stoppable(cli: Cli, send: Connection['fetch']): Connection['fetch'] {
  return (request) => {
    const signal = AbortSignal.any([request.signal, cli.io.signal]);
    return send(new Request(request, { signal, redirect: 'manual' }));
  };
}

/** Each answer says how far the appliance is. */
function watched(watch: RollbackWatch, send: Connection['fetch']): Connection['fetch'] {
  return async (request) => {
    const response = await send(request);
    await watch.see(response);
    return response;
  };
}
