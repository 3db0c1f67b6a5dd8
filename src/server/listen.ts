// Where to listen and under which protocol: what the options may say, and what is too dangerous to do.
import { readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { createSecureContext } from 'node:tls';
import { KmsError } from '../errors.ts';
import type { Certificate } from './http-server.ts';
import { fileTrouble } from './trouble.ts';

export interface ListenOptions {
  /** `HOST:PORT`; an IPv6 address stands in brackets; port 0 lets the system choose. */
  readonly listen?: string;
  /** Where clients reach the appliance, when that is not the address it listens on. */
  readonly url?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  /** TLS ends in front of this process, and what the proxy says of the client (X-Forwarded-*) is true. */
  readonly behindProxy?: boolean;
}

export interface Listening {
  readonly host: string;
  readonly port: number;
  readonly tls: Certificate | undefined;
  readonly behindProxy: boolean;
  /** The address for clients, once the port is known. */
  urlOf(port: number): string;
}

export const defaultListen = '127.0.0.1:8080';

export async function listening(options: ListenOptions): Promise<Listening> {
  const { host, port } = parseListen(options.listen ?? defaultListen);
  const url = options.url === undefined ? undefined : parseUrl(options.url);
  const tls = await readTls(options);
  const behindProxy = options.behindProxy ?? false;
  if (!tls && !behindProxy && !isLoopback(host)) {
    throw new KmsError('refused', `plain HTTP on ${host} would send keys in clear over the network`, {
      hint: 'give --tls-cert and --tls-key, or --behind-proxy where TLS ends in front of this process',
    });
  }
  return {
    host,
    port,
    tls,
    behindProxy,
    urlOf: (actual) => url ?? `${tls ? 'https' : 'http'}://${authority(host, actual)}`,
  };
}

export function parseListen(text: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  const host = bracketed ?? plain;
  if (host === undefined || port > 65535 || (bracketed !== undefined && !isIPv6(bracketed))) {
    throw new KmsError('usage', `listen address: expected HOST:PORT, got "${text}"`, {
      hint: `such as ${defaultListen} or [::1]:8080`,
    });
  }
  return { host, port };
}

function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password) {
    throw new KmsError('usage', `url: expected an address such as https://kms.example.org, got "${text}"`);
  }
  return url.href.replace(/\/+$/, '');
}

/** The files as they are now; undefined where no TLS is wanted. Throws for what is no certificate with its key. */
export async function readTls({ tlsCert, tlsKey }: ListenOptions): Promise<Certificate | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new KmsError('usage', 'TLS needs both --tls-cert and --tls-key', { hint: 'give the other one too' });
  }
  const [cert, key] = await Promise.all([tlsCert, tlsKey].map(readPem));
  if (!cert || !key) throw new KmsError('internal', 'two files were read');
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new KmsError('refused', `${tlsCert} and ${tlsKey} are no certificate and private key that belong together`, {
      hint: 'give a PEM certificate chain and its unencrypted PEM private key',
      cause: error,
    });
  }
  return { cert, key };
}

async function readPem(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw fileTrouble(error, file);
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

function authority(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `localhost:${port}`;
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}
