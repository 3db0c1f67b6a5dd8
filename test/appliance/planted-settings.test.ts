// An attacker who made the data directory put something else into the settings, which are sealed under keys of theirs:
// it is refused with words, before anything is read, written or named after it.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { KmsError } from '../../src/errors.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { sqlWasm } from '../../src/platform/program-files.ts';
import { openSystemStore, storesIn } from '../../src/storage/stores.ts';
import { place } from './tenant-appliance.ts';

const epochs = [
  ...['"1"', '[1]', 'null', '1', 'x', '', '{}', '{"number":"../../victim"}', '{"number":0}', '{"number":-1}'],
  ...['{"number":1.5}', '{"number":1000000000000000}', '{"number":1,"madeAt":7}', '{"number":1,"restoredAt":"../x"}'],
];
const backups = ['null', 'x', '{}', '{"file":7}', '{"madeAt":"../x"}', '[]'];

for (const [name, values] of [
  ['epoch', epochs],
  ['ship-to', ['../victim', 'victim', '.', '/a\0b']],
  ['backup', backups],
] as const) {
  test(`the setting ${name} holds what no appliance writes`, async () => {
    for (const value of values) {
      const p = await place();
      const victim = join(p.data, '../victim');
      mkdirSync(victim);
      await p.appliance.close();
      const { seal } = await openSealFile(p.data, undefined);
      const stores = storesIn({ root: p.data, files: nodeFiles(p.data), wasm: await sqlWasm() });
      const system = await openSystemStore(stores, seal.keysFor('system'));
      await system.transaction(({ settings }) => settings.set(name, value));
      await system.close();
      const copies = { shipping: { to: join(p.data, '../shipped'), every: 50, window: 1000 } };
      const error = await openAppliance({ data: p.data, copies }).then(
        (opened) => opened.close(),
        (cause: unknown) => cause,
      );
      assert.ok(error instanceof KmsError && error.code === 'corrupt', `${value}: ${error}`);
      assert.match(error.message, new RegExp(`the setting ${name} is none that kms writes`), value);
      assert.ok(!existsSync(join(p.data, '../shipped')), value);
      assert.deepEqual(readdirSync(victim), [], value);
      await p[Symbol.asyncDispose]().catch(() => {});
    }
  });
}
