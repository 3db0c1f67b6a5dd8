// Files in a directory where others may write, with something mounted beneath it: a bind mount gives live data a path
// there without a link, on the same device, and without a second name. Every operation refuses it, on each directory
// and on files. Needs root's rights, or those in a user namespace; the mounts end with the process.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { type ForeignFiles, foreignFile, foreignFiles } from '../../src/platform/foreign-files.ts';
import { ForeignRoot } from '../../src/platform/foreign-root.ts';

const inside = 'KMS_TEST_MOUNTS';
const unshare = ['--user', '--map-root-user', '--mount'];

const dir = 'life/tenants/aa';
const name = `${dir}/log`;
const bytes = Uint8Array.of(1, 2, 3);

interface Place {
  readonly live: string;
  readonly outside: string;
  readonly share: string;
  readonly files: ForeignFiles;
}

/** Runs `work` with the same names in all three directories. */
async function withPlace(work: (place: Place) => Promise<void>): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), 'kms-mounts-'));
  const [live, outside, share] = [join(base, 'live'), join(base, 'outside'), join(base, 'share')];
  for (const root of [live, outside, share]) {
    mkdirSync(join(root, dir, 'sub'), { recursive: true });
    for (const each of ['log', 'log.tmp', 'sub/log']) writeFileSync(join(root, dir, each), `${root} ${each}`);
  }
  await work({ live, outside, share, files: foreignFiles({ path: share, own: [live] }) });
  rmSync(base, { recursive: true });
}

async function mounted(from: string, to: string, work: () => Promise<void>): Promise<void> {
  execFileSync('mount', ['--bind', from, to]);
  await work().finally(() => execFileSync('umount', [to]));
}

/** Everything whose change could be observed, down to a name or a byte. */
function stateOf(root: string): string {
  const names = readdirSync(root, { recursive: true }).map(String).sort();
  return names
    .map((each) => {
      const { mode, ino, size, mtimeMs, ctimeMs } = lstatSync(join(root, each));
      const content = lstatSync(join(root, each)).isFile() ? readFileSync(join(root, each), 'hex') : '';
      return `${each} ${mode} ${ino} ${size} ${mtimeMs} ${ctimeMs} ${content}`;
    })
    .join('\n');
}

async function refusal(work: Promise<unknown>): Promise<KmsError | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    assert.ok(error instanceof KmsError, String(error));
    assert.equal(error.code, 'refused');
    return error;
  }
}

type Operation = (files: ForeignFiles) => Promise<unknown>;

const onFiles: Readonly<Record<string, Operation>> = {
  read: (files) => files.read(name, 2 ** 20),
  readAt: (files) => files.readAt(name, 0, 4),
  size: (files) => files.size(name),
  exists: (files) => files.exists(name),
  async openAppend(files) {
    const file = await files.openAppend(name, false);
    await file.truncate(1).finally(() => file.close());
  },
  replace: (files) => files.replace(name, bytes),
  remove: (files) => files.remove(name),
  renameFrom: (files) => files.rename(name, `${dir}/other`),
  renameTo: (files) => files.rename(`${dir}/log.tmp`, name),
  removeWhole: (files) => files.removeDir(dir),
};

const onDirectories: Readonly<Record<string, Operation>> = {
  ...onFiles,
  list: (files) => files.list(dir),
  names: (files) => files.names(dir),
  openNew: async (files) => (await files.openAppend(`${dir}/new`, true)).close(),
  makeDir: (files) => files.makeDir(`${dir}/made`),
  makeNewDir: (files) => files.makeNewDir(`${dir}/made`),
  removeDir: (files) => files.removeDir(`${dir}/sub`),
  syncDir: (files) => files.syncDir(dir),
  async elsewhere(files) {
    // The way the files are passed to another thread.
    await foreignFiles(await files.beneath('life').place()).replace('tenants/aa/log', bytes);
  },
};

function needMountError(error: KmsError | undefined, path: string, what: string): void {
  const said = `${path}: something is mounted there, beneath the directory that was named`;
  assert.equal(error?.message, said, what);
  assert.ok(error?.hint, what);
}

function tests(isAllowed: boolean): void {
  if (isAllowed) withMounts();

  test('one that is a directory of the appliance’s own is not entered, by whatever path', async () => {
    await withPlace(async ({ live, share }) => {
      const root = new ForeignRoot({ path: share, own: [live] });
      (await root.open()).close();
      for (const each of ['.', 'life', 'life/tenants', dir]) {
        const own = lstatSync(join(live, each), { bigint: true });
        const error = await refusal(root.needForeignDirectory(join(share, 'x'), own));
        assert.equal(error?.message, `${join(share, 'x')}: belongs to the data directory ${live}, or holds it`);
        await root.needForeignDirectory(join(share, each), lstatSync(join(share, each), { bigint: true }));
      }
      // The inode number of a deleted directory no longer counts as the appliance's own.
      const gone = lstatSync(join(live, dir, 'sub'), { bigint: true });
      rmSync(join(live, dir, 'sub'), { recursive: true });
      await root.needForeignDirectory(join(share, 'x'), gone);
    });
  });
}

