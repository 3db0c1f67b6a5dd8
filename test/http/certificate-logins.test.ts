// Logins by a client certificate, native and as Vault's clients do it: the token is good only with a certificate of the
// same key that still fits the proof.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { TestCertificate, uri } from '../support/client-certificates.ts';

const id = 'spiffe://prod.example/payroll';

async function around() {
  const a = await testAppliance();
  const now = a.world.now();
  const key = await a.keyWith('key.*');
  const authority = await TestCertificate.authority(now);
  const body = { kind: 'certificate', ca: authority.pem, san: id, name: 'payroll' };
  const made = await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, body);
  assert.equal(made.status, 200, made.text);
  const program = await authority.signs({ names: [uri(id)], serial: '0102030405060708' });
  return { a, now, key, authority, proof: made.body, program };
}

interface Sent {
  readonly by?: TestCertificate | undefined;
  readonly token?: string;
}

function vault(a: Appliance, method: string, path: string, body?: AnyJson, { by, token }: Sent = {}) {
  const headers = token === undefined ? {} : { 'X-Vault-Token': token };
  return a.call(method, `/v1/${path}`, body, { key: null, env: { surface: 'vault', ...by?.shown }, headers });
}

const logIn = (a: Appliance, by: TestCertificate | undefined, more: object = {}) =>
  a.call('POST', '/auth/workload/login', { certificate: true, ...more }, { key: null, env: { ...by?.shown } });

const constraints = 'no chain matching all constraints could be found for this login certificate';
const untrusted = 'invalid certificate or no client certificate supplied';

test('a login answers a token that is bound to the certificate', async () => {
  const { a, key, proof, program, authority } = await around();
  for (const role of [undefined, key.keyid, proof.id]) {
    const { status, body } = await logIn(a, program, role === undefined ? {} : { role });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.subject, id);
    assert.equal(body.certificate.serialNumber, String(0x0102030405060708n));
    const get = (env: object) => a.call('GET', '/auth/workload/session', undefined, { key: body.accessToken, env });
    assert.equal((await get(program.shown)).body.certificate.name, 'payroll');
    assert.equal((await get({})).status, 401, 'without the certificate');
    const sibling = await authority.signs({ names: [uri(id)] });
    assert.equal((await get(sibling.shown)).status, 401, 'with a sibling that the authority signed');
    const renewed = await authority.signs({ names: [uri(id)], keys: program.keys });
    assert.equal((await get(renewed.shown)).status, 200, 'with a new one of the same key');
    const other = await authority.signs({ names: [uri(`${id}2`)], keys: program.keys });
    assert.equal((await get(other.shown)).status, 401, 'with one of the same key for something else');
  }
  const [record] = (await a.activity()).filter(({ action }) => action === 'session.create');
  assert.deepEqual([record?.keyid, record?.props.proof, record?.props.subject], [key.keyid, proof.id, id]);
});

test('the session ends with the proof, the certificate and itself', async () => {
  const { a, key, proof, authority } = await around();
  const short = await authority.signs({ names: [uri(id)], notAfter: a.world.now() + 600_000 });
  let { accessToken } = (await logIn(a, short)).body;
  const get = () => a.call('GET', '/auth/workload/session', undefined, { key: accessToken, env: short.shown });
  const path = `/auth/apikeys/${key.keyid}/proofs/${proof.id}`;
  assert.equal((await get()).status, 200);
  await a.call('PATCH', path, { active: false });
  assert.equal((await get()).status, 401);
  await a.call('PATCH', path, { active: true });
  ({ accessToken } = (await logIn(a, short)).body);
  a.advance(601_000);
  assert.equal((await get()).status, 401, 'the certificate has expired');
  a.advance(-601_000);
  assert.equal((await get()).status, 200);
  await a.call('DELETE', path);
  assert.equal((await get()).status, 401);
});

test("Vault's clients log in by cert, renew, and work without a token", async () => {
  const { a, key, proof, program, authority } = await around();
  for (const [method, path, name] of [
    ['POST', 'auth/cert/login', undefined],
    ['PUT', 'auth/cert/login', key.keyid],
    ['POST', 'auth/cert-prod/eu/login', proof.id],
    ['PUT', 'default/auth/cert/login', ''],
  ] as const) {
    const { status, body } = await vault(a, method, path, name === undefined ? undefined : { name }, { by: program });
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
    const { auth } = body;
    assert.match(auth.client_token, /^kmswt_/);
    assert.deepEqual(auth.metadata, {
      cert_name: 'payroll',
      common_name: 'program',
      serial_number: String(0x0102030405060708n),
      subject_key_id: '',
      authority_key_id: '',
    });
    const own = { by: program, token: auth.client_token };
    const { data } = (await vault(a, 'GET', 'auth/token/lookup-self', undefined, own)).body;
    assert.equal(data.path, 'auth/cert/login');
    assert.deepEqual(data.meta, auth.metadata);
    assert.equal((await vault(a, 'PUT', 'auth/token/renew-self', {}, own)).body.auth.lease_duration, 3600);
    const sibling = await authority.signs({ names: [uri(id)] });
    for (const by of [undefined, sibling]) {
      for (const each of ['renew-self', 'revoke-self']) {
        assert.equal((await vault(a, 'PUT', `auth/token/${each}`, {}, { ...own, by })).status, 403, each);
      }
    }
    assert.equal((await vault(a, 'PUT', 'auth/token/revoke-self', {}, own)).status, 204);
    assert.equal((await vault(a, 'GET', 'auth/token/lookup-self', undefined, own)).status, 403);
  }
  assert.ok((await vault(a, 'POST', 'transit/keys/app', {}, { by: program })).status < 300);
  const [record] = (await a.activity()).filter(({ action }) => action === 'key.create');
  assert.deepEqual([record?.keyid, record?.props.proof, record?.props.subject], [key.keyid, proof.id, id]);
  assert.equal((await vault(a, 'GET', 'auth/token/lookup-self', undefined, { by: program })).body.data.entity_id, '');
  assert.equal((await vault(a, 'GET', 'transit/keys/app', undefined, { by: program, token: 'wrong' })).status, 403);
  assert.equal((await vault(a, 'GET', 'transit/keys/app')).status, 403);
});

