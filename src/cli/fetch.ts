// `fetch` for commands over the network, with the given authorities, and a limit to how long an answer takes.
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect as tlsConnect } from 'node:tls';
import { paths } from '../api/paths.ts';
import { plainEncoding, refuseInflated } from '../client/bounded.ts';
import { notOurs, timedOut } from '../client/failure.ts';
import { unless } from '../client/unless.ts';
import { KmsError, systemCode, systemRefusal } from '../errors.ts';
import type { ClientCertificate } from './client-certificate.ts';
import { exchange } from './http-request.ts';
import { type Authorities, isOpenToOthers, type Remote } from './target.ts';

type Fetch = (request: Request) => Promise<Response>;

/** OpenSSL's codes for a chain without a trusted root. */
const untrusted: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_UNTRUSTED',
]);

const faults: Readonly<Record<string, readonly [problem: string, hint: string]>> = {
  CERT_HAS_EXPIRED: ['its certificate has expired', 'renew it, or set the clock of this machine'],
  CERT_NOT_YET_VALID: ['its certificate is not valid yet', 'set the clock of this machine'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['its certificate is for another name', 'use a name that the certificate has'],
};

/** Milliseconds that an answer may take: the longest, some megabytes, takes a slow line a minute. */
const longestWait = 120_000;

/** Paths of answers of any length: their reading ends after five minutes without a byte, the default of `fetch`. */
const streamed = [paths.createBackup, paths.exportActivity].map(([, path]) => path);

/** For requests to an appliance, with what is known of it. */
export function remoteFetch({ baseUrl, authorities, certificate }: Remote): Fetch {
  return networkFetch(baseUrl, authorities, { certificate });
}

/** The signal aborts a request in progress. Redirects are not followed: requests go only to the named address. */
export function stoppable(signal: AbortSignal, send: Fetch): Fetch {
  return (request) => {
    const either = AbortSignal.any([request.signal, signal]);
    return send(new Request(request, { signal: either, redirect: 'manual' }));
  };
}

interface FetchOptions {
  /** Milliseconds. */
  readonly wait?: number;
  /** The option for authorities, for the hint if there should be one. */
  readonly caOption?: string;
  readonly certificate?: ClientCertificate | undefined;
}

/**
 * Throws `invalid` if the authorities are not certificates; without any it trusts the public and the system's ones. An
 * answer that is not read to its end within `wait` milliseconds is given up: a server could send a byte now and then.
 */
export function networkFetch(
  base: string,
  authorities: Authorities | undefined,
  { wait = longestWait, caOption = '--ca-file FILE (KMS_CA_FILE)', certificate }: FetchOptions = {},
): Fetch {
  return async (asked) => {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(timedOut(base, wait)), wait).unref();
    const request = new Request(asked, { signal: AbortSignal.any([asked.signal, late.signal]) });
    request.headers.set(...plainEncoding);
    let response: Response;
    try {
      if (new URL(request.url).protocol === 'https:') await trust(authorities);
      response = await unless(late.signal, () => (certificate ? certified(request, certificate) : fetch(request)));
    } catch (cause) {
      const fault = certificateFault(cause, base, authorities?.from ?? { caOption });
      throw (
        fault ?? (brokenOff.test(codeOf(cause) ?? '') ? await schemeFault(base, cause) : undefined) ?? inWords(cause)
      );
    }
    const { pathname } = new URL(request.url);
    if (response.ok && streamed.some((path) => pathname.endsWith(path))) clearTimeout(timer);
    refuseInflated(request, response, base);
    // Many servers and proxies answer plain HTTP on a TLS port like this. An appliance answers in JSON.
    const isPage = response.status === 400 && !/json/.test(response.headers.get('content-type') ?? '');
    const fault = isPage && new URL(base).protocol === 'http:' ? await schemeFault(base) : undefined;
    if (fault) throw fault;
    if (response.status < 200 || response.status > 599) throw notOurs(base);
    return readUntil(late.signal, response);
  };
}

