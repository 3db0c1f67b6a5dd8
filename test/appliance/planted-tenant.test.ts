// An attacker who made the data directory put a path into a tenant's record: nothing outside the directory is read,
// changed or removed.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { sqlWasm } from '../../src/platform/program-files.ts';
import { openSystemStore, storesIn } from '../../src/storage/stores.ts';
import { place } from './tenant-appliance.ts';

const day = 86_400_000;

for (const deletedDays of [undefined, 1, 40]) {
  test(`a tenant ${deletedDays ? `deleted ${deletedDays} days ago` : 'in service'} whose store lies elsewhere`, async () => {
    for (const dir of ['../../victim', '../victim', '..', '.', '', 'a/b', '/etc', 'ABCDEF0123456789', '0'.repeat(17)]) {
      const p = await place();
      const victim = join(p.data, '../victim');
      mkdirSync(victim);
      writeFileSync(join(victim, 'notes'), 'of somebody');
      await p.appliance.close();
      const { seal } = await openSealFile(p.data, undefined);
      const stores = storesIn({ root: p.data, files: nodeFiles(p.data), wasm: await sqlWasm() });
      const system = await openSystemStore(stores, seal.keysFor('system'));
      const then = Date.now() - (deletedDays ?? 1) * day;
      await system.transaction(({ tenants }) => {
        const [first] = tenants.all();
        assert.ok(first);
        const made = { ...first, id: `tenant_01${'a'.repeat(24)}`, name: 'planted', dir, hosts: ['planted.example'] };
        tenants.insert({ ...made, createdAt: then, updatedAt: then });
        if (deletedDays !== undefined) tenants.update({ ...made, deletedAt: then });
      });
      await system.close();
      const opened = await openAppliance({ data: p.data }).catch((error: Error) => error);
      if (opened instanceof Error) assert.match(opened.message, /expected the name of a tenant's directory/, dir);
      else {
        // Longer than a purge takes, which starts by itself.
        await new Promise((resolve) => setTimeout(resolve, 50));
        await opened.close();
      }
      assert.ok(existsSync(join(victim, 'notes')), dir);
      if (deletedDays === undefined) assert.ok(opened instanceof Error, dir);
      await p[Symbol.asyncDispose]().catch(() => {});
    }
  });
}
