// The files of `test/compat/store-1` were made by the first release of the format and must open for ever: test keys of
// epoch 1; notes n0 to n8 with as many records of activity; the first four in the snapshot, the others in two logs.
// KMS_WRITE_FIXTURE=1 writes them where there are none.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openEmbedded } from '../../src/store/embedded.ts';
import { testDir, testOptions } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { Inode, SimDisk } from '../support/sim-disk.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sampleStore } from '../support/store-sample.ts';

const root = fileURLToPath(new URL('../compat/store-1', import.meta.url));

if (process.env.KMS_WRITE_FIXTURE && !existsSync(root)) {
  mkdirSync(root, { recursive: true });
  for (const [name, bytes] of (await sampleStore()).content)
    writeFileSync(`${root}${name.slice(testDir.length)}`, bytes);
}

test('a store of format 1 opens, and goes on', async () => {
  const names = readdirSync(root).map((name) => {
    const inode = new Inode();
    inode.append(readFileSync(`${root}/${name}`));
    return [`${testDir}/${name}`, inode] as const;
  });
  const files = new SimFiles({ prng: prng(1), disk: new SimDisk(new Map(names)) });
  const open = () => openEmbedded(testOptions(files, prng(2)));
  let store = await open();
  const look = () =>
    store.transaction(async (tx) => (await tx.notes.all()).map((note) => [note.seq, note.name, note.value]));
  const wanted = Array.from({ length: 9 }, (_, i) => [i + 1, `n${i}`, i]);
  assert.deepEqual(await look(), wanted);
  const hashes: string[] = [];
  for await (const { hash } of store.readActivity(1)) hashes.push(hash);
  assert.equal(hashes.length, 9);
  assert.equal(hashes.at(-1), 'rpdxqFGZS8aXN_005UPh_PFeULWTXs9xLhQJc7N_UlE');
  await store.transaction((tx) => tx.notes.add('more', 10));
  await store.checkpoint();
  await store.close();
  store = await open();
  assert.deepEqual(await look(), [...wanted, [10, 'more', 10]]);
  await store.close();
});
