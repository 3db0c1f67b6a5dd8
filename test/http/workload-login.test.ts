// Proofs of API keys over HTTP: what can be trusted, which tokens log in, and that whatever ends a proof ends it from
// the next request on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CryptoKey, exportSPKI, importJWK, SignJWT } from 'jose';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';

async function around(): Promise<{ a: Appliance; issuer: TokenIssuer; key: AnyJson; proof: AnyJson }> {
  const a = await testAppliance();
  const issuer = await TokenIssuer.make(() => a.world.now());
  const key = await a.keyWith('keyring.list');
  return { a, issuer, key, proof: await trustIssuer(a, key.keyid, issuer) };
}

const logIn = (a: Appliance, token: string, role?: string) =>
  a.call('POST', '/auth/workload/login', { token, ...(role !== undefined && { role }) }, { key: null });

test('a token that a proof trusts logs in as the API key, and the records say which program it was', async () => {
  const { a, issuer, key, proof } = await around();
  const { status, body } = await logIn(a, await issuer.token(), key.keyid);
  assert.equal(status, 200, JSON.stringify(body));
  assert.match(body.accessToken, /^kmswt_/);
  assert.equal(body.keyid, key.keyid);
  assert.equal(body.expiresAt, a.world.now() + 3_600_000);
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { key: body.accessToken })).status, 200);
  assert.equal((await a.call('GET', '/auth/users', undefined, { key: body.accessToken })).status, 403);
  const records = (await a.activity()).filter(({ keyid }) => keyid === key.keyid);
  assert.deepEqual(
    records.map(({ action, validAction, props }) => [action, validAction, props.proof, props.subject]),
    [
      ['user.read', false, proof.id, 'build'],
      ['keyring.list', true, proof.id, 'build'],
      ['session.create', true, proof.id, 'build'],
    ],
  );
});

test('a login may name the key by its name, the proof, or nothing', async () => {
  const { a, issuer, key, proof } = await around();
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', name: 'ci' });
  for (const role of [key.keyid, 'ci', proof.id, undefined]) {
    const { status, body } = await logIn(a, await issuer.token(), role);
    assert.equal(status, 200, `${role}: ${JSON.stringify(body)}`);
    assert.equal(body.keyid, key.keyid);
  }
  const other = await a.keyWith();
  await trustIssuer(a, other.keyid, issuer);
  const both = await logIn(a, await issuer.token());
  assert.equal(both.status, 400);
  assert.match(both.body.errors.role, /fits several API keys/);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: other.keyid, op: 'merge', name: 'ci' });
  assert.equal((await logIn(a, await issuer.token(), 'ci')).status, 400);
});

const second = 1000;

test('every claim must fit', async () => {
  const { a, issuer, key } = await around();
  const now = () => Math.floor(a.world.now() / second);
  const claims: Readonly<Record<string, readonly [AnyJson, RegExp]>> = {
    'another audience': [{ aud: 'vault' }, /another audience/],
    'audiences without ours': [{ aud: ['a', 'b'] }, /another audience/],
    'no audience': [{ aud: undefined }, /audience/],
    'an empty audience': [{ aud: '' }, /another audience/],
    'another issuer': [{ iss: 'https://ci.example.org/' }, /its issuer is another/],
    'no issuer': [{ iss: undefined }, /its issuer is another/],
    'another subject': [{ sub: 'build2' }, /its subject is another/],
    'no subject': [{ sub: undefined }, /its subject is another/],
    'no expiry': [{ exp: undefined }, /the claim exp is missing/],
    expired: [{ exp: now() - 61 }, /has expired/],
    'not yet valid': [{ nbf: now() + 61 }, /not valid yet/],
    'issued in the future': [{ iat: now() + 61 }, /issued in the future/],
    'too long a life': [{ exp: now() + 86_401 }, /valid for more than 86400 s/],
    'an expiry that is a text': [{ exp: String(now() + 60) }, /the claim exp is malformed/],
  };
  for (const [what, [more, reason]] of Object.entries(claims)) {
    const { status, body } = await logIn(a, await issuer.token(more), key.keyid);
    assert.equal(status, 400, `${what}: ${JSON.stringify(body)}`);
    assert.match(body.message, reason, what);
  }
  for (const more of [{ aud: ['x', 'kms'] }, { exp: now() - 59 }, { nbf: now() + 59 }, { iat: now() + 59 }]) {
    assert.equal((await logIn(a, await issuer.token(more), key.keyid)).status, 200, JSON.stringify(more));
  }
});

