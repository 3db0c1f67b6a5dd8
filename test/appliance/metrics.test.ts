// Contents of `/metrics`: numbers that follow the requests, for the caller's tenant and for the process, and no secret.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { OpenAppliance } from '../../src/appliance/appliance.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import type { ApplianceOptions } from '../../src/appliance/config.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { serve } from '../../src/server/serve.ts';
import { Buckets, mostRings, otherRings, RequestCounts, StoreCounts } from '../../src/telemetry/metrics/counts.ts';
import { dns, TestCertificate } from '../support/client-certificates.ts';
import { type Family, numberOf, parsePrometheus } from '../support/prometheus-text.ts';
import { TokenIssuer } from '../support/token-issuer.ts';
import { place } from './tenant-appliance.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-metrics-'));
after(() => rmSync(base, { recursive: true, force: true }));

type Scraped = ReadonlyMap<string, Family>;

interface Caller {
  readonly app: OpenAppliance['app'];
  readonly host?: string;
  readonly key?: string;
  readonly certificate?: TestCertificate['shown']['certificate'];
}

function send(
  { app, host = 'kms.example.org', key, certificate }: Caller,
  method: string,
  path: string,
  body?: object,
) {
  const headers = {
    host,
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(body && { 'content-type': 'application/json' }),
  };
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  return app.fetch(new Request(`http://${host}${path}`, init), { ...(certificate && { certificate }) });
}

async function scrape(caller: Caller): Promise<Scraped> {
  const answer = await send(caller, 'GET', '/metrics');
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  return parsePrometheus(await answer.text());
}

const requests = (scraped: Scraped, action: string, verdict: string, status: number): number =>
  numberOf(scraped, 'kms_requests_total', { action, verdict, status: String(status) }) ?? 0;

let count = 0;
async function opened(options: Partial<ApplianceOptions> = {}) {
  const data = join(base, `data-${++count}`);
  const made = await initAppliance({ data });
  const appliance = await openAppliance({ data, ...options });
  const root: Caller = { app: appliance.app, key: made.apiKey.key };
  return { data, made, appliance, root, [Symbol.asyncDispose]: () => appliance.close() };
}

test('the numbers follow the requests: action, verdict, status, duration', async () => {
  await using at = await opened();
  const { root, made, appliance } = at;
  const nobody = { app: appliance.app };
  const wrong = { app: appliance.app, key: 'kms_wrong' };
  const created = await send(root, 'POST', '/auth/apikey', { accountId: made.accountId, flags: {} });
  const weak: Caller = { app: appliance.app, key: ((await created.json()) as { key: string }).key };
  await send(root, 'POST', '/ks/keyrings', { name: 'payroll' });
  for (let n = 0; n < 3; n++) await send(root, 'POST', '/ks/encrypt', { ringname: 'payroll' });
  await send(root, 'POST', '/ks/encrypt', { ringname: 'nowhere' });
  await send(root, 'POST', '/ks/encrypt', {});
  await send(weak, 'POST', '/ks/encrypt', { ringname: 'payroll' });
  await send(nobody, 'POST', '/ks/encrypt', { ringname: 'payroll' });
  await send(wrong, 'POST', '/ks/encrypt', { ringname: 'payroll' });
  await send(nobody, 'POST', '/auth/basic/login', { username: 'nobody', password: 'wrong' });
  await send(root, 'DELETE', '/ks/encrypt');
  await send(root, 'GET', '/unknown');
  await send(nobody, 'GET', '/healthz');

  const scraped = await scrape(root);
  assert.equal(requests(scraped, 'keyring.create', 'granted', 200), 1);
  assert.equal(requests(scraped, 'keyring.encrypt', 'granted', 200), 3);
  assert.equal(requests(scraped, 'keyring.encrypt', 'granted', 404), 1);
  assert.equal(requests(scraped, 'keyring.encrypt', 'denied', 403), 1);
  assert.equal(requests(scraped, 'keyring.encrypt', 'denied', 401), 2);
  assert.equal(requests(scraped, 'login', 'none', 400), 1);
  assert.equal(requests(scraped, 'none', 'denied', 405), 1);
  assert.equal(requests(scraped, 'system.metrics', 'granted', 200), 0, 'what is not answered yet is not counted yet');
  const counted = scraped.get('kms_requests_total')?.samples.map(({ labels }) => labels.action);
  assert.deepEqual(
    [...new Set(counted)].sort(),
    ['apikey.create', 'keyring.create', 'keyring.encrypt', 'login', 'none'],
    'requests to no known path, and those that belong to no tenant, are not counted',
  );
  const encrypts = scraped
    .get('kms_requests_total')
    ?.samples.filter(({ labels }) => labels.action === 'keyring.encrypt');
  const total = (encrypts ?? []).reduce((sum, { value }) => sum + value, 0);
  assert.equal(numberOf(scraped, 'kms_request_duration_seconds_count', { action: 'keyring.encrypt' }), total);
  assert.ok((numberOf(scraped, 'kms_request_duration_seconds_sum', { action: 'keyring.encrypt' }) ?? 0) > 0);
  assert.equal(requests(await scrape(root), 'system.metrics', 'granted', 200), 1);
});

