// The overview and the names in one answer each, and how they are polled: what is told to whom, what is recorded, and
// when there is nothing new.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { TestCertificate } from '../support/client-certificates.ts';

const hour = 3_600_000;

async function asked(a: Appliance, key: string, path: string, tag?: string) {
  const headers = tag === undefined ? {} : { 'If-None-Match': tag };
  const { status, body, text, headers: told } = await a.call('GET', path, undefined, { key, headers });
  return { status, body, text, tag: told.get('etag') ?? '' };
}

const overview = '/system/overview?range=hour';
const actionsOf = async (a: Appliance, keyid: string): Promise<string[]> =>
  (await a.activity()).filter((each) => each.keyid === keyid).map(({ action }) => action);

async function withPayroll() {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'Payroll' });
  for (let i = 0; i < 3; i++) await a.call('POST', '/ks/encrypt', { ringname: 'payroll' });
  const weak = await a.keyWith('asset.search');
  await a.call('GET', '/auth/users', undefined, { key: weak.key });
  return { a, weak };
}

test('sections are there as far as the flags go', async () => {
  const { a, weak } = await withPayroll();
  const expiresAt = a.world.now() + hour;
  const { keyid } = (
    await a.call('POST', '/auth/apikey', { accountId: a.accountId, name: 'ends', expiresAt, flags: {} })
  ).body;
  const { status, body } = await asked(a, a.root.key, overview);
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body), [
    'tenant',
    'readiness',
    'use',
    'keyrings',
    'apikeys',
    'proofs',
    'users',
    'backups',
    'log',
  ]);
  const sum = (counts: number[]): number => counts.reduce((one, other) => one + other, 0);
  const { encrypts, decrypts, denials, deniedLastHour, cut } = body.use;
  assert.deepEqual(
    [encrypts.length, sum(encrypts), sum(decrypts), sum(denials), deniedLastHour, cut],
    [30, 3, 0, 1, 1, []],
  );
  assert.deepEqual(body.apikeys, [{ keyid, name: 'ends', expiresAt }]);
  assert.deepEqual(body.proofs, []);
  const [ring] = body.keyrings.rings;
  assert.deepEqual([ring.displayName, ring.encrypts, ring.rotateAfter], ['Payroll', 3, null]);
  await a.call('POST', '/ks/encrypt', { ringname: 'payroll' });
  const again = (await asked(a, a.root.key, overview)).body;
  assert.deepEqual([sum(again.use.encrypts), again.keyrings.rings[0].encrypts], [4, 4], 'only what is new is added');
  assert.deepEqual(Object.keys((await asked(a, weak.key, overview)).body), ['tenant', 'readiness']);
  const lister = await a.keyWith('keyring.list');
  assert.deepEqual((await asked(a, lister.key, overview)).body.keyrings, { rings: [], more: false });
  assert.equal((await asked(a, a.root.key, '/system/overview?range=year')).status, 400);
  assert.equal((await asked(a, 'nothing', overview)).status, 401);

  const names = (await asked(a, a.root.key, '/system/names')).body;
  assert.deepEqual(Object.keys(names), ['keyrings', 'managedKeys', 'apikeys', 'users', 'accounts']);
  assert.deepEqual(
    names.keyrings.map(({ name }: { name: string }) => name),
    ['payroll'],
  );
  assert.deepEqual((await asked(a, weak.key, '/system/names')).body, {});
});

test('the overview tells the flags of the caller, if they are asked for', async () => {
  const { a } = await withPayroll();
  const { key } = await a.keyWith('user.read');
  assert.equal((await asked(a, key, overview)).body.flags, undefined);
  assert.deepEqual((await asked(a, key, '/system/overview?flags=true')).body.flags, { 'user.read': true });
});

