// API keys and users written by an older program: missing properties are filled in once, and stay.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEmbedded } from '../../src/store/embedded.ts';
import type { Store } from '../../src/store/port.ts';
import type { Sql } from '../../src/store/sql.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { openEmbedded } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';

const dir = 'tenants/a';
const keys = testStoreKeys();

function open<T extends object>(
  files: SimFiles,
  tables: (sql: Sql) => T,
  migrations = tenantMigrations,
): Promise<Store<T>> {
  const generator = prng(3);
  const random = (length: number) => generator.bytes(length);
  return openEmbedded({
    files,
    dir,
    keys,
    wasm: sqlWasm,
    migrations,
    tables,
    random,
    now: () => 1000,
    later: () => {},
  });
}

test('older keys have no name and no end, and were made by the user whose they are; logins are known from sessions', async () => {
  const generator = prng(1);
  const files = new SimFiles({ prng: generator });
  await createEmbedded({ files, dir, keys, random: (length) => generator.bytes(length), at: 1000 });
  const older = await open(files, (sql) => ({ sql }), tenantMigrations.slice(0, 4));
  await older.transaction(({ sql }) => {
    sql.run(
      `INSERT INTO accounts (id, uid, notes, props, created_at, updated_at) VALUES ('acct', 'a', '', '{}', 1, 1)`,
    );
    for (const [name, flags, active] of [
      ['ada', '{"*":true}', 1],
      ['bob', '{}', 1],
    ] as const) {
      sql.run(
        `INSERT INTO users (id, username, username_key, email, email_key, first_name, last_name, display_name, flags, props,
          password_hash, created_at, updated_at) VALUES (?, ?, ?, ?, ?, '', '', '', ?, '{}', ?, 1, 1)`,
        ...[name, name, name, name, name, flags, active === 1 ? 'hash' : null],
      );
    }
    for (const [token, user, at] of [
      ['t1', 'ada', 10],
      ['t2', 'ada', 30],
      ['t3', 'ada', 20],
    ] as const) {
      sql.run(
        'INSERT INTO sessions (token_hash, user_id, chain_started_at, expires_at) VALUES (?, ?, ?, 99)',
        ...[token, user, at],
      );
    }
    for (const [id, user] of [
      ['apik_1', null],
      ['apik_2', 'ada'],
    ] as const) {
      sql.run(
        `INSERT INTO api_keys (id, secret_hash, active, account_id, user_id, flags, props, created_at, updated_at)
          VALUES (?, ?, 1, 'acct', ?, '{"*":true}', '{}', 5, 6)`,
        ...[id, `hash of ${id}`, user],
      );
    }
  });
  await older.close();
  for (let start = 0; start < 2; start++) {
    const store = await open(files, tenantTables);
    const { items } = await store.transaction(({ apiKeys }) => apiKeys.list({ limit: 9 }, (key) => key));
    assert.deepEqual(
      items.map(({ id, name, expiresAt, addresses, createdBy, usedAt, createdAt, updatedAt }) => [
        ...[id, name, expiresAt, addresses, createdBy, usedAt, createdAt, updatedAt],
      ]),
      [
        ['apik_1', '', undefined, [], undefined, undefined, 5, 6],
        ['apik_2', '', undefined, [], 'ada', undefined, 5, 6],
      ],
    );
    const users = await store.transaction(({ users }) => users.list({ limit: 9 }, (user) => user));
    assert.deepEqual(
      users.items.map(({ id, lastLoginAt, hasPassword }) => [id, lastLoginAt, hasPassword]),
      [
        ['ada', 30, true],
        ['bob', undefined, true],
      ],
    );
    const credential = await store.transaction(({ apiKeys }) => apiKeys.credential('hash of apik_2'));
    assert.deepEqual([credential?.expiresAt, credential?.addresses, credential?.userId], [undefined, undefined, 'ada']);
    assert.equal(await store.transaction(({ apiKeys }) => apiKeys.holding(7)), 'for good');
    await store.checkpoint();
    await store.close();
  }
});

test('when a key was used survives a restart, a crash and a checkpoint; a use that was taken back is noted the next time', async () => {
  const generator = prng(2);
  let files = new SimFiles({ prng: generator });
  await createEmbedded({ files, dir, keys, random: (length) => generator.bytes(length), at: 1000 });
  let store = await open(files, tenantTables);
  const made = { name: '', active: true, expiresAt: undefined, addresses: [], userId: undefined, createdBy: undefined };
  await store.transaction(({ accounts, apiKeys }) => {
    accounts.insert({ id: 'acct', uid: 'a', notes: '', props: {}, createdAt: 1, updatedAt: 1 });
    const rest = { accountId: 'acct', flagsText: '{}', props: {}, rings: [], createdAt: 1, updatedAt: 1 };
    apiKeys.insert({ id: 'apik_1', secretHash: 'h', ...made, ...rest });
  });
  const usedAt = async () => (await store.transaction(({ apiKeys }) => apiKeys.byId('apik_1')))?.usedAt;
  const use = (at: number) => store.transaction(({ apiKeys }) => apiKeys.noteUse('apik_1', at));
  await assert.rejects(
    store.transaction(({ apiKeys }) => {
      apiKeys.noteUse('apik_1', 500);
      throw new Error('taken back');
    }),
  );
  assert.equal(await usedAt(), undefined);
  await use(1000);
  await use(60_999);
  assert.equal(await usedAt(), 1000);
  const wrote = store.mark.sequence;
  await use(60_998);
  assert.equal(store.mark.sequence, wrote, 'nothing to write');
  for (const [restart, at] of [
    ['close', 61_000],
    ['crash', 130_000],
    ['checkpoint', 200_000],
  ] as const) {
    await use(at);
    if (restart === 'checkpoint') await store.checkpoint();
    if (restart !== 'crash') await store.close();
    files = files.restart({ prng: generator });
    store = await open(files, tenantTables);
    assert.equal(await usedAt(), at, restart);
  }
  await store.transaction(({ apiKeys }) => apiKeys.erase('apik_1'));
  assert.equal(await usedAt(), undefined);
  await store.close();
});
