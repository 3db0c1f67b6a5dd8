// A file system's missing features are found before an appliance is made there and reported in words; features that can
// do without hard links work. `scripts/file-systems` tries real file systems.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { dataDirState, makeAndHold } from '../../src/platform/data-dir.ts';
import { giveName, trialFile, tryFileSystem } from '../../src/platform/file-system.ts';
import { lockDirectory, lockFile } from '../../src/platform/lock.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import type { AppendFile, Files } from '../../src/store/files.ts';

async function directory(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'kms-file-system-'));
  t.after(() => rm(dir, { recursive: true }));
  return dir;
}

const fault = (code: string): Error => Object.assign(new Error(`${code}: raw`), { code, errno: -1, syscall: 'x' });

type Call = 'create' | 'append' | 'sync' | 'truncate' | 'replace' | 'syncDir';

/** The files of `dir`, where one kind of call fails. */
function faulty(dir: string, call: Call, code: string): Files {
  const files = nodeFiles(dir);
  const fails = async <R>(each: Call, run: () => Promise<R>): Promise<R> => {
    if (each === call) throw fault(code);
    return run();
  };
  const append = (file: AppendFile): AppendFile => ({
    get size() {
      return file.size;
    },
    append: (bytes, room) => fails('append', () => file.append(bytes, room)),
    sync: () => fails('sync', () => file.sync()),
    trim: () => file.trim(),
    truncate: (size) => fails('truncate', () => file.truncate(size)),
    close: () => file.close().catch(() => {}),
  });
  return {
    ...files,
    openAppend: (name, create) =>
      create
        ? fails('create', async () => append(await files.openAppend(name, true)))
        : files.openAppend(name, false).then(append),
    replace: (name, bytes) => fails('replace', () => files.replace(name, bytes)),
    syncDir: (name) => fails('syncDir', () => files.syncDir(name)),
  };
}

const calls: readonly (readonly [Call, string])[] = [
  ['create', 'make a file'],
  ['syncDir', 'sync a directory'],
  ['replace', 'replace a file by another'],
  ['append', 'write to a file and sync it'],
  ['sync', 'write to a file and sync it'],
  ['truncate', 'shorten a file'],
];

const codes: readonly (readonly [code: string, reason: RegExp, hint: RegExp])[] = [
  ['EINVAL', /the file system does not support this$/, /another file system; nothing was made/],
  ['ENOSYS', /the file system does not support this$/, /another file system; nothing was made/],
  ['ENOTSUP', /the file system does not support this$/, /another file system; nothing was made/],
  ['Unknown system error -524', /the file system does not support this$/, /another file system; nothing was made/],
  ['EPERM', /permission denied$/, /run as the user that owns it/],
  ['EROFS', /read-only$/, /mount it writable/],
  ['ENOSPC', /the disk is full$/, /free some space/],
  ['Unknown system error -122', /the quota is used up$/, /free some space/],
  ['EFBIG', /the file may not grow any longer$/, /ulimit -f/],
  ['EIO', /the device failed$/, /check the disk/],
  ['Unknown system error -116', /the file server no longer knows it$/, /mount the file system again/],
];

test('whatever call a file system refuses, and with whatever code, it is said, and nothing stays', async (t) => {
  const dir = await directory(t);
  for (const [call, deed] of calls) {
    for (const [code, reason, hint] of codes) {
      for (const isPrivate of [true, false]) {
        const error = await tryFileSystem(dir, { isPrivate, files: faulty(dir, call, code) }).catch((e) => e);
        assert.ok(error instanceof KmsError, `${call} ${code}`);
        assert.equal(error.code, 'refused');
        assert.ok(error.message.startsWith(`${dir}: cannot ${deed} there: `), error.message);
        assert.match(error.message, reason);
        assert.match(error.hint ?? '', hint);
        assert.deepEqual(await readdir(dir), []);
      }
    }
  }
  await tryFileSystem(dir, { isPrivate: true });
  assert.deepEqual(await readdir(dir), []);
});

