// An AWS access key stays with its tenant, whatever that is called and whichever other one gets its name.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done } from '../support/aws-client.ts';
import { place } from './tenant-appliance.ts';

test('a tenant that takes the former name of another does not take its access keys', async () => {
  await using p = await place();
  const tenant = async (name: string, host: string) =>
    assert.equal((await p.local('POST', '/local/tenants', { name, hosts: [host] })).status, 200);
  await tenant('blue', 'one.example');
  const accounts = await p.local('GET', '/auth/accounts', undefined, 'blue');
  const made = { accountId: accounts.body.data[0].id, flags: { 'key.*': true } };
  const { keyid } = (await p.local('POST', '/auth/apikey', made, 'blue')).body;
  const { body } = await p.local('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'aws' }, 'blue');
  const key = { id: body.accessKeyId, secret: body.secretAccessKey };
  const client = { app: p.appliance.app, world: { now: () => Date.now() } };
  const first = await done(client, key, 'CreateKey');
  assert.equal((await p.local('PATCH', '/local/tenants/blue', { name: 'teal' })).status, 200);
  await tenant('blue', 'two.example');
  const { Keys } = await done(client, key, 'ListKeys');
  assert.deepEqual(
    Keys.map(({ KeyId }: { readonly KeyId: string }) => KeyId),
    [first.KeyMetadata.KeyId],
  );
});
