// Others can write to the directories of shipped copies, backups and streamed activity, and put symbolic links, hard
// links to live files and pipes there in place of every directory and file. The live data stay untouched, the problem
// is reported, and everything continues once it is repaired. Restoring and following read through no link.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { initAppliance } from '../../src/appliance/init.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { Standby } from '../../src/backup/standby.ts';
import { examine } from '../../src/doctor/doctor.ts';
import { KmsError } from '../../src/errors.ts';
import { DeliveryFault } from '../../src/telemetry/streaming/receiver.ts';
import { attacker } from '../support/attacker.ts';
import { type StreamedAppliance, streamedAppliance, streamingTo } from '../support/streamed-appliance.ts';
import { until } from '../support/until.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-others-'));
after(() => rmSync(base, { recursive: true, force: true }));
const env = (): undefined => undefined;
const linkSaid = /is a symbolic link, and others may write there: it is not followed/;

/** Contents of the append-only files in the data directory, by path. */
function grown(data: string): Map<string, Buffer> {
  const names = readdirSync(data, { recursive: true }).map(String);
  const stores = names.filter((name) => /\/(?:log|snapshot|activity)-[0-9]+\.kms$/.test(name));
  return new Map(stores.map((name) => [name, readFileSync(join(data, name))]));
}

/** Checks that every log still begins with the same bytes; after them is preallocated space. */
function needUntouched(data: string, before: ReadonlyMap<string, Buffer>, what: string): void {
  for (const [name, bytes] of before) {
    const written = bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
    assert.ok(readFileSync(join(data, name)).subarray(0, written.length).equals(written), `${what}: ${name}`);
  }
}

/** Names and contents of everything below `root`. */
function stateOf(root: string): string {
  const names = readdirSync(root, { recursive: true }).map(String).sort();
  return names
    .map((name) => `${name} ${lstatSync(join(root, name)).isFile() ? readFileSync(join(root, name), 'hex') : ''}`)
    .join('\n');
}

interface Scene {
  readonly at: StreamedAppliance;
  readonly outside: string;
  /** Names of the keyrings that were acknowledged. */
  readonly made: string[];
  make(): Promise<void>;
  rings(): Promise<string[]>;
}

async function scene(): Promise<Scene> {
  const at = await streamedAppliance();
  after(() => at[Symbol.asyncDispose]());
  const outside = join(at.dir, 'outside');
  mkdirSync(join(outside, 'tenants'), { recursive: true });
  writeFileSync(join(outside, 'file'), 'theirs\n');
  const made: string[] = [];
  return {
    at,
    outside,
    made,
    async make() {
      const name = `ring-${made.length}`;
      assert.equal((await at.local('POST', '/ks/keyrings', { name })).status, 200);
      made.push(name);
    },
    async rings() {
      const { data } = await (await at.local('GET', '/ks/keyrings')).json();
      return data.map(({ name }: { name: string }) => name).sort();
    },
  };
}

type Put = (path: string, counterpart: string, scene: Scene) => void;

const forDirectories: Readonly<Record<string, Put>> = {
  'a link to the live directory': (path, counterpart) => symlinkSync(counterpart, path),
  'a link elsewhere': (path, _, { outside }) => symlinkSync(outside, path),
  'a link that leads nowhere': (path) => symlinkSync('/nowhere/at/all', path),
  'a pipe': (path) => void execFileSync('mkfifo', [path]),
};

const forFiles: Readonly<Record<string, Put>> = {
  'a link to a live file': (path, counterpart) => symlinkSync(counterpart, path),
  'a link elsewhere': (path, _, { outside }) => symlinkSync(join(outside, 'file'), path),
  'another name of a live file': (path, counterpart) => linkSync(counterpart, path),
  'another name of the lock': (path, _, { at }) => linkSync(join(at.data, 'kms.lock'), path),
  'a pipe': (path) => void execFileSync('mkfifo', [path]),
};

interface Component {
  /** Relative to the directory; `.` is the directory itself. */
  readonly path: string;
  readonly isFile: boolean;
  /** Relative to the data directory. */
  readonly live: string;
}

interface Kind {
  /** The directory, relative to the scene's. */
  readonly root: string;
  open(at: StreamedAppliance, root: string): Promise<void>;
  components(at: StreamedAppliance, root: string): readonly Component[];
  /** Writes there once; throws the reported problem. */
  work(scene: Scene): Promise<void>;
}

