// Somebody who may write to the directory that is shipped to, and has no key, plants files under every name that a
// standby reads: garbage ahead of time, older genuine content, cut short and made longer, again and again. Once the
// appliance ships on, the standby has everything, or says what is wrong and has lost nothing of what it had.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Follower } from '../../src/backup/follow.ts';
import { type Noted, transactionsIn } from '../../src/backup/known-state.ts';
import { Shipper } from '../../src/backup/ship.ts';
import {
  arrived,
  beginningOf,
  type Point,
  PointChain,
  parseShippedDirectory,
  type ShippedDirectory,
  sealAfter,
  shippedDirectory,
} from '../../src/backup/ship-journal.ts';
import { KmsError } from '../../src/errors.ts';
import { openSeal } from '../../src/seal/seal.ts';
import { decodeHeader, encodeHeader } from '../../src/store/activity/segment.ts';
import type { Files } from '../../src/store/files.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { prng } from '../support/prng.ts';
import { createSealedAppliance, openSealedAppliance, tenantName } from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const secret = new Uint8Array(32).fill(1);
const store = `tenants/${tenantName}`;

/** Files, of which some show other contents. */
class Planted {
  readonly #files: Files;
  readonly contents = new Map<string, Uint8Array>();
  /** Whether it can be reached. */
  isThere = true;

  constructor(files: Files) {
    this.#files = files;
  }

  get files(): Files {
    const of = <R>(name: string, planted: (bytes: Uint8Array) => R, other: () => Promise<R>): Promise<R> => {
      const bytes = this.contents.get(name);
      if (!this.isThere) throw new KmsError('unavailable', 'it is out of reach');
      return bytes ? Promise.resolve(planted(bytes)) : other();
    };
    const files = this.#files;
    const read: Pick<Files, 'list' | 'exists' | 'size' | 'read' | 'readAt'> = {
      list: async (dir) => {
        const planted = [...this.contents.keys()].filter((name) => name.startsWith(`${dir}/`));
        return [...new Set([...(await files.list(dir)), ...planted.map((name) => name.slice(dir.length + 1))])];
      },
      exists: (name) =>
        of(
          name,
          () => true,
          () => files.exists(name),
        ),
      size: (name) =>
        of(
          name,
          ({ length }) => length,
          () => files.size(name),
        ),
      read: (name, most) =>
        of(
          name,
          (bytes) => bytes.slice(),
          () => files.read(name, most),
        ),
      readAt: (name, offset, length) =>
        of(
          name,
          (bytes) => bytes.slice(offset, offset + length),
          () => files.readAt(name, offset, length),
        ),
    };
    // Cast: a look changes nothing there.
    return read as Files;
  }
}

/** An appliance that ships, and the machine of a standby. */
class Scene {
  readonly shipped: SimFiles;
  readonly planted: Planted;
  readonly copy = new MemoryFiles();
  readonly noted: { proven?: Noted['proven']; reach?: Noted['reach'] } = {};
  readonly directory: ShippedDirectory;
  readonly appliance: Awaited<ReturnType<typeof openSealedAppliance>>;
  readonly generator = prng(1);
  window = 1e9;
  now = 2000;
  uptime = 0;

  static async open(): Promise<Scene> {
    const generator = prng(1);
    const files = new SimFiles({ prng: generator });
    await createSealedAppliance(files, secret, generator);
    return new Scene(await openSealedAppliance(files, secret, generator));
  }

  private constructor(appliance: Scene['appliance']) {
    this.appliance = appliance;
    this.shipped = new SimFiles({ prng: this.generator });
    this.planted = new Planted(this.shipped);
    const name = shippedDirectory(appliance.seal.current.applianceId, 1);
    this.directory = parseShippedDirectory(name) ?? assert.fail();
  }

  shipper(): Shipper {
    const scene = this;
    const deps = { ...this.appliance, epoch: 1, now: () => scene.now, target: () => scene.shipped };
    return new Shipper({
      ...deps,
      get window() {
        return scene.window;
      },
    });
  }

