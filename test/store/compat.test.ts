// The files of `test/compat/store-1` to `store-4` were made by earlier programs and must open for ever: test keys of epoch
// 1; notes n0 to n8 with as many records of activity; the first four in the snapshot, the others in two logs. Those of
// 1 have each record of activity as its canonical line, those of 2 share what is alike in a group, those of 3 addresses
// too; those of 4 are without the first three records, which retention dropped. KMS_WRITE_FIXTURE=1 writes the newest where there are none.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openEmbedded, testDir, testOptions } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { Inode, SimDisk } from '../support/sim-disk.ts';
import { SimFiles } from '../support/sim-files.ts';
import { keptStore } from '../support/store-sample.ts';

const rootOf = (number: number): string => fileURLToPath(new URL(`../compat/store-${number}`, import.meta.url));
const newest = rootOf(4);

if (process.env.KMS_WRITE_FIXTURE && !existsSync(newest)) {
  mkdirSync(newest, { recursive: true });
  for (const [name, bytes] of await keptStore()) writeFileSync(`${newest}${name.slice(testDir.length)}`, bytes);
}

const withoutAddresses = 'rpdxqFGZS8aXN_005UPh_PFeULWTXs9xLhQJc7N_UlE';

const withAddresses = '1PAJeCbJNmRypNw6oKGQmkLcWlG4117cOxDYozV7Pmk';

for (const [number, head, dropped = 0] of [
  [1, withoutAddresses],
  [2, withoutAddresses],
  [3, withAddresses],
  [4, withAddresses, 3],
] as const) {
  test(`the store ${number} opens, and goes on`, () => opens(rootOf(number), head, dropped));
}

async function opens(root: string, head: string, dropped: number): Promise<void> {
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
  assert.equal(hashes.length, 9 - dropped);
  assert.equal(store.status().activityDropped?.seq ?? 0, dropped);
  assert.equal(hashes.at(-1), head);
  await store.transaction((tx) => tx.notes.add('more', 10));
  await store.checkpoint();
  await store.close();
  store = await open();
  assert.deepEqual(await look(), [...wanted, [10, 'more', 10]]);
  await store.close();
}
