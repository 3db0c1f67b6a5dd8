// The life of an appliance: `init` makes one, `serve` serves it until it is asked to end. What is made for people to
// keep is shown once, by either of them.

import { join } from 'node:path';
import type { FullApiKey } from '../../api/apikeys.ts';
import { localPaths } from '../../api/paths.ts';
import { boundedJson, longestAnswer } from '../../client/bounded.ts';
import { KmsError } from '../../errors.ts';
import type { Serving } from '../../server/serve.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { localUrl } from '../connect.ts';
import {
  codeOf,
  custodianRequest,
  type KeptSecrets,
  kitFiles,
  sayHowToKeep,
  secretFields,
  secretPairs,
  showKit,
} from '../custodians.ts';
import type { appliance } from '../grammar/appliance.ts';
import { fitted, say } from '../io.ts';
import { isServing, socketFetch } from '../local-socket.ts';
import { serverKeySources } from '../master-key.ts';
import { printThing, showOnce } from '../output.ts';
import { askLine } from '../secrets.ts';
import { changesBetween, namedHosts, serveConfig, withConfigFile } from '../serve-config.ts';
import { dataDirectory, refuseRemote, sharedStore } from '../target.ts';
import { visible } from '../text.ts';

export async function init(cli: CliOf<typeof appliance.init>): Promise<void> {
  refuseRemote(cli, 'an appliance is made where it is to run');
  if (cli.globals.isTyped('--expect-appliance')) {
    throw cli.wrong('--expect-appliance: a new appliance gets an id of its own');
  }
  const data = await dataDirectory(cli);
  const keyFile = cli.globals.get('--key-file');
  const kind = cli.get('--custodian') ?? impliedKind(cli);
  const file = keyFile ?? `${data}.master.key`;
  const custodian = kind === undefined ? undefined : await custodianRequest(cli, kind, '--custodian', { file });
  const hosts = await namedHosts(cli, cli.get('--host'));
  const { initAppliance, refuseUnlessNew } = await import('../../appliance/init.ts');
  const store = sharedStore(cli);
  if (!store) await refuseUnlessNew(data);
  const kitFile = cli.get('--recovery-kit');
  const recoveryKit = kitFile !== undefined || (await wantsKit(cli));
  const files = await kitFiles(kitFile, undefined);
  try {
    const env = (name: string): string | undefined => cli.io.env[name];
    const made = await initAppliance(given({ data, store, keyFile, hosts, custodian, recoveryKit, env }));
    await printFirstKey(cli, made);
    if (made.recoveryKit === undefined) return await sayNext(cli);
    const kit = made.recoveryKit;
    const keep = async (): Promise<void> => {
      await files.commit(kit, codeOf(kit));
      if (kitFile === undefined) await showKit(cli, kit);
    };
    await showOnce(
      keep(),
      `the appliance in ${data} was made, but its recovery kit is lost`,
      'end that and make another: kms master list, kms master remove-custodian ID, kms recovery-kit',
    );
    if (kitFile !== undefined)
      await say(cli.io, `the recovery kit is in ${kitFile}: print it, keep it in a safe, remove the file`);
    await sayNext(cli);
  } catch (error) {
    await files.discard();
    throw error;
  }
}

/** Without --custodian the appliance decides; options of one imply it. */
function impliedKind(cli: CliOf<typeof appliance.init>): string | undefined {
  if (cli.isTyped('--shares') || cli.isTyped('--threshold')) return 'shares';
  return cli.isTyped('--exec') || cli.isTyped('--exec-arg') ? 'exec' : undefined;
}

async function wantsKit(cli: Cli): Promise<boolean> {
  const { stdin, stdout, stderr, signal } = cli.io;
  if (cli.json || !stdin.isTTY || !stdout.isTTY || !stderr.isTTY) return false;
  const question = fitted(stderr, 'Make a recovery kit, a sheet that opens everything with a backup alone? [y/N]');
  const answer = await askLine({ input: stdin, output: stderr, terminal: false }, `${question} `, signal);
  return /^y(es)?$/i.test(answer.trim());
}

async function sayNext(cli: Cli): Promise<void> {
  if (!cli.json)
    await say(cli.io, 'next: `kms serve`, then `kms user set-up-link` for the console, and `kms keyring create NAME`');
}

type ServeCli = CliOf<typeof appliance.serve>;

export async function serve(typed: ServeCli): Promise<void> {
  const cli = await withConfigFile(typed);
  try {
    await serveWith(cli, typed);
  } catch (error) {
    throw cli.inFile(error);
  }
}

async function serveWith(cli: ServeCli, typed: ServeCli): Promise<void> {
  refuseRemote(cli, 'an appliance is served where it is');
  const { signal } = cli.io;
  const config = await serveConfig(cli);
  const { serve } = await import('../../server/serve.ts');
  let isNew = false;
  const options = {
    ...config,
    sources: await serverKeySources(cli),
    stopping: signal,
    onInitialised: async (made: MadeAppliance) => {
      isNew = true;
      await printFirstKey(cli, made);
    },
  };
  const serving = await serve(options).catch(async (error) => {
    throw await servedAlready(config.data, error);
  });
  try {
    // On a terminal a hang-up means that it was closed, unless there is something to reread.
    const isReread = config.tlsCert !== undefined || cli.get('--config') !== undefined || !cli.io.stdin.isTTY;
    if (isReread) cli.io.onHangup?.(rereading(cli, typed, serving));
    await sayWhere(cli, serving);
    if (!isNew && cli.isTyped('--host'))
      await say(cli.io, '--host is for a new appliance, and this one is not new: see `kms tenant update --help`');
    await sayHowToSetUp(cli, serving.setUpUrl, isNew);
    if (isNew)
      await say(
        cli.io,
        'next, in another terminal: `kms keyring create NAME`, then `kms encrypt --ring NAME -o OUT FILE`',
      );
    await aborted(signal);
  } finally {
    await serving.close();
  }
  const count = serving.requests === 1 ? '1 request' : `${serving.requests} requests`;
  if (cli.io.stderr.isTTY) await say(cli.io, `stopped: ${count} answered, everything is on disk`);
}

