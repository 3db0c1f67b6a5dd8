// Look-ups that are cached outlive a transaction that is rolled back, unless it wrote to their table.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sql } from '../../src/store/sql.ts';
import { testAppliance } from '../support/appliance.ts';

async function cached() {
  let sql: Sql | undefined;
  const a = await testAppliance({
    onSql: (given) => {
      sql = given;
    },
  });
  const [tenant] = a.tenants;
  assert.ok(tenant && sql);
  const { remember } = sql;
  const { store } = tenant.handle;
  const look = (table: string) => store.read(() => remember(table, 'a look', () => ({})));
  return { a, store, look, run: sql.run };
}

const insert = `INSERT INTO wrapping_keys (id, epoch, sealed, public_key, created_at) VALUES ('w', 1, '', '', 1)`;

test('what is rolled back is forgotten, and nothing else', async () => {
  const { store, look, run } = await cached();
  const [kept, stale] = [look('managed_keys'), look('wrapping_keys')];
  let during: object | undefined;
  const failed = store.transaction(() => {
    run(insert);
    during = look('wrapping_keys');
    throw new Error('undone');
  });
  await assert.rejects(failed, /undone/);
  assert.equal(look('managed_keys'), kept);
  assert.ok(during !== stale && look('wrapping_keys') !== during, 'a look at what was undone is still there');
});

test('a savepoint that is taken back forgets no more', async () => {
  const { store, look, run } = await cached();
  const kept = look('managed_keys');
  await store.transaction((tx) => {
    const before = look('wrapping_keys');
    assert.throws(() =>
      tx.savepoint(() => {
        run(insert);
        throw new Error('undone');
      }),
    );
    assert.notEqual(look('wrapping_keys'), before);
  });
  assert.equal(look('managed_keys'), kept);
});

test('a row that goes may take others along, so its rollback forgets everything', async () => {
  const { store, look, run } = await cached();
  const kept = look('managed_keys');
  const failed = store.transaction(() => {
    run('DELETE FROM managed_keys WHERE id = ?', 'none');
    throw new Error('undone');
  });
  await assert.rejects(failed, /undone/);
  assert.notEqual(look('managed_keys'), kept);
});

test('the rehearsal of work with a key keeps the look-ups of other requests', async () => {
  const { a, look } = await cached();
  assert.equal((await a.call('POST', '/managed-keys', { name: 'k', type: 'ml-dsa-44' })).status, 200);
  const tables = ['managed_keys', 'managed_key_versions', 'managed_key_aliases', 'api_keys', 'rings'];
  const before = tables.map(look);
  const items = Array.from({ length: 9 }, () => ({ input: 'aGk=' }));
  assert.equal((await a.call('POST', '/managed-keys/k/sign', { items })).status, 200);
  assert.deepEqual(
    tables.filter((table, n) => look(table) !== before[n]),
    [],
  );
});