test('a file system that keeps no modes is refused where others could read, with how to mount it', async (t) => {
  const dir = await directory(t);
  const mounted = (mode: number, isPrivate = true) =>
    tryFileSystem(dir, { isPrivate, files: nodeFiles(dir), modeOf: async () => 0o100000 + mode });
  for (const mode of [0o755, 0o777, 0o750, 0o644, 0o604]) {
    await assert.rejects(mounted(mode), {
      code: 'refused',
      message: /keeps no modes/,
      hint: /umask=077.*dir_mode=0700/,
    });
  }
  // Modes as with umask=077, where every file may be executable.
  for (const mode of [0o700, 0o600]) await mounted(mode);
  await mounted(0o755, false);
  assert.deepEqual(await readdir(dir), []);
});

test('what a trial left that was cut off is in nobody’s way', async (t) => {
  const dir = join(await directory(t), 'data');
  await (await makeAndHold(dir)).giveUp();
  assert.equal(await dataDirState(dir), 'missing');
  const held = await makeAndHold(dir);
  held.lock.release();
  for (const name of [trialFile, `${trialFile}.tmp`]) await writeFile(join(dir, name), 'x');
  assert.equal(await dataDirState(dir), 'empty');
  const again = await makeAndHold(dir);
  assert.deepEqual(
    (await readdir(dir)).filter((name) => name === trialFile),
    [],
  );
  again.lock.release();
});

for (const code of ['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'Unknown system error -524', 'EMLINK', 'EINVAL']) {
  test(`without links (${code}) a new file gets its name all the same, and replaces nothing`, async (t) => {
    const dir = await directory(t);
    const linked = () => Promise.reject(fault(code));
    const [draft, path] = [join(dir, 'draft'), join(dir, 'file')];
    await writeFile(draft, 'new');
    await giveName(draft, path, linked);
    assert.deepEqual(await readdir(dir), ['file']);
    assert.equal(await readFile(path, 'utf8'), 'new');
    await writeFile(draft, 'other');
    await assert.rejects(giveName(draft, path, linked), { code: 'EEXIST' });
    assert.equal(await readFile(path, 'utf8'), 'new');
    // If the rename fails, the name is free again.
    await assert.rejects(giveName(join(dir, 'missing'), join(dir, 'third'), linked), { code: 'ENOENT' });
    assert.deepEqual(await readdir(dir), ['draft', 'file']);
  });
}

test('a link that fails for another reason is no lack of links', async (t) => {
  const dir = await directory(t);
  await writeFile(join(dir, 'draft'), 'new');
  await assert.rejects(
    giveName(join(dir, 'draft'), join(dir, 'file'), () => Promise.reject(fault('ENOSPC'))),
    { code: 'ENOSPC' },
  );
});

const sqliteFault = (errcode: number): Error => Object.assign(new Error('database is locked'), { errcode });

test('a file system without locks is told apart from a directory in use', async (t) => {
  const dir = await directory(t);
  // ENOLCK is SQLITE_BUSY as well; ENOSYS and the like are variants of SQLITE_IOERR_LOCK, EPERM is SQLITE_PERM.
  for (const errcode of [5, 261, 3, 2314, 2058, 3850]) {
    const open = (): DatabaseSync => {
      throw sqliteFault(errcode);
    };
    assert.throws(() => lockDirectory(dir, { open }), {
      code: 'refused',
      message: `${join(dir, lockFile)}: cannot be locked: the file system has no locks`,
    });
  }
  const held = lockDirectory(dir);
  assert.throws(() => lockDirectory(dir), { code: 'in-use' });
  assert.throws(() => lockDirectory(dir, { onlyLooks: true }), { code: 'in-use' });
  held.release();
  assert.deepEqual(await readdir(dir), [lockFile]);
});