/** The response over a connection of its own with a client certificate, for which `fetch` has no option. */
function certified(request: Request, certificate: ClientCertificate): Promise<Response> {
  const { hostname, port } = new URL(request.url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const options = { host, port: Number(port) || 443, agent: false, rejectUnauthorized: true, ...certificate };
  return exchange(request, options, httpsRequest);
}

/** The response, whose reading fails once the signal aborts: fetch may have forgotten its own by then. */
function readUntil(signal: AbortSignal, response: Response): Response {
  const { body, status, headers } = response;
  if (!body) return response;
  const reader = body.getReader();
  const giveUp = (reason: unknown): Promise<void> => reader.cancel(reason).catch(() => undefined);
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await unless(signal, () => reader.read());
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        void giveUp(error);
        throw error;
      }
    },
    cancel: giveUp,
  });
  return new Response(stream, { status, headers });
}

/** Errors when only one side speaks TLS; they may have other causes. */
const brokenOff =
  /^(?:ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)|UND_ERR_SOCKET|ECONNRESET|EPIPE|HPE_\w+)$/;

/** The error if the port speaks plain HTTP instead of TLS, or the other way round; it tries the other one. */
async function schemeFault(base: string, cause?: unknown): Promise<KmsError | undefined> {
  const url = new URL(base);
  const expectsTls = url.protocol === 'https:';
  const other = new URL(base.replace(/^https?/i, expectsTls ? 'http' : 'https'));
  // Keep the port, even an implicit one.
  if (url.port === '') other.port = expectsTls ? '443' : '80';
  if (!(await (expectsTls ? speaksPlainHttp(other) : speaksTls(other)))) return undefined;
  const [expected, got] = expectsTls ? ['TLS', 'plain HTTP'] : ['plain HTTP', 'TLS'];
  const tryIt = `use ${other.href.replace(/\/+$/, '')}`;
  const hint = isOpenToOthers(other)
    ? `ask for its https address; ${other.origin} would send everything unencrypted`
    : tryIt;
  const message = `expected ${expected} from ${base}, got ${got}`;
  return new KmsError('unavailable', message, { hint, cause });
}

/** Milliseconds. */
const probeTimeout = 2000;

function speaksPlainHttp(url: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = httpRequest(url, { method: 'HEAD', agent: false, timeout: probeTimeout }, () => {
      resolve(true);
      probe.destroy();
    });
    probe.once('timeout', () => probe.destroy());
    probe.once('error', () => resolve(false));
    probe.once('close', () => resolve(false));
    probe.end();
  });
}

/** Sends nothing, so the certificate does not matter here. */
function speaksTls({ hostname, port }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const probe = tlsConnect({ host, port: Number(port) || 443, rejectUnauthorized: false }, () => {
      resolve(true);
      probe.destroy();
    });
    probe.setTimeout(probeTimeout, () => probe.destroy());
    probe.once('error', () => resolve(false));
    probe.once('close', () => resolve(false));
  });
}

/**
 * Set for the whole process before each request: `fetch` has no option for it. A command that talks to two servers must
 * ask one after the other.
 */
async function trust(authorities: Authorities | undefined): Promise<void> {
  const { authoritiesIn, trustOnly, trustSystem } = await import('../platform/authorities.ts');
  if (authorities === undefined) trustSystem();
  else trustOnly(authoritiesIn(authorities.pem, authorities.from));
}

/** `from` names the authorities that were given, or else the option for them. */
function certificateFault(
  cause: unknown,
  base: string,
  from: string | { readonly caOption: string },
): KmsError | undefined {
  const code = codeOf(cause);
  if (code === undefined) return undefined;
  if (untrusted.has(code)) {
    const hint =
      typeof from === 'string'
        ? `none of the authorities in ${from} signed it`
        : `name the authority that signed it, PEM, with ${from.caOption}`;
    return new KmsError('unavailable', `cannot reach ${base}: its certificate is not trusted`, { hint, cause });
  }
  const fault = faults[code];
  return fault && new KmsError('unavailable', `cannot reach ${base}: ${fault[0]}`, { hint: fault[1], cause });
}

function codeOf(error: unknown): string | undefined {
  return systemCode(codedError(error));
}

/** The error with a code, which `fetch` hides in its causes. */
function codedError(error: unknown): Error | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if (systemCode(inner) !== undefined) return inner;
  }
  return undefined;
}

/** The platform's error in words. Not a KmsError, so that the client retries it. */
export function inWords(error: unknown): unknown {
  const coded = codedError(error);
  const [reason] = systemRefusal(coded) ?? [];
  if (reason === undefined) return error;
  const code = systemCode(coded);
  return Object.assign(new Error(`${reason} (${code})`), { code });
}