test('the numbers of the store: groups, fsyncs, sizes, checkpoints', async () => {
  await using at = await opened();
  const { root, appliance } = at;
  for (let n = 0; n < 5; n++) await send(root, 'POST', '/ks/keyrings', { name: `ring-${n}` });
  const before = await scrape(root);
  const groups = numberOf(before, 'kms_commit_duration_seconds_count') ?? 0;
  assert.ok(groups >= 5);
  for (const name of ['kms_fsync_duration_seconds_count', 'kms_commit_transactions_count']) {
    assert.equal(numberOf(before, name), groups, name);
  }
  assert.ok((numberOf(before, 'kms_commit_transactions_sum') ?? 0) >= 5);
  const seconds = (name: string) => numberOf(before, `kms_${name}_duration_seconds_sum`) ?? 0;
  assert.ok(seconds('fsync') > 0 && seconds('commit') >= seconds('fsync'));
  const status = (await appliance.status()).tenants[0]?.store;
  assert.equal(numberOf(before, 'kms_snapshot_bytes'), status?.snapshotBytes);
  assert.equal(numberOf(before, 'kms_activity_bytes'), status?.activityBytes);
  assert.equal(numberOf(before, 'kms_activity_records'), 5);
  assert.equal((await scrape(root)).get('kms_activity_records')?.samples[0]?.value, 6, 'a scrape is recorded too');
  assert.equal(numberOf(before, 'kms_sealed'), 0);
  assert.equal(numberOf(before, 'kms_writes_refused'), 0);
  assert.equal(numberOf(before, 'kms_backup_last_verified_timestamp_seconds'), 0);
  assert.ok((numberOf(before, 'kms_disk_free_bytes') ?? 0) > 0);
  assert.ok((numberOf(before, 'process_resident_memory_bytes') ?? 0) > 1e6);
});

test('checkpoints and failed writes are counted, each by what came of it', async () => {
  const counts = new StoreCounts();
  assert.equal(await counts.checkpoint(async () => 7), 7);
  await assert.rejects(counts.checkpoint(() => Promise.reject(new Error('no'))));
  for (const kind of ['checkpoint', 'checkpoint-failed', 'checkpoint-failed', 'write-failed', 'recovered'] as const) {
    counts.event({ kind, message: '' });
  }
  assert.deepEqual([counts.checkpoints, counts.failedCheckpoints, counts.failedWrites], [1, 2, 1]);
  assert.deepEqual(
    [...counts.checkpointSeconds.counts].reduce((sum, each) => sum + each),
    1,
  );
});

test('a value falls into the first bucket that is not smaller', () => {
  const buckets = new Buckets([1, 2, 4]);
  for (const value of [0, 1, 1.5, 2, 4, 4.1, 1000]) buckets.add(value);
  assert.deepEqual([...buckets.counts], [2, 2, 1, 2]);
  assert.equal(buckets.sum, 1012.6);
});

