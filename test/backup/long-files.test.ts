// Sparse files of any length, which cost an attacker nothing, instead of each shipped file: a reader reports them in
// time, uses little memory, and blocks no other work. Also numbers in files that are not authenticated.
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { after, test } from 'node:test';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { ShipTarget } from '../../src/backup/ship-target.ts';
import { endOfSegment } from '../../src/backup/shipped-segments.ts';
import { Standby } from '../../src/backup/standby.ts';
import { KmsError } from '../../src/errors.ts';
import { encodeHeader } from '../../src/store/activity/segment.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { type StreamedAppliance, streamedAppliance, streamingTo } from '../support/streamed-appliance.ts';
import { until } from '../support/until.ts';

const env = (): undefined => undefined;
const huge = 64 * 1024 ** 3;
/** A journal of this length is refused for its length alone. */
const long = 200 * 1024 ** 2;
const mostTime = 10_000;
const mostHeld = 1000;
const mostMemory = 250 * 1024 ** 2;

interface Scene {
  readonly at: StreamedAppliance;
  readonly shipped: string;
  /** Shipped directory of the current life. */
  readonly life: string;
}

async function scene(): Promise<Scene> {
  const at = await streamedAppliance();
  after(() => at[Symbol.asyncDispose]());
  const shipped = join(at.dir, 'shipped');
  await at.open(undefined, { copies: { shipping: { to: shipped, every: 20, window: 1e9 } } });
  await at.act(3);
  const journal = () => join(shipped, readdirSync(shipped)[0] ?? '', 'points.kms');
  await until('it ships', () => existsSync(shipped) && existsSync(journal()) && statSync(journal()).size > 0);
  return { at, shipped, life: join(shipped, readdirSync(shipped)[0] ?? '') };
}

/** Runs `work` within limits of time and memory, without blocking the event loop. */
async function lightly<T>(what: string, work: () => Promise<T>): Promise<T> {
  const held = monitorEventLoopDelay({ resolution: 10 });
  const began = Date.now();
  const before = process.memoryUsage().rss;
  let most = before;
  const sampler = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 5);
  held.enable();
  try {
    return await work();
  } finally {
    held.disable();
    clearInterval(sampler);
    most = Math.max(most, process.memoryUsage().rss);
    assert.ok(Date.now() - began < mostTime, `${what}: ${Date.now() - began} ms`);
    assert.ok(held.max / 1e6 < mostHeld, `${what}: held for ${held.max / 1e6} ms`);
    assert.ok(most - before < mostMemory, `${what}: ${most - before} bytes`);
  }
}

function makeLong(path: string, length: number): void {
  writeFileSync(path, '');
  truncateSync(path, length);
}

let count = 0;

/** Follows until the first look is over; returns the problem reported, if any, and the bytes that it took. */
async function followed({ at, shipped }: Scene, keyFile: string | undefined) {
  const data = join(at.dir, `standby-${++count}`);
  const standby = await Standby.open({ from: shipped, data, keys: { keys: { keyFile, env } } });
  try {
    standby.start();
    const first = standby.status().problem;
    await until('it has looked', () => standby.status().problem !== first);
    return { problem: standby.status().problem, bytes: bytesIn(data) };
  } finally {
    await standby.close();
  }
}

function bytesIn(root: string): number {
  const names = readdirSync(root, { recursive: true }).map(String);
  return names.reduce((sum, name) => sum + statSync(join(root, name)).size, 0);
}