test('claims are compared exactly, by name or pointer, and a star stops at a slash', async () => {
  const { a, issuer, key } = await around();
  const claims = {
    repository: 'acme/*',
    '/kubernetes.io/serviceaccount/name': ['ci', 'cd'],
    attempt: 2,
    groups: 'ops',
  };
  const proof = await trustIssuer(a, key.keyid, issuer, { subject: undefined, claims });
  const right = {
    repository: 'acme/payroll',
    'kubernetes.io': { serviceaccount: { name: 'cd' } },
    attempt: 2,
    groups: ['dev', 'ops'],
  };
  assert.equal((await logIn(a, await issuer.token(right), proof.id)).status, 200);
  const wrong: readonly AnyJson[] = [
    { repository: 'acme/payroll/evil' },
    { repository: 'acme' },
    { repository: undefined },
    { 'kubernetes.io': { serviceaccount: { name: 'cx' } } },
    { 'kubernetes.io': 'serviceaccount' },
    { attempt: '2x' },
    { attempt: null },
    { groups: [] },
    { groups: { 0: 'ops' } },
  ];
  for (const more of wrong) {
    const { status } = await logIn(a, await issuer.token({ ...right, ...more }), proof.id);
    assert.equal(status, 400, JSON.stringify(more));
  }
});

test('keys and algorithms are those of the proof, never of the token', async () => {
  const { a, issuer, key } = await around();
  const [jwk] = issuer.jwks.keys;
  assert.ok(jwk);
  const good = await issuer.token();
  const [, payload = '', signature = ''] = good.split('.');
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const pem = await exportSPKI((await importJWK(jwk, 'ES256')) as CryptoKey);
  const now = Math.floor(a.world.now() / second);
  const claims = { iss: issuer.issuer, aud: 'kms', sub: 'build', iat: now, exp: now + 60 };
  const other = await TokenIssuer.make(() => a.world.now());
  const rsa = await TokenIssuer.make(() => a.world.now(), issuer.issuer, 'RS256');
  const forged: Readonly<Record<string, string>> = {
    'signed by another': await other.token(),
    'signed by an RSA key': await rsa.token(),
    'the public key as a secret': await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'one' })
      .sign(Buffer.from(pem)),
    ...Object.fromEntries(
      ['none', 'None', 'NONE', 'nOnE', '', 'toString', '__proto__'].map((alg) => [
        `algorithm ${alg}`,
        `${part({ alg, kid: 'one' })}.${payload}.${signature}`,
      ]),
    ),
    'no signature': `${part({ alg: 'none' })}.${payload}.`,
    'a key of its own': await other.token({}, { jwk: other.jwks.keys[0] }),
    'an address for keys': await other.token({}, { jku: 'https://evil.example/keys' }),
    'another key id': await issuer.token({}, { kid: 'two' }),
    'a token for events': await issuer.token({}, { typ: 'secevent+jwt' }),
    'an unencoded payload': `${part({ alg: 'ES256', kid: 'one', b64: false, crit: ['b64'] })}.${payload}.${signature}`,
    'another payload': `${good.split('.')[0]}.${part({ ...claims, sub: 'build', extra: 1 })}.${signature}`,
    'a padded signature': `${good}=`,
    'four parts': `${good}.x`,
    'two parts': good.split('.').slice(0, 2).join('.'),
    rubbish: 'x',
    'one that is too long': `${good}${'A'.repeat(17_000)}`,
  };
  for (const [what, token] of Object.entries(forged)) {
    const { status, body } = await logIn(a, token, key.keyid);
    assert.ok(status === 400 || status === 413, `${what}: ${status} ${JSON.stringify(body)}`);
  }
  assert.equal((await logIn(a, good, key.keyid)).status, 200);
});

