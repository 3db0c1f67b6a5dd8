// Reads the configuration of a server from flags, environment and file, as `grammar/serving.ts` declares it, and checks
// it. Compares configurations to tell which changes need a restart.

import { isDeepStrictEqual } from 'node:util';
import type { PeopleSettings } from '../appliance/mail.ts';
import type { CopySettings } from '../backup/service.ts';
import { KmsError } from '../errors.ts';
import { mostWorkload } from '../model/ages.ts';
import { secretOf } from '../model/secret-text.ts';
import type { ServeConfig } from '../server/config.ts';
import type { RetentionSettings } from '../telemetry/retention.ts';
import type { StreamingSettings } from '../telemetry/streaming/streaming.ts';
import { readAuthorities } from './authorities.ts';
import { type Cli, type CliOf, given } from './command.ts';
import { isNoDirectory, isWithin } from './files.ts';
import type { appliance } from './grammar/appliance.ts';
import { type Kinds, settingName, type Values } from './grammar/declaration.ts';
import { globals } from './grammar/option-sets.ts';
import { serve, serving, settings } from './grammar/serving.ts';
import { pathFrom } from './io.ts';
import { readSecretBytes, readSecretFile } from './secrets.ts';
import { dataDirectory, sharedStore } from './target.ts';

type ServingCli = Cli<Values<typeof serving>>;
type ServeCli = CliOf<typeof appliance.serve>;

/** The command with the options of the file that --config names, each of them checked. */
export async function withConfigFile(cli: ServeCli): Promise<ServeCli> {
  const path = cli.get('--config');
  if (path === undefined) return cli;
  const { readConfigFile } = await import('./config-file.ts');
  const configured = cli.withFile(await readConfigFile(path, cli.seeHelp));
  try {
    configured.checkTyped();
    configured.globals.checkTyped();
  } catch (error) {
    throw configured.inFile(error);
  }
  return configured;
}

/** Reads and checks the whole configuration of `kms serve`. */
export async function serveConfig(cli: ServeCli): Promise<ServeConfig> {
  refuseShared(cli);
  const { host, vaultListen, awsListen, awsRegion, acceptOlder, takeBack, ...rest } = valuesOf(cli, serve);
  const { kmipListen, kmipTlsCert, kmipTlsKey, kmipOldCiphers } = rest;
  if (awsListen === undefined) cli.refuseWithout('--aws-listen', ['--aws-region']);
  if (awsRegion !== undefined && !/^[a-z0-9-]{1,32}$/.test(awsRegion)) {
    throw cli.wrong('--aws-region: expected a region such as us-east-1');
  }
  const ofKmip = ['--kmip-tls-cert', '--kmip-tls-key', '--kmip-old-ciphers'] as const;
  if (kmipListen === undefined) cli.refuseWithout('--kmip-listen', ofKmip);
  const hosts = await namedHosts(cli, host);
  return given({
    ...(await standbyConfig(cli)),
    ...{ vaultListen, awsListen, awsRegion, acceptOlder, takeBack },
    ...{ kmipListen, kmipTlsCert, kmipTlsKey, kmipOldCiphers },
    store: sharedStore(cli),
    hosts: hosts.length > 0 ? hosts : undefined,
  });
}

/** Reads and checks the part that a standby has in common with it. */
export async function standbyConfig(cli: ServingCli): Promise<ServeConfig> {
  const { tangAllow, metricsRings, label, labelColour, ...values } = valuesOf(cli, serving);
  if (label === undefined) cli.refuseWithout('--label', ['--label-colour']);
  if (values.tangListen === undefined) cli.refuseWithout('--tang-listen', ['--tang-allow']);
  return given({
    ...values,
    data: await dataDirectory(cli),
    keyFile: cli.globals.get('--key-file'),
    tangAllow: tangAllow.length > 0 ? tangAllow : undefined,
    people: await peopleSettings(cli),
    copies: await copySettings(cli),
    streaming: await streamingSettings(cli),
    retention: retentionSettings(cli),
    metrics: { rings: metricsRings },
    label: label === undefined ? undefined : { text: label, ...(labelColour && { colour: labelColour }) },
  });
}

type CamelCase<S extends string> = S extends `${infer A}-${infer B}` ? `${A}${Capitalize<CamelCase<B>>}` : S;

