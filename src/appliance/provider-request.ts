// Requests to identity providers and issuers of tokens: over TLS except on this machine, for some seconds at most, with
// a limit on the size of answers, without following redirects, and where it is asked to, not to private addresses.
import { lookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { failOnOddAnswers } from '../client/odd-answers.ts';
import { concatBytes } from '../crypto/bytes.ts';
import { addressSet, plainAddress, privateBlocks } from '../model/addresses.ts';
import { isLoopbackHost } from '../model/hosts.ts';
import { authoritiesIn, trustSystem } from '../platform/authorities.ts';
import { version } from '../version.ts';

interface ProviderRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The issuer on whose behalf it is sent. */
  readonly issuer: string;
  /** PEM of the authorities to trust instead of the public ones. */
  readonly ca?: string | undefined;
  /** Whether it may go to a private address. */
  readonly isPrivateAllowed: boolean;
  /** Milliseconds until the end of the answer. */
  readonly timeout: number;
  /** Bytes of the answer. */
  readonly mostAnswer: number;
}

/** Throws if the connection is not allowed, or fails. */
export function askProvider(url: URL, options: ProviderRequest): Promise<Response> {
  needSafe(url, options);
  const { method, headers, body, ca, timeout, mostAnswer, isPrivateAllowed } = options;
  const text = body instanceof URLSearchParams ? body.toString() : undefined;
  const signal = AbortSignal.timeout(timeout);
  if (ca === undefined && url.protocol === 'https:') trustSystem();
  const trust = ca === undefined ? {} : { ca: authoritiesIn(ca, 'the provider') };
  const sent = {
    method,
    headers: { ...headers, 'user-agent': `kms/${version}` },
    signal,
    agent: false as const,
    ...(!isPrivateAllowed && { lookup: publicLookup }),
  };
  return new Promise((resolve, reject) => {
    const take = (answer: IncomingMessage): void => void responseOf(answer, mostAnswer).then(resolve, reject);
    const request =
      url.protocol === 'https:'
        ? httpsRequest(url, { ...sent, ...trust, minVersion: 'TLSv1.2', rejectUnauthorized: true }, take)
        : httpRequest(url, sent, take);
    request.on('error', reject);
    failOnOddAnswers(request, reject);
    // Whatever becomes of the request, it ends at its timeout: it holds one of few places.
    const late = (): void => reject(new Error(`no whole answer came within ${timeout / 1000} s`));
    signal.addEventListener('abort', late, { once: true });
    request.end(text);
  });
}

/**
 * Plain HTTP is only for this machine, and only for an issuer on it, since a remote provider must not lead to local
 * services.
 */
function needSafe({ protocol, hostname }: URL, { issuer, isPrivateAllowed }: ProviderRequest): void {
  const isLocal = protocol === 'http:' && isLoopbackHost(hostname) && issuer.startsWith('http:');
  if (protocol !== 'https:' && !isLocal) throw new Error(`expected https, got ${protocol}//${hostname}`);
  const host = hostname.replace(/^\[|\]$/g, '');
  // Node does not look up an address.
  if (!isPrivateAllowed && isIP(host) !== 0 && isPrivate(host)) throw notPublic(hostname);
}

const notRouted = addressSet([
  ...privateBlocks,
  ...['0.0.0.0/8', '100.64.0.0/10', '192.0.0.0/24', '198.18.0.0/15', '224.0.0.0/3'],
  // Among them those that have an IPv4 address inside: NAT64, 6to4 and Teredo.
  ...['::/96', '64:ff9b::/32', '2001::/32', '2002::/16', 'fec0::/10', 'ff00::/8'],
]);

function isPrivate(address: string): boolean {
  return notRouted.has(plainAddress(address) ?? address);
}

function notPublic(host: string): Error {
  return new Error(`${host} is a private address, which only the operator may have asked for keys`);
}

/** Checks the address that is connected to, whatever the name said before. */
const publicLookup: LookupFunction = (host, options, callback) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '');
    const found = addresses.find(({ address }) => !isPrivate(address));
    if (!found) return callback(notPublic(host), '');
    if (options.all === true) return callback(null, [found]);
    return callback(null, found.address, found.family);
  });
};

async function responseOf(answer: IncomingMessage, mostAnswer: number): Promise<Response> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of answer) {
    pieces.push(piece);
    length += piece.length;
    // Leaving the loop closes the connection.
    if (length > mostAnswer) throw new Error(`the identity provider answered more than ${mostAnswer} bytes`);
  }
  const { statusCode: status = 0, headers } = answer;
  const type = headers['content-type'] ?? '';
  if (status >= 300 && status < 400) {
    throw new Error(`the identity provider answered ${status}, a redirect, which is not followed`);
  }
  if (status < 200 || status > 499) throw new Error(`the identity provider answered ${status}`);
  return new Response(concatBytes(...pieces), { status, headers: { 'content-type': type } });
}
