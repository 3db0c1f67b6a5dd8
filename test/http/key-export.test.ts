// Exports of all versions of a key stay bounded, however many versions there are and however long they are.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { longestGo } from '../support/longest-go.ts';

async function withSecret(versions: number, length: number): Promise<{ a: Appliance; path: string }> {
  const a = await testAppliance();
  for (let n = 0; n < versions; n++) {
    const { status } = await a.call('POST', '/secrets/long', { value: { value: 'x'.repeat(length) } });
    assert.equal(status, 200);
  }
  return { a, path: '/managed-keys/long/export' };
}

test('versions of more than 4 MiB in all are exported one by one', async () => {
  const { a, path } = await withSecret(70, 62 * 1024);
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const to = publicKey.export({ type: 'spki', format: 'pem' });
  for (const way of [{ plaintext: true }, { publicKey: to }]) {
    const { status, body } = await a.call('POST', path, { ...way, allVersions: true });
    const message = 'the 70 versions of the key are more than the 4 MiB that are exported at once: name a `version`';
    assert.deepEqual([status, body.message], [400, message]);
    assert.equal((await a.call('POST', path, { ...way, version: 3 })).status, 200);
  }
  const { body: used } = await a.call('GET', '/managed-keys/long/dependents');
  assert.deepEqual(
    used.dependents.map(({ version, count }: AnyJson) => [version, count]),
    [[3, 2]],
    'an export that was refused is counted',
  );
  await a.call('POST', '/secrets/long/destroy', { versions: Array.from({ length: 10 }, (_, n) => n + 1) });
  const { status, body } = await a.call('POST', path, { plaintext: true, allVersions: true });
  assert.deepEqual([status, body.versions.length, body.version], [200, 60, 70]);
  assert.ok(body.versions.every(({ plaintext }: AnyJson) => Buffer.from(plaintext, 'base64').length > 62 * 1024));
});

test('an export of many versions holds nobody up, nor does a look at them', async () => {
  const { a, path } = await withSecret(60, 62 * 1024);
  const budget = 100;
  const exported = () => a.call('POST', path, { plaintext: true, allVersions: true });
  await exported();
  assert.ok((await longestGo(exported)) < budget);
  assert.ok((await longestGo(() => a.call('GET', '/managed-keys/long'))) < budget / 2);
});

test('look-ups of long secrets do not pile up in memory', async () => {
  const { a } = await withSecret(1, 62 * 1024);
  const { body } = await a.call('POST', '/managed-keys', { name: 'short' });
  const [tenant] = a.tenants;
  const long = (await a.call('GET', '/managed-keys/long')).body.key.id;
  const look = (id: string) => tenant?.handle.store.read(({ keyVersions }) => keyVersions.get(id, 1));
  assert.equal(look(body.key.id), look(body.key.id));
  assert.notEqual(look(long), look(long));
  assert.deepEqual(look(long), look(long));
});
