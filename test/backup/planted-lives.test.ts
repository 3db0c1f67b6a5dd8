// Somebody who may write to the directory that is shipped to, and has no key, makes directories that are named like
// lives, with copied seals and forged journals. Without the key a standby loses nothing by them; with it they count for
// nothing: not for the number of the next life, nor for what is said of other lives.
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { initAppliance } from '../../src/appliance/init.ts';
import { raiseFence } from '../../src/backup/fence.ts';
import { JournalReader } from '../../src/backup/followed-journal.ts';
import { laterLives, lifeBeside, mostOfLook, UnprovenLives } from '../../src/backup/lives.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import {
  mostUnproven,
  type Point,
  PointChain,
  parseShippedDirectory,
  type ShippedDirectory,
  sealDigest,
  shippedDirectory,
} from '../../src/backup/ship-journal.ts';
import { findDirectories } from '../../src/backup/ship-source.ts';
import { Standby } from '../../src/backup/standby.ts';
import { utf8 } from '../../src/crypto/bytes.ts';
import { KmsError } from '../../src/errors.ts';
import { systemDir } from '../../src/platform/data-dir.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { prng } from '../support/prng.ts';
import { simSeal } from '../support/sim-appliance.ts';
import { type StreamedAppliance, streamedAppliance } from '../support/streamed-appliance.ts';
import { until } from '../support/until.ts';

const env = (): undefined => undefined;
const noMac = '0'.repeat(64);
const farAhead = 999_999_999_999_999;
/** Takes the local copy and raises no fence. */
const unfenced = { wait: 100, fence: false, acceptOlder: false };

interface Scene {
  readonly at: StreamedAppliance;
  readonly shipped: string;
  readonly life: string;
  readonly name: string;
  readonly appliance: string;
  /** Data directory of the standby. */
  readonly data: string;
  readonly keyFile: string;
  make(name: string): Promise<void>;
  standby(keyFile?: string): Promise<Standby>;
  /** Follows until the problem is the expected one, and ends. */
  follow(problem: RegExp | undefined, keyFile?: string): Promise<void>;
  /** Makes the directory of a life with a copied seal and a forged journal. */
  plant(epoch: number, ...points: readonly object[]): string;
}

const line = (point: object, mac = noMac): string => `${JSON.stringify(point)}\t${mac}\n`;

async function scene(): Promise<Scene> {
  const at = await streamedAppliance();
  after(() => at[Symbol.asyncDispose]());
  const [shipped, data] = [join(at.dir, 'shipped'), join(at.dir, 'second')];
  await at.open(undefined, { copies: { shipping: { to: shipped, every: 20, window: 1e9 } } });
  const make = async (name: string): Promise<void> => {
    assert.equal((await at.local('POST', '/ks/keyrings', { name })).status, 200);
  };
  await make('one');
  await until('it ships', () => at.appliance.copies.status().shipping?.arrivedAt);
  const [name = ''] = readdirSync(shipped);
  const appliance = parseShippedDirectory(name)?.appliance ?? '';
  const life = join(shipped, name);
  const keyFile = `${at.data}.master.key`;
  const standby = (key?: string) =>
    Standby.open({ from: shipped, data, keys: { keys: { env, ...(key && { keyFile: key }) } } });
  return {
    ...{ at, shipped, life, name, appliance, data, keyFile, make, standby },
    async follow(problem, key) {
      // The seal says where the key file lies.
      if (!key) renameSync(keyFile, `${keyFile}.aside`);
      const following = await standby(key);
      following.start();
      const isSaid = (): boolean => {
        const { problem: said, copied } = following.status();
        return problem ? problem.test(said ?? '') : said === undefined && copied !== null;
      };
      await until(`the standby says ${problem}`, isSaid).catch((error: unknown) => {
        assert.fail(`${error}, but ${following.status().problem}`);
      });
      await following.close();
      if (!key) renameSync(`${keyFile}.aside`, keyFile);
    },
    plant(epoch, ...points) {
      const planted = join(shipped, `${appliance}-${epoch}`);
      mkdirSync(planted);
      cpSync(join(life, 'kms.seal'), join(planted, 'kms.seal'));
      writeFileSync(join(planted, 'points.kms'), points.map((point) => line(point)).join(''));
      return planted;
    },
  };
}

