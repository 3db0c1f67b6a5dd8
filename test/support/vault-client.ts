// Requests to the appliance as Vault's clients send them, and checks of the answers.
import assert from 'node:assert/strict';
import { respond } from '../../src/http/respond.ts';
import { freshName } from '../http/samples.ts';
import type { AnyJson, Appliance } from './appliance.ts';

export interface Sent {
  /** Absent: the root key. null: none. */
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** A raw body instead of JSON. */
  readonly raw?: string;
  /** The client's IP address. */
  readonly from?: string;
}

interface Got {
  readonly status: number;
  readonly body: AnyJson;
  readonly text: string;
  readonly headers: Headers;
}

/** Sends a request with PUT and no Content-Type, as Go's clients do. */
export async function v1(a: Appliance, method: string, path: string, body?: object, sent: Sent = {}): Promise<Got> {
  const { token = a.root.key, headers = {}, raw, from = '192.0.2.1' } = sent;
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const bytes = content === undefined ? new Uint8Array() : new TextEncoder().encode(content);
  const all = new Headers({ ...(token !== null && { 'X-Vault-Token': token }), ...headers });
  const url = new URL(`http://kms.test/v1/${path}`);
  const { pathname, search } = url;
  const read = async (limit: number) => (bytes.length > limit ? undefined : bytes);
  const headersOfAll = { host: 'kms.test', ...Object.fromEntries(all) };
  const origin = { surface: 'vault', remoteAddress: from, headers: headersOfAll } as const;
  let response: Response;
  if (method === 'HEAD') response = await a.app.fetch(new Request(url, { method }), origin);
  else {
    const { outcome, state } = await a.app.handle({ ...origin, method, path: pathname, search, body: { read } });
    assert.equal(state, undefined);
    response = respond(outcome);
  }
  const text = await response.text();
  assert.doesNotMatch(response.headers.get('content-type') ?? '', /charset/);
  if (text !== '') assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), text, headers: response.headers };
}

export function isRefused({ status, body }: Got, expected: number, ...errors: string[]): void {
  assert.deepEqual([status, body], [expected, { errors }]);
}

export async function ring(a: Appliance, more: object = {}): Promise<string> {
  const name = freshName();
  const { status, text } = await v1(a, 'PUT', `transit/keys/${name}`, more);
  assert.deepEqual([status, text], [204, '']);
  return name;
}
