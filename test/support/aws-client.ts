// A client of AWS KMS with a signer of its own, as SDKs sign.
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { type AnyJson, type Appliance, testAppliance } from './appliance.ts';

export interface AccessKey {
  readonly id: string;
  readonly secret: string;
  readonly token?: string;
}

export interface Sent {
  readonly headers: Record<string, string>;
  readonly body: string;
}

interface Signing {
  /** Names of headers that are left out of the signature. */
  readonly unsigned?: readonly string[];
  readonly region?: string;
  readonly service?: string;
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

export const json = 'application/x-amz-json-1.1';
export const formType = 'application/x-www-form-urlencoded';
export const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64');

/** A request as SDKs sign it. */
export function signed(
  { world }: { readonly world: { now(): number } },
  key: AccessKey,
  headers: Record<string, string>,
  body: string,
  { unsigned = [], region = 'us-east-1', service = 'kms' }: Signing = {},
): Sent {
  const date = new Date(world.now()).toISOString().replace(/[-:]|\.\d+/g, '');
  const all: Record<string, string> = {
    host: 'kms.test',
    'x-amz-date': date,
    ...(key.token !== undefined && { 'x-amz-security-token': key.token }),
    ...headers,
  };
  const names = Object.keys(all)
    .filter((name) => !unsigned.includes(name))
    .sort();
  const lines = names.map((name) => `${name}:${all[name]}`);
  const canonical = ['POST', '/', '', ...lines, '', names.join(';'), hash(body)].join('\n');
  const day = date.slice(0, 8);
  const scope = `${day}/${region}/${service}/aws4_request`;
  const signing = [day, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${key.secret}`);
  const signature = hmac(signing, ['AWS4-HMAC-SHA256', date, scope, hash(canonical)].join('\n')).toString('hex');
  const { host, ...sent } = all;
  const authorization = `AWS4-HMAC-SHA256 Credential=${key.id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  return { headers: { ...sent, host: host ?? '', authorization }, body };
}

/** An appliance, or a node that serves. */
type Site = Pick<Appliance, 'app'> & { readonly world: { now(): number } };

interface Posted {
  readonly status: number;
  readonly text: string;
  readonly body: AnyJson;
  readonly headers: Headers;
}

/** Sends a request as it is, its host too. */
export async function post(a: Pick<Site, 'app'>, { headers, body }: Sent, awsRegion?: string): Promise<Posted> {
  const request = new Request('http://kms.test/', { method: 'POST', body });
  const answer = await a.app.fetch(request, {
    surface: 'aws',
    remoteAddress: '192.0.2.1',
    headers,
    ...(awsRegion !== undefined && { awsRegion }),
  });
  const text = await answer.text();
  return { status: answer.status, text, body: text.startsWith('{') ? JSON.parse(text) : {}, headers: answer.headers };
}

/** Calls an operation and returns its answer; `status` and `__type` of a refusal. */
export async function call(a: Site, key: AccessKey, operation: string, input: AnyJson = {}): Promise<AnyJson> {
  const headers = { 'content-type': json, 'x-amz-target': `TrentService.${operation}` };
  const { status, body } = await post(a, signed(a, key, headers, JSON.stringify(input)));
  return { status, ...body };
}

/** The same for an operation that must succeed. */
export async function done(a: Site, key: AccessKey, operation: string, input: AnyJson = {}): Promise<AnyJson> {
  const answer = await call(a, key, operation, input);
  assert.equal(answer.status, 200, `${operation} ${JSON.stringify(input)}: ${JSON.stringify(answer)}`);
  return answer;
}

/** The same for one that must be refused with this type. */
export async function refused(
  a: Site,
  key: AccessKey,
  type: string,
  operation: string,
  input: AnyJson = {},
): Promise<AnyJson> {
  const answer = await call(a, key, operation, input);
  assert.equal(answer.__type, type, `${operation} ${JSON.stringify(input)}: ${JSON.stringify(answer)}`);
  return answer;
}

export async function accessKey(a: Appliance, ...flags: string[]) {
  const apiKey = await a.keyWith(...(flags.length > 0 ? flags : ['key.*']));
  const { body: proof } = await a.call('POST', `/auth/apikeys/${apiKey.keyid}/proofs`, { kind: 'aws' });
  return { apiKey, proof, key: { id: proof.accessKeyId, secret: proof.secretAccessKey } as AccessKey };
}

/** An appliance and an access key with these flags, or all of `key.*`. */
export async function around(...flags: string[]) {
  const a = await testAppliance();
  return { a, ...(await accessKey(a, ...flags)) };
}