/** The name with its time replaced by the next seconds'; a name without a time unchanged. */
function soon(name: string): readonly string[] {
  return [
    ...new Set(
      Array.from({ length: 8 }, (_, i) => {
        const time = new Date(Date.now() + (i + 1) * 1000).toISOString().replace(/[-:]|\.[0-9]+/g, '');
        return name.replace(/[0-9]{8}T[0-9]{6}Z/, time);
      }),
    ),
  ];
}

const tenantOf = (at: StreamedAppliance): string => readdirSync(join(at.data, 'tenants'))[0] ?? '';

const kinds: Readonly<Record<string, Kind>> = {
  'shipped copies': {
    root: 'shipped',
    async open(at, to) {
      await at.open(undefined, { copies: { shipping: { to, every: 20, window: 1e9 } } });
    },
    components(at, root) {
      const life = readdirSync(root)[0] ?? '';
      const tenant = `tenants/${tenantOf(at)}`;
      const [log = ''] = readdirSync(join(at.data, tenant)).filter((name) => name.startsWith('log-'));
      return [
        { path: '.', isFile: false, live: '.' },
        { path: life, isFile: false, live: '.' },
        { path: `${life}/tenants`, isFile: false, live: 'tenants' },
        { path: `${life}/${tenant}`, isFile: false, live: tenant },
        { path: `${life}/${tenant}/${log}`, isFile: true, live: `${tenant}/${log}` },
        { path: `${life}/${tenant}/${log}.tmp`, isFile: true, live: `${tenant}/${log}` },
        { path: `${life}/points.kms`, isFile: true, live: `${tenant}/${log}` },
        { path: `${life}/points.kms.tmp`, isFile: true, live: `${tenant}/${log}` },
        { path: `${life}/kms.seal.tmp`, isFile: true, live: 'kms.seal' },
        { path: `${life}/kms.fence`, isFile: true, live: 'kms.seal' },
      ];
    },
    async work({ at }) {
      const began = Date.now();
      const shipping = () => at.appliance.copies.status().shipping;
      await until('it ships, or fails to', () => (shipping()?.arrivedAt ?? 0) > began || shipping()?.error);
      const error = shipping()?.error;
      if (error !== undefined) throw new KmsError('refused', error);
    },
  },
  backups: {
    root: 'backups',
    async open(at, to) {
      await at.open(undefined, { copies: { scheduled: { to, schedule: '0 0 1 1 *', keep: 3 } } });
    },
    components(at, root) {
      const [name = ''] = readdirSync(root);
      const log = `tenants/${tenantOf(at)}/${readdirSync(join(at.data, 'tenants', tenantOf(at)))[0]}`;
      const endings = ['', '.unverified', '.unverified.tmp'];
      return [
        { path: '.', isFile: false, live: '.' },
        ...endings.map((ending) => ({ path: `${name}${ending}`, isFile: true, live: log })),
        { path: `${name}.unverified.restored`, isFile: false, live: '.' },
      ];
    },
    async work({ at }) {
      // Each backup is restored on trial.
      assert.ok((await at.appliance.copies.backUpNow())?.file);
    },
  },
  'streamed activity': {
    root: 'streamed',
    async open(at, path) {
      await at.open(streamingTo([path]));
    },
    components(at) {
      const log = `tenants/${tenantOf(at)}`;
      const [name = ''] = readdirSync(join(at.data, log)).filter((each) => each.startsWith('log-'));
      const day = new Date().toISOString().slice(0, 10);
      return [
        { path: '.', isFile: false, live: '.' },
        { path: 'default', isFile: false, live: log },
        { path: `default/${day}.0001.jsonl`, isFile: true, live: `${log}/${name}` },
      ];
    },
    async work({ at }) {
      const { error } = await until('it arrives, or fails to', async () => {
        const status = await at.status();
        return (status.lagRecords === 0 || status.error !== undefined) && status;
      });
      if (error !== undefined) throw new DeliveryFault('file', error);
    },
  },
};

