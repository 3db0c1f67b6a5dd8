// The numbers of assets and stored versions are counted as they come and go. The counts equal a recount, after groups
// of transactions some of which fail, and after crashes within them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEmbedded } from '../../src/store/file-journal.ts';
import type { Store, Transaction } from '../../src/store/port.ts';
import { assetSearch } from '../../src/store/tables/assets.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { openEmbedded } from '../support/embedded-store.ts';
import { type Prng, prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';

const dir = 'tenants/a';
const keys = testStoreKeys();

function open(files: SimFiles, generator: Prng): Promise<Store> {
  return openEmbedded({
    files,
    dir,
    keys,
    wasm: sqlWasm,
    migrations: tenantMigrations,
    tables: tenantTables,
    random: (length) => generator.bytes(length),
    now: () => 1000,
    later: () => {},
    limits: { checkpointBytes: 8_000, recoveryRetry: 1, checkpointRetry: 0 },
  });
}

async function newFiles(generator: Prng): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  await createEmbedded({ files, dir, keys, random: (length) => generator.bytes(length), at: 1000 });
  return files;
}

/** Makes, updates and deletes a few assets; sometimes throws at the end. */
function work(tx: Transaction, generator: Prng, number: number): void {
  for (let i = generator.int(4); i >= 0; i--) {
    const { found } = tx.assets.look(assetSearch({}), undefined, 1 + generator.int(8));
    const last = found.at(-1);
    const dice = generator.next();
    if (!last || dice < 0.3) {
      const id = `asset_${number}_${i}`;
      tx.assets.insert({
        id,
        ringId: 'ring_1',
        data: {},
        parents: [],
        apikeyId: 'a',
        accountId: undefined,
        createdAt: 1,
      });
    } else if (dice < 0.85) {
      try {
        tx.savepoint(() => {
          tx.assets.addVersion(last, { data: { number }, parents: last.parents });
          if (generator.chance(0.2)) throw new Error('taken back');
        });
      } catch {
        // Its changes were undone.
      }
    } else for (const _ of tx.assets.erase(last.id));
  }
  if (generator.chance(0.2)) throw new Error('taken back');
}

async function check(store: Store): Promise<number> {
  return store.transaction(({ assets }) => {
    const { found } = assets.look(assetSearch({}), undefined, 1_000_000);
    const versions = found.reduce((sum, { version }) => sum + version, 0);
    assert.deepEqual([assets.count(), assets.countVersions()], [found.length, versions]);
    return versions;
  });
}

test('the counts hold through crashes', async () => {
  let counted = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const generator = prng(seed);
    let files = await newFiles(generator);
    let number = 0;
    for (let round = 0; round < 4; round++) {
      files = files.restart({ prng: generator, crashAt: 20 + generator.int(60) });
      let store: Store | undefined;
      try {
        store = await open(files, generator);
        for (let group = 0; group < 12 && !files.crashed; group++) {
          const running = Array.from({ length: 1 + generator.int(6) }, () =>
            store?.transaction((tx) => work(tx, generator, ++number)),
          );
          await Promise.allSettled(running);
          if (generator.chance(0.1)) await store.checkpoint();
        }
      } catch (error) {
        if (!files.crashed) throw error;
      }
      await store?.close();
    }
    files = files.restart({ prng: generator });
    const store = await open(files, generator);
    counted += await check(store);
    await store.close();
  }
  assert.ok(counted > 500, `only ${counted} versions were left to count`);
});