type BySettingName<V> = { readonly [N in keyof V as N extends `--${infer S}` ? CamelCase<S> : never]: V[N] };

function valuesOf<V>(cli: Cli<NoInfer<V>>, kinds: Kinds<V>): BySettingName<V> {
  const values: Record<string, unknown> = {};
  for (const option in kinds) values[settingName(option)] = cli.get(option);
  // Cast: `settingName` renames options as the type does.
  return values as BySettingName<V>;
}

/** Names of changed settings: those that a running server takes, and those that need a restart. */
interface Changes {
  readonly live: readonly string[];
  readonly restart: readonly string[];
}

/** Compares live settings with `last`, read before, and all others with `first`, which the server started with. */
export function changesBetween(first: ServeCli, last: ServeCli, next: ServeCli): Changes {
  const live: string[] = [];
  const restart: string[] = [];
  for (const [name, { option, kind }] of settings) {
    const [begun, before, value] = [first, last, next].map((cli) => settingOf(cli, option));
    const isReplaced = begun !== undefined && value !== undefined;
    const isLive = kind.isLive === true || (kind.isLive === 'replaced' && isReplaced);
    if (!isDeepStrictEqual(isLive ? before : begun, value)) (isLive ? live : restart).push(name);
  }
  return { live, restart };
}

function settingOf(cli: ServeCli, option: string): unknown {
  if (isIn(serve, option)) return cli.get(option);
  return isIn(globals, option) ? cli.globals.get(option) : undefined;
}

function isIn<K extends object>(kinds: K, option: string): option is keyof K & string {
  return option in kinds;
}

/** Checks host names before anything is made. */
export async function namedHosts(cli: Cli, hosts: readonly string[]): Promise<readonly string[]> {
  if (hosts.length === 0) return hosts;
  const { hostList } = await import('../storage/served-tenants.ts');
  try {
    return hostList(hosts);
  } catch (error) {
    throw error instanceof KmsError ? cli.wrong(error.message.replace(/^hosts:/, '--host:')) : error;
  }
}

/** Port 0 is exempt: it picks a different port each time. */
function refuseShared(cli: ServeCli): void {
  const taken = new Map<string, string>();
  for (const option of ['--listen', '--vault-listen', '--aws-listen', '--kmip-listen', '--tang-listen'] as const) {
    const address = cli.get(option);
    if (address === undefined || address.endsWith(':0')) continue;
    const other = taken.get(address);
    if (other !== undefined) throw cli.wrong(`${other} and ${option} have the same address, ${address}`);
    taken.set(address, option);
  }
}

async function copySettings(cli: ServingCli): Promise<CopySettings> {
  return { scheduled: await scheduled(cli), shipping: await shipping(cli) };
}

async function scheduled(cli: ServingCli): Promise<CopySettings['scheduled']> {
  const to = cli.get('--backup-to');
  if (to === undefined) {
    cli.refuseWithout('--backup-to', ['--backup-schedule', '--backup-keep']);
    return undefined;
  }
  await checkDirectory(cli, '--backup-to', to);
  const { checkPlace, checkSchedule } = await import('../backup/keeper.ts');
  const schedule = cli.get('--backup-schedule');
  checkSchedule(schedule);
  await checkPlace(to, await dataDirectory(cli));
  return { to, schedule, keep: cli.get('--backup-keep') };
}

async function shipping(cli: ServingCli): Promise<CopySettings['shipping']> {
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
  return { to, every: cli.get('--ship-every'), window: cli.get('--ship-window') };
}

/** The server's output goes to a directory that is apart from the data directory: neither lies in the other. */
async function checkDirectory(cli: Cli, option: string, path: string): Promise<void> {
  const data = await dataDirectory(cli);
  if (await isWithin(path, data)) throw cli.wrong(`${option}: the data directory is for the appliance alone`);
  if (await isWithin(data, path)) throw cli.wrong(`${option}: ${path} holds the data directory: name another one`);
  if (await isNoDirectory(path)) throw cli.wrong(`${option}: expected a directory, but ${path} is not one`);
}

const shortestRetention = 24 * 60 * 60 * 1000;

function retentionSettings(cli: ServingCli): RetentionSettings | undefined {
  const keep = cli.get('--activity-retention');
  if (keep === undefined) return undefined;
  if (keep < shortestRetention) throw cli.wrong('--activity-retention: expected at least 1d');
  return { keep };
}

