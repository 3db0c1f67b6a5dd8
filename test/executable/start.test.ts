// What the executable carries so that a start is short: every cache of compiled code in it is used, and new stores
// begin with the databases that its migrations make.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { tellNodesCaches } from '../../build/code-cache.ts';
import { blankImage, systemMigrations, tenantMigrations } from '../../src/store/tables/migrations.ts';
import { sqlWasm } from '../support/wasm.ts';
import { executable } from './kms.ts';

test("the caches of Node's own modules were told of the flags that it runs under", () => {
  // Whatever the flags: those that were made under none are the ones that nobody told.
  assert.equal(tellNodesCaches(readFileSync(executable), ['--expose-gc']), 0);
});

test('the images that new stores begin with are those of its migrations', async () => {
  const bytes = readFileSync(executable);
  for (const migrations of [tenantMigrations, systemMigrations]) {
    assert.ok(bytes.includes(await blankImage(sqlWasm, migrations)));
  }
});
