// Files in a directory where others may write: links, hard links, pipes and the like in place of the directory, every
// directory beneath it and every file, for every operation, and while it is under way. Nothing outside the directory
// changes, and each refusal says what is there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { KmsError, systemCode } from '../../src/errors.ts';
import { type ForeignFiles, foreignFile, foreignFiles } from '../../src/platform/foreign-files.ts';
import { lockDirectory } from '../../src/platform/lock.ts';
import { attacker } from '../support/attacker.ts';

const dir = 'life/tenants/aa';
const name = `${dir}/log`;
const bytes = Uint8Array.of(1, 2, 3);

interface Place {
  readonly base: string;
  readonly live: string;
  readonly outside: string;
  readonly share: string;
  readonly files: ForeignFiles;
}

/** A share with the same names in it as the data directory and as another user's directory. */
function place(): Place {
  const base = mkdtempSync(join(tmpdir(), 'kms-foreign-'));
  const [live, outside, share] = [join(base, 'live'), join(base, 'outside'), join(base, 'mounted/share')];
  for (const root of [live, outside, share]) {
    mkdirSync(join(root, dir), { recursive: true });
    mkdirSync(join(root, dir, 'sub'));
    for (const each of ['log', 'log.tmp', 'sub/log']) writeFileSync(join(root, dir, each), `${root} ${each}`);
  }
  return { base, live, outside, share, files: foreignFiles({ path: share, own: [live] }) };
}

/** Everything whose change could be observed, down to a name or a byte. */
function stateOf(root: string): string {
  const names = ['.', ...readdirSync(root, { recursive: true }).map(String)].sort();
  return names
    .map((each) => {
      const path = join(root, each);
      const { mode, ino, size, mtimeMs } = lstatSync(path);
      const isFile = lstatSync(path).isFile();
      return `${each} ${mode} ${ino} ${isFile ? `${size} ${mtimeMs} ${readFileSync(path)}` : ''}`;
    })
    .join('\n');
}

const operations: Readonly<Record<string, (files: ForeignFiles) => Promise<unknown>>> = {
  read: (files) => files.read(name, 2 ** 20),
  readAt: (files) => files.readAt(name, 0, 4),
  size: (files) => files.size(name),
  stamp: (files) => files.stamp(name),
  exists: (files) => files.exists(name),
  list: (files) => files.list(dir),
  names: (files) => files.names(dir),
  async openAppend(files) {
    const file = await files.openAppend(name, false);
    await file.truncate(1).finally(() => file.close());
  },
  openNew: async (files) => (await files.openAppend(`${dir}/new`, true)).close(),
  replace: (files) => files.replace(name, bytes),
  remove: (files) => files.remove(name),
  rename: (files) => files.rename(name, `${dir}/other`),
  makeDir: (files) => files.makeDir(`${dir}/made`),
  makeNewDir: (files) => files.makeNewDir(`${dir}/made`),
  removeDir: (files) => files.removeDir(`${dir}/sub`),
  removeWhole: (files) => files.removeDir(dir),
  syncDir: (files) => files.syncDir(dir),
};

/** Replaces a path; `rest` is its path relative to each root. */
const inPlace: Readonly<Record<string, (path: string, rest: string, place: Place) => void>> = {
  'a link to the live data': (path, rest, { live }) => symlinkSync(join(live, rest), path),
  'a link elsewhere': (path, rest, { outside }) => symlinkSync(join(outside, rest), path),
  'a relative link': (path, rest, { live }) => {
    const up = path.split('/').length - 2;
    symlinkSync(`${'../'.repeat(up)}${join(live, rest).slice(1)}`, path);
  },
  'a link that leads nowhere': (path) => symlinkSync('/nowhere/at/all', path),
  'a link to itself': (path) => symlinkSync(path, path),
};