test('whoever restores or follows refuses a file of any length, whichever it is', async () => {
  const place = await scene();
  const { at, shipped, life } = place;
  await at.close();
  const keyFile = `${at.data}.master.key`;
  const restored = () =>
    restoreAppliance({ from: shipped, data: join(at.dir, `restored-${++count}`), keys: { keyFile, env } }).then(
      () => undefined,
      (error: unknown) => error,
    );
  const names = readdirSync(life, { recursive: true }).map(String);
  const files = names.filter((name) => statSync(join(life, name)).isFile());
  assert.ok(files.some((name) => name.includes('/log-')) && files.some((name) => name.includes('/snapshot-')));
  for (const name of [...files, 'kms.seal.next']) {
    for (const length of name === 'points.kms' ? [huge, long] : [huge]) {
      const path = join(life, name);
      const aside = join(at.dir, 'aside');
      if (existsSync(path)) renameSync(path, aside);
      makeLong(path, length);
      const isData = name.includes('/');
      for (const key of [undefined, keyFile]) {
        const what = `${name} of ${length} bytes, followed ${key === undefined ? 'without' : 'with'} the key`;
        const { problem, bytes } = await lightly(what, () => followed(place, key));
        assert.match(problem ?? '', /points\.kms|kms\.seal|snapshot-|log-|activity-/, what);
        assert.ok(bytes < 1024 ** 2, `${what}: ${bytes} bytes were copied`);
      }
      if (!isData) {
        const error = await lightly(`${name} restored`, restored);
        assert.ok(error instanceof KmsError && /expected at most|no line ends/.test(error.message), String(error));
      }
      rmSync(path);
      if (existsSync(aside)) renameSync(aside, path);
    }
  }
  assert.equal(await restored(), undefined, 'and goes on once they are gone');
});

test('a file that is one by its header and would fill the disk is not copied', async () => {
  const place = await scene();
  const { at, life } = place;
  await at.close();
  const names = readdirSync(life, { recursive: true }).map(String);
  const name = names.find((each) => each.includes('/snapshot-')) ?? '';
  const { bavail, bsize } = statfsSync(at.dir);
  truncateSync(join(life, name), bavail * bsize + 1024 ** 3);
  const { problem, bytes } = await lightly(name, () => followed(place, undefined));
  assert.match(problem ?? '', /bytes arrived, but there is room for/);
  assert.ok(bytes < 1024 ** 2, `${bytes} bytes were copied`);
  const data = join(at.dir, `restored-${++count}`);
  const keys = { keys: { keyFile: `${at.data}.master.key`, env } };
  const refused = { code: 'refused', message: /iB are to be restored, and [0-9.]+ .iB are free there$/ };
  await lightly('restored', () => assert.rejects(restoreAppliance({ from: place.shipped, data, ...keys }), refused));
  assert.ok(!existsSync(data), 'and nothing is left of it');
});

test('a segment that claims a root as no appliance writes is not read to it', async () => {
  const uid = new Uint8Array(16);
  const start = encodeHeader({
    epoch: 1,
    uid,
    firstSeq: 1,
    records: 1,
    blocks: 1,
    pages: 1,
    rootLength: 5 * 1024 ** 2,
  });
  const readAt = async (_name: string, at: number): Promise<Uint8Array> => {
    assert.equal(at, 0, 'only the header is read');
    return start;
  };
  const files = { readAt, size: async () => huge, list: async () => [] };
  const keys = { epoch: 1, key: () => new Uint8Array(32) };
  const path = 'tenants/a/activity-000000000001.kms.1';
  assert.equal(await endOfSegment(files, path, '00'.repeat(16), keys), undefined);
});

test('numbers that nobody proved are looked at before they count', async () => {
  const place = await scene();
  const { at, life } = place;
  await at.close();
  const path = join(life, 'points.kms');
  const whole = join(at.dir, 'whole');
  copyFileSync(path, whole);
  const [line = ''] = readFileSync(path, 'utf8').split('\n');
  const [json = '', mac = ''] = line.split('\t');
  const largest = Number.MAX_SAFE_INTEGER;
  for (const change of [
    { log: 50_000_000 },
    { log: 90_000 },
    { log: largest },
    { snapshot: largest, log: largest },
    { offset: largest },
    { offset: 2 ** 40 },
    { segments: largest },
    { from: largest },
  ]) {
    const point = JSON.parse(json);
    for (const dir of Object.keys(point.stores)) Object.assign(point.stores[dir], change);
    writeFileSync(path, `${JSON.stringify(point)}\t${mac}\n`);
    const what = JSON.stringify(change);
    const { problem, bytes } = await lightly(what, () => followed(place, undefined));
    if (!('segments' in change) && !('from' in change)) assert.notEqual(problem, undefined, what);
    assert.ok(bytes < 1024 ** 2, `${what}: ${bytes} bytes were copied`);
  }
  copyFileSync(whole, path);
  assert.equal((await followed(place, undefined)).problem, undefined);
});

