// The appliance that a command is for: one at an address, or the one of this machine. What is typed comes before the
// environment, and that before the default profile; a data directory that nobody named comes last, since whoever made
// what one stands in made it, too. --server comes before a profile.
import { lstat, stat } from 'node:fs/promises';
import { KmsError } from '../errors.ts';
import { isLoopbackHost } from '../model/hosts.ts';
import type { StoreSource } from '../platform/store-url.ts';
import { readAuthorities } from './authorities.ts';
import type { Cli } from './command.ts';
import { type Io, pathFrom, say } from './io.ts';
import { defaultProfile, type Profile, profileNames, readProfile } from './profiles.ts';
import { readApiKey } from './secrets.ts';

/** An appliance over the network, and what to come to it with. */
export interface Remote {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  readonly authorities?: Authorities;
  /** The name of the profile that it comes from. */
  readonly profile?: string;
}

/** By whom a server is trusted. */
export interface Authorities {
  readonly pem: string;
  /** The file, or the profile, that they come from. */
  readonly from: string;
}

/** Undefined where the command is for the appliance of this machine. */
export async function remoteOf(cli: Cli): Promise<Remote | undefined> {
  const chosen = await chosenRemote(cli);
  if (chosen?.server !== undefined) return serverNamed(cli, chosen.server);
  return chosen && profileNamed(cli, chosen.profile);
}

/** What people are told of where a command goes: an address, and the profile that it is from. */
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

/** What somebody chose, for this command or in the environment; the default profile is no choice. */
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

/** Where a command goes, in words by which it is found again from any directory of this machine. */
export async function placeOf(cli: Cli): Promise<{ kind: 'server' | 'profile' | 'data'; name: string }> {
  const chosen = await chosenRemote(cli);
  if (chosen === undefined) return { kind: 'data', name: await dataDirectory(cli) };
  if (chosen.server === undefined) return { kind: 'profile', name: chosen.profile };
  return { kind: 'server', name: addressOf(chosen.server) };
}

/**
 * The options that lead to an address with a credential which this user has for it: by the server that is named, else
 * by a profile, the named one first. An address that somebody else chose never gets a credential that is for another.
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
      hint: `keep one with \`kms profile add NAME --server ${address}\`, or set KMS_SERVER to it and KMS_API_KEY`,
    })
  );
}

/** An address in the one form of several that it has. Throws `usage` for what is none. */
export function addressOf(server: string): string {
  return serverUrl(server).href.replace(/\/+$/, '');
}

/** For commands that make or examine the whole of an appliance, on its machine. */
export function refuseRemote(cli: Cli, why: string): void {
  const whys = { '--server': why, '--profile': why, '--tenant': 'this is about the whole appliance' };
  for (const option of ['--server', '--profile', '--tenant'] as const) {
    if (cli.globals.isTyped(option)) throw cli.wrong(`${option}: ${whys[option]}`);
  }
}

/** The database of an appliance that several nodes share, of which this machine is one; undefined where it is not. */
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

/** The data directory that somebody named, with --data or KMS_DATA. */
export function namedDirectory(cli: Cli): string | undefined {
  return cli.globals.get('--data');
}

/**
 * The data directory of the command: the one that was named, else `./kms-data`, be it there or not. Throws `refused`
 * for one that is merely there and belongs to somebody else, or while a default profile says where commands go.
 */
export async function dataDirectory(cli: Cli): Promise<string> {
  const named = namedDirectory(cli);
  if (named !== undefined) return named;
  const found = pathFrom(cli.io, 'kms-data');
  if (!(await isThere(found))) return found;
  if (!(await isOwn(found))) throw notNamed(found, 'belongs to another user');
  if (sharedStore(cli) !== undefined) return found;
  const profile = await defaultProfile(cli.io);
  if (profile !== undefined) throw notNamed(found, `is there, and commands go to the profile ${profile} by default`);
  return found;
}

/** For what a data directory may not order unless somebody means it. Throws `refused`; `what` says what that is. */
export function needNamedDirectory(cli: Cli, what: string): void {
  if (namedDirectory(cli) !== undefined) return;
  throw notNamed(pathFrom(cli.io, 'kms-data'), what);
}

function notNamed(path: string, what: string): KmsError {
  return new KmsError('refused', `${path} ${what}, and nobody named it`, {
    hint: `if it is what you mean, name it: --data ${path}`,
  });
}

/** A link to it must be one's own, too. */
async function isOwn(path: string): Promise<boolean> {
  const { userId } = await import('../platform/environment.ts');
  const me = userId();
  const owners = await Promise.all(
    [lstat(path), stat(path)].map((info) =>
      info.then(
        ({ uid }) => uid,
        () => me,
      ),
    ),
  );
  return owners.every((uid) => uid === me);
}

async function serverNamed(cli: Cli, server: string): Promise<Remote> {
  return remote(serverUrl(server), await readApiKey(cli), await typedAuthorities(cli));
}

/** A credential in the environment comes before the profile's own, unless the profile was typed. */
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
  return { ...remote(url, apiKey, authorities), profile: name };
}

function ownOf(name: string, { apiKey, ca }: Profile): { apiKey?: string; authorities?: Authorities } {
  return {
    ...(apiKey !== undefined && { apiKey }),
    ...(ca !== undefined && { authorities: { pem: ca, from: `the profile ${name}` } }),
  };
}

function remote(url: URL, apiKey: string | undefined, authorities: Authorities | undefined): Remote {
  return {
    baseUrl: addressOf(url.href),
    ...(apiKey !== undefined && { apiKey }),
    ...(authorities !== undefined && { authorities }),
  };
}

async function typedAuthorities(cli: Cli): Promise<Authorities | undefined> {
  const file = cli.globals.get('--ca-file');
  return file === undefined ? undefined : { pem: await readAuthorities(cli.io, file), from: file };
}

/** Whatever is in the way of looking is for whoever opens it to say. */
async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
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

/** Whether a secret would go over the network for everyone to read. */
export function isOpenToOthers({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !isLoopbackHost(hostname) && !hostname.endsWith('.localhost');
}
