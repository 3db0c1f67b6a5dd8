// A pipe, a socket, a device behind a link or a directory instead of a file of the data directory. The executable never
// blocks on it: each command ends by itself, names the file and says what is there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { closeSegments } from '../support/segmented-appliance.ts';
import { kms, workDirectory } from './kms.ts';

/** Milliseconds after which a command counts as blocked. */
const forEver = 60_000;

const cwd = workDirectory();
const data = join(cwd, 'kms-data');

/** Puts the object at `path`; returns what messages call it. */
type Put = (path: string) => Promise<string>;

const pipe: Put = async (path) => {
  execFileSync('mkfifo', [path]);
  return 'a named pipe';
};

const socket: Put = (path) =>
  new Promise((resolve) => {
    const server = createServer().listen(path, () => {
      // Renamed meanwhile, since closing the server unlinks its path.
      renameSync(path, `${path}.kept`);
      server.close(() => {
        renameSync(`${path}.kept`, path);
        resolve('a socket');
      });
    });
  });

const link: Put = async (path) => {
  symlinkSync('/dev/zero', path);
  return 'a symbolic link';
};

const directory: Put = async (path) => {
  mkdirSync(path);
  return 'a directory';
};

before(async () => {
  assert.equal((await kms(cwd, ['init'])).code, 0);
  const { seal } = await openSealFile(data, { keyFile: `${data}.master.key`, env: () => undefined });
  await closeSegments(data, seal, 9);
  // Notes the log positions of the stores.
  assert.equal((await kms(cwd, ['status'])).code, 0);
});

/** The path of the only file below the data directory that matches. */
function fileLike(pattern: RegExp): string {
  const names = readdirSync(data, { recursive: true }).map(String).sort();
  return names.find((name) => pattern.test(name)) ?? assert.fail(`no file like ${pattern}`);
}

const commands = [
  ['serve', '--listen', '127.0.0.1:0'],
  ['status'],
  ['doctor'],
  ['backup', 'create', 'taken.kms-backup'],
] as const;

interface Place {
  readonly pattern: RegExp;
  readonly puts: readonly Put[];
  /** The expected message, if it does not name the object. */
  readonly says?: RegExp;
}

const everything = [pipe, socket, link, directory];
/** A directory is not a file of a store: the file counts as missing. */
const places: readonly Place[] = [
  { pattern: /^kms\.seal$/, puts: everything },
  { pattern: /^kms\.witness$/, puts: everything },
  { pattern: /^kms\.lock$/, puts: [pipe] },
  { pattern: /^tenants\/.*\/snapshot-/, puts: [pipe, socket] },
  { pattern: /^tenants\/.*\/snapshot-/, puts: [directory], says: /no snapshot|no store in/ },
  { pattern: /^tenants\/.*\/snapshot-/, puts: [link], says: /snapshot-[0-9]+\.kms: is a symbolic link/ },
  { pattern: /^tenants\/.*\/log-/, puts: [pipe, socket] },
  { pattern: /^tenants\/.*\/log-/, puts: [directory], says: /log-[0-9]+\.kms.*the file is missing/ },
  { pattern: /^tenants\/.*\/log-/, puts: [link], says: /log-[0-9]+\.kms: is a symbolic link/ },
  { pattern: /^system\/snapshot-/, puts: [pipe] },
  { pattern: /^system\/log-/, puts: [pipe] },
];

/** Checks that each command ends by itself, with an error that names the object, or that matches `says`. */
async function isTold(path: string, put: Put, says?: RegExp): Promise<void> {
  const kind = await put(path);
  // A command that does not block on a pipe blocks on nothing else.
  for (const args of put === pipe ? commands : commands.slice(0, 1)) {
    const { code, stdout, stderr } = await kms(cwd, args, {}, forEver);
    const said = `${args[0]}, ${kind}: ${code} ${stdout}${stderr}`;
    assert.ok(code !== null && code !== 0, said);
    assert.ok(!/internal|defect|^ +at /m.test(said), said);
    assert.match(said, says ?? new RegExp(`${path}: expected a file, found ${kind}`));
  }
  rmSync(path, { recursive: true });
}

for (const { pattern, puts, says } of places) {
  test(`something else in the place of ${pattern}`, async () => {
    const name = fileLike(pattern);
    const path = join(data, name);
    renameSync(path, join(cwd, 'aside'));
    try {
      for (const put of puts) await isTold(path, put, says);
    } finally {
      rmSync(path, { recursive: true, force: true });
      renameSync(join(cwd, 'aside'), path);
    }
    assert.equal((await kms(cwd, ['doctor'])).code, 0, 'nothing was changed');
  });
}

test('a file that comes and goes, with something else in its place', async () => {
  for (const name of ['kms.pid', 'kms.reserve', 'kms.stay-sealed', 'kms.init', 'kms.restore']) {
    try {
      for (const put of [pipe, link]) await isTold(join(data, name), put);
    } finally {
      rmSync(join(data, name), { force: true });
    }
  }
});

test('a segment of the activity log: the appliance goes on, and everybody is told', async () => {
  const name = fileLike(/^tenants\/.*\/activity-/);
  const path = join(data, name);
  renameSync(path, join(cwd, 'aside'));
  await pipe(path);
  const found = await kms(cwd, ['doctor'], {}, forEver);
  assert.equal(found.code, 1, found.stdout);
  assert.match(found.stdout, /^error .*activity-[0-9]+\.kms.* is not a file$/m);
  const shown = await kms(cwd, ['status'], {}, forEver);
  assert.match(shown.stdout, new RegExp(`^activity log +default: ${name} is not a file; see \`kms doctor\`$`, 'm'));
  const [tenant] = JSON.parse((await kms(cwd, ['status', '--json'], {}, forEver)).stdout).tenants;
  assert.deepEqual(
    tenant.store.activityFaults.map(({ path }: { path: string }) => path),
    [name],
  );
  for (const args of [['activity', 'verify'], ['activity', 'search'], commands[3]]) {
    const { code, stdout, stderr } = await kms(cwd, args, {}, forEver);
    assert.ok(code !== null, `${args.join(' ')} waits`);
    if (code !== 0) assert.match(`${stdout}${stderr}`, /activity-[0-9]+\.kms/, args.join(' '));
  }
  rmSync(path);
  renameSync(join(cwd, 'aside'), path);
});

test('the name that a file gets before it is whole, and the name of the local socket', async () => {
  for (const name of ['kms.seal.tmp', 'kms.witness.tmp', 'kms.sock']) {
    const path = join(data, name);
    await pipe(path);
    for (const args of [['status'], ['user', 'list'], ['master', 'rotate']]) {
      const { code, stdout, stderr } = await kms(cwd, args, {}, forEver);
      const said = `${args.join(' ')}, ${name}: ${code} ${stdout}${stderr}`;
      assert.ok(code !== null, said);
      assert.ok(code === 0 || said.includes(`${name}: expected a file, found a named pipe`), said);
    }
    if (existsSync(path)) rmSync(path);
  }
});
