// The address of a shared store, `postgres://user@host:port/db?…`, in the syntax of PostgreSQL's own programs as far as
// that is safe: a server on another machine must prove its identity by a certificate.
import { stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { createSecureContext, type SecureContext } from 'node:tls';
import { pemText } from '../crypto/pem.ts';
import { KmsError, systemError } from '../errors.ts';
import { isLoopbackHost } from '../model/hosts.ts';
import { secretLines, secretOf } from '../model/secret-text.ts';
import type { PostgresConfig, PostgresHost } from '../store/shared/postgres-connections.ts';
import { authoritiesIn, trustSystem } from './authorities.ts';
import { readFileWithin } from './node-files.ts';
import { refuseExposed, refusePipe } from './ownership.ts';

export interface StoreSource {
  readonly url: string;
  /** Whether the URL was a command-line argument, which every user of the machine can see in the process list. */
  readonly isListed: boolean;
  readonly passwordFile?: string | undefined;
  env(name: Asked): string | undefined;
  /** Gets warnings about unused contents of the files that the URL names. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** Environment variables of PostgreSQL's own programs. */
const variables = ['PGUSER', 'PGPASSWORD', 'PGPASSFILE'] as const;
type Asked = (typeof variables)[number];

/** A source as plain data, for a thread. */
export interface SourceData extends Omit<StoreSource, 'env' | 'warn'> {
  readonly env: readonly (readonly [name: Asked, value: string | undefined])[];
}

export function sourceData({ url, isListed, passwordFile, env }: StoreSource): SourceData {
  return { url, isListed, passwordFile, env: variables.map((name) => [name, env(name)]) };
}

export function sourceOf({ env, ...source }: SourceData): StoreSource {
  const known = new Map(env);
  return { ...source, env: (name) => known.get(name) };
}

const option = '--store';
const example =
  'such as postgres://kms@db.example.org/kms; one of : / ? # @ % in a name or a password is written as %XX';
/** Debian's socket directory, the default of its PostgreSQL programs. */
const usualSockets = '/var/run/postgresql';
const usualPort = 5432;

const parameters = ['host', 'port', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'target_session_attrs'] as const;
type Parameter = (typeof parameters)[number];

interface ParsedUrl {
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly database: string | undefined;
  readonly given: ReadonlyMap<Parameter, string>;
}

/** Throws `usage` for a malformed address, and for one that exposes its password. */
export function checkedUrl({ url, isListed }: Pick<StoreSource, 'url' | 'isListed'>): ParsedUrl {
  const parsed = parseUrl(url);
  if (parsed.password !== undefined && isListed) {
    throw new KmsError('usage', `${option}: there is a password in it, and every list of processes shows it`, {
      hint: 'take it out and change it; give it in PGPASSWORD, by --store-password-file FILE, or in KMS_STORE',
    });
  }
  return parsed;
}

/** Throws as `checkedUrl` does, and if a file that it names cannot be used. */
export async function postgresConfig(source: StoreSource): Promise<PostgresConfig> {
  const { passwordFile, env } = source;
  const { user, password, hosts, database, given } = checkedUrl(source);
  const places = placesOf(hosts, given.get('sslmode'));
  const who = user ?? env('PGUSER') ?? ownName();
  const name = database ?? who;
  const files = tlsFiles(given, source.warn);
  // Read now, so that a missing or exposed file is reported at once.
  if (places.some(({ tls }) => tls)) await files();
  const passwordOf = async (place: PostgresHost): Promise<string | undefined> => {
    if (passwordFile !== undefined) return readPassword(passwordFile);
    const passFile = env('PGPASSFILE');
    const known = env('PGPASSWORD');
    const given = known === undefined ? undefined : secretOf(known, 'PGPASSWORD');
    return password ?? given ?? (passFile ? findPassword(passFile, place, name, who) : undefined);
  };
  for (const place of places) await passwordOf(place);
  return { hosts: places, user: who, database: name, password: passwordOf, tls: files };
}

/** Throws `usage` if the system has no entry for the user, as in many containers. */
function ownName(): string {
  try {
    return userInfo().username;
  } catch {
    throw wrong('it names no user, and the current one has no name', 'write postgres://USER@HOST/…, or set PGUSER');
  }
}

/** For logs and messages: the address without password and TLS parameters. */
export function storeName(url: string): string {
  const { user, hosts, database } = parseUrl(url);
  const who = user === undefined ? '' : `${encodeURIComponent(user)}@`;
  const where = database === undefined ? '' : `/${encodeURIComponent(database)}`;
  if (hosts.some(({ host }) => host.startsWith('/'))) {
    const isUsual = hosts.every(({ port }) => port === usualPort);
    const ports = isUsual ? '' : `&port=${hosts.map(({ port }) => port).join(',')}`;
    return `postgres://${who}${where || '/'}?host=${hosts.map(({ host }) => host).join(',')}${ports}`;
  }
  const at = hosts.map(({ host, port }) => {
    const name = host.includes(':') ? `[${host}]` : host;
    return port === usualPort ? name : `${name}:${port}`;
  });
  return `postgres://${who}${at.join(',')}${where}`;
}

function parseUrl(url: string): ParsedUrl {
  const found = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/.exec(url);
  // The input is never repeated: parts of a wrongly escaped password may be anywhere in it.
  if (!found) throw wrong('expected an address of PostgreSQL', example);
  const [, who = '', authority = '', database = '', query = ''] = found;
  const [user = '', password] = splitOnce(who, ':').map(decoded);
  const given = new Map<Parameter, string>();
  let hidden = password;
  for (const part of query.split('&').filter((each) => each !== '')) {
    const [name = '', value = ''] = splitOnce(part, '=').map(decoded);
    if (name === 'password') {
      hidden = value;
      continue;
    }
    const parameter = parameters.find((each) => each === name);
    if (!parameter) throw wrong('it has an unknown parameter', `there are ${parameters.join(', ')}; ${example}`);
    if (given.has(parameter))
      throw wrong(`the parameter ${parameter} is given twice`, 'separate several hosts with commas');
    given.set(parameter, value);
  }
  const session = given.get('target_session_attrs');
  if (session !== undefined && session !== 'read-write' && session !== 'primary') {
    throw wrong('expected target_session_attrs=read-write', 'a store is always used where it takes writes');
  }
  return {
    user: user || undefined,
    password: hidden || undefined,
    hosts: hostsOf(authority, given),
    database: decoded(database) || undefined,
    given,
  };
}

function hostsOf(authority: string, given: ParsedUrl['given']): ParsedUrl['hosts'] {
  const named = given.get('host');
  if (authority !== '' && named !== undefined) throw wrong('hosts are named twice', 'name them in one place');
  if (authority === '') {
    const ports = given.get('port')?.split(',') ?? [];
    return (named ?? usualSockets).split(',').map((host, at, all) => {
      if (ports.length > 1 && ports.length !== all.length) throw wrong('hosts and ports differ in number', example);
      return { host: hostOf(host), port: portOf(ports.length > 1 ? ports[at] : ports[0]) };
    });
  }
  if (given.has('port')) throw wrong('the port is given apart from the hosts', 'write host:port');
  return authority.split(',').map((part) => {
    const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(part) ?? [];
    return { host: hostOf(decoded(host)), port: portOf(port) };
  });
}

function hostOf(text: string): string {
  const host = text.replace(/^\[(.*)\]$/, '$1');
  if (host.startsWith('/') || /^[A-Za-z0-9._:-]+$/.test(host)) return host;
  throw wrong('expected a host or the directory of a socket', example);
}

function portOf(text: string | undefined): number {
  if (text === undefined || text === '') return usualPort;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw wrong('expected a port from 1 to 65535', example);
}

/** Connections within this machine are in clear unless TLS is requested. */
function placesOf(hosts: ParsedUrl['hosts'], mode: string | undefined): readonly PostgresHost[] {
  if (mode !== undefined && mode !== 'verify-full' && mode !== 'disable') {
    throw new KmsError('refused', `${option}: with that sslmode anybody who answers would be taken for the database`, {
      hint: 'use sslmode=verify-full, which is the default for another machine; name its authority with sslrootcert=FILE',
    });
  }
  return hosts.map(({ host, port }) => {
    const isSocket = host.startsWith('/');
    if (mode === 'disable' && !isSocket && !isLoopbackHost(host)) {
      throw new KmsError('refused', `${option}: sslmode=disable would send everything to ${host} in clear`, {
        hint: 'use sslmode=verify-full, which is the default; only to this machine may it go in clear',
      });
    }
    return { host, port, tls: !isSocket && (mode === 'verify-full' || !isLoopbackHost(host)) };
  });
}

/** Reads the files at each call; a context costs some 20 ms, so it is reused while they are unchanged. */
function tlsFiles(
  given: ParsedUrl['given'],
  warn: StoreSource['warn'],
): () => Promise<{ readonly secureContext: SecureContext }> {
  const [rootFile, certFile, keyFile] = [given.get('sslrootcert'), given.get('sslcert'), given.get('sslkey')];
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw wrong('sslcert and sslkey belong together', 'give the other one too');
  }
  let known: { readonly texts: string; readonly secureContext: SecureContext } | undefined;
  return async () => {
    const isOwn = rootFile !== undefined && rootFile !== 'system';
    const ca = isOwn ? pemText(await readWhole(rootFile, 'certificates')) : undefined;
    const cert = certFile === undefined ? undefined : pemText(await readWhole(certFile, 'a certificate'));
    const remedy = 'get another certificate';
    const key = keyFile === undefined ? undefined : pemText(await readPrivate(keyFile, 'a private key', remedy));
    const texts = JSON.stringify([ca, cert, key]);
    if (known?.texts === texts) return known;
    try {
      if (ca === undefined) trustSystem();
      const authorities = ca === undefined ? {} : { ca: authoritiesIn(ca, rootFile ?? '', warn) };
      known = {
        texts,
        secureContext: createSecureContext({ ...authorities, minVersion: 'TLSv1.2', ...(cert && { cert, key }) }),
      };
    } catch (cause) {
      const message = `${option}: no certificates in PEM, or no private key that belongs to them`;
      const hint = 'see the files of sslrootcert, sslcert and sslkey; a key must not be encrypted';
      throw new KmsError('refused', message, { hint, cause });
    }
    return known;
  };
}

/** The first line of the file. */
async function readPassword(path: string): Promise<string> {
  const password = secretOf(await readPrivate(path, 'a password', 'change it'), path);
  if (password !== '') return password;
  throw new KmsError('refused', `${path}: expected a password, the file is empty`, { hint: 'write it there' });
}

/** The first match among lines `host:port:database:user:password`, as in libpq's `.pgpass`. */
async function findPassword(
  path: string,
  { host, port }: PostgresHost,
  database: string,
  user: string,
): Promise<string | undefined> {
  const lines = secretLines(await readPrivate(path, 'passwords', 'change them'), path);
  const wanted = [host.startsWith('/') ? 'localhost' : host, String(port), database, user];
  for (const line of lines) {
    if (line.startsWith('#')) continue;
    // A backslash escapes a colon or a backslash in a field.
    const fields = (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? []).slice(0, 5);
    const [password = '', ...names] = fields.map((field) => field.replace(/:$/, '').replace(/\\(.)/g, '$1')).reverse();
    if (fields.length === 5 && names.reverse().every((name, at) => name === '*' || name === wanted[at]))
      return password;
  }
  return undefined;
}

async function readPrivate(path: string, what: string, remedy: string): Promise<Uint8Array> {
  try {
    const info = await stat(path);
    if (info.isFile()) refuseExposed(path, info, what, remedy);
  } catch (error) {
    throw systemError(error, path);
  }
  return readWhole(path, what);
}

/** In bytes: a bundle of authorities has some hundred thousand. */
const longestFile = 4 * 1024 * 1024;

async function readWhole(path: string, what: string): Promise<Uint8Array> {
  try {
    refusePipe(path, await stat(path), what);
    return await readFileWithin(path, longestFile);
  } catch (error) {
    throw systemError(error, path);
  }
}

/** The parts before and after the first separator. */
function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong('a % is not followed by two hexadecimal digits', 'write a % as %25');
  }
}

function wrong(message: string, hint: string): KmsError {
  return new KmsError('usage', `${option}: ${message}`, { hint });
}