test('a trust that lets in strangers cannot be made', async () => {
  const { a, issuer, key } = await around();
  const github = 'https://token.actions.githubusercontent.com';
  const refused: readonly AnyJson[] = [
    { audience: undefined },
    { audience: '' },
    { audience: [] },
    { subject: undefined },
    { subject: '*' },
    { subject: '**' },
    { subject: 'repo:*', issuer: github },
    { subject: 'repo:*/payroll:ref:refs/heads/main', issuer: github },
    { subject: undefined, issuer: github, claims: { ref: 'refs/heads/main', environment: 'prod' } },
    { subject: undefined, claims: { iss: 'https://ci.example.org' } },
    { subject: undefined, claims: { project: '*' } },
    { issuer: 'http://ci.example.org' },
    { issuer: 'https://user:pass@ci.example.org' },
    { issuer: 'ftp://ci.example.org' },
    { issuer: 'x' },
    { issuer: 'spiffe://Acme' },
    { issuer: 'spiffe://acme/path', subject: 'spiffe://acme/path/x' },
    { issuer: 'spiffe://acme', subject: 'spiffe://other/x' },
    { jwks: { keys: [{ kty: 'RSA', d: 'AQ', n: 'AQ', e: 'AQAB' }] } },
    { jwks: { keys: [{ kty: 'oct', k: 'AQ' }] } },
    { jwks: { keys: 'x' } },
    { longest: 100_000 },
  ];
  for (const more of refused) {
    const body = { kind: 'jwt', issuer: issuer.issuer, audience: 'kms', subject: 'build', jwks: issuer.jwks, ...more };
    const { status } = await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, body);
    assert.equal(status, 400, JSON.stringify(more));
  }
  await trustIssuer(a, key.keyid, issuer, { issuer: github, subject: 'repo:acme/*:ref:refs/heads/main' });
  await trustIssuer(a, key.keyid, issuer, { issuer: github, subject: undefined, claims: { repository_id: 42 } });
});

test('what ends a proof or its key ends its sessions from the next request on', async () => {
  const ends: Readonly<
    Record<string, (a: Appliance, key: AnyJson, proof: AnyJson, token: string) => Promise<unknown>>
  > = {
    'the proof is switched off': (a, key, proof) =>
      a.call('PATCH', `/auth/apikeys/${key.keyid}/proofs/${proof.id}`, { active: false }),
    'the proof is removed': (a, key, proof) => a.call('DELETE', `/auth/apikeys/${key.keyid}/proofs/${proof.id}`),
    'the key is disabled': (a, key) =>
      a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', active: false }),
    'the key expires': (a, key) =>
      a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', expiresAt: a.world.now() }),
    'the key is deleted': (a, key) => a.call('DELETE', `/auth/apikeyid/${key.keyid}`),
    'the key is bound to another address': (a, key) =>
      a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', allowedAddresses: ['192.0.2.9'] }),
    'the session ends': (a, _key, _proof, token) => a.call('POST', '/auth/workload/logout', undefined, { key: token }),
  };
  for (const [what, end] of Object.entries(ends)) {
    const { a, issuer, key, proof } = await around();
    const { accessToken } = (await logIn(a, await issuer.token(), key.keyid)).body;
    const look = () => a.call('GET', '/ks/keyrings', undefined, { key: accessToken });
    assert.equal((await look()).status, 200, what);
    await end(a, key, proof, accessToken);
    assert.equal((await look()).status, 401, what);
    if (what !== 'the session ends')
      assert.notEqual((await logIn(a, await issuer.token(), key.keyid)).status, 200, what);
  }
});

