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
import { jsonHead, oddHttp, oddServer } from '../support/odd-server.ts';

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

/** In milliseconds. */
const patience = 400;

for (const [what, say] of Object.entries(oddHttp)) {
  test(`a provider that answers ${what} is told as such in time, and takes no place from later logins`, async () => {
    const server = await oddServer();
    const issuer = `http://127.0.0.1:${server.port}`;
    const world = { now: Date.now, elapsed: () => performance.now() };
    const client = oidcClient(world, patience);
    const lying = provider(issuer);
    server.say = say;
    try {
      // More than there are places.
      for (let round = 0; round < 2; round++) {
        const began = performance.now();
        const logins = Array.from({ length: 20 }, (_, id) =>
          assert.rejects(client.authorizationUrl({ ...lying, changedAt: round * 100 + id }, query), isUnavailable),
        );
        await Promise.all(logins);
        assert.ok(performance.now() - began < 20 * patience, `${performance.now() - began} ms`);
      }
      assert.ok(server.sent() < 64 << 20, `${server.sent()} bytes`);
      const metadata = { issuer, authorization_endpoint: `${issuer}/authorize` };
      const text = JSON.stringify(metadata);
      server.say = (socket) => socket.end(`${jsonHead}content-length: ${text.length}\r\n\r\n${text}`);
      assert.match(await client.authorizationUrl({ ...lying, changedAt: 999 }, query), /\/authorize\?/);
    } finally {
      server.close();
    }
  });
}

test('the keys and tokens of a hostile provider cost little, however large and many they are', async () => {
  const keys = Array.from({ length: 1500 }, (_, at) => ({
    kty: 'RSA',
    alg: 'RS256',
    use: 'sig',
    n: `AQAB${at}`,
    e: 'AQAB',
  }));
  const wide = { kty: 'RSA', alg: 'RS256', use: 'sig', kid: 'k', n: 'f'.repeat(100_000), e: 'f'.repeat(100_000) };
  const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const sets: Readonly<Record<string, unknown>> = {
    'very many keys': { keys },
    'a very large key': { keys: [wide] },
    'no list': { keys: { length: 1e9 } },
    'no keys': { keys: [null, 7, [], {}] },
  };
  let set: unknown;
  let issuer = '';
  const server = createServer((request, response) => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: 'kms', sub: 'x', nonce: 'n', iat: now, exp: now + 60, more: 'x'.repeat(50_000) };
    const token = `${encoded({ alg: 'RS256', kid: 'k' })}.${encoded(claims)}.${'A'.repeat(340)}`;
    const answer =
      request.url === '/token'
        ? { access_token: 'x', token_type: 'bearer', id_token: token }
        : request.url === '/jwks'
          ? set
          : { issuer, authorization_endpoint: issuer, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/jwks` };
    request
      .resume()
      .on('end', () => response.setHeader('content-type', 'application/json').end(JSON.stringify(answer)));
  });
  issuer = `http://127.0.0.1:${await portOf(server)}`;
  try {
    for (const [what, each] of Object.entries(sets)) {
      set = each;
      const began = process.cpuUsage();
      await assert.rejects(oidcClient(systemWorld()).redeem(provider(issuer), exchange), KmsError, what);
      const { user, system } = process.cpuUsage(began);
      assert.ok(user + system < 2_000_000, `${what}: ${user + system} us`);
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
