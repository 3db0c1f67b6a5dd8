// A fault at every step of following and of taking over, on the standby's disk and on the shipped one: when repeated,
// it takes over with everything acknowledged, exactly once, and whenever the standby's directory can be served, the
// fence that excludes the primary is in place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { confirmStop, type Fenced, needNoFence, raiseFence, readFence, stoppedWith } from '../../src/backup/fence.ts';
import { Follower } from '../../src/backup/follow.ts';
import type { ShippedState } from '../../src/backup/known-state.ts';
import { Shipper } from '../../src/backup/ship.ts';
import { parseShippedDirectory, shippedDirectory } from '../../src/backup/ship-journal.ts';
import { copiesDir, takeOver } from '../../src/backup/take-over.ts';
import { sealFile, systemDir } from '../../src/platform/data-dir.ts';
import { currentEpoch } from '../../src/platform/epoch.ts';
import { openSeal, type Seal } from '../../src/seal/seal.ts';
import type { Files } from '../../src/store/files.ts';
import { testWorld } from '../support/context.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, copyOf, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import { type Prng, prng } from '../support/prng.ts';
import { createSealedAppliance, numbersIn, openSealedAppliance } from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const secret = new Uint8Array(32).fill(1);
const id = 'ab'.repeat(16);

/** The files below a directory. */
function below(files: Files, prefix: string): Files {
  const at = (name: string): string => (name === '.' ? prefix : `${prefix}/${name}`);
  return {
    list: (dir) => files.list(at(dir)),
    exists: (name) => files.exists(at(name)),
    size: (name) => files.size(at(name)),
    read: (name, most) => files.read(at(name), most),
    readAt: (name, offset, length) => files.readAt(at(name), offset, length),
    openAppend: (name, create) => files.openAppend(at(name), create),
    replace: (name, bytes) => files.replace(at(name), bytes),
    remove: (name) => files.remove(at(name)),
    makeDir: (dir) => files.makeDir(at(dir)),
    removeDir: (dir) => files.removeDir(at(dir)),
    syncDir: (dir) => files.syncDir(at(dir)),
  };
}

interface Base {
  readonly files: SimFiles;
  readonly shipped: SimFiles;
  readonly seal: Seal;
}

async function prepare(generator: Prng): Promise<Base> {
  const files = new SimFiles({ prng: generator });
  const shipped = new SimFiles({ prng: generator });
  await createSealedAppliance(files, secret, generator);
  const appliance = await openSealedAppliance(files, secret, generator);
  while ((await appliance.write()) < 10);
  await shipperOf(appliance, shipped).ship();
  const seal = appliance.seal.current;
  await appliance.close();
  return { files, shipped, seal };
}

type Sealed = Awaited<ReturnType<typeof openSealedAppliance>>;

function shipperOf(appliance: Sealed, shipped: SimFiles): Shipper {
  return new Shipper({ ...appliance, epoch: 1, now: () => 2000, window: 1000, target: () => shipped });
}

const open = async (bytes: Uint8Array, generator: Prng): Promise<Seal> =>
  openSeal(bytes, secret.slice(), (length) => generator.bytes(length));

interface Place {
  readonly data: SimFiles;
  readonly shipped: SimFiles;
  readonly directory: string;
  readonly generator: Prng;
}

function followerOf(
  { data, shipped, directory, generator }: Omit<Place, 'shipped'> & { readonly shipped: Files },
  proven?: ShippedState,
  source = shipped,
): Follower {
  const known = parseShippedDirectory(directory);
  assert.ok(known);
  return new Follower(
    {
      directories: async () => [known],
      copies: async () => [known],
      source: () => source,
      copy: (name) => below(data, `${copiesDir}/${name}`),
      dropOthers: async () => {},
      openSeal: (bytes) => open(bytes, generator),
      wasm: sqlWasm,
      uptime: () => 0,
      now: () => 3000,
      room: async () => Number.MAX_SAFE_INTEGER,
      onProven: async () => {},
      onReach: async () => {},
    },
    { proven },
  );
}

function takesOver(place: Place, follower: Follower, pause: () => Promise<unknown>) {
  const { data, shipped, generator } = place;
  return takeOver(
    {
      ...{ root: '/nowhere', data, follower, id, host: 'second', wasm: sqlWasm, pause },
      world: testWorld({ now: 3_000_000 }, generator.int(1e6)),
      source: () => shipped,
      copy: (name) => below(data, `${copiesDir}/${name}`),
      from: 'shipped',
      directories: async () => [],
      all: async () => [],
      openBeside: async () => assert.fail('there is no other life'),
    },
    { wait: 1000, fence: true, acceptOlder: false },
  );
}

const lastNumber = 16;