  /** Writes, makes a checkpoint and ships, each several times: every kind of file changes. */
  async goOn(shipper: Shipper, rounds = 1): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < 9; i++) await this.appliance.write();
      this.now += 1000;
      await shipper.ship();
      await this.appliance.tenant.checkpoint();
      await this.appliance.write();
      this.now += 1000;
      await shipper.ship();
    }
  }

  /** A process of the standby. */
  follower(hasKey: boolean): Follower {
    const { noted, copy, directory, generator } = this;
    return new Follower(
      {
        directories: async () => [directory],
        copies: async () => ((await copy.exists('points.kms')) ? [directory] : []),
        source: () => this.planted.files,
        copy: () => copy,
        dropOthers: async () => {},
        openSeal: async (bytes) =>
          hasKey ? openSeal(bytes, secret.slice(), (length) => generator.bytes(length)) : undefined,
        wasm: sqlWasm,
        uptime: () => this.uptime,
        now: () => this.now,
        room: async () => Number.MAX_SAFE_INTEGER,
        async onProven(proven) {
          noted.proven = proven;
        },
        async onReach(reach) {
          noted.reach = reach;
        },
      },
      { ...noted },
    );
  }

  /** The error of a look, if there is one. */
  async look(follower: Follower): Promise<string | undefined> {
    this.uptime += 100_000;
    return follower.look().then(
      () => follower.doubt ?? follower.lack,
      (error: unknown) => {
        assert.ok(error instanceof KmsError, String(error));
        assert.ok(['refused', 'corrupt', 'unavailable', 'sealed'].includes(error.code), String(error));
        return `${error.message}; ${error.hint}`;
      },
    );
  }

  /** Transactions of the newest state that opens with the key from the copy alone, left as it is. `mayLack`: segments. */
  async transactionsHere(mayLack = false): Promise<number> {
    const [files, noted] = [new Map(this.copy.contents), { ...this.noted }];
    this.planted.isThere = false;
    const follower = this.follower(true);
    await follower.recall();
    const { proof } = await follower.prove();
    this.planted.isThere = true;
    this.copy.contents.clear();
    for (const [name, bytes] of files) this.copy.contents.set(name, bytes);
    Object.assign(this.noted, { proven: undefined, reach: undefined }, noted);
    if (!mayLack) assert.deepEqual(proof.lacks, []);
    return proof.transactions;
  }

  async close(): Promise<void> {
    await this.appliance.close();
  }
}

const garbage = prng(7).bytes(3000);

/** The name after the last of this kind, and the last. */
async function namesOf(files: Files, kind: string): Promise<{ last: string; next: string }> {
  const names = (await files.list(store)).filter((name) => name.startsWith(kind)).sort();
  const last = names.at(-1) ?? assert.fail(kind);
  const next = last.replace(/[0-9]+/, (digits) => {
    // A segment is named after its first record.
    const step = kind === 'activity' ? 8 : 1;
    return String(Number(digits) + step).padStart(digits.length, '0');
  });
  return { last: `${store}/${last}`, next: `${store}/${next}` };
}

type Plant = (bytes: Uint8Array, older: Uint8Array | undefined) => Uint8Array;

const plants: Readonly<Record<string, Plant>> = {
  garbage: () => garbage,
  'garbage as long': (bytes) => prng(3).bytes(bytes.length),
  'older content': (bytes, older) => older ?? bytes.slice(0, 64),
  'cut short': (bytes) => bytes.slice(0, Math.floor(bytes.length / 2)),
  'made longer': (bytes) => Buffer.concat([bytes, garbage]),
  'one byte changed': (bytes) => bytes.map((byte, at) => (at === Math.floor(bytes.length / 2) ? byte ^ 1 : byte)),
};