test('a lease is renewed within the time that its login allows', async () => {
  const { a, issuer, key } = await around();
  const { body } = await logIn(a, await issuer.token(), key.keyid);
  const as = { key: body.accessToken };
  a.advance(1000 * 3000);
  assert.equal((await a.call('GET', '/auth/workload/session', undefined, as)).body.subject, 'build');
  const short = await a.call('POST', '/auth/workload/renew', { seconds: 60 }, as);
  assert.equal(short.body.expiresAt, a.world.now() + 60_000);
  for (let hours = 0; hours < 13; hours++) {
    const { status } = await a.call('POST', '/auth/workload/renew', { seconds: 999_999 }, as);
    assert.equal(status, hours < 12 ? 200 : 401, `after ${hours} hours`);
    a.advance(3_599_000);
  }
  assert.equal((await a.call('POST', '/auth/workload/renew', {}, { key: key.key })).status, 400);
});

test('a token that may be used once opens one session', async () => {
  const { a, issuer, key } = await around();
  const proof = await trustIssuer(a, key.keyid, issuer, { subject: 'once', once: true });
  const token = await issuer.token({ sub: 'once', jti: 'x' });
  assert.equal((await logIn(a, token, proof.id)).status, 200);
  const again = await logIn(a, token, proof.id);
  assert.equal(again.status, 400);
  assert.match(again.body.message, /used before/);
  assert.match((await logIn(a, await issuer.token({ sub: 'once' }), proof.id)).body.message, /jti is missing/);
});

test('a SPIFFE ID is known by trust domain and path', async () => {
  const { a, issuer, key } = await around();
  const jwks = { keys: issuer.jwks.keys.map((each) => ({ ...each, use: 'jwt-svid' })), spiffe_sequence: 1 };
  const proof = await trustIssuer(a, key.keyid, issuer, {
    issuer: 'spiffe://acme.example',
    subject: 'spiffe://acme.example/ns/*/sa/ci',
    jwks,
  });
  const svid = (sub: string, more = {}) => issuer.token({ iss: undefined, sub, ...more });
  assert.equal((await logIn(a, await svid('spiffe://acme.example/ns/prod/sa/ci'), proof.id)).status, 200);
  for (const sub of [
    'spiffe://acme.example/ns/a/b/sa/ci',
    'spiffe://acme.example.evil/ns/prod/sa/ci',
    'spiffe://acme.example/ns/../sa/ci',
    'spiffe://acme.example/ns//sa/ci',
    'spiffe://other/ns/prod/sa/ci',
  ]) {
    assert.equal((await logIn(a, await svid(sub), proof.id)).status, 400, sub);
  }
});

test('a key without a secret is known by its proofs alone, and may get a secret', async () => {
  const { a, issuer } = await around();
  const made = await a.call('POST', '/auth/apikey', { accountId: a.accountId, flags: {}, secret: false });
  assert.equal(made.status, 200);
  assert.equal(made.body.key, '');
  const { keyid } = made.body;
  const path = `/auth/apikeys/${keyid}/proofs`;
  assert.deepEqual((await a.call('GET', path)).body, { proofs: [] });
  await trustIssuer(a, keyid, issuer);
  assert.equal((await logIn(a, await issuer.token(), keyid)).status, 200);
  const { key } = (await a.call('POST', path, { kind: 'secret' })).body;
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { key })).status, 403);
  assert.equal((await a.call('POST', path, { kind: 'secret' })).status, 400);
  assert.equal((await a.call('GET', path)).body.proofs[0].id, 'secret');
  assert.equal((await a.call('DELETE', `${path}/secret`)).status, 200);
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { key })).status, 401);
});

