// `fetch` for commands: over the network, with the given authorities, and over a Unix socket, as far as commands need
// it.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setDefaultCACertificates, connect as tlsConnect } from 'node:tls';
import { plainEncoding, refuseInflated } from '../client/bounded.ts';
import { KmsError, systemCode, systemRefusal } from '../errors.ts';
import { type Authorities, isOpenToOthers } from './target.ts';

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

/** Throws `invalid` if the authorities are not certificates; without any it trusts the public and the system's ones. */
export function networkFetch(base: string, authorities: Authorities | undefined): Fetch {
  return async (request) => {
    request.headers.set(...plainEncoding);
    let response: Response;
    try {
      if (new URL(request.url).protocol === 'https:') await trust(authorities);
      response = await fetch(request);
    } catch (cause) {
      const fault = certificateFault(cause, base, authorities?.from);
      throw (
        fault ?? (brokenOff.test(codeOf(cause) ?? '') ? await schemeFault(base, cause) : undefined) ?? inWords(cause)
      );
    }
    refuseInflated(request, response, base);
    // Many servers and proxies answer plain HTTP on a TLS port like this. An appliance answers in JSON.
    const isPage = response.status === 400 && !/json/.test(response.headers.get('content-type') ?? '');
    const fault = isPage && new URL(base).protocol === 'http:' ? await schemeFault(base) : undefined;
    if (fault) throw fault;
    return response;
  };
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

/** Set for the whole process, which is one command: `fetch` has no option for it. */
async function trust(authorities: Authorities | undefined): Promise<void> {
  const { authoritiesIn, trustSystem } = await import('../platform/authorities.ts');
  if (authorities === undefined) trustSystem();
  else setDefaultCACertificates([authoritiesIn(authorities.pem, authorities.from)]);
}

function certificateFault(cause: unknown, base: string, from: string | undefined): KmsError | undefined {
  const code = codeOf(cause);
  if (code === undefined) return undefined;
  if (untrusted.has(code)) {
    const hint =
      from === undefined
        ? 'name the authority that signed it, PEM, with --ca-file FILE (KMS_CA_FILE)'
        : `none of the authorities in ${from} signed it`;
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

/** Not a KmsError, so that the client retries it. */
function inWords(error: unknown): unknown {
  const coded = codedError(error);
  const [reason] = systemRefusal(coded) ?? [];
  if (reason === undefined) return error;
  const code = systemCode(coded);
  return Object.assign(new Error(`${reason} (${code})`), { code });
}

/** A function like `fetch` that asks the server behind the socket, whatever host the URL names. */
export function unixFetch(socketPath: string): (request: Request) => Promise<Response> {
  return async (request) => {
    const url = new URL(request.url);
    const body = Buffer.from(await request.arrayBuffer());
    const headers: Record<string, string> = Object.fromEntries(request.headers);
    headers.host = url.host;
    if (request.body) headers['content-length'] = String(body.length);
    return new Promise<Response>((resolve, reject) => {
      const options = {
        socketPath,
        path: url.pathname + url.search,
        method: request.method,
        headers,
        signal: request.signal,
        agent: false,
      };
      const outgoing = httpRequest(options, (answer) => void readAnswer(answer).then(resolve, reject));
      outgoing.on('error', (error) => reject(inWords(error)));
      outgoing.end(body);
    });
  };
}

async function readAnswer(answer: IncomingMessage): Promise<Response> {
  const status = answer.statusCode ?? 500;
  const headers = new Headers();
  for (let n = 0; n + 1 < answer.rawHeaders.length; n += 2) {
    headers.append(answer.rawHeaders[n] ?? '', answer.rawHeaders[n + 1] ?? '');
  }
  const isJson = /^application\/json\s*(?:;|$)/.test(headers.get('content-type') ?? '');
  if (status === 200 && !isJson) return new Response(streamOf(answer), { status, headers });
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  const empty = status === 204 || status === 304;
  return new Response(empty ? null : Buffer.concat(chunks), { status, headers });
}

function streamOf(answer: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = answer[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => void answer.destroy(),
  });
}

/** Whether a server answers on the socket. Throws if access is denied: another user's server is running. */
export function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EACCES' && error.code !== 'EPERM') return resolve(false);
      reject(
        new KmsError('refused', `cannot open ${socketPath}: permission denied`, {
          hint: 'run this as the user that the server runs as, or use --server with an API key',
        }),
      );
    });
  });
}
