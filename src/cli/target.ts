// The appliance that a command is for: a remote address, or this machine. The command line comes before the
// environment, which comes before the default profile; an unnamed data directory comes last, since the owner of the
// current directory may have made it. --server comes before a profile.
import { lstat, stat } from 'node:fs/promises';
import { KmsError } from '../errors.ts';
import { isLoopbackHost } from '../model/hosts.ts';
import type { StoreSource } from '../platform/store-url.ts';
import { readAuthorities } from './authorities.ts';
import { type ClientCertificate, namedCertificate, readClientCertificate } from './client-certificate.ts';
import type { Cli } from './command.ts';
import { type Io, pathFrom, say } from './io.ts';
import { defaultProfile, type Profile, profileNames, readProfile } from './profiles.ts';
import { readApiKey } from './secrets.ts';

/** A remote appliance with credential and trust settings. */
export interface Remote {
  /** Address without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly authorities?: Authorities;
  /** Shown in connections with TLS. */
  readonly certificate?: ClientCertificate;
  /** Name of the profile it comes from. */
  readonly profile?: string;
}

/** Authorities that a server's certificate is checked against. */
export interface Authorities {
  readonly pem: string;
  /** Name of their file or profile. */
  readonly from: string;
}

/** Undefined if the command is for the appliance of this machine. */
export async function remoteOf(cli: Cli): Promise<Remote | undefined> {
  const chosen = await chosenRemote(cli);
  if (chosen?.server !== undefined) return serverNamed(cli, chosen.server);
  return chosen && profileNamed(cli, chosen.profile);
}

/** The target as shown to people: its address, and the profile that the address is from. */
export async function remoteAddress(cli: Cli): Promise<string | undefined> {
  const chosen = await chosenRemote(cli);
  if (chosen === undefined || chosen.server !== undefined) return chosen?.server;
  return `${(await readProfile(cli.io, chosen.profile)).server} (profile ${chosen.profile})`;
}

type Chosen =
  | { readonly server: string; readonly profile?: never }
  | { readonly server?: never; readonly profile: string };

async function chosenRemote(cli: Cli): Promise<Chosen | undefined> {
  const named = namedRemote(cli);
  const isHere = cli.globals.isTyped('--data') || sharedStore(cli) !== undefined;
  const data = namedDirectory(cli);
  if (named !== undefined || isHere || (data !== undefined && (await isThere(data)))) return named;
  const profile = await defaultProfile(cli.io);
  return profile === undefined ? undefined : { profile };
}

/** The explicit choice, on the command line or in the environment; the default profile is none. */
export function namedRemote(cli: Cli): Chosen | undefined {
  const server = cli.globals.get('--server');
  const profile = cli.globals.get('--profile');
  if (cli.globals.isTyped('--server') && cli.globals.isTyped('--profile')) {
    throw cli.wrong('--server and --profile exclude each other');
  }
  const isHere = cli.globals.isTyped('--data') || cli.globals.isTyped('--store');
  if (isHere && !cli.globals.isTyped('--server') && !cli.globals.isTyped('--profile')) return undefined;
  if (server !== undefined && !cli.globals.isTyped('--profile')) return { server };
  return profile === undefined ? undefined : { profile };
}

/** The target in terms that work from any directory of this machine. */
export async function placeOf(cli: Cli): Promise<{ kind: 'server' | 'profile' | 'data'; name: string }> {
  const chosen = await chosenRemote(cli);
  if (chosen === undefined) return { kind: 'data', name: await dataDirectory(cli) };
  if (chosen.server === undefined) return { kind: 'profile', name: chosen.profile };
  return { kind: 'server', name: addressOf(chosen.server) };
}

/**
 * Options that lead to an address with this user's credential for it: by the named server, else by a profile, the named
 * one first. An address chosen by somebody else never gets a credential that is for another.
 */
export async function optionsFor(
  io: Io,
  address: string,
  { server, profile }: { readonly server: string | undefined; readonly profile: string | undefined },
): Promise<ReadonlyMap<string, string>> {
  if (server !== undefined && addressOf(server) === address) return new Map([['--server', address]]);
  const first = profile ?? (await defaultProfile(io));
  let problem: unknown;
  for (const name of [...(first === undefined ? [] : [first]), ...(await profileNames(io))]) {
    try {
      if (addressOf((await readProfile(io, name)).server) === address) return new Map([['--profile', name]]);
    } catch (error) {
      problem ??= error;
    }
  }
  throw (
    problem ??
    new KmsError('unauthenticated', `there is no credential here for ${address}`, {
      hint: `save one with \`kms profile add NAME --server ${address}\`, or set KMS_SERVER to it and KMS_API_KEY`,
    })
  );
}

/** Canonical form of an address. Throws `usage` if it is malformed. */
export function addressOf(server: string): string {
  return serverUrl(server).href.replace(/\/+$/, '');
}

/** For commands that create or examine a whole appliance, on its machine. */
export function refuseRemote(cli: Cli, why: string): void {
  const whys = { '--server': why, '--profile': why, '--tenant': 'this is about the whole appliance' };
  for (const option of ['--server', '--profile', '--tenant'] as const) {
    if (cli.globals.isTyped(option)) throw cli.wrong(`${option}: ${whys[option]}`);
  }
}

