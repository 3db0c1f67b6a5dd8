// A real appliance on a port of its own, for tests in a browser: invites, reset links and logins in a line each.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Initialised } from '../../src/appliance/init.ts';
import type { PeopleSettings } from '../../src/appliance/mail.ts';
import type { Lifetimes } from '../../src/core/links.ts';
import type { Label } from '../../src/model/label.ts';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { serve } from '../../src/server/serve.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type AnyJson = any;

export interface ServedAppliance {
  readonly url: string;
  /** URL for clients of Tang; undefined if they are not served. */
  readonly tangUrl: string | undefined;
  /** Where clients of KMIP are served, and the certificate there; undefined if they are not. */
  readonly kmip: { readonly port: number; readonly ca: string } | undefined;
  call(method: string, path: string, body?: object, key?: string): Promise<{ status: number; body: AnyJson }>;
  /** Sends a request as the administrator at the machine; expects 200. */
  local(method: string, path: string, body: object): Promise<AnyJson>;
  /** Invites a user and returns the link. */
  invite(username: string, more?: object): Promise<string>;
  /** Logs in and returns the status. */
  login(username: string, password: string): Promise<number>;
  resetLink(username: string): Promise<string>;
  /** The link for the first administrator. */
  readonly setUpUrl: string;
  /** Path of the file with the master key. */
  readonly keyFile: string;
  /** The root API key. */
  readonly rootKey: string;
  /** Adds a user with this password; `more` as for an invite, such as `{ flags }`. */
  addUser(username: string, password: string, more?: object): Promise<void>;
}

/** Files of a certificate for the listener of KMIP. */
async function kmipCertificate(dir: string): Promise<{ cert: string; key: string; pem: string }> {
  const { cert: pem, key } = await selfSigned(['localhost', '127.0.0.1'], 30, new Date());
  const files = { cert: join(dir, 'cert.pem'), key: join(dir, 'key.pem'), pem };
  await writeFile(files.cert, pem);
  await writeFile(files.key, key, { mode: 0o600 });
  return files;
}

export async function servedAppliance(
  lifetimes: Partial<Lifetimes> = {},
  {
    backsUp = false,
    tang = false,
    kmip = false,
    label,
    ...more
  }: Pick<PeopleSettings, 'mail'> & {
    readonly backsUp?: boolean;
    readonly tang?: boolean;
    readonly kmip?: boolean;
    readonly label?: Label;
  } = {},
): Promise<ServedAppliance> {
  const dir = await mkdtemp(join(tmpdir(), 'kms-browser-'));
  let made: Initialised | undefined;
  const kmipFiles = kmip ? await kmipCertificate(dir) : undefined;
  const { url, tangAddress, kmipAddress, setUpUrl, appliance, close } = await serve({
    data: join(dir, 'data'),
    listen: '127.0.0.1:0',
    tangListen: tang ? '127.0.0.1:0' : undefined,
    ...(kmipFiles && { kmipListen: '127.0.0.1:0', kmipTlsCert: kmipFiles.cert, kmipTlsKey: kmipFiles.key }),
    logLevel: 'silent',
    label,
    people: { lifetimes, ...more },
    copies: { scheduled: backsUp ? { to: join(dir, 'backups'), schedule: '0 3 * * *', keep: 7 } : undefined },
    onInitialised: (first) => {
      made = first;
    },
  });
  after(async () => {
    await close();
    await rm(dir, { recursive: true, force: true });
  });

  const call: ServedAppliance['call'] = async (method, path, body, key = made?.apiKey.key) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  };
  const local: ServedAppliance['local'] = async (method, path, body) => {
    const headers = { 'content-type': 'application/json' };
    const request = new Request(`http://kms.local${path}`, { method, headers, body: JSON.stringify(body) });
    const answer = await appliance.fetchLocal(request);
    assert.equal(answer.status, 200, await answer.clone().text());
    return answer.json();
  };
  const invite: ServedAppliance['invite'] = async (username, more) => {
    const person = { username, email: `${username}@example.org`, firstName: 'Ada', lastName: 'Lovelace', ...more };
    const { status, body } = await call('POST', '/auth/user/invite', person);
    assert.equal(status, 200);
    return body.loginUrl;
  };
  return {
    url,
    tangUrl: tangAddress,
    kmip: kmipFiles && kmipAddress ? { port: Number(new URL(kmipAddress).port), ca: kmipFiles.pem } : undefined,
    setUpUrl: setUpUrl ?? '',
    keyFile: made?.keyFile ?? '',
    rootKey: made?.apiKey.key ?? '',
    call,
    invite,
    login: async (username, password) => (await call('POST', '/auth/basic/login', { username, password })).status,
    resetLink: async (username) => (await local('POST', '/local/reset-link', { username })).resetUrl,
    local,
    async addUser(username, password, more) {
      const token = new URL(await invite(username, more)).searchParams.get('token');
      assert.equal((await call('POST', '/auth/user/invite-complete', { token, password })).status, 200);
    },
  };
}