test('nothing of one tenant is told to another', async () => {
  await using p = await place(['one.example']);
  const other = (await p.local('POST', '/local/tenants', { name: 'other', hosts: ['other.example'] })).body;
  const { app } = p.appliance;
  const one: Caller = { app, host: 'one.example', key: p.made.apiKey.key };
  const two: Caller = { app, host: 'other.example', key: other.apiKey.key };
  const atMachine = new Request('http://kms.local/metrics', { headers: { 'kms-tenant': 'other' } });
  await send(one, 'POST', '/ks/keyrings', { name: 'payroll' });
  for (let n = 0; n < 7; n++) await send(one, 'POST', '/ks/encrypt', { ringname: 'payroll' });
  await send(two, 'GET', '/ks/keyrings');
  assert.equal((await send(two, 'GET', '/metrics')).status, 403);
  const [ofOne, ofTwo] = [await scrape(one), parsePrometheus(await (await p.appliance.fetchLocal(atMachine)).text())];
  assert.equal(requests(ofOne, 'keyring.encrypt', 'granted', 200), 7);
  assert.deepEqual(
    ofTwo.get('kms_requests_total')?.samples.map(({ labels, value }) => [labels.action, value]),
    [
      ['keyring.list', 1],
      ['system.metrics', 1],
    ],
  );
  assert.deepEqual(
    ofTwo
      .get('kms_request_duration_seconds')
      ?.samples.filter(({ labels }) => !['keyring.list', 'system.metrics'].includes(labels.action ?? '')),
    [],
  );
  const written = (scraped: Scraped) => numberOf(scraped, 'kms_commit_transactions_sum') ?? 0;
  assert.ok(written(ofTwo) < written(ofOne));
  assert.equal((await send({ ...one, host: 'other.example' }, 'GET', '/metrics')).status, 401);
  assert.equal((await send({ app, host: 'one.example' }, 'GET', '/metrics')).status, 401);
});

test('encrypts by keyring are told only where that was asked for, and up to a number of keyrings', async () => {
  {
    await using at = await opened();
    const { root } = at;
    await send(root, 'POST', '/ks/keyrings', { name: 'secret-project' });
    await send(root, 'POST', '/ks/encrypt', { ringname: 'secret-project' });
    const answer = await (await send(root, 'GET', '/metrics')).text();
    assert.ok(!answer.includes('secret-project'));
    assert.ok(!answer.includes('kms_ring_encrypts'));
  }
  await using at = await opened({ metrics: { rings: true } });
  const { root } = at;
  await send(root, 'POST', '/ks/keyrings', { name: 'Payroll' });
  for (let n = 0; n < 3; n++) await send(root, 'POST', '/ks/encrypt', { ringname: 'PAYROLL' });
  await send(root, 'POST', '/ks/encrypt', { ringname: 'none-of-that-name' });
  const scraped = await scrape(root);
  assert.deepEqual(
    scraped.get('kms_ring_encrypts_total')?.samples.map(({ labels, value }) => [labels, value]),
    [[{ ring: 'payroll' }, 3]],
  );

  const counts = new RequestCounts(true);
  const count = counts.route('keyring.encrypt');
  const outcome = { status: 200, body: {} };
  for (let n = 0; n < mostRings + 50; n++) count({ outcome, tenant: 't', granted: true, ringname: `ring-${n}` }, 1);
  count({ outcome, tenant: 't', granted: true, ringname: 'ring-7' }, 1);
  const rings = counts.encryptsByRing('t');
  assert.equal(rings?.size, mostRings + 1);
  assert.deepEqual([rings?.get(otherRings), rings?.get('ring-7')], [50, 2]);
});