async function outcome(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

function needLinkError(error: unknown, path: string, what: string): void {
  assert.ok(error instanceof KmsError, `${what}: ${error}`);
  assert.equal(error.code, 'refused', what);
  assert.equal(error.message, `${path}: is a symbolic link, and others may write there: it is not followed`, what);
  assert.ok(error.hint, what);
}

const components = ['life', 'life/tenants', dir];

for (const [kind, put] of Object.entries(inPlace)) {
  test(`${kind} in the place of a directory: no operation follows it`, async () => {
    for (const component of components) {
      for (const [operation, run] of Object.entries(operations)) {
        // For the directory itself the link is removed, and its target stays.
        const goes = operation === 'removeWhole' && component === dir;
        const at = place();
        rmSync(join(at.share, component), { recursive: true });
        put(join(at.share, component), component, at);
        const before = [at.live, at.outside].map(stateOf);
        const error = await outcome(run(at.files));
        if (goes) assert.equal(error, undefined, operation);
        else needLinkError(error, join(at.share, component), `${operation} ${component}`);
        assert.deepEqual([at.live, at.outside].map(stateOf), before, `${operation} ${component}`);
        rmSync(at.base, { recursive: true });
      }
    }
  });

  test(`${kind} in the place of the directory itself, or above it, once it was opened`, async () => {
    for (const replaced of ['share', 'mounted']) {
      for (const [operation, run] of Object.entries(operations)) {
        const at = place();
        assert.equal(await at.files.exists(name), true);
        const path = replaced === 'share' ? at.share : dirname(at.share);
        rmSync(path, { recursive: true });
        // One level above, the targets contain a directory with the share's name.
        if (replaced === 'mounted') for (const each of [at.live, at.outside]) mkdirSync(join(each, 'share'));
        put(path, '', at);
        const before = [at.live, at.outside].map(stateOf);
        const error = await outcome(run(at.files));
        const isHidden = /nowhere|itself/.test(kind) && replaced === 'mounted';
        if (!isHidden) needLinkError(error, at.share, `${operation} ${replaced}`);
        assert.deepEqual([at.live, at.outside].map(stateOf), before, `${operation} ${replaced}`);
        rmSync(at.base, { recursive: true });
      }
    }
  });

  test(`${kind} in the place of a file, or of its draft: nothing behind it is read or written`, async () => {
    for (const [operation, run] of Object.entries(operations)) {
      const at = place();
      for (const each of [name, `${name}.tmp`]) {
        rmSync(join(at.share, each));
        put(join(at.share, each), each, at);
      }
      const before = [at.live, at.outside].map(stateOf);
      const error = await outcome(run(at.files));
      const reads = ['read', 'readAt', 'size', 'stamp', 'exists', 'openAppend'].includes(operation);
      if (reads) needLinkError(error, join(at.share, name), operation);
      else assert.equal(error, undefined, operation);
      if (operation === 'replace') assert.deepEqual([...(await at.files.read(name, 2 ** 20))], [...bytes]);
      if (operation === 'rename') assert.ok(readlinkSync(join(at.share, dir, 'other')));
      assert.deepEqual([at.live, at.outside].map(stateOf), before, operation);
      rmSync(at.base, { recursive: true });
    }
  });
}

/** Objects that are no links. */
const others: Readonly<Record<string, (path: string) => void>> = {
  'a pipe': (path) => void execFileSync('mkfifo', [path]),
  'a device': (path) => symlinkSync('/dev/null', path),
  'a file': (path) => writeFileSync(path, 'x'),
};

test('a pipe, a device or a file in the place of a directory: each operation ends with an error', async () => {
  for (const [kind, put] of Object.entries(others)) {
    for (const component of ['.', ...components]) {
      for (const [operation, run] of Object.entries(operations)) {
        if (operation === 'removeWhole' && component === dir) continue;
        const at = place();
        assert.equal(await at.files.exists(name), true);
        rmSync(join(at.share, component), { recursive: true });
        put(join(at.share, component));
        const error = await outcome(run(at.files));
        const isSaid = error instanceof KmsError || systemCode(error) === 'ENOTDIR';
        assert.ok(isSaid, `${kind} ${component} ${operation}: ${error}`);
        assert.ok(!(error instanceof Error && error.message.includes('/proc/')), 'the path is the known one');
        rmSync(at.base, { recursive: true });
      }
    }
  }
});

test('a pipe or a directory in the place of a file', { timeout: 20_000 }, async () => {
  for (const put of [(path: string) => void execFileSync('mkfifo', [path]), (path: string) => mkdirSync(path)]) {
    const at = place();
    rmSync(join(at.share, name));
    put(join(at.share, name));
    const notFile = { code: 'corrupt', message: /log: expected a file, found a (?:named pipe|directory)$/ };
    for (const operation of ['read', 'readAt', 'openAppend']) {
      await assert.rejects(operations[operation]?.(at.files) ?? Promise.resolve(), notFile);
    }
    rmSync(at.base, { recursive: true });
  }
});

test('another name of a live file is neither read nor written, whatever it is called', async () => {
  for (const [operation, run] of Object.entries(operations)) {
    const at = place();
    for (const each of [name, `${name}.tmp`, `${dir}/sub/log`]) {
      rmSync(join(at.share, each));
      linkSync(join(at.live, each), join(at.share, each));
    }
    const before = stateOf(at.live);
    const error = await outcome(run(at.files));
    if (['read', 'readAt', 'openAppend'].includes(operation)) {
      assert.ok(error instanceof KmsError, operation);
      assert.equal(error.code, 'refused');
      assert.equal(
        error.message,
        `${join(at.share, name)}: belongs to the data directory ${at.live}, or holds it`,
        operation,
      );
    } else assert.equal(error, undefined, operation);
    assert.equal(stateOf(at.live), before, operation);
    rmSync(at.base, { recursive: true });
  }
});

test('a file with a second name elsewhere is read, and written only as a new one', async () => {
  const at = place();
  linkSync(join(at.share, name), join(at.base, 'snapshot'));
  const before = readFileSync(join(at.base, 'snapshot'), 'utf8');
  assert.equal(Buffer.from(await at.files.read(name, 2 ** 20)).toString(), before);
  await assert.rejects(at.files.openAppend(name, false), { code: 'refused', message: /has 2 names \(hard links\)/ });
  await at.files.replace(name, bytes);
  assert.equal(readFileSync(join(at.base, 'snapshot'), 'utf8'), before);
  await (await at.files.openAppend(name, false)).close();
  rmSync(at.base, { recursive: true });
});

test('looking at another name of the lock does not end the lock of this process', async () => {
  const at = place();
  const lock = lockDirectory(at.live);
  rmSync(join(at.share, name));
  linkSync(join(at.live, 'kms.lock'), join(at.share, name));
  for (const run of Object.values(operations)) await outcome(run(at.files));
  const code = `const { lockDirectory } = await import(${JSON.stringify(new URL('../../src/platform/lock.ts', import.meta.url).href)});
    try { lockDirectory(${JSON.stringify(at.live)}); console.log('taken'); } catch (error) { console.log(error.code); }`;
  assert.equal(
    execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }).trim(),
    'in-use',
  );
  lock.release();
  rmSync(at.base, { recursive: true });
});