/** Plants a kind of content under one name, twice, with looks in between; then the appliance ships on. */
async function plantTwice(kind: string, how: Plant, hasKey: boolean): Promise<void> {
  const scene = await Scene.open();
  const { shipped, planted } = scene;
  const shipper = scene.shipper();
  await scene.goOn(shipper);
  const older = new Map<string, Uint8Array>();
  for (const name of ['points.kms', 'kms.seal']) older.set(name, await shipped.read(name));
  for (const name of await shipped.list(store)) older.set(`${store}/${name}`, await shipped.read(`${store}/${name}`));
  await scene.goOn(shipper);
  let follower = scene.follower(hasKey);
  assert.equal(await scene.look(follower), undefined);
  const had = await scene.transactionsHere();
  const said = new Set<string | undefined>();
  for (let time = 0; time < 2; time++) {
    const names = kind.includes('.') ? { last: kind, next: kind } : await namesOf(shipped, kind);
    for (const [name, isAhead] of [
      [names.last, false],
      [names.next, true],
    ] as const) {
      const bytes = (await shipped.exists(name)) ? await shipped.read(name) : await shipped.read(names.last);
      const same = older.get(name) ?? older.get([...older.keys()].find((each) => each.includes(kind)) ?? '');
      planted.contents.set(name, how(bytes, same));
      said.add(await scene.look(follower));
      if (isAhead) await scene.goOn(shipper);
      said.add(await scene.look(follower));
      // A new process, in the midst of it.
      follower = scene.follower(hasKey);
      said.add(await scene.look(follower));
    }
    planted.contents.clear();
    said.add(await scene.look(follower));
  }
  await scene.goOn(shipper);
  const problems = [];
  for (let i = 0; i < 3; i++) problems.push(await scene.look(follower));
  const problem = problems.at(-1);
  const all = transactionsIn(follower.shipped ?? assert.fail(String(problem)));
  if (hasKey) {
    assert.equal(problem, undefined);
    assert.equal(await scene.transactionsHere(), all);
  } else if (problem === undefined) {
    // Without the key a change in the middle of a file is not seen; with it the file is fetched again.
    assert.equal(await scene.transactionsHere(how === plants['one byte changed']), all);
  } else {
    assert.match(problem, /kept; .*key|kept, and .*key/);
    assert.ok((await scene.transactionsHere()) >= had);
  }
  // With the key everything is there in the end.
  const last = scene.follower(true);
  for (let i = 0; i < 3; i++) problems.push(await scene.look(last));
  assert.equal(problems.at(-1), undefined);
  assert.equal(await scene.transactionsHere(), all);
  await scene.close();
}

for (const kind of ['points.kms', 'kms.seal', 'snapshot', 'log', 'activity']) {
  for (const hasKey of [true, false]) {
    test(`${kind} is planted, ${hasKey ? 'with' : 'without'} the key: nothing is lost`, async () => {
      for (const [what, how] of Object.entries(plants)) {
        await plantTwice(kind, how, hasKey).catch((error: unknown) => {
          throw new Error(what, { cause: error });
        });
      }
    });
  }
}

/** A journal of the same points as the one there, from the `first` on, that somebody without the key wrote. */
async function forgedJournal(
  { shipped, directory }: Scene,
  first: number,
  ...more: Partial<Point>[]
): Promise<Uint8Array> {
  const { points } = await beginningOf(await shipped.read('points.kms'), new PointChain(directory.name, undefined));
  const at = Math.min(first, points.length - 1);
  const before = points.slice(0, at + 1);
  const start = { ...points[at], seal: sealAfter(before), stores: Object.fromEntries(arrived(before)) };
  const last = points.at(-1) ?? assert.fail();
  const forged = [start, ...points.slice(at + 1), ...more.map((point) => ({ ...last, ...point }))];
  return Buffer.from(forged.map((point) => `${JSON.stringify(point)}\t${'0'.repeat(64)}\n`).join(''));
}

