// Requests that belong to a plan, and what plans need of the API: things that are made switched off, API keys of a name
// of their own, who asks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planHeader } from '../../src/model/names.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';

const digest = 'ab'.repeat(32);

const newest = async (a: Appliance, action: string): Promise<AnyJson> =>
  (await a.call('POST', '/auth/search/activity', { action })).body.data[0];

test('a request names its plan, and its record shows it', async () => {
  const a = await testAppliance();
  const headers = { [planHeader]: digest };
  const made = await a.call('POST', '/auth/accounts', { uid: 'billing' }, { headers });
  assert.equal(made.status, 200, made.text);
  assert.equal((await newest(a, 'account.create')).props.plan, digest);
  // A refused one shows it, too.
  assert.equal((await a.call('POST', '/auth/accounts', { uid: 'billing' }, { headers })).status, 400);
  assert.equal((await newest(a, 'account.create')).props.plan, digest);
  await a.call('POST', '/auth/accounts', { uid: 'other' });
  assert.equal((await newest(a, 'account.create')).props.plan, undefined);
});

test('anything but a digest is refused, and changes nothing', async () => {
  const a = await testAppliance();
  for (const wrong of ['x', digest.slice(1), `${digest}0`, digest.toUpperCase(), `${digest}, ${digest}`, '']) {
    const answer = await a.call('POST', '/auth/accounts', { uid: 'billing' }, { headers: { [planHeader]: wrong } });
    assert.equal(answer.status, 400, wrong);
    assert.match(answer.body.message, /^kms-plan: expected the digest of a plan/);
    assert.equal((await newest(a, 'account.create')).props.plan, undefined);
  }
  assert.equal((await a.call('GET', '/auth/accounts/billing?uid=true')).status, 404);
});

test('an API key is made switched off, and of a name that no other has', async () => {
  const a = await testAppliance();
  const body = { accountId: a.accountId, name: 'one', flags: { 'asset.search': true } };
  const off = (await a.call('POST', '/auth/apikey', { ...body, active: false, unique: true })).body;
  assert.equal(off.active, false);
  assert.deepEqual((await newest(a, 'apikey.create')).props.granted ?? [], [], 'it grants nothing yet');
  assert.equal((await a.call('POST', '/assets/search', {}, { key: off.key })).status, 401);
  const taken = await a.call('POST', '/auth/apikey', { ...body, unique: true });
  assert.deepEqual([taken.status, taken.body.errors], [400, { name: 'another API key has this name' }]);
  assert.equal((await a.call('POST', '/auth/apikey', body)).status, 200, 'names need not be unique');
  const { name: _, ...nameless } = body;
  assert.equal((await a.call('POST', '/auth/apikey', { ...nameless, unique: true })).status, 400);
  await a.call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: off.keyid, active: true });
  assert.deepEqual((await newest(a, 'apikey.update')).props.granted, ['asset.search']);
  assert.equal((await a.call('POST', '/assets/search', {}, { key: off.key })).status, 200);
});

test('a proof is made switched off, and an issuer shows the authorities that it is trusted by', async () => {
  const a = await testAppliance();
  const { keyid } = (await a.call('POST', '/auth/apikey', { accountId: a.accountId })).body;
  const ca = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
  const trust = { kind: 'jwt', issuer: 'https://ci.example.org', audience: 'kms', subject: 'build', ca };
  const jwt = await a.call('POST', `/auth/apikeys/${keyid}/proofs`, { ...trust, active: false });
  assert.deepEqual([jwt.status, jwt.body.active, jwt.body.ca], [200, false, ca], jwt.text);
  const aws = (await a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'aws', active: false })).body;
  assert.equal(aws.active, false);
  assert.equal((await a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'secret', active: false })).status, 400);
});

test('a managed key is made suspended, and does nothing until it is activated', async () => {
  const a = await testAppliance();
  const { key } = (await a.call('POST', '/managed-keys', { name: 'k', state: 'suspended' })).body;
  assert.deepEqual([key.state, key.latestVersion], ['suspended', 1]);
  const encrypt = () => a.call('POST', '/managed-keys/k/encrypt', { items: [{ plaintext: '' }] });
  assert.equal((await encrypt()).status, 400);
  assert.equal((await a.call('POST', '/managed-keys/k/state', { state: 'active' })).status, 200);
  assert.equal((await encrypt()).status, 200);
  assert.equal((await a.call('POST', '/managed-keys', { name: 'l', state: 'compromised' })).status, 400);
});

test('the overview says who asks, with what flags, if that is asked for', async () => {
  const a = await testAppliance();
  const { caller, flags } = (await a.call('GET', '/system/overview?flags=true')).body;
  assert.deepEqual([caller, flags], [a.root.keyid, { '*': true }]);
  assert.equal((await a.call('GET', '/system/overview')).body.caller, undefined);
});
