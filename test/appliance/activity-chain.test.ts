// The auditor's endpoints over a log with closed segments on disk: intact, damaged, and read while records are added.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifyExport } from '../../src/appliance/verify-export.ts';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { tenantDir } from '../../src/platform/data-dir.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { sqlWasm } from '../../src/platform/program-files.ts';
import { serve } from '../../src/server/serve.ts';
import { openTenantStore, storesIn } from '../../src/storage/stores.ts';
import { desk } from '../cli/kms.ts';
import { type Place, place } from './tenant-appliance.ts';

const count = 20_000;

/** A closed appliance with `count` records, most of them in closed segments. */
async function withSegments(): Promise<Place & { readonly segment: string }> {
  const p = await place();
  await p.appliance.close();
  const { seal } = await openSealFile(p.data, undefined);
  const [dir = ''] = await readdir(join(p.data, 'tenants'));
  const stores = storesIn({ root: p.data, files: nodeFiles(p.data), wasm: await sqlWasm() });
  const store = await openTenantStore(stores, tenantDir(dir), seal.keysFor(dir));
  for (let from = 0; from < count; from += 1000) {
    await store.transaction((tx) => {
      for (let n = from; n < from + 1000; n++) {
        const entry = {
          id: `act_${String(n).padStart(26, '0')}`,
          createdAt: n,
          keyid: 'apik_1',
          action: 'keyring.encrypt',
        };
        tx.record({ ...entry, ringname: 'r', validAction: true, status: 200, props: { n } });
      }
    });
  }
  await store.checkpoint();
  await store.close();
  const names = await readdir(join(p.data, 'tenants', dir));
  const segment = names.find((name) => name.startsWith('activity-'));
  assert.ok(segment, 'there is a closed segment');
  return Object.assign(p, { segment: join(p.data, 'tenants', dir, segment) });
}

test('a long log verifies and goes out whole, also while more is written', async () => {
  await using p = await withSegments();
  await p.reopen();
  const verdict = (await p.local('POST', '/local/activity/verify', {})).body;
  assert.deepEqual([verdict.valid, verdict.count, verdict.head.seq], [true, count, count]);
  const head = (await p.local('GET', '/auth/activity/head')).body;
  assert.deepEqual([head.seq, head.hash], [count, verdict.head.hash]);
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  const response = await p.appliance.fetchLocal(new Request('http://kms.local/auth/activity/export', init));
  assert.equal(response.headers.get('content-type'), 'application/jsonl');
  assert.ok(response.body);
  const chunks: Uint8Array[] = [];
  let largest = 0;
  for await (const chunk of response.body) {
    if (chunks.length % 10 === 0)
      assert.equal((await p.local('POST', '/ks/keyrings', { name: `r${chunks.length}` })).status, 200);
    chunks.push(chunk);
    largest = Math.max(largest, chunk.length);
  }
  assert.ok(largest < 200_000, 'in pieces');
  const exported = await verifyExport(
    (async function* () {
      yield* chunks;
    })(),
    { since: head },
  );
  assert.deepEqual([exported.broken, exported.count], [undefined, count + 2], 'up to the export itself');
  const since = await p.local('POST', '/auth/activity/export', { since: { ...head, seq: 5 } });
  assert.equal(since.status, 400);
});

test('a byte changed on disk is found; an export of it breaks off and leaves no file', async () => {
  await using p = await withSegments();
  const bytes = await readFile(p.segment);
  const at = Math.floor(bytes.length / 3);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await writeFile(p.segment, bytes);
  await p.reopen();
  const verdict = (await p.local('POST', '/local/activity/verify', {})).body;
  assert.equal(verdict.valid, false);
  assert.ok(verdict.broken.problem.includes('activity-'), verdict.broken.problem);
  assert.ok(verdict.broken.seq < count);
  await p.appliance.close();

  await using d = await desk();
  const args = ['--data', p.data, 'activity'];
  const broken = await d.kms([...args, 'verify']);
  assert.deepEqual([broken.code, broken.stdout], [1, '']);
  assert.match(broken.stderr, /^kms: the activity log does not verify: .*activity-[^\n]*\n$/);
  const here = await d.kms([...args, 'export', '-o', 'log.jsonl']);
  assert.deepEqual([here.code, existsSync(d.path('log.jsonl'))], [1, false]);
  assert.match(here.stderr, /^kms: .*activity-/);

  const serving = await serve({ data: p.data, listen: '127.0.0.1:0', logLevel: 'silent' });
  const there = await d.kms([...args, 'export', '-o', 'log.jsonl']);
  const toStdout = await d.kms([...args, 'export']);
  await serving.close();
  await p.reopen();
  assert.deepEqual([there.code, existsSync(d.path('log.jsonl'))], [1, false], there.stderr);
  assert.match(there.stderr, /^kms: the export broke off: it is incomplete; see `kms activity verify`/);
  assert.equal(toStdout.code, 1);
});
