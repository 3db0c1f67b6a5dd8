// Files on the real file system: modes, appending, replacing, and each operation with no or too much data.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeDirs, nodeFiles } from '../../src/platform/node-files.ts';
import { createEmbedded } from '../../src/store/file-journal.ts';
import { createTestStore, openEmbedded, testOptions } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { smallDisks } from '../support/small-disk.ts';
import { activityInput, storeContract } from './contract.ts';

function temporary(): { root: string; remove: () => void } {
  const root = mkdtempSync(join(tmpdir(), 'kms-files-'));
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}

const mode = (path: string) => statSync(path).mode & 0o777;

test('directories are made 0700, files 0600', async () => {
  const { root, remove } = temporary();
  const files = nodeFiles(root);
  await files.makeDir('a/b');
  await files.makeDir('a/b');
  const file = await files.openAppend('a/b/log', true);
  await file.close();
  await files.replace('a/b/whole', Uint8Array.of(1));
  assert.deepEqual([mode(join(root, 'a')), mode(join(root, 'a/b'))], [0o700, 0o700]);
  assert.deepEqual([mode(join(root, 'a/b/log')), mode(join(root, 'a/b/whole'))], [0o600, 0o600]);
  remove();
});

test('what root makes in another user’s directory is that user’s, where that is asked for', async () => {
  const { root, remove } = temporary();
  const [own, other] = [process.getuid?.() ?? 0, process.getuid?.() === 0 ? 65_532 : process.getuid?.()];
  if (own !== other) chownSync(root, 65_532, 65_532);
  for (const [dir, ofItsOwner, expected] of [
    ['theirs', true, other],
    ['own', false, own],
  ] as const) {
    const files = nodeFiles(root, { ofItsOwner });
    await files.makeDir(`${dir}/a/b`);
    await (await files.openAppend(`${dir}/a/b/log`, true)).close();
    await files.replace(`${dir}/a/whole`, Uint8Array.of(1));
    for (const name of [dir, `${dir}/a`, `${dir}/a/b`, `${dir}/a/b/log`, `${dir}/a/whole`]) {
      assert.equal(statSync(join(root, name)).uid, expected, name);
    }
  }
  remove();
});

test('a file is not written through a link in the place of its draft', async () => {
  const { root, remove } = temporary();
  writeFileSync(join(root, 'elsewhere'), 'kept');
  symlinkSync('elsewhere', join(root, 'whole.tmp'));
  await assert.rejects(nodeFiles(root).replace('whole', Uint8Array.of(1)), {
    code: 'corrupt',
    message: /found a symbolic link$/,
  });
  assert.equal(readFileSync(join(root, 'elsewhere'), 'utf8'), 'kept');
  await nodeFiles(root).replace('whole', Uint8Array.of(1));
  remove();
});

test('no name leads out of the directory, whatever is to be done', async () => {
  const { root, remove } = temporary();
  const files = nodeFiles(join(root, 'own'));
  await files.makeDir('d');
  writeFileSync(join(root, 'victim'), 'kept');
  const operations = {
    list: (name: string) => files.list(name),
    exists: (name: string) => files.exists(name),
    size: (name: string) => files.size(name),
    read: (name: string) => files.read(name, 2 ** 20),
    readAt: (name: string) => files.readAt(name, 0, 1),
    append: (name: string) => files.openAppend(name, false),
    create: (name: string) => files.openAppend(name, true),
    replace: (name: string) => files.replace(name, Uint8Array.of(1)),
    remove: (name: string) => files.remove(name),
    makeDir: (name: string) => files.makeDir(name),
    removeDir: (name: string) => files.removeDir(name),
    syncDir: (name: string) => files.syncDir(name),
  };
  const names = [
    '..',
    '../victim',
    'd/../../victim',
    './../victim',
    join(root, 'victim'),
    '/',
    '',
    'd//x',
    'd/./x',
    'd/',
  ];
  for (const [operation, run] of Object.entries(operations)) {
    for (const name of names) {
      await assert.rejects(
        run(name),
        { code: 'corrupt', message: /expected the name of a file/ },
        `${operation} ${name}`,
      );
    }
  }
  assert.deepEqual([readdirSync(root).sort(), readdirSync(join(root, 'own'))], [['own', 'victim'], ['d']]);
  assert.equal(readFileSync(join(root, 'victim'), 'utf8'), 'kept');
  remove();
});