for (const [kind, { root: name, open, components, work }] of Object.entries(kinds)) {
  test(`${kind}: whatever somebody puts there, the live data stay, and it goes on once that is gone`, async () => {
    const place = await scene();
    const { at, outside } = place;
    const root = join(at.dir, name);
    await open(at, root);
    await place.make();
    await work(place);
    let refusals = 0;
    for (const { path, isFile, live } of components(at, root)) {
      for (const [obstacle, put] of Object.entries(isFile ? forFiles : forDirectories)) {
        const what = `${kind}, ${path}: ${obstacle}`;
        const paths = soon(path).map((each) => join(root, each));
        const aside = join(at.dir, 'aside');
        const [first = ''] = paths;
        const isThere = existsSync(first);
        if (isThere) renameSync(first, aside);
        const before = [grown(at.data), stateOf(outside)] as const;
        for (const each of paths) put(each, join(at.data, live), place);
        await place.make();
        await place.make();
        const refusal = () =>
          work(place).then(
            () => undefined,
            (cause: unknown) => cause,
          );
        let error = await refusal();
        const isLink = !isFile && isThere && obstacle.startsWith('a link');
        // At first it may tell of the moment before the link was there.
        const isSaid = () => linkSaid.test(String(error));
        const look = async () => {
          error = await refusal();
          return isSaid();
        };
        if (isLink && !isSaid()) await until(what, look);
        if (error !== undefined) refusals++;
        assert.ok(
          error === undefined || error instanceof KmsError || error instanceof DeliveryFault,
          `${what}: ${error}`,
        );
        if (isLink) assert.match(String(error), linkSaid, what);
        needUntouched(at.data, before[0], what);
        assert.equal(stateOf(outside), before[1], what);
        for (const each of paths) rmSync(each, { force: true, recursive: true });
        if (isThere) {
          rmSync(first, { force: true, recursive: true });
          renameSync(aside, first);
        }
        if (error === undefined) continue;
        await until(`${what}: it goes on`, () =>
          work(place).then(
            () => true,
            () => false,
          ),
        );
      }
    }
    assert.ok(refusals > 0);
    await at.close();
    const { findings } = await examine({ data: at.data, sources: { env } });
    assert.deepEqual(
      findings.filter(({ severity }) => severity === 'error'),
      [],
    );
    await at.open();
    assert.deepEqual(await place.rings(), place.made.toSorted());
    await at.close();
  });
}

test('a directory of others that is the data directory, in it or around it opens nothing there', async () => {
  const place = await scene();
  const { at } = place;
  symlinkSync(at.data, join(at.dir, 'link'));
  for (const path of [at.data, join(at.data, 'tenants'), join(at.dir, 'link'), at.dir]) {
    const before = grown(at.data);
    for (const kind of Object.values(kinds)) {
      // A planted fence could be mistaken for none, so an appliance that ships there does not start.
      const opened = await kind.open(at, path).then(
        () => true,
        (error: unknown) => String(error),
      );
      if (opened === true) {
        await place.make();
        await assert.rejects(kind.work(place), /belongs to the data directory/);
        await at.close();
      } else assert.match(String(opened), /belongs to the data directory/);
      needUntouched(at.data, before, path);
    }
  }
});

test('restoring, verifying and following read no link beneath what was named', async () => {
  const place = await scene();
  const { at } = place;
  const shipped = join(at.dir, 'shipped');
  await kinds['shipped copies']?.open(at, shipped);
  await place.make();
  await kinds['shipped copies']?.work(place);
  const all = kinds['shipped copies']?.components(at, shipped) ?? [];
  await at.close();
  const secret = join(at.dir, 'outside');
  const keys = { keyFile: `${at.data}.master.key`, env };
  let count = 0;
  const readers: Readonly<Record<string, () => Promise<unknown>>> = {
    restore: () => restoreAppliance({ from: shipped, data: join(at.dir, `restored-${++count}`), keys }),
    async standby() {
      const standby = await Standby.open({ from: shipped, data: join(at.dir, `standby-${++count}`), keys: { keys } });
      const fenced = standby.catchUp().then((proven) => standby.hasFenced(proven));
      await fenced.finally(() => standby.close());
    },
  };
  for (const { path } of all.filter((each) => each.path !== '.' && !each.path.endsWith('.tmp'))) {
    for (const [reader, read] of Object.entries(readers)) {
      // A restore reads no fence: it begins a life of its own.
      if (reader === 'restore' && path.endsWith('kms.fence')) continue;
      const target = join(shipped, path);
      const aside = join(at.dir, 'aside');
      const isThere = existsSync(target);
      if (isThere) renameSync(target, aside);
      symlinkSync(isThere ? aside : join(secret, 'file'), target);
      const before = stateOf(secret);
      await assert.rejects(
        read(),
        (error) => error instanceof KmsError && linkSaid.test(error.message),
        `${reader} ${path}`,
      );
      assert.equal(stateOf(secret), before);
      rmSync(target);
      if (isThere) renameSync(aside, target);
    }
  }
  for (const read of Object.values(readers)) await read();
  // A link that the administrator names is followed.
  symlinkSync(shipped, join(at.dir, 'by-link'));
  await restoreAppliance({ from: join(at.dir, 'by-link'), data: join(at.dir, 'restored'), keys });
});