test('an access key is shown once, found by its id, and a key has two at most', async () => {
  const { a, key } = await around();
  const path = `/auth/apikeys/${key.keyid}/proofs`;
  const { body } = await a.call('POST', path, { kind: 'aws' });
  assert.match(body.accessKeyId, /^KMSA[A-Z2-7]{16}$/);
  assert.match(body.secretAccessKey, /^[A-Za-z0-9/+]{40}$/);
  assert.equal(JSON.stringify((await a.call('GET', path)).body).includes(body.secretAccessKey), false);
  assert.equal((await a.call('POST', path, { kind: 'aws' })).status, 200);
  assert.equal((await a.call('POST', path, { kind: 'aws' })).status, 403);
  assert.equal((await a.call('DELETE', `${path}/${body.accessKeyId}`)).status, 200);
  assert.equal((await a.call('POST', path, { kind: 'aws' })).status, 200);
});

test('whoever adds a proof must hold the flags that it hands out', async () => {
  const { a, issuer } = await around();
  const weak = await a.keyWith('apikey.update');
  const strong = await a.keyWith('keyring.list');
  const body = { kind: 'jwt', issuer: issuer.issuer, audience: 'kms', subject: 'build', jwks: issuer.jwks };
  assert.equal((await a.call('POST', `/auth/apikeys/${strong.keyid}/proofs`, body, { key: weak.key })).status, 403);
  assert.equal((await a.call('POST', `/auth/apikeys/${a.root.keyid}/proofs`, body, { key: weak.key })).status, 403);
  assert.equal((await a.call('POST', `/auth/apikeys/${weak.keyid}/proofs`, body, { key: weak.key })).status, 200);
});

test('the last holder of * keeps a proof that cannot be taken away by others', async () => {
  const a = await testAppliance();
  const { status } = await a.call('DELETE', `/auth/apikeys/${a.root.keyid}/proofs/secret`);
  assert.equal(status, 400);
});

test('a token and its session belong to one tenant', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'default', hosts: ['*'] },
      { name: 'other', hosts: ['other.test'] },
    ],
  });
  const issuer = await TokenIssuer.make(() => a.world.now());
  const key = await a.keyWith('keyring.list');
  await trustIssuer(a, key.keyid, issuer);
  const { accessToken } = (await logIn(a, await issuer.token(), key.keyid)).body;
  const elsewhere = { key: accessToken, host: 'other.test' };
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, elsewhere)).status, 401);
});

test('a test of a token says which check fails, and opens no session', async () => {
  const { a, issuer, key, proof } = await around();
  const path = `/auth/apikeys/${key.keyid}/proof-test`;
  const right = await a.call('POST', path, { token: await issuer.token() });
  assert.equal(right.body.proofs[0].accepted, true);
  const { body } = await a.call('POST', path, { token: await issuer.token({ aud: 'x' }) });
  assert.deepEqual(body.proofs, [
    {
      proof: proof.id,
      accepted: false,
      steps: [
        { check: 'issuer', ok: true },
        { check: 'form', ok: true },
        { check: 'keys', ok: true },
        { check: 'signature', ok: true },
        { check: 'audience', ok: false, reason: 'it was issued for another audience' },
      ],
    },
  ]);
});

test('a client that tries one refused token again and again is not braked, nor is a right one by whatever others try', async () => {
  const { a, issuer, key } = await around();
  const stale = await issuer.token({ aud: 'x' });
  for (let n = 0; n < 60; n++) assert.equal((await logIn(a, stale, key.keyid)).status, 400);
  for (let n = 0; n < 60; n++) await logIn(a, await issuer.token({ aud: 'x', n }), key.keyid);
  const another = await issuer.token({ aud: 'y' });
  assert.equal((await logIn(a, another, key.keyid)).status, 429);
  const elsewhere = { key: null, env: { remoteAddress: '192.0.2.77' } };
  const body = { token: another, role: key.keyid };
  assert.equal((await a.call('POST', '/auth/workload/login', body, elsewhere)).status, 400);
  // A right one is let in at once, and its login ends the count.
  assert.equal((await logIn(a, await issuer.token(), key.keyid)).status, 200);
  assert.equal((await logIn(a, another, key.keyid)).status, 400);
});