test('a pipe in the place of a file keeps no reader waiting', { timeout: 20_000 }, async () => {
  const { root, remove } = temporary();
  const files = nodeFiles(root);
  execFileSync('mkfifo', [join(root, 'pipe')]);
  writeFileSync(join(root, 'file'), 'x');
  symlinkSync('pipe', join(root, 'link'));
  assert.deepEqual((await files.list('.')).sort(), ['file', 'pipe']);
  const kinds = { pipe: 'a named pipe', link: 'a symbolic link' };
  for (const [name, kind] of Object.entries(kinds)) {
    const notFile = { code: 'corrupt', message: new RegExp(`expected a file, found ${kind}$`) };
    await assert.rejects(files.read(name, 2 ** 20), notFile);
    await assert.rejects(files.readAt(name, 8, 8), notFile);
    await assert.rejects(files.openAppend(name, false), notFile);
  }
  execFileSync('mkfifo', [join(root, 'file.tmp')]);
  const isPipe = { code: 'corrupt', message: /expected a file, found a named pipe$/ };
  await assert.rejects(files.replace('file', Uint8Array.of(1)), isPipe);
  assert.equal(readFileSync(join(root, 'file'), 'utf8'), 'x');
  remove();
});

test('appends go to the end, also after a truncation', async () => {
  const { root, remove } = temporary();
  const files = nodeFiles(root);
  const file = await files.openAppend('log', true);
  await file.append(Uint8Array.of(1, 2, 3));
  await file.append(Uint8Array.of(4));
  await file.sync();
  assert.equal(file.size, 4);
  await file.truncate(2);
  await file.append(Uint8Array.of(5));
  await file.close();
  const again = await files.openAppend('log', false);
  assert.equal(again.size, 3);
  await again.append(Uint8Array.of(6));
  await again.close();
  assert.deepEqual([...readFileSync(join(root, 'log'))], [1, 2, 5, 6]);
  assert.deepEqual([...(await files.readAt('log', 1, 2))], [2, 5]);
  assert.deepEqual([...(await files.readAt('log', 3, 9))], [6]);
  assert.equal(await files.size('log'), 4);
  remove();
});

test('a file has room behind what was appended, which is written over and taken away again', async () => {
  const { root, remove } = temporary();
  const path = join(root, 'log');
  const files = nodeFiles(root);
  const file = await files.openAppend('log', true);
  const add = async (byte: number, length: number, room?: number): Promise<void> => {
    await file.append(new Uint8Array(length).fill(byte), room);
    await file.sync();
  };
  const all = Uint8Array.from({ length: 200_030 }, (_, at) => (at < 10 ? 1 : at < 30 ? 2 : 3));
  await add(1, 10, 20);
  assert.deepEqual([...readFileSync(path)], [...all.subarray(0, 10), ...new Uint8Array(20)]);
  assert.equal(file.size, 10);
  await add(2, 20, 20);
  assert.equal(readFileSync(path).length, 30, 'what was there was enough');
  await add(3, 200_000, 150_000);
  assert.ok(readFileSync(path).equals(Buffer.concat([all, new Uint8Array(150_000)])));
  assert.equal(file.size, all.length);
  // Opened again for appending, it starts at the length of the file, preallocation included.
  const other = await files.openAppend('log', false);
  assert.equal(other.size, 350_030);
  await other.close();
  await file.trim();
  assert.ok(readFileSync(path).equals(all));
  await file.trim();
  await add(4, 1, 5);
  await file.truncate(10);
  assert.equal(readFileSync(path).length, 10);
  await add(2, 1, 5);
  assert.deepEqual([...readFileSync(path)], [...all.subarray(0, 11), 0, 0, 0, 0, 0]);
  // Bytes that another process wrote there meanwhile are not cut off.
  writeFileSync(path, Buffer.concat([all.subarray(0, 11), Buffer.from('more'), new Uint8Array(5)]));
  await assert.rejects(file.trim(), {
    code: 'unavailable',
    message: /somebody else wrote to the file behind offset 11/,
  });
  assert.equal(readFileSync(path).length, 20);
  await file.close();
  remove();
});

