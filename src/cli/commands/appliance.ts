// The life of an appliance: `init` makes one, `serve` serves it until it is asked to end. What is made for people to
// keep is shown once, by either of them.

import type { FullApiKey } from '../../api/apikeys.ts';
import type { PeopleSettings } from '../../appliance/mail.ts';
import type { CopySettings } from '../../backup/service.ts';
import { KmsError } from '../../errors.ts';
import { secretOf } from '../../model/secret-text.ts';
import type { RetentionSettings } from '../../telemetry/retention.ts';
import type { StreamingSettings } from '../../telemetry/streaming/streaming.ts';
import { readAuthorities } from '../authorities.ts';
import { type Cli, type CliOf, given } from '../command.ts';
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
import { isNoDirectory, isWithin } from '../files.ts';
import type { appliance, serving } from '../grammar/appliance.ts';
import type { Values } from '../grammar/declaration.ts';
import { pathFrom, say } from '../io.ts';
import { serverKeySources } from '../master-key.ts';
import { printThing, showOnce } from '../output.ts';
import { askLine, readSecretBytes, readSecretFile } from '../secrets.ts';
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
      `the appliance in ${data} was made, and its recovery kit is lost`,
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

/** Before anything is made. */
async function namedHosts(cli: Cli, hosts: readonly string[]): Promise<readonly string[]> {
  if (hosts.length === 0) return hosts;
  const { hostList } = await import('../../storage/served-tenants.ts');
  try {
    return hostList(hosts);
  } catch (error) {
    throw error instanceof KmsError ? cli.wrong(error.message.replace(/^hosts:/, '--host:')) : error;
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
  const question = 'Make a recovery kit, a sheet that opens everything with a backup alone? [y/N] ';
  const answer = await askLine({ input: stdin, output: stderr, terminal: false }, question, signal);
  return /^y(es)?$/i.test(answer.trim());
}

async function sayNext(cli: Cli): Promise<void> {
  if (!cli.json)
    await say(cli.io, 'next: `kms serve`, then `kms user set-up-link` for the console, and `kms keyring create NAME`');
}

export async function serve(cli: CliOf<typeof appliance.serve>): Promise<void> {
  refuseRemote(cli, 'an appliance is served where it is');
  refuseShared(cli);
  const { signal } = cli.io;
  const hosts = await namedHosts(cli, cli.get('--host'));
  const options = given({
    ...(await serveOptions(cli)),
    store: sharedStore(cli),
    transitListen: cli.get('--transit-listen'),
    hosts: hosts.length > 0 ? hosts : undefined,
    acceptOlder: cli.get('--accept-older'),
    takeBack: cli.get('--take-back'),
  });
  const { serve } = await import('../../server/serve.ts');
  let isNew = false;
  const serving = await serve({
    ...options,
    sources: await serverKeySources(cli),
    stopping: signal,
    onInitialised: async (made) => {
      isNew = true;
      await printFirstKey(cli, made);
    },
  });
  try {
    // On a terminal without TLS a hang-up is the terminal's end.
    if (options.tlsCert !== undefined || !cli.io.stdin.isTTY) cli.io.onHangup?.(() => void serving.reloadTls());
    const { address, url } = serving;
    await say(cli.io, `listening on ${address}${url === address ? '' : ` (clients use ${visible(url)})`}`);
    if (serving.transitAddress) await say(cli.io, `Vault transit: listening on ${serving.transitAddress}`);
    if (serving.tangAddress) await say(cli.io, `Tang: listening on ${serving.tangAddress}`);
    if (serving.sealed) await say(cli.io, `${visible(serving.sealed.message)}; open it with \`kms unseal\``);
    if (serving.held) await say(cli.io, visible(serving.held.message));
    if (!isNew && cli.isTyped('--host'))
      await say(cli.io, '--host is for a new appliance, and this one is none: see `kms tenant update --help`');
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
}

/** Port 0 picks another each time. */
function refuseShared(cli: CliOf<typeof appliance.serve>): void {
  const taken = new Map<string, string>();
  for (const option of ['--listen', '--transit-listen', '--tang-listen'] as const) {
    const address = cli.get(option);
    if (address === undefined || address.endsWith(':0')) continue;
    const other = taken.get(address);
    if (other !== undefined) throw cli.wrong(`${other} and ${option} have the same address, ${address}`);
    taken.set(address, option);
  }
}

/** What a standby that takes over needs as well. */
export async function serveOptions(cli: Cli<Values<typeof serving>>) {
  const tangAllow = cli.get('--tang-allow');
  if (cli.get('--tang-listen') === undefined) cli.refuseWithout('--tang-listen', ['--tang-allow']);
  return given({
    data: await dataDirectory(cli),
    keyFile: cli.globals.get('--key-file'),
    listen: cli.get('--listen'),
    url: cli.get('--url'),
    tlsCert: cli.get('--tls-cert'),
    tlsKey: cli.get('--tls-key'),
    behindProxy: cli.get('--behind-proxy'),
    tangListen: cli.get('--tang-listen'),
    tangAllow: tangAllow.length > 0 ? tangAllow : undefined,
    bodyLimit: cli.get('--body-limit'),
    crypto: cli.get('--crypto'),
    defaultKem: cli.get('--default-kem'),
    logLevel: cli.get('--log-level'),
    people: await peopleSettings(cli),
    copies: await copySettings(cli),
    streaming: await streamingSettings(cli),
    retention: retentionSettings(cli),
    metrics: { rings: cli.get('--metrics-rings') },
  });
}

/** The link goes where the root API key went; into the log of each later start goes only how to get one. */
async function sayHowToSetUp(cli: Cli, url: string | undefined, isNew: boolean): Promise<void> {
  if (url === undefined) return;
  const text = isNew
    ? `to make your user, open this link in a browser; it works until there is one:\n${url}`
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
  /** Of the master key. */
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
    `the appliance in ${data} was made, and ${isHeld ? 'its root API key is' : 'what opens it is'} lost`,
    isHeld
      ? `revoke it and make another: kms --data ${data} apikey revoke ${apiKey.keyid}`
      : `remove ${data} and make it again`,
  );
  await say(cli.io, 'the root API key is shown this once and may do everything: keep it safe');
  await sayHowToKeep(cli, made);
  if (inFile) {
    await say(cli.io, `without ${keyFile} nobody can open the data again: keep a copy of it, apart from the data`);
  } else await say(cli.io, 'without what keeps the master key nobody can open the data again');
  await say(
    cli.io,
    `this is the appliance ${applianceId}, with the master key ${fingerprint}: copies of it say the same`,
  );
}

async function copySettings(cli: Cli<Values<typeof serving>>): Promise<CopySettings> {
  return { scheduled: await scheduled(cli), shipping: await shipping(cli) };
}

async function scheduled(cli: Cli<Values<typeof serving>>): Promise<CopySettings['scheduled']> {
  const to = cli.get('--backup-to');
  if (to === undefined) {
    cli.refuseWithout('--backup-to', ['--backup-schedule', '--backup-keep']);
    return undefined;
  }
  await checkDirectory(cli, '--backup-to', to);
  const { checkPlace, checkSchedule, defaultKeep, defaultSchedule } = await import('../../backup/keeper.ts');
  const schedule = cli.get('--backup-schedule') ?? defaultSchedule;
  checkSchedule(schedule);
  const keep = cli.get('--backup-keep') ?? defaultKeep;
  await checkPlace(to, await dataDirectory(cli));
  return { to, schedule, keep };
}

async function shipping(cli: Cli<Values<typeof serving>>): Promise<CopySettings['shipping']> {
  const to = cli.get('--ship-to');
  if (to === undefined) {
    cli.refuseWithout('--ship-to', ['--ship-every', '--ship-window']);
    return undefined;
  }
  if (sharedStore(cli)) {
    throw new KmsError('usage', '--ship-to is for a data directory: with --store the database replicates', {
      hint: 'set up replication of the database, and make backups with --backup-to',
    });
  }
  await checkDirectory(cli, '--ship-to', to);
  const { defaultShipEvery, defaultShipWindow } = await import('../../backup/ship.ts');
  return {
    to,
    every: cli.get('--ship-every') ?? defaultShipEvery,
    window: cli.get('--ship-window') ?? defaultShipWindow,
  };
}

/** The server's output goes to a directory that is apart from the data directory: neither lies in the other. */
async function checkDirectory(cli: Cli, option: string, path: string): Promise<void> {
  const data = await dataDirectory(cli);
  if (await isWithin(path, data)) throw cli.wrong(`${option}: the data directory is for the appliance alone`);
  if (await isWithin(data, path)) throw cli.wrong(`${option}: ${path} holds the data directory: name another one`);
  if (await isNoDirectory(path)) throw cli.wrong(`${option}: expected a directory, and ${path} is none`);
}

const shortestRetention = 24 * 60 * 60 * 1000;

function retentionSettings(cli: Cli<Values<typeof serving>>): RetentionSettings | undefined {
  const keep = cli.get('--activity-retention');
  if (keep === undefined) return undefined;
  if (keep < shortestRetention) throw cli.wrong('--activity-retention: expected at least 1d');
  return { keep };
}

async function streamingSettings(cli: Cli<Values<typeof serving>>): Promise<StreamingSettings | undefined> {
  const to = cli.get('--activity-to');
  if (to.length === 0) {
    cli.refuseWithout('--activity-to', ['--activity-from', '--activity-ca-file', '--activity-webhook-secret-file']);
    return undefined;
  }
  const { parseTarget, parseWebhookSecrets } = await import('../../telemetry/streaming/target.ts');
  const targets = to.map((text) => parseTarget(text, (path) => pathFrom(cli.io, path)));
  const names = targets.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw cli.wrong(`--activity-to: ${twice} is given twice`);
  for (const target of targets) {
    if (target.kind === 'directory') await checkDirectory(cli, '--activity-to', target.path);
  }
  const ca = cli.get('--activity-ca-file');
  const secret = cli.get('--activity-webhook-secret-file');
  if (secret === undefined && targets.some(({ kind }) => kind === 'webhook')) {
    throw cli.wrong('--activity-webhook-secret-file is missing: what the webhook is signed with');
  }
  return {
    targets,
    from: cli.get('--activity-from'),
    ca: ca === undefined ? undefined : await readAuthorities(cli.io, ca),
    secrets:
      secret === undefined
        ? undefined
        : parseWebhookSecrets(await readSecretBytes(secret, 'the webhook secret'), secret),
  };
}

async function peopleSettings(cli: Cli<Values<typeof serving>>): Promise<PeopleSettings> {
  const lifetimes = given({
    access: cli.get('--access-ttl'),
    session: cli.get('--session-max'),
    invite: cli.get('--invite-ttl'),
    reset: cli.get('--reset-ttl'),
  });
  const mail = await mailSettings(cli);
  return { lifetimes, ...(mail && { mail }) };
}

async function mailSettings(cli: Cli<Values<typeof serving>>): Promise<PeopleSettings['mail']> {
  const url = await smtpUrl(cli);
  const from = cli.get('--smtp-from');
  const caFile = cli.get('--smtp-ca');
  if (url === undefined) {
    cli.refuseWithout('--smtp-url', ['--smtp-from', '--smtp-ca']);
    return undefined;
  }
  if (from === undefined) throw cli.wrong('--smtp-from is missing: the address that mail comes from');
  if (!/^[^\s@<>]+@[^\s@<>]+$/.test(from))
    throw cli.wrong('--smtp-from: expected one address, such as kms@example.org');
  const { parseSmtpUrl } = await import('../../appliance/mail.ts');
  try {
    const settings = parseSmtpUrl(url, from);
    return caFile === undefined ? settings : { ...settings, ca: await readAuthorities(cli.io, caFile) };
  } catch (error) {
    // Its message repeats nothing of the address, which may hold a password.
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    throw new KmsError('usage', `--smtp-url: ${error.message}`, { hint: error.hint ?? cli.seeHelp });
  }
}

/** From the file, else from the option or its variable. A password on the command line would be seen by other users. */
async function smtpUrl(cli: Cli<Values<typeof serving>>): Promise<string | undefined> {
  const file = cli.get('--smtp-url-file');
  if (cli.isTyped('--smtp-url') && cli.isTyped('--smtp-url-file')) {
    throw cli.wrong('--smtp-url and --smtp-url-file exclude each other');
  }
  if (file !== undefined) return readSecretFile(file, 'the SMTP address');
  const url = cli.get('--smtp-url');
  if (url !== undefined && cli.isTyped('--smtp-url') && URL.canParse(url) && new URL(url).password !== '') {
    throw cli.wrong('--smtp-url: a password has no place on the command line; use KMS_SMTP_URL or --smtp-url-file');
  }
  return url === undefined ? undefined : secretOf(url, '--smtp-url');
}