test('no token is in the log or the activity', async () => {
  const { a, issuer, key } = await around();
  const token = await issuer.token();
  const { accessToken } = (await logIn(a, token, key.keyid)).body;
  await logIn(a, await issuer.token({ aud: 'x' }), key.keyid);
  const kept = JSON.stringify([a.log, await a.activity()]);
  for (const secret of [token, token.split('.')[2] ?? '', accessToken]) assert.equal(kept.includes(secret), false);
});

test('trusts by words that any tenant of a public issuer has cannot be made', async () => {
  const { a, issuer, key } = await around();
  const github = 'https://token.actions.githubusercontent.com';
  const gitlab = 'https://gitlab.com';
  const google = 'https://accounts.google.com';
  const refused: readonly (readonly [string, AnyJson])[] = [
    [github, { claims: { sub: 'repo:**' } }],
    [github, { claims: { '/sub': 'repo:acme/x' } }],
    [github, { claims: { repository_visibility: 'private' } }],
    [github, { claims: { repository: 'acme*/**' } }],
    [github, { claims: { repository_owner_id: '4*' } }],
    [github, { claims: { actor: 'ada' } }],
    [github, { subject: 'repo:acme*/x:ref:refs/heads/main' }],
    [gitlab, { claims: { user_access_level: 'owner' } }],
    [gitlab, { subject: 'project_path:**' }],
    [google, { subject: '1*' }],
    [google, { claims: { locale: 'en' } }],
    ['https://app.terraform.io', { claims: { terraform_run_phase: 'apply' } }],
    ['https://agent.buildkite.com', { claims: { build_branch: 'main' } }],
    ['https://kubernetes.default.svc', { subject: 'system:serviceaccount:*:*' }],
    ['https://kubernetes.default.svc', { subject: 'system:serviceaccount:prod*:app' }],
    ['https://ci.example.org', { subject: 's**' }],
    ['https://ci.example.org', { claims: { project: 'p*' } }],
    ['spiffe://acme', { subject: 'spiffe://acme/*' }],
  ];
  const trust = { kind: 'jwt', audience: 'kms', jwks: issuer.jwks };
  for (const [named, more] of refused) {
    const body = { ...trust, issuer: named, ...more };
    const { status } = await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, body);
    assert.equal(status, 400, JSON.stringify([named, more]));
  }
  const taken: readonly (readonly [string, AnyJson])[] = [
    [github, { subject: 'repo:acme/*:ref:refs/heads/main' }],
    [github, { claims: { repository_owner_id: 42, ref: 'refs/heads/main' } }],
    [github, { claims: { repository: 'acme/*' } }],
    [gitlab, { subject: 'project_path:acme/payroll:**' }],
    [google, { subject: '104857600' }],
    ['https://kubernetes.default.svc', { subject: 'system:serviceaccount:prod:*' }],
    ['spiffe://acme', { subject: 'spiffe://acme/ns/prod/*' }],
  ];
  for (const [named, more] of taken) {
    const { status, body } = await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, {
      ...trust,
      issuer: named,
      ...more,
    });
    assert.equal(status, 200, JSON.stringify([named, more, body]));
  }
});

test('keys that would cost much to verify with, or none at all, cannot be pinned', async () => {
  const { a, issuer, key } = await around();
  const long = (bits: number) => Buffer.alloc(bits / 8, 0xff).toString('base64url');
  const rsa = (bits: number, e = 'AQAB') => ({ kty: 'RSA', n: long(bits), e });
  const many = Array.from({ length: 21 }, () => rsa(2048));
  for (const keys of [
    [],
    [rsa(1024)],
    [rsa(16_384)],
    [rsa(3072, long(3072))],
    [{ ...rsa(2048), alg: 'HS256' }],
    many,
  ]) {
    const body = { kind: 'jwt', issuer: issuer.issuer, audience: 'kms', subject: 'build', jwks: { keys } };
    assert.equal((await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, body)).status, 400, `${keys.length} keys`);
  }
});

