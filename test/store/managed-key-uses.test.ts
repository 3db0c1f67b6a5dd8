// Uses of managed keys stay few, and callers that are deleted make room first.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';

const hour = 60 * 60 * 1000;
const most = 2000;

async function withKey() {
  const a = await testAppliance();
  const { body } = await a.call('POST', '/managed-keys', { name: 'k' });
  const [tenant] = a.tenants;
  assert.ok(tenant);
  const uses = { keyId: body.key.id, version: 1, dialect: 'native', operation: 'encrypt' };
  /** Counts a use by each of the callers, one a second. */
  const used = (...callers: string[]) =>
    tenant.handle.store.transaction((tx) => {
      for (const caller of callers) {
        a.advance(1000);
        tx.managedKeyUses.count({ ...uses, caller }, a.world.now());
      }
    });
  return { a, used };
}

async function callers(a: Appliance): Promise<string[]> {
  const { body } = await a.call('GET', '/managed-keys/k/dependents');
  return body.dependents.map(({ caller }: AnyJson) => caller);
}

const strangers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `apik_${String(from + n).padStart(26, '0')}`);

test('callers that are deleted crowd out none that is there, and the last use of the key is kept', async () => {
  const { a, used } = await withKey();
  const { keyid } = await a.keyWith('key.k.encrypt');
  const deleted = await a.keyWith('key.k.encrypt');
  await used(keyid, deleted.keyid, 'local');
  assert.equal((await a.call('DELETE', `/auth/apikeyid/${deleted.keyid}`)).status, 200);
  await used(...strangers(most - 3));
  assert.equal((await callers(a)).length, most);
  for (let n = 0; n < most; n++) await used('local', ...strangers(1, most + n));
  const left = await callers(a);
  assert.ok(left.includes(keyid) && left.includes('local') && !left.includes(deleted.keyid));
  assert.deepEqual(left.slice(0, 2), [...strangers(1, 2 * most - 1), 'local']);
});

test('of callers that are there, the least recent go, by uses that are counted beside the table too', async () => {
  const { a, used } = await withKey();
  const living = Array.from({ length: most }, (_, n) => `caller-${n}`);
  await used(...living);
  a.advance(hour);
  const [first = '', second = ''] = living;
  await used(first);
  await used('local');
  const left = await callers(a);
  assert.deepEqual([left.length, left[0], left[1]], [most - 99, 'local', first]);
  assert.ok(!left.includes(second));
});