test('without the key any number of journals with the same points, however soon, lose nothing', async () => {
  const scene = await Scene.open();
  const { planted, copy } = scene;
  const shipper = scene.shipper();
  await scene.goOn(shipper, 2);
  const follower = scene.follower(false);
  assert.equal(await scene.look(follower), undefined);
  for (let time = 0; time < 4; time++) {
    planted.contents.set('points.kms', await forgedJournal(scene, time));
    assert.equal(await scene.look(follower), undefined);
    assert.ok((await scene.transactionsHere()) > 0);
    planted.contents.clear();
    // The appliance drops its first lines, too.
    scene.window = time === 2 ? 1500 : 1e9;
    await scene.goOn(shipper);
    assert.equal(await scene.look(time === 1 ? scene.follower(false) : follower), undefined);
  }
  const all = transactionsIn(follower.shipped ?? assert.fail());
  const kept = [...copy.contents.keys()].filter((name) => name.startsWith('points.kms.kept-'));
  assert.ok(kept.length >= 4, kept.join());
  // A point that the appliance never shipped: what it ships then does not go on from there.
  planted.contents.set('points.kms', await forgedJournal(scene, 1, { at: scene.now + 1, stores: {} }));
  assert.equal(await scene.look(follower), undefined);
  planted.contents.clear();
  await scene.goOn(shipper);
  for (const each of [follower, scene.follower(false)]) {
    assert.match(
      (await scene.look(each)) ?? '',
      /the journal there does not go on from what had arrived by .*--key-file/,
    );
  }
  const before = new Map(copy.contents);
  assert.equal(await scene.look(scene.follower(true)), undefined);
  assert.ok((await scene.transactionsHere()) > all);
  // From what was here alone the key finds all that had arrived.
  copy.contents.clear();
  for (const [name, bytes] of before) copy.contents.set(name, bytes);
  delete scene.noted.proven;
  delete scene.noted.reach;
  assert.equal(await scene.transactionsHere(), all);
  await scene.close();
});

test('without the key the journals that are kept have a bound, and none of them makes room for another', async () => {
  const scene = await Scene.open();
  const { planted, copy } = scene;
  const shipper = scene.shipper();
  await scene.goOn(shipper, 2);
  const follower = scene.follower(false);
  await scene.look(follower);
  const all = transactionsIn(follower.copied ?? assert.fail());
  for (let i = 0; i < 1024; i++) copy.contents.set(`points.kms.kept-${i}`, Uint8Array.of(i, i >> 8));
  planted.contents.set('points.kms', await forgedJournal(scene, 1));
  assert.match((await scene.look(follower)) ?? '', /no more than 1024 others are kept unproven; what is here is kept/);
  assert.equal(await scene.transactionsHere(), all);
  await scene.close();
});