test('a refused token that is sent again leaves no second record, and is braked in the end', async () => {
  const { a, key } = await around();
  const statuses: number[] = [];
  for (let n = 0; n < 600; n++) statuses.push((await logIn(a, 'a.b.c', key.keyid)).status);
  assert.ok(statuses.includes(429));
  const records = (await a.activity()).filter(
    ({ action, keyid }) => action === 'session.create' && keyid === key.keyid,
  );
  assert.equal(records.length, 1);
});

test('a token of a disabled key is no success that forgives others', async () => {
  const { a, issuer, key } = await around();
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', active: false });
  let braked = false;
  for (let n = 0; n < 80 && !braked; n++) {
    const token = n % 10 === 0 ? await issuer.token({ n }) : await issuer.token({ aud: 'x', n });
    braked = (await logIn(a, token, key.keyid)).status === 429;
  }
  assert.ok(braked);
});

test('whatever is off refuses alike by id and by name, once the token is verified, and is recorded under the key', async () => {
  const ends: Readonly<Record<string, (a: Appliance, key: AnyJson, proof: AnyJson) => Promise<unknown>>> = {
    'the key is disabled': (a, { keyid }) =>
      a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', active: false }),
    'the key has expired': (a, { keyid }) =>
      a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', expiresAt: a.world.now() }),
    'the proof is off': (a, { keyid }, { id }) =>
      a.call('PATCH', `/auth/apikeys/${keyid}/proofs/${id}`, { active: false }),
  };
  for (const [what, end] of Object.entries(ends)) {
    const { a, issuer, key, proof } = await around();
    await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', name: 'ci' });
    await end(a, key, proof);
    const stranger = await TokenIssuer.make(() => a.world.now());
    for (const role of [key.keyid, 'ci', proof.id]) {
      assert.equal((await logIn(a, await issuer.token(), role)).body.check, 'api-key', `${what}: ${role}`);
      const forged = await logIn(a, await stranger.token(), role);
      assert.equal(forged.status, 400);
      assert.notEqual(forged.body.check, 'api-key', `${what}: a stranger learns nothing about ${role}`);
      // The same refusal of a key is recorded once a minute.
      a.advance(61_000);
    }
    const told = (await a.activity()).filter(
      ({ keyid, props }) => keyid === key.keyid && props.refusedBy === 'api-key',
    );
    assert.deepEqual(
      told.map(({ props }) => [props.proof, props.subject]),
      Array.from({ length: 3 }, () => [proof.id, 'build']),
      what,
    );
    // A key that can be used has the name.
    const next = await a.keyWith();
    await trustIssuer(a, next.keyid, issuer);
    await a.call('PUT', '/auth/apikeyid', { apikeyid: next.keyid, op: 'merge', name: 'ci' });
    assert.equal((await logIn(a, await issuer.token(), 'ci')).body.keyid, next.keyid, what);
  }
});

test('failed passwords do not keep programs out', async () => {
  const { a, issuer, key } = await around();
  for (let n = 0; n < 60; n++) {
    await a.call('POST', '/auth/basic/login', { username: `u${n}`, password: 'x' }, { key: null });
  }
  assert.equal((await logIn(a, await issuer.token(), key.keyid)).status, 200);
});

test('sessions that have ended push no open one out', async () => {
  const { a, issuer, key } = await around();
  const { accessToken: open } = (await logIn(a, await issuer.token(), key.keyid)).body;
  for (let n = 0; n < 1010; n++) {
    const { accessToken } = (await logIn(a, await issuer.token(), key.keyid)).body;
    await a.call('POST', '/auth/workload/logout', undefined, { key: accessToken });
  }
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { key: open })).status, 200);
});