test('a journal that becomes long forgets the older half of its points, and reads as before', async () => {
  const keys = { epoch: 1, key: () => new Uint8Array(32) };
  const files = new MemoryFiles();
  const [uid, dir] = ['ab'.repeat(16), `tenants/${'cd'.repeat(8)}`];
  const open = async (most?: number): Promise<ShipTarget> => {
    const target = new ShipTarget(files, 'life', keys, most);
    await target.open(keys);
    return target;
  };
  const target = await open(1000);
  for (let at = 1; at <= 10; at++) {
    // Only the first point names the tenant, which the others still have.
    const stores = { system: { uid, snapshot: 1, log: 1, offset: at, segments: 0 } };
    const tenant = { [dir]: { uid, snapshot: 1, log: 1, offset: 1, segments: 0 } };
    await target.note({ at, keyEpoch: 1, stores: at === 1 ? { ...stores, ...tenant } : stores });
  }
  await target.prune(0, keys);
  const kept = [6, 7, 8, 9, 10];
  assert.deepEqual(
    target.points.map(({ at }) => at),
    kept,
  );
  const again = await open();
  assert.deepEqual(
    again.points.map(({ at }) => at),
    kept,
  );
  assert.deepEqual([...again.places.keys()].sort(), ['system', dir]);
  await again.prune(0, keys);
  assert.deepEqual(
    again.points.map(({ at }) => at),
    kept,
    'one that is short keeps all of them',
  );
});

test('a server that ships serves on beside a fence and a journal of any length, and says what is wrong', async () => {
  const { at, life, shipped } = await scene();
  for (const length of [5000, long, huge]) {
    makeLong(join(life, 'kms.fence'), length);
    const before = at.events.length;
    await lightly(`a fence of ${length} bytes`, async () => {
      await until('it says so', () =>
        at.events.slice(before).some(({ message }) => /kms\.fence: expected at most/.test(message)),
      );
      await at.act(1);
    });
    rmSync(join(life, 'kms.fence'));
  }
  await at.close();
  const journal = join(life, 'points.kms');
  renameSync(journal, join(at.dir, 'journal'));
  for (const length of [long, huge]) {
    makeLong(journal, length);
    await at.open(undefined, { copies: { shipping: { to: shipped, every: 20, window: 1e9 } } });
    await lightly(`a journal of ${length} bytes`, async () => {
      await at.act(1);
      const error = await until('it says so', () => at.appliance.copies.status().shipping?.error);
      assert.match(error, /points\.kms: (?:expected at most|\d+ bytes, no line ends)/);
    });
    await at.close();
  }
  assert.equal(statSync(journal).size, huge, 'it is left as it is');
  // A later life.
  renameSync(join(at.dir, 'journal'), journal);
  const later = join(shipped, readdirSync(shipped)[0]?.replace(/[0-9]+$/, String(Date.now() + 1e6)) ?? '');
  mkdirSync(later);
  makeLong(join(later, 'points.kms'), huge);
  makeLong(join(later, 'kms.fence'), huge);
  await at.open(undefined, { copies: { shipping: { to: shipped, every: 20, window: 1e9 } } });
  await lightly('a later life', async () => {
    await at.act(1);
    assert.match(await until('it says so', () => at.appliance.copies.status().shipping?.error), /kms\.fence: expected/);
  });
  await at.close();
});

test('a server that streams to a file of any length serves on, says what is wrong, and stops in time', async () => {
  const at = await streamedAppliance();
  after(() => at[Symbol.asyncDispose]());
  const path = join(at.dir, 'streamed');
  await at.open(streamingTo([path]));
  await at.act(3);
  await until('it arrives', async () => (await at.status()).lagRecords === 0);
  await at.close();
  const [name = ''] = readdirSync(join(path, 'default'));
  const file = join(path, 'default', name);
  const whole = readFileSync(file);
  truncateSync(file, huge);
  await lightly('streaming', async () => {
    await at.open(streamingTo([path]));
    await at.act(1);
    const said = /was not written by this program/;
    await until('the status says so', async () => said.test((await at.status()).error ?? ''));
    assert.ok(at.events.some(({ message }) => said.test(message)));
    await at.close();
  });
  assert.equal(statSync(file).size, huge, 'it is left as it is');
  writeFileSync(file, whole);
  await at.open(streamingTo([path]));
  await until('it goes on', async () => (await at.status()).lagRecords === 0);
  await at.close();
});