function withMounts(): void {
  for (const source of ['live', 'outside', 'share'] as const) {
    for (const component of ['life', 'life/tenants', dir]) {
      test(`${source}, mounted on ${component}: no operation goes there`, () =>
        withPlace(async (place) => {
          for (const [operation, run] of Object.entries(onDirectories)) {
            // Files that have been used before, and new ones.
            for (const files of [place.files, foreignFiles({ path: place.share, own: [place.live] })]) {
              const before = stateOf(place[source]);
              await mounted(join(place[source], component), join(place.share, component), async () => {
                const path = join(place.share, component);
                needMountError(await refusal(run(files)), path, operation);
                assert.equal(stateOf(place[source]), before, operation);
              });
            }
            await place.files.list(dir);
          }
        }));
    }

    for (const on of [name, `${name}.tmp`]) {
      test(`a file of ${source}, mounted on ${on}: nothing reads or writes it`, async () => {
        for (const [operation, run] of Object.entries(onFiles)) {
          await withPlace(async (place) => {
            const [from, to] = [join(place[source], dir, 'sub/log'), join(place.share, on)];
            const before = readFileSync(from, 'hex');
            await mounted(from, to, async () => {
              const error = await refusal(run(place.files));
              const isUsed = on === name || ['replace', 'renameTo', 'removeWhole'].includes(operation);
              if (isUsed) needMountError(error, to, operation);
              assert.equal(readFileSync(to, 'hex'), before, operation);
            });
          });
        }
      });
    }
  }

  test('a mount of another file system is refused as well', () =>
    withPlace(async ({ share, files }) => {
      execFileSync('mount', ['-t', 'tmpfs', 'none', join(share, 'life')]);
      needMountError(await refusal(files.replace('life/x', bytes)), join(share, 'life'), 'tmpfs');
      assert.deepEqual(readdirSync(join(share, 'life')), []);
      execFileSync('umount', [join(share, 'life')]);
      await files.replace('life/x', bytes);
    }));

  test('the directory itself may be a mount, below others, and go and come', () =>
    withPlace(async ({ outside, share, live, files }) => {
      await mounted(outside, share, async () => {
        await files.replace(name, bytes);
        await files.makeDir('life/made');
        await foreignFiles({ path: join(share, 'new/one'), own: [live] }).makeDir('made');
        assert.deepEqual([...readFileSync(join(outside, name))], [...bytes]);
      });
      assert.match(Buffer.from(await files.read(name, 2 ** 20)).toString(), /share log$/);
    }));

  test('a data directory that is mounted from within the directory is not entered', () =>
    withPlace(async ({ outside, share }) => {
      // The data's path does not help here: neither it nor its parents lie in the directory.
      await mounted(join(share, 'life'), join(outside, 'life'), async () => {
        const before = stateOf(outside);
        const files = foreignFiles({ path: share, own: [join(outside, 'life')] });
        for (const [operation, run] of Object.entries(onDirectories)) {
          const error = await refusal(run(files));
          assert.match(String(error?.message), /share\/life: belongs to the data directory/, operation);
        }
        assert.equal(stateOf(outside), before);
      });
    }));

  test('a single file that was named may be a mount, and those beside it may not, nor a live one', () =>
    withPlace(async ({ live, outside, share }) => {
      const path = join(share, name);
      await mounted(join(outside, name), path, async () => {
        const { files, name: file } = await foreignFile(path, [live]);
        assert.match(Buffer.from(await files.read(file, 2 ** 20)).toString(), /outside log$/);
        const elsewhere = foreignFiles(await files.place());
        assert.match(Buffer.from(await elsewhere.read(file, 2 ** 20)).toString(), /outside log$/);
        await mounted(join(outside, name), `${path}.tmp`, async () => {
          needMountError(await refusal(files.read(`${file}.tmp`, 2 ** 20)), `${path}.tmp`, 'beside it');
        });
      });
      await mounted(join(live, name), path, async () => {
        const { files, name: file } = await foreignFile(path, [live]);
        const error = await refusal(files.read(file, 2 ** 20));
        assert.match(String(error?.message), /belongs to the data directory/);
      });
    }));
}

if (process.env[inside] === undefined) {
  test('in a mount namespace of its own', (t) => {
    const asRoot = process.getuid?.() === 0 ? ['--mount'] : unshare;
    // Some systems forbid user namespaces; tests that need no mount run there nevertheless.
    const isAllowed = spawnSync('unshare', [...asRoot, 'true']).status === 0;
    if (!isAllowed) t.diagnostic('no mounts are permitted here');
    const node = [process.execPath, '--test-reporter=spec', import.meta.filename];
    const [command = '', ...args] = isAllowed ? ['unshare', ...asRoot, ...node] : node;
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(command, args, {
      env: { ...env, [inside]: String(isAllowed) },
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, /pass [1-9]/);
  });
} else {
  tests(process.env[inside] === 'true');
}
