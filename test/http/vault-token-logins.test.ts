// Logins of Vault's clients with signed tokens: requests and answers as jwt and kubernetes have them, and what holders
// of the token do with it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';

async function around() {
  const a = await testAppliance();
  const issuer = await TokenIssuer.make(() => a.world.now());
  const key = await a.keyWith('key.*');
  await trustIssuer(a, key.keyid, issuer);
  return { a, issuer, key };
}

const vault = { surface: 'vault' };

function ask(a: Appliance, method: string, path: string, body?: AnyJson, token?: string, host?: string) {
  const headers = token === undefined ? {} : { 'X-Vault-Token': token };
  return a.call(method, `/v1/${path}`, body, { key: null, env: vault, headers, ...(host !== undefined && { host }) });
}

test('a login answers a token with a lease, by POST and PUT and under mounts of several parts', async () => {
  const { a, issuer, key } = await around();
  for (const [method, path] of [
    ['POST', 'auth/jwt/login'],
    ['PUT', 'auth/jwt/login'],
    ['POST', 'auth/jwt/aws-us-east-1/login'],
    ['POST', 'auth/kubernetes/login'],
    ['PUT', 'default/auth/kubernetes-prod/login'],
  ] as const) {
    const { status, body } = await ask(a, method, path, { role: key.keyid, jwt: await issuer.token() });
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
    const { auth } = body;
    assert.match(auth.client_token, /^kmswt_/);
    assert.equal(auth.lease_duration, 3600);
    assert.equal(auth.renewable, true);
    assert.equal(body.data, null);
    const made = await ask(a, 'POST', 'transit/keys/app', {}, auth.client_token);
    assert.ok(made.status < 300, JSON.stringify(made.body));
  }
  const [record] = (await a.activity()).filter(({ action }) => action === 'key.create');
  assert.equal(record?.keyid, key.keyid);
  assert.equal(record?.props.subject, 'build');
  assert.equal(record?.props.dialect, 'vault');
});

test('the token is looked up, renewed and revoked by its holder', async () => {
  const { a, issuer, key } = await around();
  const { auth } = (await ask(a, 'POST', 'auth/jwt/login', { role: key.keyid, jwt: await issuer.token() })).body;
  const token = auth.client_token;
  const { data } = (await ask(a, 'GET', 'auth/token/lookup-self', undefined, token)).body;
  assert.equal(data.ttl, 3600);
  assert.equal(data.renewable, true);
  a.advance(1_000_000);
  for (const increment of ['120s', 120, '2m']) {
    const { auth: renewed } = (await ask(a, 'PUT', 'auth/token/renew-self', { increment }, token)).body;
    assert.equal(renewed.lease_duration, 120);
    assert.equal(renewed.client_token, token);
  }
  assert.equal((await ask(a, 'POST', 'auth/token/renew-self', {}, token)).body.auth.lease_duration, 3600);
  assert.equal((await ask(a, 'POST', 'auth/token/revoke-self', undefined, token)).status, 204);
  for (const [method, path] of [
    ['GET', 'auth/token/lookup-self'],
    ['POST', 'auth/token/renew-self'],
    ['POST', 'auth/token/revoke-self'],
    ['GET', 'transit/keys/app'],
  ] as const) {
    const { status, body } = await ask(a, method, path, method === 'POST' ? {} : undefined, token);
    assert.equal(status, 403, path);
    assert.deepEqual(body.errors, ['permission denied']);
  }
  assert.equal((await ask(a, 'POST', 'auth/token/revoke-self', undefined, key.key)).status, 404);
});

test('refusals have the words of each method', async () => {
  const { a, issuer, key } = await around();
  const claimed = await trustIssuer(a, key.keyid, issuer, { subject: undefined, claims: { project: 'p' } });
  const jwt = (claims: AnyJson = {}) => issuer.token(claims);
  const now = Math.floor(a.world.now() / 1000);
  const audience = 'invalid audience (aud) claim: audience claim does not match any expected audience';
  const rows: readonly (readonly [string, AnyJson, number, string])[] = [
    ['jwt', { jwt: await jwt() }, 400, 'missing role'],
    ['jwt', { role: key.keyid }, 400, 'missing token'],
    ['kubernetes', { role: key.keyid }, 400, 'missing jwt'],
    ['jwt', { role: 'x', jwt: await jwt() }, 400, 'role "x" could not be found'],
    ['kubernetes', { role: 'x', jwt: await jwt() }, 400, 'invalid role name "x"'],
    ['jwt', { role: key.keyid, jwt: await jwt({ aud: 'x' }) }, 400, `error validating token: ${audience}`],
    ['kubernetes', { role: key.keyid, jwt: await jwt({ aud: 'x' }) }, 403, audience],
    [
      'jwt',
      { role: key.keyid, jwt: await jwt({ exp: now - 100 }) },
      400,
      'error validating token: invalid expiration time (exp) claim: token is expired',
    ],
    ['kubernetes', { role: key.keyid, jwt: 'rubbish' }, 403, 'permission denied'],
    [
      'jwt',
      { role: claimed.id, jwt: await jwt({ project: 'q' }) },
      400,
      'error validating claims: claim "project" does not match any associated bound claim values',
    ],
    ['jwt', { role: claimed.id, jwt: await jwt() }, 400, 'error validating claims: claim "project" is missing'],
    ['kubernetes', { role: claimed.id, jwt: await jwt() }, 403, 'service account name not authorized'],
  ];
  for (const [mount, body, status, text] of rows) {
    const answer = await ask(a, 'POST', `auth/${mount}/login`, body);
    assert.equal(answer.status, status, `${text}: ${answer.text}`);
    assert.deepEqual(answer.body.errors, [text]);
  }
  const forged = await ask(a, 'POST', 'auth/jwt/login', { role: key.keyid, jwt: `${await jwt()}x` });
  assert.match(forged.body.errors[0], /^error validating token: error verifying token signature: /);
});

test('a login that asks for a wrapped answer, or to no tenant, opens no session', async () => {
  const { a, issuer, key } = await around();
  const body = { role: key.keyid, jwt: await issuer.token() };
  const headers = { 'X-Vault-Wrap-TTL': '60s' };
  const wrapped = await a.call('POST', '/v1/auth/jwt/login', body, { key: null, env: vault, headers });
  assert.equal(wrapped.status, 400);
  const elsewhere = await a.call('POST', '/v1/auth/jwt/login', body, {
    key: null,
    env: vault,
    headers: { 'X-Vault-Namespace': 'nowhere' },
  });
  assert.deepEqual([elsewhere.status, elsewhere.body.errors], [400, [`role "${key.keyid}" could not be found`]]);
});
