// The client of identity providers, against providers that lie or don't answer.
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { test } from 'node:test';
import { oidcClient } from '../../src/appliance/oidc-client.ts';
import { KmsError } from '../../src/errors.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import { certificate, privateKey } from '../support/localhost-certificate.ts';

const query = { redirectUri: 'https://kms.test/console/oidc', state: 's', nonce: 'n', challenge: 'c' };
const exchange = { ...query, code: 'c', verifier: 'v'.repeat(43) };
const provider = (issuer: string, more: object = {}) => ({
  issuer,
  clientId: 'kms',
  clientSecret: 'secret',
  scope: 'openid',
  userClaim: 'email',
  createUsers: false,
  trustEmail: false,
  claimFlags: {},
  changedAt: 1,
  ...more,
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Cast: a server that listens on a port has such an address.
  return (server.address() as AddressInfo).port;
}

const answers =
  (metadata: () => object): RequestListener =>
  (_request, response) =>
    void response.setHeader('content-type', 'application/json').end(JSON.stringify(metadata()));

const isUnavailable = (error: unknown): boolean => error instanceof KmsError && error.code === 'unavailable';

test('a provider elsewhere does not lead to what listens in clear on this machine', async () => {
  const asked: string[] = [];
  const bystander = createServer((request, response) => {
    asked.push(String(request.url));
    response.end('{}');
  });
  const here = `http://127.0.0.1:${await portOf(bystander)}`;
  let metadata: object = {};
  const server = createTlsServer(
    { cert: certificate, key: privateKey },
    answers(() => metadata),
  );
  try {
    const issuer = `https://localhost:${await portOf(server)}`;
    const good = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
    };
    for (const field of ['authorization_endpoint', 'token_endpoint', 'jwks_uri']) {
      metadata = { ...good, [field]: `${here}/${field}` };
      const client = oidcClient(systemWorld());
      const lying = provider(issuer, { ca: certificate });
      const login = async () => {
        await client.authorizationUrl(lying, query);
        await client.redeem(lying, exchange);
      };
      await assert.rejects(login, field === 'jwks_uri' ? KmsError : isUnavailable, field);
    }
    assert.deepEqual(asked, []);
  } finally {
    server.closeAllConnections();
    server.close();
    bystander.close();
  }
});

test('a provider that does not answer keeps nobody waiting who goes to another', async () => {
  const waiting: (() => void)[] = [];
  const at = (server: { issuer: string }) => () => ({
    issuer: server.issuer,
    authorization_endpoint: `${server.issuer}/authorize`,
    token_endpoint: `${server.issuer}/token`,
  });
  const [slow, quick] = [{ issuer: '' }, { issuer: '' }];
  const silent = createServer((request, response) => {
    if (request.method === 'POST') waiting.push(() => response.destroy());
    else answers(at(slow))(request, response);
  });
  const answering = createServer(answers(at(quick)));
  try {
    slow.issuer = `http://127.0.0.1:${await portOf(silent)}`;
    quick.issuer = `http://127.0.0.1:${await portOf(answering)}`;
    const client = oidcClient(systemWorld());
    let refused = 0;
    const stuck = Array.from({ length: 80 }, async () => {
      await assert.rejects(client.redeem(provider(slow.issuer), exchange), isUnavailable);
      refused++;
    });
    while (waiting.length < 16 || refused < 64) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.match(await client.authorizationUrl(provider(quick.issuer), query), /\/authorize\?/);
    assert.deepEqual([waiting.length, refused], [16, 64]);
    for (const end of waiting) end();
    await Promise.all(stuck);
  } finally {
    silent.closeAllConnections();
    silent.close();
    answering.closeAllConnections();
    answering.close();
  }
});
