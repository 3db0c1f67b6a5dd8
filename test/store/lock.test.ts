// The lock of a data directory: held by one process at a time, and released when that dies.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lockDirectory } from '../../src/platform/lock.ts';

const temporary = () => mkdtempSync(join(tmpdir(), 'kms-lock-'));

/** Another process that takes the lock and keeps it until it is killed. */
async function holder(root: string) {
  const module = new URL('../../src/platform/lock.ts', import.meta.url).href;
  const script = `const { lockDirectory } = await import(${JSON.stringify(module)});
    lockDirectory(${JSON.stringify(root)});
    // The result is not kept: the lock must survive garbage collection.
    gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
    gc();
    console.log('held');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}

test('a second hold in the same process is refused, and does not end the first', async () => {
  const root = temporary();
  const lock = lockDirectory(root);
  for (let i = 0; i < 2; i++) assert.throws(() => lockDirectory(root), { code: 'in-use' });
  assert.deepEqual(readdirSync(root).sort(), ['kms.lock', 'kms.pid']);
  assert.equal(statSync(join(root, 'kms.lock')).mode & 0o777, 0o600);
  lock.release();
  lock.release();
  assert.deepEqual(readdirSync(root), ['kms.lock']);
  lockDirectory(root).release();
  rmSync(root, { recursive: true });
});

test('a lock with contents, or with a file of SQLite beside it, is not opened', () => {
  for (const name of ['kms.lock', 'kms.upgrade.lock']) {
    for (const planted of [name, `${name}-journal`, `${name}-wal`, `${name}-shm`, `${name}-mj0123456789`]) {
      const root = temporary();
      lockDirectory(root, { name }).release();
      writeFileSync(join(root, planted), 'SQLite format 3\0');
      for (const onlyLooks of [false, true]) {
        const opened = () => assert.fail(`${planted} was opened`);
        assert.throws(() => lockDirectory(root, { name, onlyLooks, open: opened }), {
          code: 'corrupt',
          message: new RegExp(`${planted}: expected an empty lock and nothing beside it, found `),
        });
      }
      assert.equal(readFileSync(join(root, planted), 'utf8'), 'SQLite format 3\0');
      rmSync(join(root, planted));
      lockDirectory(root, { name }).release();
      rmSync(root, { recursive: true });
    }
  }
});

test('a hold ends where its number cannot be removed, as on a disk that has become read-only', () => {
  const root = temporary();
  const lock = lockDirectory(root);
  rmSync(join(root, 'kms.pid'));
  mkdirSync(join(root, 'kms.pid'));
  lock.release();
  rmSync(join(root, 'kms.pid'), { recursive: true });
  lockDirectory(root).release();
  rmSync(root, { recursive: true });
});

test('another process is refused by number, and gets in once the first was killed', async (t) => {
  const root = temporary();
  const child = await holder(root);
  t.after(() => child.kill('SIGKILL'));
  assert.throws(() => lockDirectory(root), { code: 'in-use', message: `${root}: in use by process ${child.pid}` });
  child.kill('SIGKILL');
  await once(child, 'exit');
  lockDirectory(root).release();
  rmSync(root, { recursive: true });
});

test('a directory that is taken away is noticed, one in its place is left alone, and the same one again is taken for it', () => {
  const root = temporary();
  const away = `${root}.away`;
  const lock = lockDirectory(root);
  lock.needInPlace();
  renameSync(root, away);
  const gone = { code: 'unavailable', message: /removed, moved or replaced/ };
  assert.throws(() => lock.needInPlace(), gone);
  mkdirSync(root);
  const other = lockDirectory(root);
  assert.throws(() => lock.needInPlace(), gone);
  other.needInPlace();
  lock.release();
  assert.ok(existsSync(join(root, 'kms.pid')), "the other's");
  other.release();
  rmSync(root, { recursive: true });

  renameSync(away, root);
  const again = lockDirectory(root);
  renameSync(root, away);
  renameSync(away, root);
  again.needInPlace();
  again.release();
  rmSync(root, { recursive: true });
});