test('the administrator’s own link is followed once, and then it may not lead elsewhere', async () => {
  const at = place();
  const link = join(at.base, 'link');
  symlinkSync(at.share, link);
  const files = foreignFiles({ path: link, own: [at.live] });
  assert.deepEqual(await files.list(dir), ['log', 'log.tmp']);
  const before = stateOf(at.outside);
  rmSync(link);
  symlinkSync(at.outside, link);
  await files.replace(name, bytes);
  assert.deepEqual([...readFileSync(join(at.share, name))], [...bytes]);
  assert.equal(stateOf(at.outside), before);
  const { files: beside, name: own } = await foreignFile(join(link, name));
  assert.equal(Buffer.from(await beside.read(own, 2 ** 20)).toString(), `${at.outside} log`);
  rmSync(at.base, { recursive: true });
});

test('a directory that is the data directory, in it, or holds it is refused, by whatever path', async () => {
  for (const path of ['live', 'live/life', 'live/none/yet', '.', 'link', 'link/life', 'link/none']) {
    for (const [operation, run] of Object.entries(operations)) {
      const at = place();
      symlinkSync(at.live, join(at.base, 'link'));
      const before = stateOf(at.live);
      const error = await outcome(run(foreignFiles({ path: join(at.base, path), own: [at.live] })));
      const isMissing = path.includes('none') && operation !== 'makeDir';
      if (!isMissing) {
        assert.ok(error instanceof KmsError && error.code === 'refused', `${path} ${operation}: ${error}`);
        assert.match(error.message, /: belongs to the data directory .*, or holds it$/);
      }
      assert.equal(stateOf(at.live), before);
      rmSync(at.base, { recursive: true });
    }
  }
});

test('the data directory as a link is known where it lies', async () => {
  const at = place();
  const link = join(at.base, 'link');
  symlinkSync(at.live, link);
  for (const path of [at.live, link, join(at.live, 'life')]) {
    await assert.rejects(foreignFiles({ path, own: [link] }).list('.'), { code: 'refused', message: /data directory/ });
  }
  rmSync(at.base, { recursive: true });
});

test('another directory in its place is one to go on with, unless it is the data directory', async () => {
  const at = place();
  await at.files.replace('before', bytes);
  renameSync(at.share, join(at.base, 'unmounted'));
  await assert.rejects(at.files.read('before', 2 ** 20), { code: 'ENOENT' });
  assert.deepEqual(await at.files.list('.'), []);
  mkdirSync(at.share);
  await at.files.replace('after', bytes);
  assert.deepEqual(readdirSync(at.share), ['after']);
  rmSync(at.share, { recursive: true });
  const before = stateOf(at.live);
  renameSync(at.live, at.share);
  const files = foreignFiles({ path: at.share, own: [at.share] });
  await assert.rejects(files.replace('after', bytes), { code: 'refused' });
  renameSync(at.share, at.live);
  assert.equal(stateOf(at.live), before);
  rmSync(at.base, { recursive: true });
});