/** The database of an appliance with several nodes, one of them this machine; undefined otherwise. */
export function sharedStore(cli: Cli): StoreSource | undefined {
  const { globals } = cli;
  const url = globals.get('--store');
  if (url !== undefined) return storeAt(cli, url, globals.isTyped('--store'));
  if (globals.isChosen('--store-password-file')) throw cli.wrong('--store-password-file goes with --store');
  return undefined;
}

export function storeAt(cli: Cli, url: string, isListed: boolean): StoreSource {
  const passwordFile = cli.globals.get('--store-password-file');
  const warn = (message: string): void => void say(cli.io, `warning: ${message}`);
  return { url, isListed, passwordFile, env: (name) => cli.io.env[name], warn };
}

/** The data directory named with --data or KMS_DATA. */
export function namedDirectory(cli: Cli): string | undefined {
  return cli.globals.get('--data');
}

/**
 * The command's data directory: the named one, else `./kms-data`, whether it exists or not. Throws `refused` for an
 * unnamed one that is a link or belongs to another user, or while a default profile says where commands go.
 */
export async function dataDirectory(cli: Cli): Promise<string> {
  const named = namedDirectory(cli);
  if (named !== undefined) return named;
  const found = pathFrom(cli.io, 'kms-data');
  if (!(await isThere(found, lstat))) return found;
  const info = await lstat(found).catch(() => undefined);
  // Its target would be chosen by the link's maker, and may be this user's own.
  if (info?.isSymbolicLink()) throw notNamed(found, 'is a symbolic link');
  const { userId } = await import('../platform/environment.ts');
  if (info && info.uid !== userId()) throw notNamed(found, 'belongs to another user');
  if (sharedStore(cli) !== undefined) return found;
  const profile = await defaultProfile(cli.io);
  if (profile !== undefined) throw notNamed(found, `is there, and commands go to the profile ${profile} by default`);
  return found;
}

/** Refuses a command for which the data directory must be named explicitly. Throws `refused`; `what` is the reason. */
export function needNamedDirectory(cli: Cli, what: string): void {
  if (namedDirectory(cli) !== undefined) return;
  throw notNamed(pathFrom(cli.io, 'kms-data'), what);
}

function notNamed(path: string, what: string): KmsError {
  return new KmsError('refused', `${path} ${what}, and it was not named`, {
    hint: `if it is what you mean, name it: --data ${path}`,
  });
}

async function serverNamed(cli: Cli, server: string): Promise<Remote> {
  const url = serverUrl(server);
  const files = namedCertificate(cli);
  needsTls(url, files);
  return remote(url, await readApiKey(cli), await typedAuthorities(cli), files && (await readClientCertificate(files)));
}

/** A credential in the environment overrides the profile's own, unless the profile was typed. */
async function profileNamed(cli: Cli, name: string): Promise<Remote> {
  const profile = await readProfile(cli.io, name);
  const url = serverUrl(profile.server);
  const isTyped = cli.globals.isTyped('--profile');
  const own = ownOf(name, profile);
  const apiKey =
    isTyped && !cli.globals.isTyped('--api-key-file') && own.apiKey !== undefined
      ? own.apiKey
      : ((await readApiKey(cli)) ?? own.apiKey);
  const authorities =
    isTyped && !cli.globals.isTyped('--ca-file') && own.authorities !== undefined
      ? own.authorities
      : ((await typedAuthorities(cli)) ?? own.authorities);
  const isOwn = isTyped && !cli.globals.isTyped('--client-cert') && profile.certificate !== undefined;
  const files = isOwn ? profile.certificate : (namedCertificate(cli) ?? profile.certificate);
  needsTls(url, files);
  return { ...remote(url, apiKey, authorities, files && (await readClientCertificate(files))), profile: name };
}

/** Throws `usage` if a client certificate could not be shown: a caller who names one means to be known by it. */
export function needsTls({ protocol, host }: URL, certificate: object | undefined): void {
  if (certificate === undefined || protocol === 'https:') return;
  throw new KmsError('usage', `--client-cert: ${host} is named with http, where no certificate can be shown`, {
    hint: 'use its https address',
  });
}

function ownOf(name: string, { apiKey, ca }: Profile): { apiKey?: string; authorities?: Authorities } {
  return {
    ...(apiKey !== undefined && { apiKey }),
    ...(ca !== undefined && { authorities: { pem: ca, from: `the profile ${name}` } }),
  };
}

function remote(
  url: URL,
  apiKey: string | undefined,
  authorities: Authorities | undefined,
  certificate: ClientCertificate | undefined,
): Remote {
  return {
    baseUrl: addressOf(url.href),
    ...(apiKey !== undefined && { apiKey }),
    ...(authorities !== undefined && { authorities }),
    ...(certificate !== undefined && { certificate }),
  };
}

async function typedAuthorities(cli: Cli): Promise<Authorities | undefined> {
  const file = cli.globals.get('--ca-file');
  return file === undefined ? undefined : { pem: await readAuthorities(cli.io, file), from: file };
}

/** Also true on errors other than a missing path: opening it will report them. `look`: whether a link is followed. */
async function isThere(path: string, look: (path: string) => Promise<unknown> = stat): Promise<boolean> {
  return look(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT' && error.code !== 'ENOTDIR',
  );
}

export function serverUrl(server: string): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new KmsError('usage', '--server: expected an address such as https://kms.example');
  }
  return url;
}

/** Whether a secret would cross the network unencrypted. */
export function isOpenToOthers({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !isLoopbackHost(hostname) && !hostname.endsWith('.localhost');
}