test('a damaged copy takes nothing older, in this process or the next, and nothing of it is removed', async () => {
  const damages: Readonly<Record<string, (copy: MemoryFiles) => void>> = {
    'the journal is gone': ({ contents }) => void contents.delete('points.kms'),
    'the seal is gone': ({ contents }) => void contents.delete('kms.seal'),
    'the store is gone': ({ contents }) => {
      for (const name of [...contents.keys()]) if (name.startsWith(store)) contents.delete(name);
    },
    'every file is cut short': ({ contents }) => {
      for (const [name, bytes] of contents) contents.set(name, bytes.slice(0, bytes.length / 2));
    },
    'snapshots and logs are changed': ({ contents }) => {
      for (const [name, bytes] of contents) {
        if (/\/(snapshot|log)-/.test(name)) contents.set(name, plants['one byte changed']?.(bytes, bytes) ?? bytes);
      }
    },
    'every file is changed': ({ contents }) => {
      for (const [name, bytes] of contents) contents.set(name, plants['one byte changed']?.(bytes, bytes) ?? bytes);
    },
  };
  for (const [what, damage] of Object.entries(damages)) {
    const scene = await Scene.open();
    const { shipped, planted, copy } = scene;
    const shipper = scene.shipper();
    await scene.goOn(shipper);
    const older = new Map<string, Uint8Array>();
    for (const dir of ['.', 'system', store]) {
      for (const name of await shipped.list(dir)) {
        const path = dir === '.' ? name : `${dir}/${name}`;
        older.set(path, await shipped.read(path));
      }
    }
    await scene.goOn(shipper);
    const follower = scene.follower(true);
    assert.equal(await scene.look(follower), undefined, what);
    damage(copy);
    for (const [name, bytes] of older) planted.contents.set(name, bytes);
    const before = new Map(copy.contents);
    for (const each of [follower, scene.follower(true), scene.follower(true)]) {
      assert.match((await scene.look(each)) ?? '', /is older than the one that had arrived by /, what);
      await each.prove().catch(() => {});
      assert.match((await scene.look(each)) ?? '', /is older than the one that had arrived by /, what);
    }
    for (const [name, bytes] of before) assert.deepEqual(copy.contents.get(name), bytes, `${what}: ${name}`);
    planted.contents.clear();
    await scene.goOn(shipper);
    const last = scene.follower(true);
    for (let i = 0; i < 3; i++) await scene.look(last);
    assert.equal(await scene.look(last), undefined, what);
    assert.equal(await scene.transactionsHere(), transactionsIn(last.shipped ?? assert.fail()), what);
    await scene.close();
  }
});

/** A file that is one of the store by its clear header, and as long. */
const withHeader = (bytes: Uint8Array): Uint8Array =>
  Buffer.concat([bytes.slice(0, 64), prng(5).bytes(bytes.length - 64)]);

for (const hasKey of [true, false]) {
  const which = hasKey ? 'with' : 'without';
  test(`${which} the key a snapshot that another was planted for is fetched, or that is said`, async () => {
    const scene = await Scene.open();
    const { shipped, planted, copy } = scene;
    const shipper = scene.shipper();
    await scene.goOn(shipper);
    const first = scene.follower(hasKey);
    assert.equal(await scene.look(first), undefined);
    const had = await scene.transactionsHere();
    await scene.goOn(shipper);
    const { last } = await namesOf(shipped, 'snapshot');
    const right = await shipped.read(last);
    for (let time = 0; time < 2; time++) {
      planted.contents.set(last, withHeader(right));
      const said = await scene.look(scene.follower(hasKey));
      if (hasKey) assert.match(said ?? '', /snapshot/);
      planted.contents.clear();
      const follower = scene.follower(hasKey);
      for (let i = 0; i < 2; i++) {
        const problem = await scene.look(follower);
        // At the first look a proof finds that the copy is damaged.
        if (hasKey && i === 1) assert.equal(problem, undefined);
        else if (hasKey) assert.match(problem ?? 'snapshot', /snapshot/);
        else assert.match(problem ?? '', /snapshot-.*: is another one than what arrived before, and there is no key/);
      }
      if (hasKey) assert.deepEqual(Buffer.from(await copy.read(last)), Buffer.from(right));
      else assert.deepEqual(Buffer.from(await copy.read(last)), Buffer.from(withHeader(right)), 'nothing is replaced');
      if (hasKey) assert.ok((await scene.transactionsHere()) > had);
      if (hasKey) await copy.replace(last, right.slice(0, 100));
    }
    // With the key it is fetched from there.
    const again = scene.follower(true);
    for (let i = 0; i < 2; i++) await scene.look(again);
    assert.equal(await scene.look(again), undefined);
    assert.deepEqual(Buffer.from(await copy.read(last)), Buffer.from(right));
    await scene.close();
  });

  test(`${which} the key no later segment than the journal counts is copied, and each that it counts is`, async () => {
    const scene = await Scene.open();
    const { shipped, planted, copy } = scene;
    const shipper = scene.shipper();
    await scene.goOn(shipper);
    const { last, next } = await namesOf(shipped, 'activity');
    const bytes = await shipped.read(last);
    const header = decodeHeader(bytes);
    assert.ok(typeof header !== 'string');
    const { firstSeq } = header;
    const forged = (at: number): Uint8Array =>
      Buffer.concat([encodeHeader({ ...header, firstSeq: at }), prng(5).bytes(bytes.length - 52)]);
    const between = last.replace(/[0-9]{12}/, (digits) => String(firstSeq + 2).padStart(digits.length, '0'));
    planted.contents.set(next, forged(firstSeq + 8));
    planted.contents.set(between, forged(firstSeq + 2));
    for (let time = 0; time < 2; time++) assert.equal(await scene.look(scene.follower(hasKey)), undefined);
    assert.ok(!copy.contents.has(next) && !copy.contents.has(between));
    planted.contents.delete(next);
    await scene.goOn(shipper);
    const follower = scene.follower(hasKey);
    assert.equal(await scene.look(follower), undefined);
    assert.deepEqual(Buffer.from(await copy.read(next)), Buffer.from(await shipped.read(next)));
    assert.equal(await scene.transactionsHere(), transactionsIn(follower.shipped ?? assert.fail()));
    await scene.close();
  });
}