test('where the directory is missing it is made, private, and nothing through a link that came meanwhile', async () => {
  const at = place();
  const path = join(at.base, 'new/er/est');
  const files = foreignFiles({ path, own: [at.live] });
  await files.makeDir('a/b');
  for (const each of ['new', 'new/er', 'new/er/est', 'new/er/est/a', 'new/er/est/a/b']) {
    assert.equal(statSync(join(at.base, each)).mode & 0o777, 0o700, each);
  }
  await files.replace('a/b/file', bytes);
  assert.equal(statSync(join(path, 'a/b/file')).mode & 0o777, 0o600);
  rmSync(join(at.base, 'new'), { recursive: true });
  symlinkSync(at.live, join(at.base, 'new'));
  const before = stateOf(at.live);
  await assert.rejects(files.makeDir('.'), { code: 'refused', message: /is a symbolic link/ });
  assert.equal(stateOf(at.live), before);
  rmSync(at.base, { recursive: true });
});

test('names lead nowhere else', async () => {
  const at = place();
  for (const each of ['../live/life', '..', 'life/../../live', '/etc']) {
    const error = await outcome(at.files.list(each));
    assert.ok(error instanceof KmsError && error.code === 'corrupt', each);
  }
  assert.deepEqual(await at.files.beneath('life').beneath('tenants').list('aa'), ['log', 'log.tmp']);
  rmSync(at.base, { recursive: true });
});

test('what must be new is new, and many directories in each other are not followed for ever', async () => {
  const at = place();
  await at.files.makeNewDir('new');
  await assert.rejects(at.files.makeNewDir('new'), { code: 'EEXIST' });
  symlinkSync('/nowhere', join(at.share, 'link'));
  await assert.rejects(at.files.makeNewDir('link'), { code: 'EEXIST' });
  await assert.rejects(at.files.openAppend('link', true), { code: 'EEXIST' });
  mkdirSync(join(at.share, 'deep', 'd/'.repeat(100)), { recursive: true });
  await assert.rejects(at.files.removeDir('deep'), {
    code: 'refused',
    message: /more than 32 directories inside one another/,
  });
  rmSync(at.base, { recursive: true });
});

/**
 * Attacks by a user who may write to the share, as fast as possible: directories and files become links now and then.
 */
const attacks: Readonly<Record<string, string>> = {
  'changes directories for links': `
    for (const each of ['life', 'life/tenants', '${dir}']) {
      tried(() => fs.renameSync(each, 'aside'));
      tried(() => fs.symlinkSync(live + '/' + each, each));
      tried(() => fs.unlinkSync(each));
      tried(() => fs.renameSync('aside', each));
    }`,
  'changes files for links': `
    for (const each of ['${name}', '${name}.tmp']) {
      tried(() => fs.unlinkSync(each));
      tried(() => fs.symlinkSync(live + '/' + each, each));
    }`,
  'gives live files another name, and takes it away again': `
    for (const each of ['${name}', '${name}.tmp']) {
      tried(() => fs.unlinkSync(each));
      tried(() => fs.linkSync(live + '/' + each, each));
    }`,
};

for (const [attack, step] of Object.entries(attacks)) {
  test(`somebody who ${attack} all the time never gets at the live data`, async () => {
    const at = place();
    const before = [at.live, at.outside].map(stateOf);
    const child = await attacker(at.share, `const live = ${JSON.stringify(at.live)};${step}`);
    let done = 0;
    let refused = 0;
    for (const end = performance.now() + 2000; performance.now() < end; ) {
      for (const operation of ['replace', 'openAppend', 'read', 'openAppend', 'openNew', 'makeDir', 'list'] as const) {
        const error = await outcome(operations[operation]?.(at.files) ?? Promise.resolve());
        if (error === undefined) done++;
        else refused++;
        const isSaid = error === undefined || error instanceof KmsError || systemCode(error) !== undefined;
        assert.ok(isSaid, String(error));
      }
    }
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    assert.deepEqual([at.live, at.outside].map(stateOf), before);
    assert.ok(done > 0 && refused > 0, `${done} done, ${refused} refused`);
    rmSync(at.base, { recursive: true });
  });
}