test('the transit listener: requests by action and status, items by what came of them, tokens and unknown paths', async () => {
  await using at = await opened();
  const { root, appliance, made } = at;
  const v1 = async (method: string, path: string, body?: object, token = made.apiKey.key): Promise<number> => {
    const init = { method, headers: { 'x-vault-token': token }, ...(body && { body: JSON.stringify(body) }) };
    return (await appliance.app.fetch(new Request(`http://kms.test/v1/${path}`, init), { surface: 'vault' })).status;
  };
  await v1('PUT', 'transit/keys/unseal');
  const batch = [{ plaintext: 'YQ==' }, { plaintext: '#' }, { plaintext: 'Yg==' }];
  assert.equal(await v1('PUT', 'transit/encrypt/unseal', { batch_input: batch }), 400);
  assert.equal(await v1('PUT', 'transit/encrypt/unseal', { plaintext: '' }), 200);
  assert.equal(await v1('PUT', 'transit/encrypt/unseal', { plaintext: '' }, 'wrong'), 403);
  assert.equal(await v1('PUT', 'transit/decrypt/unseal', { ciphertext: 'vault:v1:AAAA' }), 400);
  assert.equal(await v1('PUT', 'transit/decrypt/nope', { ciphertext: 'vault:v1:AAAA' }), 400);
  assert.equal(await v1('GET', 'auth/token/lookup-self'), 200);
  assert.equal(await v1('GET', 'auth/token/lookup-self', undefined, 'wrong'), 403);
  assert.equal(await v1('PUT', 'auth/token/renew-self'), 400);
  assert.equal(await v1('PUT', 'auth/approle/login', { role_id: 'x', secret_id: 'y' }), 400);
  assert.equal(await v1('GET', 'nowhere/at/all'), 404);
  const scraped = await scrape(root);
  const items = (action: string) =>
    ['done', 'failed'].map((result) => numberOf(scraped, 'kms_key_items_total', { action, result }));
  assert.deepEqual(items('key.encrypt'), [3, 1]);
  assert.deepEqual(items('key.decrypt'), [0, 1]);
  const ofVault = { action: 'key.encrypt', dialect: 'vault', key: '' };
  assert.equal(numberOf(scraped, 'kms_key_uses_total', ofVault), 2);
  const encrypts = { action: 'key.encrypt' };
  assert.equal(requests(scraped, 'key.encrypt', 'granted', 200), 2);
  assert.equal(requests(scraped, 'key.encrypt', 'denied', 401), 1);
  assert.equal(numberOf(scraped, 'kms_request_duration_seconds_count', encrypts), 3);
  assert.equal(requests(scraped, 'key.decrypt', 'granted', 404), 1);
  assert.equal(requests(scraped, 'session.read', 'granted', 200), 1);
  assert.equal(requests(scraped, 'session.read', 'denied', 403), 1);
  assert.equal(requests(scraped, 'session.refresh', 'denied', 400), 1);
  assert.equal(requests(scraped, 'session.create', 'denied', 400), 1);
  assert.equal(requests(scraped, 'none', 'denied', 404), 1);
});

test('no secret, name, path or header gets into the text', async () => {
  await using at = await opened({ metrics: { rings: true } });
  const { root, made, appliance } = at;
  const { key, keyid } = made.apiKey;
  await send(root, 'POST', '/ks/keyrings', { name: 'payroll' });
  const { header, hash } = (await (await send(root, 'POST', '/ks/encrypt', { ringname: 'payroll' })).json()) as {
    header: string;
    hash: string;
  };
  await send(root, 'GET', `/ks/header/${header}`);
  await send(root, 'GET', `/ks/hash/${hash}`);
  await send(root, 'DELETE', `/auth/apikey/${key}x`);
  const user = { username: 'mallory', email: 'mallory@example.org', firstName: 'M', lastName: 'L' };
  await send(root, 'POST', '/auth/users', user);
  await send(root, 'GET', '/auth/users/mallory');
  await send({ app: appliance.app }, 'POST', '/auth/basic/login', { username: 'mallory', password: 'Tr0ub4dor&3' });
  await send(root, 'GET', '/auth/user/invite-validate?token=tok_secret');
  const text = await (await send(root, 'GET', '/metrics')).text();
  for (const hidden of [
    key,
    keyid,
    header,
    hash,
    'mallory',
    'Tr0ub4dor',
    'tok_secret',
    '/auth',
    'default',
    'tenant_',
  ]) {
    assert.ok(!text.includes(hidden), hidden);
  }
});