test('links in the place of a trial restore, as soon as there is one, lead it nowhere', async () => {
  const place = await scene();
  const { at } = place;
  const backups = join(at.dir, 'backups');
  mkdirSync(backups);
  await kinds.backups?.open(at, backups);
  await place.make();
  const before = grown(at.data);
  // The trial of a backup begins once the file is there.
  const step = `for (const name of fs.readdirSync('.')) {
      if (name.endsWith('.unverified')) tried(() => fs.symlinkSync(${JSON.stringify(at.data)}, name + '.restored'));
      if (name.endsWith('.restored')) {
        tried(() => fs.renameSync(name, 'aside-' + Math.random()));
        tried(() => fs.symlinkSync(${JSON.stringify(at.data)}, name));
      }
    }`;
  const child = await attacker(backups, step);
  for (let i = 0; i < 4; i++) {
    await place.make();
    await at.appliance.copies
      .backUpNow()
      .catch((error: unknown) => assert.ok(error instanceof KmsError, String(error)));
  }
  child.kill('SIGKILL');
  needUntouched(at.data, before, 'the trial');
  await at.close();
  await at.open();
  assert.deepEqual(await place.rings(), place.made.toSorted());
});

interface Served {
  readonly url: string;
  kill(): Promise<void>;
}

async function served(args: readonly string[]): Promise<Served> {
  const main = new URL('../../src/main.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [main, 'serve', '--listen', '127.0.0.1:0', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  after(() => child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.on('data', (piece) => {
    stderr += piece;
  });
  const url = await until('it listens', () => {
    assert.equal(child.exitCode, null, stderr);
    return /^kms: listening on (\S+)/m.exec(stderr)?.[1];
  });
  return {
    url,
    async kill() {
      const over = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await over;
    },
  };
}

test('a shipped store that is a link to the live one, then kill -9: nothing that was acknowledged is lost', async () => {
  const [data, shipped] = [join(base, 'data'), join(base, 'shipped')];
  const { apiKey } = await initAppliance({ data, env });
  const headers = { authorization: `Bearer ${apiKey.key}`, 'content-type': 'application/json' };
  const args = ['--data', data, '--ship-to', shipped, '--ship-every', '1s'];
  const first = await served(args);
  const make = async (name: string): Promise<void> => {
    const body = JSON.stringify({ name });
    assert.equal((await fetch(`${first.url}/ks/keyrings`, { method: 'POST', headers, body })).status, 200);
  };
  const journal = () => join(shipped, readdirSync(shipped)[0] ?? '', 'points.kms');
  const points = () =>
    (existsSync(shipped) && existsSync(journal()) ? readFileSync(journal(), 'latin1') : '').split('\n').length;
  await make('before');
  await until('it ships', () => points() > 1);
  const [dir = ''] = readdirSync(join(data, 'tenants'));
  const there = join(dirname(journal()), 'tenants', dir);
  renameSync(there, `${there}.aside`);
  symlinkSync(join(data, 'tenants', dir), there);
  const names = ['before'];
  for (let i = 0; i < 5; i++) {
    await make(`after-${i}`);
    names.push(`after-${i}`);
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
  await first.kill();
  assert.ok(lstatSync(there).isSymbolicLink(), basename(there));
  const second = await served(args);
  const answer = await (await fetch(`${second.url}/ks/keyrings`, { headers })).json();
  assert.deepEqual(answer.data.map(({ name }: { name: string }) => name).sort(), names.sort());
  await second.kill();
});
