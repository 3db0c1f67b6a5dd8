// Signature Version 4 of AWS: what a request says it is signed with, and whether it is. Every header whose name begins
// with `x-amz-` must be signed, since one of them names the operation; the body always counts.
import { equalBytes, fromHex, toHex, utf8 } from '../../crypto/bytes.ts';
import { hmacSha256, type Mac, sha256 } from '../../crypto/fast-hash.ts';
import { parseTimestamp } from '../../model/timestamp.ts';

const algorithm = 'AWS4-HMAC-SHA256';
/** Tolerated clock difference in milliseconds. */
const window = 15 * 60_000;
const longestHeader = 4096;
const mostHeaders = 50;

/** The parts of a request that a signature covers. */
interface SignedRequest {
  readonly method: string;
  readonly path: string;
  readonly search: string;
  /** Names in lower case; a header that came several times has several values. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** The header Authorization, read. */
export interface Authorization {
  readonly accessKeyId: string;
  /** Such as `20261129`. */
  readonly day: string;
  readonly region: string;
  readonly service: string;
  readonly signedHeaders: readonly string[];
  readonly signature: Uint8Array;
}

type ReadAuthorization = Authorization | 'missing' | 'incomplete';

export function readAuthorization({ headers }: Pick<SignedRequest, 'headers'>): ReadAuthorization {
  const text = oneOf(headers, 'authorization');
  if (text === undefined) return headers.authorization === undefined ? 'missing' : 'incomplete';
  if (text.length > longestHeader || !text.startsWith(`${algorithm} `)) return 'incomplete';
  const parts = new Map<string, string>();
  for (const part of text.slice(algorithm.length + 1).split(',')) {
    const at = part.indexOf('=');
    const name = part.slice(0, at).trim();
    if (at <= 0 || parts.has(name)) return 'incomplete';
    parts.set(name, part.slice(at + 1).trim());
  }
  const [accessKeyId = '', day = '', region = '', service = '', end, ...more] = (parts.get('Credential') ?? '').split(
    '/',
  );
  const names = parts.get('SignedHeaders') ?? '';
  const signedHeaders = names.split(';');
  const signature = fromHex(parts.get('Signature') ?? '');
  const isScoped = /^\d{8}$/.test(day) && region !== '' && end === 'aws4_request' && more.length === 0;
  const isNamed = signedHeaders.length <= mostHeaders && /^[a-z0-9-]+(?:;[a-z0-9-]+)*$/.test(names);
  if (!isScoped || !isNamed || !/^\w{1,128}$/.test(accessKeyId) || signature?.length !== 32) return 'incomplete';
  return { accessKeyId, day, region, service, signedHeaders, signature };
}

/** The region and the service that a request must be signed for. */
export type Scope = Pick<Authorization, 'region' | 'service'>;

/** Why a request is not signed as it must be. */
export interface Unsigned {
  /** For the log and the metrics. */
  readonly check: 'date' | 'service' | 'region' | 'headers' | 'clock';
  readonly message: string;
}

/** Why a request is not signed as it must be, whatever the secret; undefined if nothing speaks against it. */
export function whyUnsigned(
  request: SignedRequest,
  authorization: Authorization,
  { region, service }: Scope,
  now: number,
): Unsigned | undefined {
  const { headers } = request;
  const { signedHeaders, day } = authorization;
  const why = (check: Unsigned['check'], message: string): Unsigned => ({ check, message });
  const date = oneOf(headers, 'x-amz-date');
  const time = date === undefined ? undefined : timeOf(date);
  if (time === undefined) {
    return why('date', "Date must be in ISO-8601 'basic format', in the header X-Amz-Date");
  }
  if (date?.slice(0, 8) !== day) {
    return why('date', 'Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date');
  }
  if (authorization.service !== service) {
    return why('service', `Credential should be scoped to correct service: '${service}'.`);
  }
  if (authorization.region !== region) {
    const given = authorization.region.slice(0, 64);
    return why('region', `Credential should be scoped to a valid region, not '${given}': this is '${region}'.`);
  }
  const must = ['host', ...Object.keys(headers).filter((name) => name.startsWith('x-amz-'))];
  const unsigned = must.find((name) => !signedHeaders.includes(name));
  if (unsigned !== undefined) {
    return why('headers', `'${unsigned}' must be a 'SignedHeader' in the AWS Authorization`);
  }
  const twice = [...signedHeaders].find((name) => oneOf(headers, name) === undefined);
  if (twice !== undefined) return why('headers', `the signed header ${twice} is missing, or came more than once`);
  if (time < now - window) {
    return why('clock', `Signature expired: ${date} is now earlier than ${textOf(now - window)}`);
  }
  if (time > now + window) {
    return why('clock', `Signature not yet current: ${date} is still later than ${textOf(now + window)}`);
  }
  return undefined;
}

/** Whether the signature is that of the request under the secret. `mac` is under a key from `signingKey`. */
export function isSigned(
  request: SignedRequest,
  { signedHeaders, signature, day, region, service }: Authorization,
  mac: Mac,
  body: Uint8Array,
): boolean {
  const { headers, method, path, search } = request;
  const bodyHash = toHex(sha256(body));
  const told = oneOf(headers, 'x-amz-content-sha256');
  if (told !== undefined && told !== bodyHash) return false;
  const canonical = [
    method,
    canonicalPath(path),
    canonicalQuery(search),
    ...signedHeaders.map((name) => `${name}:${(oneOf(headers, name) ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    signedHeaders.join(';'),
    bodyHash,
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = [algorithm, oneOf(headers, 'x-amz-date'), scope, toHex(sha256(utf8(canonical)))].join('\n');
  return equalBytes(mac(utf8(toSign)), signature);
}

/** The key of a day, region and service, which a secret signs with. */
export function signingKey(
  secret: string,
  { day, region, service }: Pick<Authorization, 'day' | 'region' | 'service'>,
) {
  return [day, region, service, 'aws4_request'].reduce(
    (key, part) => hmacSha256(key)(utf8(part)),
    utf8(`AWS4${secret}`),
  );
}

/** The value of a header that came once. */
function oneOf(headers: SignedRequest['headers'], name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
  return typeof value === 'string' ? value : value?.length === 1 ? value[0] : undefined;
}

/** The last date that was read. A client that sends many requests in a second sends the same one with each. */
let lastDate: { readonly text: string; readonly time: number | undefined } = { text: '', time: undefined };

function timeOf(text: string): number | undefined {
  if (text !== lastDate.text) lastDate = { text, time: readDate(text) };
  return lastDate.time;
}

function readDate(text: string): number | undefined {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? [];
  if (year === undefined) return undefined;
  return parseTimestamp(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** In the form of `X-Amz-Date`. */
function textOf(time: number): string {
  return new Date(time).toISOString().replace(/[-:]|\.\d+/g, '');
}

/** Each segment is encoded a second time. */
function canonicalPath(path: string): string {
  if (path === '/') return path;
  return path
    .split('/')
    .map((segment) => encoded(segment))
    .join('/');
}

function canonicalQuery(search: string): string {
  if (search === '' || search === '?') return '';
  return search
    .slice(1)
    .split('&')
    .map((pair) => (pair.includes('=') ? pair : `${pair}=`))
    .sort()
    .join('&');
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
}
