// The table of tenants in the system store.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemTables } from '../../src/store/tables/databases.ts';
import { systemMigrations } from '../../src/store/tables/migrations.ts';
import type { NewTenant } from '../../src/store/tables/tenants.ts';
import { createMemoryStore } from '../support/memory-store.ts';

const draft = (name: string): NewTenant => ({
  id: `tenant_${name}`,
  name,
  dir: `dir-${name}`,
  hosts: [`${name}.example`, '*'],
  limits: { keyrings: 3 },
  createdAt: 1,
  updatedAt: 2,
});

test('tenants are kept, found, changed, hidden when deleted, and erased', async () => {
  const store = await createMemoryStore({ migrations: systemMigrations, tables: systemTables });
  await store.transaction(({ tenants }) => {
    for (const name of ['a', 'b', 'c']) tenants.insert(draft(name));
  });
  await store.transaction(({ tenants }) => {
    const a = tenants.byName('a');
    assert.ok(a);
    assert.deepEqual(a, { ...draft('a'), seq: 1, secondFactorFor: [], custody: 'any', deletedAt: undefined });
    assert.deepEqual(tenants.byId('tenant_a'), a);
    assert.equal(tenants.byName('A'), undefined);
    const changed = { ...a, name: 'z', hosts: [], limits: {}, secondFactorFor: ['*'], updatedAt: 3 };
    tenants.update(changed);
    assert.deepEqual(tenants.byName('z'), changed);
    tenants.update({ ...changed, deletedAt: 4 });
    assert.equal(tenants.byName('z'), undefined);
    assert.equal(tenants.byId('tenant_a')?.deletedAt, 4);
    const names = (records: { name: string }[]) => records.map(({ name }) => name);
    assert.deepEqual(names(tenants.all()), ['z', 'b', 'c']);
    tenants.insert({ ...draft('z'), id: 'tenant_z2', dir: 'dir-z2' });
    tenants.erase('tenant_a');
    assert.equal(tenants.byId('tenant_a'), undefined);
  });
});