test('a poll is told when nothing changed, and is recorded once an hour', async () => {
  const { a } = await withPayroll();
  const viewer = await a.keyWith('*');
  let { tag } = await asked(a, viewer.key, overview);
  assert.match(tag, /^W\/"[A-Za-z0-9_-]{24}"$/);
  const before = await actionsOf(a, viewer.keyid);
  assert.deepEqual(before, ['system.overview']);
  // The buckets of an hour move on every two minutes, which makes a new answer.
  assert.equal((await asked(a, viewer.key, overview, tag)).status, 304);
  const unchanged = await asked(a, viewer.key, overview, `"other", ${tag}`);
  assert.deepEqual([unchanged.status, unchanged.text, unchanged.tag], [304, '', tag]);
  for (let minute = 1; minute <= 60; minute++) {
    a.advance(60_000);
    const answer = await asked(a, viewer.key, overview, tag);
    assert.ok([200, 304].includes(answer.status));
    ({ tag } = answer);
  }
  assert.deepEqual((await actionsOf(a, viewer.keyid)).sort(), ['session.watch', 'system.overview']);
  await a.call('POST', '/ks/encrypt', { ringname: 'payroll' });
  assert.equal((await asked(a, viewer.key, overview, tag)).status, 200, 'a change is told');
  assert.equal((await asked(a, viewer.key, '/system/names', '"none"')).status, 200);
  assert.equal((await actionsOf(a, viewer.keyid)).length, 2, 'all that may be watched counts as one watch');
});

test('what may not be watched is recorded each time, whatever header it carries', async () => {
  const a = await testAppliance();
  const viewer = await a.keyWith('*');
  for (let i = 0; i < 3; i++) {
    const answer = await asked(a, viewer.key, '/ks/keyrings', '*');
    assert.deepEqual([answer.status, answer.tag], [200, '']);
  }
  assert.deepEqual(await actionsOf(a, viewer.keyid), ['keyring.list', 'keyring.list', 'keyring.list']);
});

test('a tag is of one caller: it tells others nothing', async () => {
  const { a } = await withPayroll();
  const [one, other] = [await a.keyWith('*'), await a.keyWith('*')];
  const { tag } = await asked(a, one.key, '/system/names');
  const others = await asked(a, other.key, '/system/names', tag);
  assert.equal(others.status, 200);
  assert.notEqual(others.tag, tag);
  const b = await testAppliance();
  assert.equal((await asked(b, b.root.key, '/system/names', tag)).status, 200);
});

test('a revoked credential is refused at its next poll, and fewer flags show less', async () => {
  const { a } = await withPayroll();
  const viewer = await a.keyWith('*');
  const { tag } = await asked(a, viewer.key, overview);
  assert.equal((await asked(a, viewer.key, overview, tag)).status, 304);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: viewer.keyid, op: 'replace', flags: { 'keyring.list': true } });
  const less = await asked(a, viewer.key, overview, tag);
  assert.deepEqual([less.status, Object.keys(less.body)], [200, ['tenant', 'readiness', 'keyrings']]);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: viewer.keyid, op: 'merge', active: false });
  for (const held of [tag, less.tag]) {
    const refused = await asked(a, viewer.key, overview, held);
    assert.deepEqual([refused.status, refused.tag], [401, '']);
  }
  const denied = (await a.activity()).filter(({ keyid, validAction }) => keyid === viewer.keyid && !validAction);
  assert.equal(denied.length, 2, 'refusals are recorded each time');
});

test('client certificates that end soon are told with the API key, unless one of the two is off', async () => {
  const a = await testAppliance();
  const day = 86_400_000;
  // The times of a certificate have seconds.
  const now = Math.floor(a.world.now() / 1000) * 1000;
  const proofFor = async (name: string, notAfter: number) => {
    const { keyid } = await a.keyWith();
    await a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', name });
    const certificate = (await TestCertificate.alone(a.world.now(), { notAfter })).pem;
    const { body } = await a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'certificate', certificate });
    return { keyid, name, proof: body.id, endsAt: notAfter };
  };
  const [till, shop] = [await proofFor('till', now + 13 * day), await proofFor('shop', now + 2 * day)];
  await proofFor('door', now + 15 * day);
  const proofs = async () => (await asked(a, a.root.key, overview)).body.proofs;
  assert.deepEqual(await proofs(), [shop, till]);
  await a.call('PATCH', `/auth/apikeys/${shop.keyid}/proofs/${shop.proof}`, { active: false });
  await a.call('PUT', '/auth/apikeyid', { apikeyid: till.keyid, op: 'merge', active: false });
  assert.deepEqual(await proofs(), []);
});
