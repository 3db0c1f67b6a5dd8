// Ways into identities: of API keys that are older than their table, and in the order in which they were given.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { behind } from '../../src/core/persons.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { openShared, sharedOptions, simShared } from '../support/shared-store.ts';
import { SimEngine } from '../support/sim-engine.ts';

const approvals = tenantMigrations.findIndex(({ name }) => name === 'the tables of approvals');

const key = (id: string, by: { userId?: string; createdBy?: string }) => ({
  ...{ id, secretHash: id, name: '', active: true, expiresAt: undefined, addresses: [], accountId: 'acct', rings: [] },
  ...{ flagsText: '{}', props: {}, createdAt: 1, updatedAt: 1, userId: by.userId, createdBy: by.createdBy },
});

const proof = (id: string, apikeyId: string, createdBy: string) => ({
  ...{ id, apikeyId, createdBy, kind: 'aws' as const, name: '', active: true, subject: id, settings: {} },
  ...{ sealed: undefined, createdAt: 1 },
});

test('of older API keys the owner, the maker and the makers of proofs are known, and lead on', async () => {
  const { database, generator } = await simShared();
  const open = (migrations = tenantMigrations) =>
    openShared({ ...sharedOptions(new SimEngine(database), generator), migrations, tables: tenantTables });
  const older = await open(tenantMigrations.slice(0, approvals));
  await older.transaction(({ accounts, apiKeys, proofs }) => {
    accounts.insert({ id: 'acct', uid: 'acct', notes: '', props: {}, createdAt: 1, updatedAt: 1 });
    apiKeys.insert(key('first', { createdBy: 'local' }));
    apiKeys.insert(key('second', { createdBy: 'first', userId: 'ada' }));
    apiKeys.insert(key('third', { createdBy: 'second' }));
    apiKeys.insert(key('unknown', {}));
    proofs.insert(proof('one', 'third', 'bob'));
    proofs.insert(proof('two', 'third', 'second'));
  });
  await older.close();
  const store = await open();
  const known = await store.transaction((tx) =>
    ['first', 'third', 'unknown'].map((id) => [...(behind(tx, id, () => 0) ?? [])].sort()),
  );
  assert.deepEqual(known, [['first', 'local'], ['ada', 'bob', 'first', 'local', 'second', 'third'], ['unknown']]);
  await store.close();
});

test('who got in later is not behind what was given before, however often it is given again', async () => {
  const { database, generator } = await simShared();
  const tables = { migrations: tenantMigrations, tables: tenantTables };
  const store = await openShared({ ...sharedOptions(new SimEngine(database), generator), ...tables });
  const known = await store.transaction((tx) => {
    const { waysIn } = tx;
    waysIn.note('maker', 'early');
    waysIn.note('key', 'maker');
    waysIn.note('maker', 'early');
    waysIn.note('maker', 'late');
    const before = [...(behind(tx, 'key', () => 0) ?? [])].sort();
    const mark = waysIn.last();
    waysIn.note('key', 'maker');
    const after = [...(behind(tx, 'key', () => 0) ?? [])].sort();
    const vouched = [...(behind(tx, 'key', (id) => (id === 'maker' ? mark : 0)) ?? [])].sort();
    return { before, after, vouched };
  });
  assert.deepEqual(known, {
    before: ['early', 'key', 'maker'],
    after: ['early', 'key', 'late', 'maker'],
    vouched: ['key', 'maker'],
  });
  await store.close();
});