test('without the key a segment that claims the records of later ones hides none of them', async () => {
  const scene = await Scene.open();
  const { shipped, planted, copy } = scene;
  const shipper = scene.shipper();
  for (let i = 0; i < 3; i++) await scene.goOn(shipper);
  const names = (await shipped.list(store)).filter((name) => name.startsWith('activity-')).sort();
  const segments = names.map((name) => `${store}/${name}`);
  const [first = '', ...later] = segments;
  assert.ok(later.length >= 2);
  const bytes = await shipped.read(first);
  const header = decodeHeader(bytes);
  assert.ok(typeof header !== 'string');
  for (const records of [header.records + 1, 1_000_000_000]) {
    const forged = encodeHeader({ ...header, epoch: 9, records });
    planted.contents.set(first.replace(/[0-9]+$/, '9'), Buffer.concat([forged, bytes.slice(forged.length)]));
    copy.contents.clear();
    await scene.look(scene.follower(false));
    for (const name of segments) {
      assert.deepEqual(Buffer.from(await copy.read(name)), Buffer.from(await shipped.read(name)), name);
    }
  }
  // One that is gone is missed, as long as no key says more.
  planted.contents.clear();
  planted.contents.set(later.at(-1) ?? '', garbage);
  copy.contents.clear();
  const follower = scene.follower(false);
  for (let i = 0; i < 2; i++) {
    assert.match((await scene.look(follower)) ?? '', /segments of its activity log are there, and the journal counts/);
  }
  await scene.close();
});

test('what lies there under the name of a coming file is replaced by shipping, and what was cut is shipped again', async () => {
  const scene = await Scene.open();
  const { shipped } = scene;
  await scene.goOn(scene.shipper());
  for (const kind of ['snapshot', 'log', 'activity']) {
    const { next } = await namesOf(shipped, kind);
    await shipped.replace(next, garbage);
  }
  const shipper = scene.shipper();
  await scene.goOn(shipper);
  const follower = scene.follower(true);
  assert.equal(await scene.look(follower), undefined);
  for (const kind of ['points.kms', 'log']) {
    const name = kind === 'log' ? (await namesOf(shipped, kind)).last : kind;
    const bytes = await shipped.read(name);
    await shipped.replace(name, bytes.slice(0, bytes.length - 10));
    await assert.rejects(scene.goOn(shipper), KmsError, name);
    if (kind === 'points.kms') {
      // All that this file had is still at the appliance.
      await scene.goOn(shipper);
      assert.equal(await scene.look(scene.follower(true)), undefined);
      const { system, tenant } = scene.appliance;
      assert.equal(await scene.transactionsHere(), system.status().sequence + tenant.status().sequence);
    }
  }
  await scene.close();
});