test('a sealed appliance answers 503 in place of metrics', async () => {
  const data = join(base, 'sealed');
  const made = await initAppliance({ data });
  const key = readFileSync(made.keyFile, 'utf8');
  const serving = await serve({ data, listen: '127.0.0.1:0', logLevel: 'silent' });
  const headers = { authorization: `Bearer ${made.apiKey.key}`, 'content-type': 'application/json' };
  assert.equal((await fetch(`${serving.url}/metrics`, { headers })).status, 200);
  assert.equal((await fetch(`${serving.url}/system/seal`, { method: 'POST', headers, body: '{}' })).status, 200);
  const answer = await fetch(`${serving.url}/metrics`, { headers });
  assert.deepEqual([answer.status, Object.keys((await answer.json()) as object)], [503, ['message']]);
  await fetch(`${serving.url}/system/unseal`, { method: 'POST', headers, body: JSON.stringify({ key }) });
  const again = await fetch(`${serving.url}/metrics`, { headers });
  assert.equal(numberOf(parsePrometheus(await again.text()), 'kms_sealed'), 0);
  await serving.close();
});

test('the reader of these tests refuses what a scraper would', () => {
  const head = '# HELP a_total x\n# TYPE a_total counter\n';
  assert.equal(numberOf(parsePrometheus(`${head}a_total{b="c\\"\\\\\\n"} 1\n`), 'a_total', { b: 'c"\\\n' }), 1);
  const bad = ['a_total 1', 'b_total 1\n', 'a_total{b=c} 1\n', 'a_total 1\na_total 2\n', 'a_total x\n', 'a_total -1\n'];
  for (const each of bad) assert.throws(() => parsePrometheus(head + each), each);
});

test('logins of programs are counted by the check that refused them', async () => {
  await using at = await opened();
  const { root, made, appliance } = at;
  const issuer = await TokenIssuer.make(() => Date.now());
  const trust = { kind: 'jwt', issuer: issuer.issuer, audience: 'kms', subject: 'build', jwks: issuer.jwks };
  await send(root, 'POST', `/auth/apikeys/${made.apiKey.keyid}/proofs`, trust);
  const logIn = async (claims: object, role: string = made.apiKey.keyid) =>
    send({ app: appliance.app }, 'POST', '/auth/workload/login', { token: await issuer.token({ ...claims }), role });
  await logIn({});
  await logIn({});
  await logIn({ aud: 'vault' });
  await logIn({ sub: 'other' });
  await logIn({}, 'nobody');
  const scraped = await scrape(root);
  const logins = (result: string) => numberOf(scraped, 'kms_workload_logins_total', { result });
  assert.deepEqual(['accepted', 'audience', 'subject', 'role'].map(logins), [2, 1, 1, 1]);
});

test('a certificate that is refused again and again is counted by the check each time', async () => {
  await using at = await opened();
  const { root, made, appliance } = at;
  const now = Date.now();
  const authority = await TestCertificate.authority(now);
  const trust = { kind: 'certificate', ca: authority.pem, san: 'dns:app.example' };
  await send(root, 'POST', `/auth/apikeys/${made.apiKey.keyid}/proofs`, trust);
  const names = [dns('app.example')];
  const loginsOf = async (certificate: TestCertificate | undefined, times: number) => {
    const caller = { app: appliance.app, ...certificate?.shown };
    for (let n = 0; n < times; n++) await send(caller, 'POST', '/auth/workload/login', { certificate: true });
  };
  await loginsOf(await authority.signs({ names }), 1);
  await loginsOf(await authority.signs({ names, notAfter: now - 1000 }), 3);
  await loginsOf(await TestCertificate.alone(now), 2);
  await loginsOf(undefined, 2);
  const scraped = await scrape(root);
  const logins = (result: string) => numberOf(scraped, 'kms_workload_logins_total', { result });
  const expected = { accepted: 1, time: 3, authority: 2, certificate: 2, other: undefined };
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((result) => [result, logins(result)])), expected);
});