/** An error about a port or directory in use, in other words if a server of the same directory has it. */
async function servedAlready(data: string, error: unknown): Promise<unknown> {
  if (!(error instanceof KmsError) || error.code !== 'in-use' || !(await isServing(data))) return error;
  const { notedPid, pidFile } = await import('../../platform/lock.ts');
  const [url, pid] = await Promise.all([servedUrl(data), notedPid(join(data, pidFile))]);
  const where = `${url === undefined ? '' : ` at ${visible(url)}`}${pid === undefined ? '' : ` (process ${pid})`}`;
  return new KmsError('in-use', `kms already serves this directory${where}`, {
    hint: 'use that server, or stop it first',
    cause: error,
  });
}

/** The address of the server of this directory; undefined if it does not tell, as while it is sealed. */
async function servedUrl(data: string): Promise<string | undefined> {
  try {
    const request = new Request(localUrl + localPaths.listTenants[1], { signal: AbortSignal.timeout(askedFor) });
    const answer = await boundedJson(await socketFetch(data)(request), longestAnswer, localUrl);
    const { data: [first] = [] }: { readonly data?: readonly { readonly url?: unknown }[] } = Object(answer);
    return typeof first?.url === 'string' ? first.url : undefined;
  } catch {
    return undefined;
  }
}

/** Milliseconds. */
const askedFor = 2000;

/** Reads the configuration file again for a server that began with `first`, and the certificate in any case. */
function rereading(first: ServeCli, typed: ServeCli, serving: Serving): () => void {
  if (first.get('--config') === undefined) return () => void serving.reloadTls();
  let last = first;
  const reload = async (): Promise<void> => {
    let next = last;
    const read = async () => {
      next = await withConfigFile(typed);
      try {
        return { config: await serveConfig(next), ...changesBetween(first, last, next) };
      } catch (error) {
        throw next.inFile(error);
      }
    };
    if (await serving.reload(read)) last = next;
  };
  return () => void reload();
}

async function sayWhere(cli: Cli, serving: Serving): Promise<void> {
  const { address, url } = serving;
  await say(cli.io, `listening on ${address}${url === address ? '' : ` (clients use ${visible(url)})`}`);
  if (serving.vaultAddress) await say(cli.io, `Vault: listening on ${serving.vaultAddress}`);
  if (serving.awsAddress) await say(cli.io, `AWS KMS: listening on ${serving.awsAddress}`);
  if (serving.kmipAddress) await say(cli.io, `KMIP: listening on ${serving.kmipAddress}`);
  if (serving.tangAddress) await say(cli.io, `Tang: listening on ${serving.tangAddress}`);
  if (serving.sealed) await say(cli.io, `${visible(serving.sealed.message)}; open it with \`kms unseal\``);
  if (serving.held) await say(cli.io, visible(serving.held.message));
}

/** The link goes where the root API key went; into the log of each later start goes only how to get one. */
async function sayHowToSetUp(cli: Cli, url: string | undefined, isNew: boolean): Promise<void> {
  if (url === undefined) return;
  const text = isNew
    ? `to create the first user, open this link in a browser (it works once):\n${url}`
    : 'there is no user yet: `kms user set-up-link` makes the link for the first one';
  await say(cli.io, text);
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

interface MadeAppliance extends KeptSecrets {
  readonly applianceId: string;
  /** The master key's fingerprint. */
  readonly fingerprint: string;
  readonly tenant: { readonly name: string };
  readonly accountId: string;
  readonly apiKey: FullApiKey;
  readonly data: string;
  readonly keyFile: string;
  /** The kind. */
  readonly custodian: string;
}

async function printFirstKey(cli: Cli, made: MadeAppliance): Promise<void> {
  const { applianceId, fingerprint, tenant, accountId, apiKey, data, keyFile, custodian } = made;
  const inFile = custodian === 'keyfile';
  const secrets = secretFields(made);
  const shown = printThing(cli, { tenant: tenant.name, accountId, apiKey, ...secrets }, [
    ['data directory', data],
    ['master key', inFile ? keyFile : `kept by: ${custodian}`],
    ['tenant', tenant.name],
    ['account', accountId],
    ['API key id', apiKey.keyid],
    ['root API key', apiKey.key],
    ...secretPairs(made),
  ]);
  const isHeld = Object.keys(secrets).length === 0;
  await showOnce(
    shown,
    `the appliance in ${data} was made, but ${isHeld ? 'its root API key is' : 'what opens it is'} lost`,
    isHeld
      ? `revoke it and make another: kms --data ${data} apikey revoke ${apiKey.keyid}`
      : `remove ${data} and make it again`,
  );
  await say(cli.io, 'the root API key is shown this once and may do everything: keep it safe');
  await sayHowToKeep(cli, made);
  if (inFile) {
    await say(cli.io, `without ${keyFile} nobody can open the data again: keep a copy of it, apart from the data`);
  } else await say(cli.io, 'without what keeps the master key nobody can open the data again');
  await say(cli.io, `appliance ${applianceId}, master key ${fingerprint} (backups and copies show the same ids)`);
}