test('a file that is longer than its kind is refused before any of it is read', async () => {
  const { share, files } = place();
  const refusal = { code: 'corrupt', message: /log: expected at most \d+ bytes, found \d+$/ };
  truncateSync(join(share, name), 1024 * 1024);
  assert.equal((await files.read(name, 1024 * 1024)).length, 1024 * 1024);
  await assert.rejects(files.read(name, 4096), refusal);
  for (const length of [1024 * 1024 + 1, 64 * 1024 ** 3]) {
    truncateSync(join(share, name), length);
    await assert.rejects(files.read(name, 1024 * 1024), refusal);
  }
  truncateSync(join(share, name), 1024 * 1024 + 1);
  assert.equal((await files.read(name, 2 * 1024 * 1024)).length, 1024 * 1024 + 1);
});

test('the stamp of a file changes whenever the file does, and at no other time', async () => {
  const at = place();
  const stamps = new Set<string>();
  const taken = async () => stamps.add(await at.files.stamp(name)).size;
  const path = join(at.share, name);
  assert.equal(await taken(), 1);
  assert.equal(await taken(), 1);
  await setTimeout(30);
  const { atime, mtime, size } = lstatSync(path);
  writeFileSync(path, 'x'.repeat(size));
  assert.equal(await taken(), 2);
  await setTimeout(30);
  utimesSync(path, atime, mtime);
  assert.equal(await taken(), 3);
  await at.files.replace(name, bytes);
  assert.equal(await taken(), 4);
  await assert.rejects(at.files.stamp('none'), { code: 'ENOENT' });
  rmSync(at.base, { recursive: true });
});

test('a directory of very many entries is not listed, and what has few is, beside it', async (t) => {
  const { base, share, files } = place();
  const full = join(share, 'full');
  mkdirSync(full);
  writeFileSync(join(full, 'one'), 'x');
  // Long names fill a directory sooner; other file systems count entries, or tell nothing.
  const filler = 'x'.repeat(240);
  const isFull = (): boolean => Math.max(statSync(full).size, statSync(full).blocks * 512) > 8 * 1024 * 1024;
  for (let n = 0; n < 40_000 && !isFull(); n++) linkSync(join(full, 'one'), join(full, `${filler}${n}`));
  try {
    if (!isFull()) return t.skip('this file system does not tell how many entries a directory has');
    const refused = {
      code: 'refused',
      message: /full: this directory takes [0-9]+ bytes, so it has, or had, very many/,
    };
    for (const list of [() => files.names('full'), () => files.list('full'), () => files.removeDir('full')]) {
      const before = process.memoryUsage().rss;
      await assert.rejects(list(), refused);
      assert.ok(process.memoryUsage().rss - before < 32 << 20);
    }
    assert.deepEqual([...(await files.read('full/one', 9))], [0x78]);
    assert.ok((await files.names('.')).includes('full'));
  } finally {
    rmSync(base, { recursive: true });
  }
});

test('no operation waits for the file system on the main thread, which may hang', async () => {
  const { base, files } = place();
  const called: string[] = [];
  const plain = new Map<string, unknown>();
  const functions = fs as unknown as Record<string, unknown>;
  let isWithin = false;
  for (const [key, value] of Object.entries(functions)) {
    if (!key.endsWith('Sync') || typeof value !== 'function') continue;
    plain.set(key, value);
    functions[key] = (...args: unknown[]): unknown => {
      // The one closes a descriptor that opened nothing, the other reads from the kernel's memory.
      const isFree =
        key === 'closeSync' || (key === 'readFileSync' && String(args[0]).startsWith('/proc/self/fdinfo/'));
      if (!isFree && !isWithin) called.push(`${key} ${args[0]}`);
      const before = isWithin;
      isWithin ||= isFree;
      try {
        return Reflect.apply(value, fs, args);
      } finally {
        isWithin = before;
      }
    };
  }
  syncBuiltinESMExports();
  try {
    for (const [what, operation] of Object.entries(operations)) {
      if (what === 'removeWhole') continue;
      await files.replace(name, bytes);
      await outcome(operation(files));
      assert.deepEqual(called, [], what);
    }
    await files.replace(name, bytes);
    const file = await files.openAppend(name, false);
    await file.append(bytes, 8192);
    await file.sync();
    await file.append(bytes);
    await file.sync();
    await file.trim();
    await file.truncate(2);
    await file.sync();
    await file.close();
    assert.deepEqual(called, []);
  } finally {
    Object.assign(functions, Object.fromEntries(plain));
    syncBuiltinESMExports();
    rmSync(base, { recursive: true });
  }
});
