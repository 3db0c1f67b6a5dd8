// The listening addresses: reading the options, refusing dangerous ones, and taking the network port and the socket in
// the data directory.
import { chmod, rm } from 'node:fs/promises';
import { isIPv6, type Server } from 'node:net';
import { KmsError, systemCode, systemError } from '../errors.ts';
import { isLoopbackHost } from '../model/hosts.ts';
import { missingIssuer } from '../platform/authorities.ts';
import { readPair, validityOf, whyNotValid } from '../platform/certificate.ts';
import { inDir, socketFile } from '../platform/data-dir.ts';
import { type Certificate, listen } from './http-server.ts';
import type { Logger } from './log.ts';

export interface ListenOptions {
  /** `HOST:PORT`; an IPv6 address in brackets; port 0 lets the system choose. */
  readonly listen?: string;
  /** The address that clients use, if it is not the one listened on. */
  readonly url?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  /** TLS ends at a proxy in front of this process, and the proxy's X-Forwarded-* headers are trusted. */
  readonly behindProxy?: boolean;
}

export interface Listening {
  readonly host: string;
  readonly port: number;
  readonly tls: Certificate | undefined;
  readonly behindProxy: boolean;
  /** The address listened on, given the port. */
  addressOf(port: number): string;
  /** The address for clients, given the port: the one listened on, unless `url` is set. */
  urlOf(port: number): string;
}

const defaultListen = '127.0.0.1:8080';

/** `option` says where it is to listen. */
export async function listening(options: ListenOptions, option = '--listen'): Promise<Listening> {
  const { host, port } = parseListen(options.listen ?? defaultListen, option);
  const url = options.url === undefined ? undefined : parseUrl(options.url);
  const tls = await readTls(options);
  const behindProxy = options.behindProxy ?? false;
  if (!tls && !behindProxy && !isLoopbackHost(host)) {
    throw new KmsError('refused', `plain HTTP on ${host} would send keys in clear over the network`, {
      hint: 'give --tls-cert and --tls-key, or --behind-proxy where TLS ends in front of this process',
    });
  }
  const addressOf = (actual: number) => `${tls ? 'https' : 'http'}://${authority(host, actual)}`;
  return { host, port, tls, behindProxy, addressOf, urlOf: (actual) => url ?? addressOf(actual) };
}

export function parseListen(text: string, option = '--listen'): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  const host = bracketed ?? plain;
  if (host === undefined || port > 65535 || (bracketed !== undefined && !isIPv6(bracketed))) {
    throw new KmsError('usage', `${option}: expected HOST:PORT, got "${text}"`, {
      hint: `such as ${defaultListen} or [::1]:8080`,
    });
  }
  return { host, port };
}

function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password) {
    throw new KmsError('usage', `--url: expected an address such as https://kms.example.org, got "${text}"`);
  }
  return url.href.replace(/\/+$/, '');
}

/** Reads the certificate and key files; undefined if TLS is off. Throws if they are not a certificate with its key. */
export async function readTls({ tlsCert, tlsKey }: ListenOptions): Promise<Certificate | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new KmsError('usage', 'TLS needs both --tls-cert and --tls-key', { hint: 'give the other one too' });
  }
  return readPair(tlsCert, tlsKey);
}

/** Serves with it all the same: some clients pin it, and the clock may be wrong. */
export function warnOfCertificate({ cert }: Certificate, { tlsCert }: ListenOptions, logger: Logger): void {
  const wrong = whyNotValid(validityOf(cert), Date.now());
  if (wrong !== undefined) logger.warn({ file: tlsCert }, `no client takes the certificate: ${wrong}`);
  // Later, since comparing it with all authorities takes longer than the rest of the start.
  setTimeout(() => warnOfChain(cert.toString(), tlsCert, logger), 1000).unref();
}

function warnOfChain(pem: string, file: string | undefined, logger: Logger): void {
  const issuer = missingIssuer(pem);
  if (issuer === undefined) return;
  const advice = 'put that one behind it in the file, unless clients are given it as an authority';
  const message = `the certificate comes without the one of its issuer, ${issuer.name}: ${advice}`;
  logger[issuer.isPublic ? 'warn' : 'info']({ file }, message);
}

export function authority(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `localhost:${port}`;
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

export async function takePort(server: Server, { host, port }: Pick<Listening, 'host' | 'port'>): Promise<void> {
  try {
    await listen(server, { host, port });
  } catch (error) {
    throw listenError(error, `${host}:${port}`);
  }
}

function listenError(error: unknown, address: string): unknown {
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return new KmsError('in-use', `${address} is in use by another program`, {
        hint: 'stop that one, or choose another address with --listen (port 0 picks a free one)',
        cause: error,
      });
    case 'EACCES':
      return new KmsError('refused', `${address}: this user may not listen on that port`, {
        hint: 'choose a port from 1024 on with --listen',
        cause: error,
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new KmsError('refused', `${address} is not an address of this machine`, {
        hint: 'choose one that is, with --listen',
        cause: error,
      });
    default:
      return systemError(error, address);
  }
}

/** Only the owner may open it. With the lock held, an existing file is left over from a killed server. */
export async function openSocket(server: Server, data: string, logger: Logger): Promise<void> {
  const path = inDir(data, socketFile);
  // sun_path holds 108 bytes.
  if (Buffer.byteLength(path) > 107) {
    logger.warn(
      { path },
      'the path is too long for a local socket: commands on this machine need --server while this runs',
    );
    return;
  }
  await rm(path, { force: true });
  try {
    await listen(server, { path });
  } catch (error) {
    if (!socketless.has(systemCode(error) ?? '')) throw systemError(error, path);
    // FUSE may have created a file of that name all the same.
    await rm(path, { force: true });
    logger.warn(
      { path },
      'the file system of the data directory has no sockets: commands on this machine need --server while this runs',
    );
    return;
  }
  await chmod(path, 0o600);
}

/** Error codes of file systems without sockets, such as vfat. */
const socketless: ReadonlySet<string> = new Set(['EPERM', 'EINVAL', 'EIO', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP']);

export function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