function attemptOn(side: 'data' | 'shipped') {
  return async (base: Base, fault: Fault, generator: Prng): Promise<boolean> => {
    const directory = shippedDirectory(base.seal.applianceId, 1);
    const files = copyOf(base.files, generator);
    const appliance = await openSealedAppliance(files, secret, generator);
    const plain = { data: new SimFiles({ prng: generator }), shipped: copyOf(base.shipped, generator) };
    const place: Place = { ...plain, [side]: breaking(plain[side], fault, generator), directory, generator };
    const fencedAt = (shipped: SimFiles): Fenced => ({
      ...{ files: shipped, directory, keys: appliance.seal.keysFor(systemDir) },
    });
    let shipper = shipperOf(appliance, place.shipped);
    let written = 10;
    const writeUpTo = async (number: number): Promise<void> => {
      while (written < number) written = await appliance.write();
    };
    /** The former primary's reaction to the fence. */
    const stop = async (shipped: SimFiles): Promise<void> => {
      // A fence that a crash left half written does not count yet.
      const fence = await readFence(fencedAt(shipped)).catch(() => undefined);
      if (!fence) return;
      assert.equal(fence.by, id);
      if ((await stoppedWith(fencedAt(shipped), fence)) !== undefined) return;
      while (await shipper.ship());
      await confirmStop(fencedAt(shipped), fence, 2500);
    };
    const work = async (): Promise<void> => {
      const follower = followerOf(place);
      await follower.look();
      await writeUpTo(13);
      await appliance.tenant.checkpoint();
      await shipper.ship();
      await follower.look();
      await writeUpTo(lastNumber);
      const taken = await takesOver(place, follower, () => stop(place.shipped));
      assert.equal(taken.isComplete, true);
      assert.equal(follower.proven?.point.at, 2000);
    };
    const broken = place[side];
    const finished = await done(broken, fault, work());
    const came = mend(broken, fault);

    const after: Place = {
      ...place,
      data: place.data.restart({ prng: generator }),
      shipped: place.shipped.restart({ prng: generator }),
    };
    shipper = shipperOf(appliance, after.shipped);
    const isTaken = await after.data.exists(sealFile);
    assert.ok(isTaken || !finished, 'it was answered and is not there');
    if (isTaken) assert.equal((await readFence(fencedAt(after.shipped)))?.by, id, 'both could serve');
    else {
      await writeUpTo(lastNumber);
      const taken = await takesOver(after, followerOf(after), () => stop(after.shipped));
      assert.equal(taken.isComplete, true);
    }
    const raised = await readFence(fencedAt(after.shipped));
    assert.ok(raised);
    // The former primary refuses from now on, whether or not it can reach the directory.
    const opening = { files, shipped: [fencedAt(after.shipped)], takesBack: false };
    await assert.rejects(needNoFence(opening), { code: 'refused', message: /^a standby on second took over at / });
    await assert.rejects(needNoFence({ ...opening, shipped: [] }), { code: 'refused' });
    assert.deepEqual((await needNoFence({ ...opening, takesBack: true }))?.from, raised);
    // A third one can't take over from it either.
    const third = raiseFence(fencedAt(after.shipped), { ...raised, by: 'cd'.repeat(16) }, async () => {});
    await assert.rejects(third, { code: 'refused', message: /^another standby, on second, took over at / });

    const successor = await openSealedAppliance(after.data, secret, generator);
    assert.equal((await numbersIn(successor.tenant)).length, lastNumber);
    const { items } = await successor.tenant.activity.search({ action: 'system.restore' }, { limit: 10 });
    assert.equal(items.length, 1);
    assert.equal((await successor.system.transaction(({ settings }) => currentEpoch(settings))).number, raised.epoch);
    await successor.write();
    await successor.close();
    await appliance.close();
    return came;
  };
}

/** The files of `files`, of which the `nth` read finds nothing, and so do all after it unless it fails `once`. */
function vanishing(files: Files, nth: number, once: boolean): { files: Files; hasFailed(): boolean } {
  let reads = 0;
  let failed = 0;
  const look =
    <A extends unknown[], R>(read: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      reads++;
      if (once ? reads === nth : reads >= nth) {
        failed++;
        throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
      }
      return read(...args);
    };
  const vanished: Pick<Files, 'list' | 'exists' | 'size' | 'read' | 'readAt'> = {
    list: look((dir) => files.list(dir)),
    exists: (name) => files.exists(name),
    size: look((name) => files.size(name)),
    read: look((name, most) => files.read(name, most)),
    readAt: look((name, offset, length) => files.readAt(name, offset, length)),
  };
  // Cast: a look changes nothing there.
  return { files: vanished as Files, hasFailed: () => failed > 0 };
}

test('a file that is gone when it is to be read, since the appliance ships meanwhile, is looked for again', async () => {
  const generator = prng(7);
  const { shipped, seal } = await prepare(generator);
  const directory = shippedDirectory(seal.applianceId, 1);
  let nth = 0;
  for (let hasFailed = true; hasFailed; nth++) {
    const source = vanishing(shipped, nth + 1, true);
    const data = new SimFiles({ prng: generator });
    const follower = followerOf({ data, shipped, directory, generator }, undefined, source.files);
    await follower.look();
    assert.equal(follower.proven?.point.at, 2000, `read ${nth}`);
    hasFailed = source.hasFailed();
  }
  assert.ok(nth > 8, `only ${nth} reads`);
  const gone = vanishing(shipped, 3, false);
  const data = new SimFiles({ prng: generator });
  await assert.rejects(followerOf({ data, shipped, directory, generator }, undefined, gone.files).look(), {
    code: 'ENOENT',
  });
});

test('a fault at every step of following and taking over', async (context) => {
  const kinds = ['crash', 'error'] as const;
  let points = 0;
  for (const side of ['data', 'shipped'] as const) {
    points += await crashSweep({
      file: import.meta.filename,
      seeds: 1,
      every: 3,
      kinds,
      prepare,
      attempt: attemptOn(side),
    });
  }
  reached(context, 'standby', points);
});