/** Takes over with the key from what is here, and returns the names of the keyrings. */
async function takenOver({ at, data, standby, keyFile }: Scene, how = unfenced): Promise<readonly string[]> {
  const taken = await (await standby(keyFile)).takeOver(how);
  assert.ok(taken.epoch <= Date.now(), `epoch ${taken.epoch}`);
  return keyringsOf(at, data);
}

/** The same where a copy does not verify, which could be forged, or damaged and newer: a person has to accept that. */
async function takenAsOlder(place: Scene): Promise<readonly string[]> {
  const following = await place.standby(place.keyFile);
  await assert.rejects(following.takeOver(unfenced), { code: 'corrupt', message: /does not verify to its end/ });
  await following.close();
  return takenOver(place, { ...unfenced, acceptOlder: true });
}

async function keyringsOf(at: StreamedAppliance, data: string): Promise<readonly string[]> {
  const second = join(at.dir, 'first-aside');
  await at.close();
  renameSync(at.data, second);
  cpSync(data, at.data, { recursive: true });
  await at.open();
  const body = await (await at.local('GET', '/ks/keyrings')).json();
  return body.data.map(({ name }: { name: string }) => name).sort();
}

const empty = (): object => ({ at: Date.now(), keyEpoch: 1, stores: {} });

test('directories that are named like later lives do not number the next one, and the next one is found', async () => {
  const place = await scene();
  const { at, shipped, appliance, data, keyFile } = place;
  mkdirSync(join(shipped, `${appliance}-${farAhead}`));
  place.plant(farAhead - 1, empty());
  place.plant(farAhead - 2, empty(), empty(), empty());
  const standby = await place.standby(keyFile);
  const how = { wait: 60_000, fence: true, acceptOlder: false };
  await assert.rejects(standby.takeOver(how), {
    code: 'corrupt',
    message: /none of its journal verifies with the key/,
  });
  assert.ok(!existsSync(join(place.life, 'kms.fence')), 'nobody was stopped for it');
  const taken = await standby.takeOver({ ...how, acceptOlder: true });
  assert.ok(taken.epoch <= Date.now(), `epoch ${taken.epoch}`);
  assert.deepEqual(await keyringsOf(at, data), ['one']);
  await at.close();
  await at.open(undefined, { copies: { shipping: { to: shipped, every: 20, window: 1e9 } } });
  await place.make('two');
  const { copies } = at.appliance;
  const before = Date.now();
  await until('it ships', () => (copies.status().shipping?.arrivedAt ?? 0) > before);
  assert.match(copies.status().shipping?.error ?? '', /is named like a later life .* does not verify/);
  assert.equal(copies.status().shipping?.laterEpoch, undefined);
  await at.close();
  rmSync(join(shipped, `${appliance}-${farAhead - 2}`), { recursive: true });
  // A life that cannot be read may be the latest life, damaged: a person names the one that is meant.
  const target = join(at.dir, 'restored');
  await assert.rejects(restoreAppliance({ from: shipped, data: target, keys: { keyFile, env } }), {
    code: 'refused',
    message: new RegExp(
      `${appliance}-\\d+: no line of its journal, points\\.kms, verifies, as in .*; nothing was restored`,
    ),
  });
  const last = Math.max(
    ...readdirSync(shipped)
      .map((each) => parseShippedDirectory(each)?.epoch ?? 0)
      .filter((each) => each <= Date.now()),
  );
  const from = join(shipped, `${appliance}-${last}`);
  const restored = await restoreAppliance({ from, data: target, keys: { keyFile, env } });
  assert.ok(restored.epoch.number > taken.epoch && restored.epoch.number <= Date.now());
});

test('a directory has no name that would not be read', () => {
  for (const epoch of [1, 2, 1_800_000_000_000, farAhead]) {
    assert.equal(parseShippedDirectory(shippedDirectory('a'.repeat(32), epoch))?.epoch, epoch);
  }
  for (const epoch of [farAhead + 1, 0, -1, 1.5, Number.NaN, Number('1e21')]) {
    assert.throws(() => shippedDirectory('a'.repeat(32), epoch), { code: 'refused' }, String(epoch));
  }
  for (const id of ['', '../x', 'a'.repeat(31), 'A'.repeat(32)]) {
    assert.throws(() => shippedDirectory(id, 1), { code: 'refused' }, id);
  }
});

