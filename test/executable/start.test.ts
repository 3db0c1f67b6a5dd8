// Parts of the executable that shorten a start: V8 uses every code cache in it, and new stores begin with prebuilt
// databases that equal those made by the migrations.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { tellNodesCaches } from '../../build/code-cache.ts';
import { blankImage, systemMigrations, tenantMigrations } from '../../src/store/tables/migrations.ts';
import { sqlWasm } from '../support/wasm.ts';
import { executable } from './kms.ts';

test("the caches of Node's own modules were told of the flags that it runs under", () => {
  // Caches made without flags are those not rewritten yet; there must be none, whatever the flags.
  assert.equal(tellNodesCaches(readFileSync(executable), ['--expose-gc']), 0);
});

test('the images that new stores begin with are those of its migrations', async () => {
  const bytes = readFileSync(executable);
  for (const migrations of [tenantMigrations, systemMigrations]) {
    assert.ok(bytes.includes(await blankImage(sqlWasm, migrations)));
  }
});
