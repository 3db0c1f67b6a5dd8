// Migrations of rows that an older program wrote.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timeOfId } from '../../src/crypto/ulid.ts';
import { Session } from '../../src/store/session.ts';
import type { Sql } from '../../src/store/sql.ts';
import { openState } from '../../src/store/state.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { migrate, tenantMigrations } from '../../src/store/tables/migrations.ts';
import { sqlWasm } from '../support/wasm.ts';

const noActivity = {
  stage: () => '',
  stagedCount: 0,
  discardStaged: () => {},
  commitStaged: () => {},
};

/** A tenant's database with the schema before the named step, then `rows`, then all steps. */
async function migrated(before: string, ...rows: string[]) {
  const state = await openState(sqlWasm);
  const sql: Sql[] = [];
  const tables = (given: Sql) => {
    sql.push(given);
    return tenantTables(given);
  };
  const session = new Session(state, tables, noActivity);
  const step = tenantMigrations.findIndex(({ name }) => name === before);
  assert.ok(step > 0);
  migrate(state, session, tenantMigrations.slice(0, step));
  session.run(() => {
    for (const row of rows) sql[0]?.run(row);
  });
  migrate(state, session, tenantMigrations);
  return session;
}

test('sessions that are open get an id with the time of their login, and stay open', async () => {
  const loggedInAt = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  const columns = 'token_hash, user_id, chain_started_at, expires_at, ended_at';
  const session = await migrated(
    'ids of sessions, and when and from where they were used',
    `INSERT INTO sessions (${columns}) VALUES ('one', 'user_1', ${loggedInAt}, ${loggedInAt + 9}, NULL)`,
    `INSERT INTO sessions (${columns}) VALUES ('two', 'user_1', ${loggedInAt}, ${loggedInAt + 9}, NULL)`,
    `INSERT INTO sessions (${columns}) VALUES ('over', 'user_1', 5, 9, 7)`,
  );
  const open = session.run(({ sessions }) => sessions.openOf('user_1', loggedInAt));
  assert.deepEqual(
    open.map(({ tokenHash, usedAt, address }) => [tokenHash, usedAt, address]),
    [
      ['one', loggedInAt, undefined],
      ['two', loggedInAt, undefined],
    ],
  );
  assert.deepEqual(
    open.map(({ id }) => timeOfId('sess', id)),
    [loggedInAt, loggedInAt],
  );
  assert.equal(new Set(open.map(({ id }) => id)).size, 2);
});