for (const { kind, mount } of smallDisks(4)) {
  test(`a disk without room for more takes what was appended all the same: ${kind}`, async () => {
    const disk = mount();
    const files = nodeFiles(disk.path);
    const file = await files.openAppend('log', true);
    await file.append(new Uint8Array(1000).fill(1), 100 * 1024 * 1024);
    await file.sync();
    assert.equal(file.size, 1000);
    await file.append(new Uint8Array(9000).fill(2), 100 * 1024 * 1024);
    await file.sync();
    const bytes = readFileSync(join(disk.path, 'log'));
    assert.ok(bytes.subarray(0, 10_000).equals(Buffer.concat([Buffer.alloc(1000, 1), Buffer.alloc(9000, 2)])));
    assert.ok(bytes.subarray(10_000).every((byte) => byte === 0));
    await file.trim();
    assert.equal(await files.size('log'), 10_000);
    await file.close();
    disk.unmount();
  });
}

test('a replaced file is the new one whole, and nothing else stays', async () => {
  const { root, remove } = temporary();
  const files = nodeFiles(root);
  await files.replace('f', Uint8Array.of(1));
  async function* pieces() {
    yield Uint8Array.of(2, 3);
    yield Uint8Array.of(4);
  }
  await files.replace('f', pieces());
  assert.deepEqual([...(await files.read('f', 2 ** 20))], [2, 3, 4]);
  async function* broken() {
    yield Uint8Array.of(9);
    throw new Error('no');
  }
  await assert.rejects(files.replace('f', broken()), /^Error: no$/);
  assert.deepEqual([...(await files.read('f', 2 ** 20))], [2, 3, 4]);
  assert.deepEqual(readdirSync(root), ['f']);
  remove();
});

test('missing things and existing ones are told apart', async () => {
  const { root, remove } = temporary();
  const files = nodeFiles(root);
  assert.deepEqual(await files.list('none'), []);
  assert.equal(await files.exists('none'), false);
  await assert.rejects(files.read('none', 2 ** 20), { code: 'ENOENT' });
  await assert.rejects(files.openAppend('none', false), { code: 'ENOENT' });
  await assert.rejects(files.remove('none'), { code: 'ENOENT' });
  await files.makeDir('d/e');
  writeFileSync(join(root, 'd/f'), '');
  assert.deepEqual(await files.list('d'), ['f']);
  await assert.rejects(files.openAppend('d/f', true), { code: 'EEXIST' });
  await files.removeDir('d/e');
  assert.equal(await files.exists('d/e'), false);
  remove();
});

test('nothing that was stored is on disk in clear', async () => {
  const { root, remove } = temporary();
  const files = nodeFiles(root);
  const options = testOptions(files, prng(1), { limits: { segmentRecords: 2 } });
  await createTestStore(files, prng(2));
  const store = await openEmbedded(options);
  for (let i = 0; i < 5; i++) {
    await store.transaction((tx) => {
      tx.notes.add(`payroll-secret-${i}`);
      tx.record(activityInput(`act_secret_${i}`, { ringname: 'payroll-secret' }));
    });
    if (i === 3) await store.checkpoint();
  }
  await store.close();
  const names = readdirSync(join(root, options.dir));
  assert.deepEqual(names.map((name) => name.replace(/-.*/, '')).sort(), ['activity', 'activity', 'log', 'snapshot']);
  for (const name of names) {
    const bytes = readFileSync(join(root, options.dir, name));
    for (const word of ['secret', 'notes', 'CREATE', 'SQLite', 'keyring', 'act_'])
      assert.ok(!bytes.includes(word), name);
  }
  remove();
});

test('a store is made once', async () => {
  const { root, remove } = temporary();
  const files = nodeFiles(root);
  const { dir, keys } = testOptions(files, prng(1));
  const create = () => createEmbedded({ files, dir, keys, random: (length) => prng(1).bytes(length), at: 0 });
  await create();
  await assert.rejects(create(), { code: 'refused' });
  remove();
});

storeContract('embedded store on real files', async () => {
  const place = temporary();
  const files = nodeFiles(place.root);
  await createTestStore(files, prng(1));
  const store = await openEmbedded(testOptions(files, prng(2)));
  const close = store.close.bind(store);
  store.close = () => close().then(place.remove);
  return store;
});

test('directories that several make at once are made, for each of them', async () => {
  const home = await mkdtemp(join(tmpdir(), 'kms-dirs-'));
  try {
    await Promise.all(Array.from({ length: 20 }, () => makeDirs(join(home, 'a', 'b', 'c'))));
    assert.ok((await stat(join(home, 'a', 'b', 'c'))).isDirectory());
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