test('without the key no forged life takes the place of the copy of another', async () => {
  const place = await scene();
  await place.make('two');
  await place.at.close();
  await place.follow(undefined);
  const copy = join(place.data, 'standby', place.name);
  const before = readdirSync(copy, { recursive: true }).map(String).sort();
  place.plant(farAhead, empty());
  await place.follow(/far beyond this machine's clock/);
  place.plant(Date.now(), empty());
  await place.follow(/nobody proved it: the copy of .*-1 is kept until the key tells which is right/);
  assert.deepEqual(readdirSync(copy, { recursive: true }).map(String).sort(), before);
  rmSync(place.shipped, { recursive: true });
  assert.deepEqual(await takenAsOlder(place), ['one', 'two']);
});

/** The places of all stores in the shipped journal, the latest of each. */
function placesIn(life: string): Record<string, NonNullable<Point['stores'][string]>> {
  const lines = readFileSync(join(life, 'points.kms'), 'utf8').trimEnd().split('\n');
  return Object.assign({}, ...lines.map((text) => JSON.parse(text.split('\t')[0] ?? '').stores));
}

test('without the key no forged journal of the same life costs what an earlier one needs', async () => {
  const place = await scene();
  await place.make('two');
  await place.at.close();
  await place.follow(undefined);
  const { life } = place;
  const journal = join(life, 'points.kms');
  const honest = readFileSync(journal);
  const places = placesIn(life);
  writeFileSync(journal, line(empty()));
  await place.follow(
    /is older than the one that had arrived by .*: it lacks \S+, and nothing says that this was deleted/,
  );
  // A seal that opens nothing, and a state that needs none of the files that arrived.
  const later = Object.fromEntries(
    Object.entries(places).map(([dir, { snapshot, log, ...rest }]) => {
      const name = (number: number) => join(life, dir, `snapshot-${String(number).padStart(10, '0')}.kms`);
      cpSync(name(snapshot), name(log + 5));
      return [dir, { ...rest, snapshot: log + 5, log: log + 5, offset: 0 }];
    }),
  );
  for (const isContinued of [true, false]) {
    const other = join(place.at.dir, `other-${isContinued}`);
    await initAppliance({ data: other, env });
    cpSync(join(other, 'kms.seal'), join(life, 'kms.seal'));
    rmSync(`${other}.master.key`);
    const digest = sealDigest(readFileSync(join(life, 'kms.seal')));
    const forged = line({ at: Date.now() + 1000, keyEpoch: 1, seal: digest, stores: later });
    writeFileSync(journal, isContinued ? `${honest}${forged}${forged}` : forged);
    await place.follow(isContinued ? undefined : /the journal there does not go on from what had arrived by /);
  }
  rmSync(place.shipped, { recursive: true });
  // The lines after the good ones may have been good, too.
  assert.deepEqual(await takenAsOlder(place), ['one', 'two']);
});

const damages: Readonly<Record<string, (life: string) => void>> = {
  'a journal cut in its first line': (life) => truncateSync(join(life, 'points.kms'), 200),
  'an empty journal': (life) => truncateSync(join(life, 'points.kms'), 0),
  'no journal': (life) => rmSync(join(life, 'points.kms')),
  'no seal': (life) => rmSync(join(life, 'kms.seal')),
  'a seal that was never taken over': (life) => renameSync(join(life, 'kms.seal'), join(life, 'kms.seal.next')),
  'a changed byte in its first line': (life) => {
    const bytes = readFileSync(join(life, 'points.kms'));
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    writeFileSync(join(life, 'points.kms'), bytes);
  },
  'a file in its place': (life) => {
    rmSync(life, { recursive: true });
    writeFileSync(life, '');
  },
};

test('a later life that cannot be read is never passed over in silence', async () => {
  const place = await scene();
  const { at, shipped, life, appliance, keyFile } = place;
  await at.close();
  const later = join(shipped, `${appliance}-${Date.now()}`);
  for (const [what, damage] of Object.entries(damages)) {
    cpSync(life, later, { recursive: true });
    damage(later);
    const data = join(at.dir, 'restored');
    await assert.rejects(restoreAppliance({ from: shipped, data, keys: { keyFile, env } }), { code: 'refused' }, what);
    const following = await place.standby(keyFile);
    await assert.rejects(following.takeOver(unfenced), { code: 'corrupt' }, what);
    assert.equal(following.status().copied?.transactions, following.status().proven?.transactions, what);
    await following.close();
    rmSync(later, { recursive: true });
  }
  assert.deepEqual(await takenOver(place), ['one']);
});

test('with the key a damaged copy of a later life is not given up for an earlier one', async () => {
  const place = await scene();
  const { at, shipped, data, appliance, keyFile } = place;
  await at.close();
  await place.follow(undefined);
  const from = join(at.dir, 'later');
  const restored = await restoreAppliance({ from: shipped, data: from, keys: { keyFile, env } });
  renameSync(at.data, `${at.data}.aside`);
  cpSync(from, at.data, { recursive: true });
  await at.open(undefined, { copies: { shipping: { to: shipped, every: 20, window: 1e9 } } });
  await place.make('two');
  await until('it ships', () => at.appliance.copies.status().shipping?.arrivedAt);
  await at.close();
  await place.follow(/nobody proved it/);
  rmSync(shipped, { recursive: true });
  const copy = join(data, 'standby', `${appliance}-${restored.epoch.number}`, 'points.kms');
  truncateSync(copy, 200);
  const following = await place.standby(keyFile);
  await assert.rejects(following.takeOver(unfenced), { code: 'corrupt', message: /does not verify to its end/ });
  await following.close();
  assert.ok(existsSync(copy));
});

test('without the key a log that arrived is not replaced by another', async () => {
  const place = await scene();
  await place.make('two');
  await place.at.close();
  await place.follow(undefined);
  const places = placesIn(place.life);
  const next = Object.fromEntries(
    Object.entries(places).map(([dir, { log, ...rest }]) => {
      const name = (number: number) => join(place.life, dir, `log-${String(number).padStart(10, '0')}.kms`);
      cpSync(name(log), name(log + 1));
      writeFileSync(name(log), readFileSync(name(log)).subarray(0, 100));
      return [dir, { ...rest, log: log + 1, offset: 64 }];
    }),
  );
  const journal = join(place.life, 'points.kms');
  const honest = readFileSync(journal);
  const forged = line({ at: Date.now() + 1000, keyEpoch: 1, stores: next });
  writeFileSync(journal, forged);
  await place.follow(/the journal there does not go on from what had arrived by /);
  writeFileSync(journal, `${honest}${forged}`);
  await place.follow(/is of another length than what arrived before, and there is no key/);
  rmSync(place.shipped, { recursive: true });
  assert.deepEqual(await takenOver(place), ['one', 'two']);
});

test('a takeover from an older source, by a damaged copy, is refused unless it is accepted', async () => {
  const place = await scene();
  const { shipped, data, name, keyFile } = place;
  const older = join(place.at.dir, 'older');
  cpSync(shipped, older, { recursive: true });
  await place.make('two');
  await place.at.close();
  await place.follow(undefined, keyFile);
  const copy = join(data, 'standby', name);
  for (const file of readdirSync(copy, { recursive: true }).map(String)) {
    if (/(log|snapshot)-/.test(file)) writeFileSync(join(copy, file), 'damaged');
  }
  rmSync(shipped, { recursive: true });
  cpSync(older, shipped, { recursive: true });
  const before = readdirSync(copy, { recursive: true }).map(String).sort();
  for (const how of [unfenced, { ...unfenced, fence: true }]) {
    const standby = await place.standby(keyFile);
    await assert.rejects(standby.takeOver(how), (error: KmsError) => /--accept-older/.test(error.hint ?? ''));
    await standby.close();
  }
  assert.deepEqual(readdirSync(copy, { recursive: true }).map(String).sort(), before);
  await place.follow(/is older than the one that had arrived by /, keyFile);
  assert.deepEqual(await takenOver(place, { ...unfenced, acceptOlder: true }), ['one']);
});

test('a mark of a standby that names anything but stores and lives is refused', async () => {
  const place = await scene();
  await place.at.close();
  const victim = join(place.at.dir, 'victim');
  mkdirSync(victim);
  writeFileSync(join(victim, 'log-0000000009.kms'), 'of somebody');
  const one = { uid: '0'.repeat(32), snapshot: 1, log: 1, offset: 0, segments: 0 };
  const point = (stores: object): object => ({ at: 1, keyEpoch: 1, stores });
  const good = { format: 1, id: 'ab'.repeat(16), from: place.shipped };
  mkdirSync(place.data);
  const up = '../'.repeat(4);
  for (const wrong of [
    { proven: { directory: place.name, point: point({ [`${up}victim`]: one }) } },
    { proven: { directory: place.name, point: point({ 'tenants/../../../victim': one }) } },
    { proven: { directory: place.name, point: point({ system: { ...one, log: '1/../../x' } }) } },
    { proven: { directory: `${up}victim`, point: point({ system: one }) } },
    { proven: { directory: '..', point: point({}) } },
    { proven: { directory: place.name } },
    { proven: null },
    { proven: place.name },
    { reach: { directory: `${up}victim`, at: 1 } },
    { reach: { directory: place.name, at: -1 } },
    { reach: null },
    { id: '../x' },
    { from: 1 },
    { format: 2 },
  ]) {
    writeFileSync(join(place.data, 'kms.standby'), JSON.stringify({ ...good, ...wrong }));
    await assert.rejects(place.standby(place.keyFile), { code: 'corrupt' }, JSON.stringify(wrong));
  }
  assert.ok(existsSync(join(victim, 'log-0000000009.kms')));
  writeFileSync(join(place.data, 'kms.standby'), JSON.stringify(good));
  await place.follow(undefined, place.keyFile);
});

const seal = simSeal(prng(1));
const own = seal.keysFor(systemDir);
const life = (epoch: number): ShippedDirectory => {
  const name = shippedDirectory(seal.applianceId, epoch);
  return { name, appliance: seal.applianceId, epoch };
};

/** The files of a life with points at these times; `forged` is appended. */
/** Stores that are gone, in as few bytes as they take. */
const manyGone = (count: number): string =>
  Array.from({ length: count }, (_, i) => `"tenants/${i.toString(16).padStart(16, '0')}":null`).join();

const longJournal = Buffer.from(
  `{"at":1,"keyEpoch":1,"stores":{${manyGone(mostUnproven.line + 1)}}}\t${'0'.repeat(64)}\n`,
);
const plantedJournals: Readonly<Record<string, { bytes: Uint8Array; size?: number }>> = {
  'of a line with very many stores': { bytes: longJournal },
  'longer than any': { bytes: longJournal, size: 2 ** 40 },
  'without a line': { bytes: Buffer.alloc(20 * 1024 * 1024) },
  'of other text': { bytes: Buffer.from('#\n'.repeat(100)) },
};

for (const hasKey of [true, false]) {
  for (const [what, { bytes, size }] of Object.entries(plantedJournals)) {
    const with_ = hasKey ? 'with' : 'without';
    test(`${with_} the key a later life with a journal ${what} costs one look, and the other is followed`, async (t) => {
      let read = 0;
      const honest = Object.assign(journalOf(life(1), [10]), { stamp: async () => '1' });
      honest.contents.set('kms.seal', utf8('a seal'));
      const planted = new MemoryFiles();
      planted.contents.set('kms.seal', utf8('a seal')).set('points.kms', bytes);
      Object.assign(planted, {
        stamp: async () => '1',
        size: async () => size ?? bytes.length,
        readAt: async (_: string, offset: number, length: number) => {
          read += length;
          return bytes.subarray(offset, offset + length);
        },
      });
      const opened = hasKey ? seal : undefined;
      const reader = new JournalReader({
        directories: async () => [life(9), life(1)],
        source: (name) => (name === life(1).name ? honest : planted),
        open: async (_, __, isRight) => ({ seal: opened, isRight: await isRight(opened) }),
        opened: () => undefined,
        uptime: () => 0,
        now: () => 10,
      });
      const parsed = t.mock.method(JSON, 'parse');
      for (const followed of [[], [life(1).name]]) {
        const doubts: string[] = [];
        const found = await reader.read(undefined, new Set(followed), (doubt) => doubts.push(doubt));
        assert.equal(found.reading.directory.epoch, 1);
        assert.match(doubts.join(), new RegExp(`^${life(9).name}: .*: it is left out`));
        const most = followed.length > 0 ? 0 : 2 * mostOfLook;
        assert.ok(read <= most, `${read} bytes`);
        read = 0;
      }
      const longest = Math.max(...parsed.mock.calls.map(({ arguments: [text] }) => String(text).length));
      assert.ok(longest < 4096, `${longest} characters were parsed`);
    });
  }
}

test('a later life that the key proves is never passed over, whatever is wrong with it', async () => {
  const damaged = `${line({ at: 2, keyEpoch: 1, stores: {} })}${line({ at: 3, keyEpoch: 1, stores: {} })}`;
  const later = Object.assign(journalOf(life(9), [1], damaged), { stamp: async () => '1' });
  const earlier = journalOf(life(1), [10]);
  for (const { contents } of [later, earlier]) contents.set('kms.seal', utf8('a seal'));
  const reader = new JournalReader({
    directories: async () => [life(9), life(1)],
    source: (name) => (name === life(1).name ? earlier : later),
    open: async (_, __, isRight) => ({ seal, isRight: await isRight(seal) }),
    opened: () => undefined,
    uptime: () => 0,
    now: () => 10,
  });
  for (const followed of [[], [life(1).name], [life(1).name]]) {
    const looked = reader.read(undefined, new Set(followed), () => {});
    await assert.rejects(looked, { code: 'corrupt', message: /line 2 does not verify/ });
  }
});

function journalOf({ name }: ShippedDirectory, times: readonly number[], forged = ''): MemoryFiles {
  const files = new MemoryFiles();
  const chain = new PointChain(name, own);
  const lines = times.map((at) => Buffer.from(chain.line({ at, keyEpoch: own.epoch, stores: {} })).toString());
  files.contents.set('points.kms', utf8(`${lines.join('')}${forged}`));
  return files;
}

const at = (time: number): string => line({ at: time, keyEpoch: 1, stores: {} });

test('with the keys an earlier life went on where its journal proves it, and in no other case', async () => {
  const [earlier, later] = [life(1), life(1000)];
  const fence = { by: 'ab'.repeat(16), host: 'second', at: 1, epoch: 1000 };
  for (const [what, files, isBeside] of [
    ['it ended before', journalOf(earlier, [10, 20]), false],
    ['it went on', journalOf(earlier, [10, 2000]), true],
    ['it is forged', journalOf(earlier, [], at(2000)), false],
    ['its end is forged', journalOf(earlier, [10], at(2000)), false],
    ['it went on, and its end is hidden', journalOf(earlier, [10, 2000], 'xx\n'), true],
    ['it went on, and its end is said to be earlier', journalOf(earlier, [10, 2000], at(20)), true],
    ['it is nothing', journalOf(earlier, [], 'xx\nyy\nzz\n'), false],
  ] as const) {
    const look = () =>
      lifeBeside((name) => (name === earlier.name ? files : journalOf(later, [1000, 3000])), [later, earlier], later, {
        own,
        openBeside: () => Promise.reject(new Error('there is no key')),
      });
    assert.equal((await look())?.directory.name, isBeside ? earlier.name : undefined, what);
    files.contents.set('kms.fence', utf8(`${JSON.stringify({ ...fence, keyEpoch: 1 })}\t${noMac}\n`));
    assert.equal((await look())?.directory.name, isBeside ? earlier.name : undefined, `${what}, with a forged fence`);
    files.contents.delete('kms.fence');
    await raiseFence({ files, directory: earlier.name, keys: own }, fence);
    assert.equal(await look(), undefined, `${what}, and is fenced`);
  }
});

test('of later lives the one counts whose journal verifies', async () => {
  const lives = new Map([
    [life(5), journalOf(life(5), [10])],
    [life(6), journalOf(life(6), [], at(2000))],
    [life(7), journalOf(life(7), [], 'xx')],
    [life(8), new MemoryFiles()],
  ]);
  const source = (name: string): MemoryFiles =>
    [...lives].find(([each]) => each.name === name)?.[1] ?? new MemoryFiles();
  const names = [...lives.keys()].map(({ name }) => name);
  const look = (epoch: number) => laterLives(source, names, life(epoch), own);
  assert.deepEqual(await look(1), { found: { directory: life(5), isProven: true }, count: 4 });
  assert.deepEqual(await look(5), { found: { directory: life(7), isProven: false }, count: 3 });
  assert.deepEqual(await look(7), { count: 1 });
  assert.deepEqual(await look(8), { count: 0 });
});

test('however many directories are named like lives, few are looked at, and that is said', async () => {
  const names = Array.from({ length: 20_000 }, (_, i) => life(i + 2).name);
  let looks = 0;
  const files = new MemoryFiles();
  const exists = files.exists.bind(files);
  files.exists = (name) => {
    looks++;
    return exists(name);
  };
  assert.equal((await laterLives(() => files, names, life(1), own)).count, 20_000);
  assert.ok(looks < 1000, `${looks} looks`);
  await assert.rejects(
    findDirectories('shipped', { names: async () => names }),
    (error) => error instanceof KmsError && error.code === 'refused' && /20000 directories/.test(error.message),
  );
  const place = await scene();
  for (let epoch = 2; epoch < 1000; epoch++) mkdirSync(join(place.shipped, `${place.appliance}-${epoch}`));
  await until('shipping says so', () =>
    /^998 directories/.test(place.at.appliance.copies.status().shipping?.error ?? ''),
  );
  await place.at.close();
  await place.follow(/999 directories are named like lives, expected at most 256/, place.keyFile);
});

test('where there are very many entries none is sorted, and that is said', async () => {
  const names = async () => Array.from({ length: 20_001 }, (_, n) => life(n + 2).name);
  await assert.rejects(findDirectories('/shipped', { names }), { code: 'refused', message: /has 20001 entries/ });
});

test('long lines of planted journals are never parsed, and read once, some megabytes a look', async (t) => {
  const long = 16 * 1024 * 1024 - 100;
  const front = `{"at":1,"keyEpoch":${own.epoch},"stores":`;
  const forged = Buffer.from(`${front}${'['.repeat(long - front.length)}\t${'0'.repeat(64)}\n`);
  let [read, turns] = [0, 0];
  const stamps = new Map<string, number>();
  const source = (name: string) => {
    const files = new MemoryFiles();
    files.contents.set('points.kms', name === life(2).name ? real : forged);
    return Object.assign(files, {
      readAt: async (_: string, offset: number, length: number) => {
        read += length;
        return (files.contents.get('points.kms') ?? forged).subarray(offset, offset + length);
      },
      stamp: async () => String(stamps.get(name) ?? 0),
    });
  };
  const real = journalOf(life(2), [10]).contents.get('points.kms') ?? forged;
  const names = [2, 3, 4, 5, 6, 7].map((epoch) => life(epoch).name);
  const memory = new UnprovenLives();
  const parsed = t.mock.method(JSON, 'parse');
  const count = (): void => {
    turns++;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  const look = async () => {
    [read, turns] = [0, 0];
    return laterLives(source, names, life(1), own, memory);
  };
  for (let looks = 0; looks < 5; looks++) {
    const { found } = await look();
    assert.deepEqual(found?.isProven, looks === 4, `look ${looks}`);
    assert.ok(read > long && read <= mostOfLook, `look ${looks}: ${read} bytes`);
    // Each turn hashes 256 KiB at most.
    assert.ok(turns >= long / (256 * 1024), `look ${looks}: ${turns} turns`);
  }
  assert.equal((await look()).found?.directory.epoch, 2);
  assert.ok(read < 64 * 1024, `${read} bytes for what is known`);
  stamps.set(life(4).name, 1);
  await look();
  assert.ok(read > long && read < 2 * long, `${read} bytes for what changed`);
  clearImmediate(timer);
  const longest = Math.max(0, ...parsed.mock.calls.map(({ arguments: [text] }) => String(text).length));
  assert.ok(longest < 4096, `${longest} characters were parsed`);
});