async function streamingSettings(cli: ServingCli): Promise<StreamingSettings | undefined> {
  const to = cli.get('--activity-to');
  if (to.length === 0) {
    cli.refuseWithout('--activity-to', ['--activity-from']);
    if (cli.get('--notify-to') === undefined) {
      cli.refuseWithout('--activity-to', ['--activity-ca-file', '--activity-webhook-secret-file']);
    }
    return undefined;
  }
  const { parseTarget, parseWebhookSecrets } = await import('../telemetry/streaming/target.ts');
  const targets = to.map((text) => parseTarget(text, (path) => pathFrom(cli.base('--activity-to'), path)));
  const names = targets.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw cli.wrong(`--activity-to: ${twice} is given twice`);
  for (const target of targets) {
    if (target.kind === 'directory') await checkDirectory(cli, '--activity-to', target.path);
  }
  const ca = cli.get('--activity-ca-file');
  const secret = cli.get('--activity-webhook-secret-file');
  if (secret === undefined && targets.some(({ kind }) => kind === 'webhook')) {
    throw cli.wrong('--activity-webhook-secret-file is missing: the secret that signs the webhook');
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

async function peopleSettings(cli: ServingCli): Promise<PeopleSettings> {
  const lifetimes = {
    access: cli.get('--access-ttl'),
    session: cli.get('--session-max'),
    invite: cli.get('--invite-ttl'),
    reset: cli.get('--reset-ttl'),
    workload: cli.get('--workload-ttl'),
  };
  if ((lifetimes.workload ?? 0) > mostWorkload) throw new KmsError('usage', '--workload-ttl: expected at most 1h');
  const mail = await mailSettings(cli);
  const notify = await notifySettings(cli);
  return { lifetimes, ...(mail && { mail }), ...(notify && { notify }) };
}

/** The webhook that tells approvers, with the secrets and authorities of those of the activity. */
async function notifySettings(cli: ServingCli): Promise<PeopleSettings['notify']> {
  const to = cli.get('--notify-to');
  if (to === undefined) return undefined;
  const { parseTarget, parseWebhookSecrets } = await import('../telemetry/streaming/target.ts');
  if (!/^https?:/.test(to)) throw cli.wrong('--notify-to: expected https://host/path');
  const target = parseTarget(to, (path) => path);
  if (target.kind !== 'webhook') throw cli.wrong('--notify-to: expected https://host/path');
  const secret = cli.get('--activity-webhook-secret-file');
  if (secret === undefined)
    throw cli.wrong('--activity-webhook-secret-file is missing: the secret that signs the webhook');
  const ca = cli.get('--activity-ca-file');
  return {
    url: target.url,
    secrets: parseWebhookSecrets(await readSecretBytes(secret, 'the webhook secret'), secret),
    ca: ca === undefined ? undefined : await readAuthorities(cli.io, ca),
  };
}

async function mailSettings(cli: ServingCli): Promise<PeopleSettings['mail']> {
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
  const { parseSmtpUrl } = await import('../appliance/mail.ts');
  try {
    const settings = parseSmtpUrl(url, from);
    return caFile === undefined ? settings : { ...settings, ca: await readAuthorities(cli.io, caFile) };
  } catch (error) {
    // Its message repeats nothing of the address, which may hold a password.
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    throw new KmsError('usage', `--smtp-url: ${error.message}`, { hint: error.hint ?? cli.seeHelp });
  }
}

/** The address that wins. If both options come from the environment, that is the file. */
async function smtpUrl(cli: ServingCli): Promise<string | undefined> {
  const [url, file] = [cli.get('--smtp-url'), cli.get('--smtp-url-file')];
  const rank = cli.outranks('--smtp-url', '--smtp-url-file');
  if (rank === 0 && cli.isChosen('--smtp-url')) throw cli.wrong('--smtp-url and --smtp-url-file exclude each other');
  if (file !== undefined && rank <= 0) return readSecretFile(file, 'the SMTP address');
  if (url === undefined) return undefined;
  // Other users of the machine see what is typed.
  if (cli.isTyped('--smtp-url') && URL.canParse(url) && new URL(url).password !== '') {
    throw cli.wrong('--smtp-url: a password has no place on the command line; use KMS_SMTP_URL or --smtp-url-file');
  }
  return secretOf(url, '--smtp-url');
}
