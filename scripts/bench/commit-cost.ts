// The cost of a commit with a small and a large database: two embedded stores on real files, in alternation.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom } from '../../src/crypto/random.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { createEmbedded, readEmbedded } from '../../src/store/file-journal.ts';
import type { Store } from '../../src/store/port.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { goal, median, row, short } from './figures.ts';

const wasm = readFileSync(join(import.meta.dirname, '../../node_modules/sql.js/dist/sql-wasm.wasm'));

/** @param sizes of the databases in rows, smallest first. */
export async function measureCommits(sizes: readonly [number, number], batches: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const stores: { rows: number; store: Store; next: number; alone: number[]; together: number[] }[] = [];
  for (const rows of sizes) {
    const store = await open(home, `s${rows}`);
    const made = { rows, store, next: 0, alone: [] as number[], together: [] as number[] };
    for (let at = 0; at < rows; at += 5000) await insert(made, Math.min(5000, rows - at));
    stores.push(made);
  }
  for (let batch = 0; batch <= batches; batch++) {
    for (const each of stores) {
      const before = performance.now();
      for (let i = 0; i < 100; i++) await insert(each, 1);
      const between = performance.now();
      await Promise.all(Array.from({ length: 640 }, () => insert(each, 1)));
      if (batch === 0) continue; // the warm-up
      each.alone.push(((between - before) / 100) * 1000);
      each.together.push(((performance.now() - between) / 640) * 1000);
    }
  }
  console.log(`\nCommits: an asset and an activity record, durable; microseconds each, median of ${batches} batches`);
  row('rows', 'one by one', 'in groups');
  for (const { rows, alone, together } of stores) row(rows, short(median(alone)), short(median(together)));
  const [small, large] = stores;
  if (small && large) {
    const ratio = (a: number[], b: number[]) => median(a.map((value, at) => value / (b[at] ?? Number.NaN)));
    goal('a commit at the larger size, one by one', ratio(large.alone, small.alone), 1.2, 'at most');
    goal('a commit at the larger size, in groups', ratio(large.together, small.together), 1.2, 'at most');
  }
  for (const { store } of stores) await store.close();
  rmSync(home, { recursive: true });
}

async function open(home: string, dir: string): Promise<Store> {
  const files = nodeFiles(home);
  const secret = new Uint8Array(32).fill(1);
  const keys = { epoch: 1, key: () => secret };
  await createEmbedded({ files, dir, keys, random: systemRandom, at: Date.now() });
  // No checkpoint while the clock runs: in the server it runs on a thread of its own, here it would not.
  const limits = { checkpointBytes: Number.MAX_SAFE_INTEGER };
  const tenant = { files, dir, keys, wasm, migrations: tenantMigrations, tables: tenantTables, limits };
  return (await readEmbedded(tenant)).open();
}

function insert(into: { store: Store; next: number }, count: number): Promise<void> {
  const first = into.next;
  into.next += count;
  return into.store.transaction((tx) => {
    for (let at = first; at < first + count; at++) {
      const number = String(at).padStart(26, '0');
      tx.assets.insert({
        id: `asset_${number}`,
        ringId: `ring_${at % 100}`,
        data: { file: `report-${at}.pdf` },
        parents: [],
        apikeyId: `apik_${at % 1000}`,
        accountId: `acct_${at % 50}`,
        createdAt: 1_700_000_000_000 + at,
      });
    }
    tx.record({
      id: `act_${String(first).padStart(26, '0')}`,
      createdAt: 1_700_000_000_000 + first,
      keyid: 'apik_1',
      action: 'keyring.encrypt',
      ringname: 'bench',
      validAction: true,
      status: 200,
      props: {},
    });
  });
}
