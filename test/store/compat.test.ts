// Files of `test/compat/store-1` were made by an earlier program and must open for ever: test keys of epoch 1; notes n0
// to n8 with as many activity records, the first three of which retention dropped; the first four notes in the
// snapshot, the others in a log left by a crash, with preallocated space that contains a write with a sector missing.
// KMS_WRITE_FIXTURE=1 writes them if they are missing.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openEmbedded, testDir, testOptions } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { openShared, sharedOptions, sharedUid, simShared } from '../support/shared-store.ts';
import { Inode, SimDisk } from '../support/sim-disk.ts';
import { SimDatabase, SimEngine } from '../support/sim-engine.ts';
import { SimFiles } from '../support/sim-files.ts';
import { crashedStore } from '../support/store-sample.ts';
import { activityInput } from './contract.ts';

const dropped = 3;
/** The chain hash of the last record. */
const head = '1PAJeCbJNmRypNw6oKGQmkLcWlG4117cOxDYozV7Pmk';
const root = fileURLToPath(new URL('../compat/store-1', import.meta.url));

if (process.env.KMS_WRITE_FIXTURE && !existsSync(root)) {
  mkdirSync(root, { recursive: true });
  for (const [name, bytes] of await crashedStore({ dropped })) {
    writeFileSync(`${root}${name.slice(testDir.length)}`, bytes);
  }
}

test('the store opens, and goes on', async () => {
  const names = readdirSync(root).map((name) => {
    const inode = new Inode();
    inode.append(readFileSync(`${root}/${name}`));
    return [`${testDir}/${name}`, inode] as const;
  });
  const files = new SimFiles({ prng: prng(1), disk: new SimDisk(new Map(names)) });
  const open = () => openEmbedded(testOptions(files, prng(2)));
  let store = await open();
  const look = () => store.transaction((tx) => tx.notes.all().map((note) => [note.seq, note.name, note.value]));
  const wanted = Array.from({ length: 9 }, (_, i) => [i + 1, `n${i}`, i]);
  assert.deepEqual(await look(), wanted);
  const hashes: string[] = [];
  for await (const { hash } of store.activity.read(1)) hashes.push(hash);
  assert.equal(hashes.length, 9 - dropped);
  assert.equal(store.status().activityDropped?.seq ?? 0, dropped);
  assert.equal(hashes.at(-1), head);
  await store.transaction((tx) => tx.notes.add('more', 10));
  await store.checkpoint();
  await store.close();
  store = await open();
  assert.deepEqual(await look(), [...wanted, [10, 'more', 10]]);
  await store.close();
});

// `test/compat/shared-1.json` has the rows and files of a shared store, in base64: notes n0 to n8 with as many activity
// records, the first four in the snapshot too.
const shared = fileURLToPath(new URL('../compat/shared-1.json', import.meta.url));
const sharedId = Buffer.from(sharedUid).toString('hex');

interface SharedFixture {
  readonly rows: readonly { seq: number; epoch: number; tag: string; sealed: string }[];
  readonly files: Readonly<Record<string, string>>;
}

if (process.env.KMS_WRITE_FIXTURE && !existsSync(shared)) {
  const { node, database } = await simShared({ limits: { segmentRecords: 2 } });
  const { store } = await node();
  for (let i = 0; i < 9; i++) {
    await store.transaction((tx) => {
      tx.notes.add(`n${i}`, i);
      tx.notes.count('n0');
      tx.record(activityInput(`act_${i}`, { address: '203.0.113.7', props: { i } }));
    });
    if (i === 3) await store.checkpoint();
  }
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
  const rows = database.rows(sharedId).map((row) => ({ ...row, tag: base64(row.tag), sealed: base64(row.sealed) }));
  const files = Object.fromEntries([...database.contents.files].map(([name, bytes]) => [name, base64(bytes)]));
  writeFileSync(shared, `${JSON.stringify({ rows, files })}\n`);
}

for (const start of ['the snapshot', 'the first row']) {
  test(`the shared store 1 opens from ${start}, and goes on`, async () => {
    // Cast: written above.
    const fixture = JSON.parse(readFileSync(shared, 'utf8')) as SharedFixture;
    const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'));
    const database = new SimDatabase(prng(1));
    const rows = fixture.rows.map((row) => ({ ...row, tag: bytes(row.tag), sealed: bytes(row.sealed) }));
    const [first] = rows;
    assert.ok(first);
    await new SimEngine(database).create(sharedId, 1, first);
    database.setRows(sharedId, new Map(rows.map((row) => [row.seq, { row, at: 0 }])));
    if (start === 'the snapshot') {
      const files = Object.entries(fixture.files).map(([name, text]) => [name, bytes(text)] as const);
      database.commit({ files: new Map(files) });
    }
    const store = await openShared(sharedOptions(new SimEngine(database), prng(2)));
    assert.equal(store.status().lastCheckpointAt === undefined, start === 'the first row');
    const notes = await store.transaction((tx) => tx.notes.all().map(({ name, value }) => [name, value]));
    assert.deepEqual(
      notes,
      Array.from({ length: 9 }, (_, i) => [`n${i}`, i]),
    );
    assert.equal(await store.transaction((tx) => tx.notes.counted('n0')), 9);
    const hashes: string[] = [];
    for await (const { hash } of store.activity.read(1)) hashes.push(hash);
    assert.deepEqual([hashes.length, hashes.at(-1)], [9, '6mYv7zYhN7r1zDV25YiPd5Gv4nJLeuHDSOPAPPlAhmQ']);
    assert.equal(await store.transaction((tx) => tx.notes.add('more')), 1);
    await store.close();
  });
}