test('the name by which programs log in is not taken by a caller who may not touch their key', async () => {
  const { a, issuer, key } = await around();
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', name: 'payroll-ci' });
  const weak = await a.keyWith('apikey.create', 'apikey.update');
  const make = { accountId: a.accountId, name: 'payroll-ci', flags: {} };
  assert.equal((await a.call('POST', '/auth/apikey', make, { key: weak.key })).status, 403);
  const rename = { apikeyid: weak.keyid, op: 'merge', name: 'payroll-ci' };
  assert.equal((await a.call('PUT', '/auth/apikeyid', rename, { key: weak.key })).status, 403);
  // An old key of the same name, disabled, is no rival.
  const old = (await a.call('POST', '/auth/apikey', make)).body;
  await a.call('PUT', '/auth/apikeyid', { apikeyid: old.keyid, op: 'merge', active: false });
  assert.equal((await logIn(a, await issuer.token(), 'payroll-ci')).status, 200);
});

test('a token that is used up is so for every proof, and after its proof was made again', async () => {
  const { a, issuer, key } = await around();
  const once = () => trustIssuer(a, key.keyid, issuer, { subject: 'once', once: true });
  const [first, second] = [await once(), await once()];
  const token = await issuer.token({ sub: 'once', jti: 'y', exp: Math.floor(a.world.now() / 1000) + 60.5 });
  assert.equal((await logIn(a, token, first.id)).status, 200);
  assert.match((await logIn(a, token, second.id)).body.message, /used before/);
  await a.call('DELETE', `/auth/apikeys/${key.keyid}/proofs/${first.id}`);
  assert.match((await logIn(a, token, (await once()).id)).body.message, /used before/);
});

test('numbers that are rounded when they are read fit no claim', async () => {
  const { a, issuer, key } = await around();
  const trust = { subject: undefined, claims: { uid: '9007199254740992' } };
  const proof = await trustIssuer(a, key.keyid, issuer, trust);
  const [header = '', ,] = (await issuer.token()).split('.');
  assert.ok(header);
  assert.equal((await logIn(a, await issuer.token({ uid: 9007199254740992 }), proof.id)).status, 400);
  assert.equal((await logIn(a, await issuer.token({ uid: '9007199254740992' }), proof.id)).status, 200);
});

test('a session ends with its key, and none revives with its proof', async () => {
  const { a, issuer, key, proof } = await around();
  const expiresAt = a.world.now() + 60_000;
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', expiresAt });
  const { body } = await logIn(a, await issuer.token(), key.keyid);
  assert.equal(body.expiresAt, expiresAt);
  const path = `/auth/apikeys/${key.keyid}/proofs/${proof.id}`;
  await a.call('PATCH', path, { active: false });
  await a.call('PATCH', path, { active: true });
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { key: body.accessToken })).status, 401);
});

test('records tell what a proof trusted, whose token was refused, and which proofs get new flags', async () => {
  const { a, issuer, key, proof } = await around();
  await logIn(a, await issuer.token({ sub: 'other' }), key.keyid);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', flags: { 'keyring.create': true } });
  const [grown, refused, added] = (await a.activity()).filter(({ props }) => JSON.stringify(props).includes(proof.id));
  assert.equal(added?.props.proofChange, 'add');
  const { trust }: AnyJson = added?.props ?? {};
  assert.equal(trust.issuer, issuer.issuer);
  assert.equal(refused?.props.refusedBy, 'subject');
  assert.equal(refused?.props.subject, 'other');
  assert.equal(grown?.action, 'apikey.update');
});

test('an API key is read with its proofs in one request and one record', async () => {
  const { a, key } = await around();
  const before = (await a.activity()).length;
  const { status, body } = await a.call('GET', `/auth/apikey/${key.keyid}?proofs=true`);
  assert.equal(status, 200);
  assert.equal((await a.activity()).length, before + 1);
  const { proofs, ...rest } = body;
  assert.deepEqual(proofs, (await a.call('GET', `/auth/apikeys/${key.keyid}/proofs`)).body.proofs);
  assert.deepEqual(
    proofs.map(({ kind }: AnyJson) => kind),
    ['secret', 'jwt'],
  );
  assert.deepEqual((await a.call('GET', `/auth/apikey/${key.keyid}`)).body, rest);
});