test('refusals have the words of the method', async () => {
  const { a, now, key, authority, program } = await around();
  const stranger = await TestCertificate.authority(now);
  const other = await authority.signs({ names: [uri(`${id}2`)] });
  const old = await authority.signs({ names: [uri(id)], notAfter: now - 1000 });
  const forged = await stranger.signs({ names: [uri(id)] });
  const cases: readonly (readonly [string, TestCertificate | undefined, object, string])[] = [
    ['none', undefined, { name: key.keyid }, 'no client certificate found'],
    ['another name', other, { name: key.keyid }, constraints],
    ['expired', old, { name: key.keyid }, constraints],
    ['expired, no role', old, {}, constraints],
    ['another authority', forged, { name: key.keyid }, untrusted],
    ['another authority, no role', forged, {}, untrusted],
    ['an unknown role', program, { name: 'nope' }, untrusted],
  ];
  for (const [what, by, body, said] of cases) {
    const answer = await vault(a, 'POST', 'auth/cert/login', body, { by });
    assert.equal(answer.status, 400, what);
    assert.deepEqual(answer.body.errors, [said], what);
    const elsewhere = await vault(a, 'POST', 'nobody/auth/cert/login', body, { by });
    assert.deepEqual(elsewhere.body.errors, [by ? untrusted : said], `${what}, no such tenant`);
  }
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', active: false });
  const off = await vault(a, 'POST', 'auth/cert/login', {}, { by: program });
  assert.deepEqual([off.status, off.body.errors], [403, ['permission denied']]);
  const failed = (await a.activity()).filter(({ keyid, action }) => keyid === key.keyid && action === 'session.create');
  assert.deepEqual([...new Set(failed.map(({ validAction }) => validAction))], [false]);
});

test('a login by a page, or with nothing, is refused, and so is a request that says it has both', async () => {
  const { a, program } = await around();
  const headers = { 'Sec-Fetch-Site': 'cross-site' };
  const page = await a.call(
    'POST',
    '/auth/workload/login',
    { certificate: true },
    { key: null, env: program.shown, headers },
  );
  assert.equal(page.status, 400);
  assert.equal(page.body.check, 'certificate');
  assert.equal((await a.call('POST', '/auth/workload/login', {}, { key: null, env: program.shown })).status, 400);
  assert.equal((await logIn(a, program, { token: 'x' })).status, 400);
});

test('failed logins of Vault wait alike, whether there is such a tenant or not', async () => {
  for (const path of ['auth/cert/login', 'nobody/auth/cert/login']) {
    for (const shows of [true, false]) {
      const { a, authority } = await around();
      let tries = 0;
      for (let status = 0; status !== 429 && tries < 600; tries++) {
        const by = shows ? await authority.signs({ names: [uri(`${id}${tries}`)] }) : undefined;
        ({ status } = await vault(a, 'POST', path, {}, { by }));
      }
      assert.equal(tries, shows ? 51 : 491, `${path}, ${shows ? 'another certificate each time' : 'none'}`);
    }
  }
});

test('failed logins wait, by address and not by key, and right ones never', async () => {
  const { a, now, authority, program } = await around();
  const from = (address: string, by: TestCertificate) => ({
    key: null,
    env: { ...by.shown, remoteAddress: address },
  });
  let status = 0;
  for (let n = 0; n < 60 && status !== 429; n++) {
    const wrong = await authority.signs({ names: [uri(`${id}${n}`)] });
    ({ status } = await a.call('POST', '/auth/workload/login', { certificate: true }, from('192.0.2.1', wrong)));
  }
  assert.equal(status, 429);
  for (const address of ['192.0.2.2', '192.0.2.1']) {
    const right = await a.call('POST', '/auth/workload/login', { certificate: true }, from(address, program));
    assert.equal(right.status, 200, address);
  }
  assert.ok(now > 0);
});
