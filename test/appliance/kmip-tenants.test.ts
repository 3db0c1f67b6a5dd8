// A client of KMIP whose certificate is a proof in two tenants, while one of them is deleted and restored.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { idsIn, KmipClient } from '../support/kmip-client.ts';
import { type Place, place } from './tenant-appliance.ts';

const minute = 60_000;

async function tenant(p: Place, name: string, certificate: TestCertificate): Promise<string> {
  const made = await p.local('POST', '/local/tenants', { name, hosts: [`${name}.example`] });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  await addProof(p, name, certificate);
  return made.body.id;
}

async function addProof(p: Place, name: string, { pem }: TestCertificate): Promise<void> {
  const accounts = await p.local('GET', '/auth/accounts', undefined, name);
  const key = { accountId: accounts.body.data[0].id, flags: { 'kmip.*': true } };
  const { keyid } = (await p.local('POST', '/auth/apikey', key, name)).body;
  const proof = { kind: 'certificate', certificate: pem };
  const { status, body } = await p.local('POST', `/auth/apikeys/${keyid}/proofs`, proof, name);
  assert.equal(status, 200, JSON.stringify(body));
}

test('a deleted tenant takes its connections with it, and gets its clients back when it is restored', async () => {
  await using p = await place();
  const certificate = await TestCertificate.alone(Date.now());
  const client = () => new KmipClient(p.appliance, certificate);
  await tenant(p, 'blue', certificate);
  p.clock.ahead += minute;
  await tenant(p, 'green', certificate);
  const first = client();
  const id = await first.aes();
  const { id: blue } = (await p.local('DELETE', '/local/tenants/blue')).body;
  assert.equal(await first.refused('Locate'), reasons.authenticationNotSuccessful, 'green does not take it over');
  const second = client();
  assert.deepEqual(idsIn(await second.did('Locate')), [], 'a new connection is one of green');
  p.clock.ahead += minute;
  assert.equal((await p.local('POST', `/local/tenants/${blue}/restore`, {})).status, 200);
  assert.equal(await second.refused('Locate'), reasons.authenticationNotSuccessful, 'the proof of green is younger');
  assert.deepEqual(idsIn(await client().did('Locate')), [id], 'whatever the order in which tenants came');
  // A change of the tenants that moves no proof leaves connections as they are.
  const third = client();
  assert.deepEqual(idsIn(await third.did('Locate')), [id]);
  assert.equal((await p.local('PATCH', '/local/tenants/blue', { name: 'teal' })).status, 200);
  assert.deepEqual(idsIn(await third.did('Locate')), [id]);
  await p.reopen();
  assert.deepEqual(idsIn(await client().did('Locate')), [id]);
});

test('doctor tells which certificates are older proofs of another tenant', async () => {
  await using p = await place();
  const certificate = await TestCertificate.alone(Date.now());
  await tenant(p, 'blue', certificate);
  const found = async () =>
    (await p.local('GET', '/local/doctor')).body.findings.filter(
      ({ name }: { readonly name: string }) => name === 'proof-elsewhere',
    );
  assert.deepEqual(await found(), []);
  p.clock.ahead += minute;
  await tenant(p, 'green', certificate);
  const [finding, ...others] = await found();
  assert.deepEqual(others, []);
  assert.match(JSON.stringify(finding), /"tenant green".*older proofs of the tenant blue: 1 \(apik_\w{26}\)/);
});
