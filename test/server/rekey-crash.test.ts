// A crash at every step of new keys for a tenant, on a simulated disk: the seal and the store always open together, everything that was
// acknowledged is there, and going on ends with no file under an old key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSeal, openSeal } from '../../src/seal/seal.ts';
import { sealFile } from '../../src/server/data-dir.ts';
import { finishRekey, isUnfinished } from '../../src/server/rekey.ts';
import { SealKeeper } from '../../src/server/seal-keeper.ts';
import { openEmbedded } from '../../src/store/embedded.ts';
import type { ChainedActivity, Store } from '../../src/store/port.ts';
import { activityInput, type NoteTables } from '../store/contract.ts';
import { createTestStore, testDir, testOptions } from '../support/embedded-store.ts';
import { type Prng, prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';

const secret = new Uint8Array(32).fill(9);
const limits = { segmentRecords: 5, checkpointBytes: 4096 };
const sealName = `./${sealFile}`;

interface Opened {
  readonly keeper: SealKeeper;
  readonly store: Store<NoteTables>;
}

/** The seal's file lies beside the stores. */
function keeperOf(files: SimFiles, generator: Prng, bytes: Uint8Array): SealKeeper {
  const random = (length: number): Uint8Array => generator.bytes(length);
  const inRoot = {
    ...filesOf(files),
    replace: (_name: string, content: Uint8Array | AsyncIterable<Uint8Array>) => files.replace(sealName, content),
  };
  return new SealKeeper(openSeal(bytes, secret, random), inRoot);
}

/** Bound, since a class's methods are not its own. */
function filesOf(files: SimFiles): ConstructorParameters<typeof SealKeeper>[1] {
  return {
    list: (dir) => files.list(dir),
    exists: (name) => files.exists(name),
    size: (name) => files.size(name),
    read: (name) => files.read(name),
    readAt: (name, offset, length) => files.readAt(name, offset, length),
    openAppend: (name, create) => files.openAppend(name, create),
    replace: (name, bytes) => files.replace(name, bytes),
    remove: (name) => files.remove(name),
    makeDir: (dir) => files.makeDir(dir),
    removeDir: (dir) => files.removeDir(dir),
    syncDir: (dir) => files.syncDir(dir),
  };
}

async function open(files: SimFiles, generator: Prng): Promise<Opened> {
  const keeper = keeperOf(files, generator, await files.read(sealName));
  const store = await openEmbedded(testOptions(files, generator, { keys: keeper.keysFor(testDir), limits }));
  return { keeper, store };
}

async function make(files: SimFiles, generator: Prng): Promise<void> {
  const seal = createSeal(secret, (length) => generator.bytes(length)).withStore(testDir);
  await files.replace(sealName, seal.toBytes());
  await createTestStore(files, generator, { keys: seal.keysFor(testDir) });
}

async function write(store: Store<NoteTables>, number: number): Promise<void> {
  await store.transaction(async (tx) => {
    await tx.notes.add(`note ${number}`, 'x'.repeat(200));
    tx.record(activityInput(`act_${String(number).padStart(26, '0')}`));
  });
}

async function check({ store }: Opened, acknowledged: number): Promise<number> {
  const notes = await store.peek((tables) => tables.notes.all());
  assert.ok(notes.length >= acknowledged, `${notes.length} of ${acknowledged} acknowledged are there`);
  assert.deepEqual(
    notes.map(({ name }) => name),
    notes.map((_, at) => `note ${at + 1}`),
  );
  let records = 0;
  for await (const { record } of store.readActivity(1)) assert.equal(record.seq, ++records);
  assert.equal(records, notes.length);
  const found = await store.searchActivity({ ringname: 'payroll' }, { limit: 1000 });
  assert.equal(found.items.length, records);
  return notes.length;
}

async function* readAll(store: Store<NoteTables>): AsyncGenerator<ChainedActivity> {
  yield* store.readActivity(1);
}

async function rekey({ keeper, store }: Opened): Promise<void> {
  if (!isUnfinished(keeper, testDir)) await keeper.change((seal) => seal.withNextEpoch(testDir));
  await finishRekey({ seal: keeper, dir: testDir, store });
}

/** The key epochs that the files name. */
function epochsOnDisk(files: SimFiles): number[] {
  const epochs = new Set<number>();
  for (const [name, { data }] of files.disk.names) {
    if (!name.startsWith(testDir) || !name.endsWith('.kms')) continue;
    epochs.add(Buffer.from(data).readUInt16BE(name.includes('activity') ? 10 : 12));
  }
  return [...epochs].sort();
}

interface Life {
  readonly crashed: boolean;
  readonly epoch: number;
}

async function life(seed: number, crashAt: number | undefined): Promise<Life> {
  const generator = prng(seed);
  let files = new SimFiles({ prng: generator });
  await make(files, generator);
  let opened = await open(files, generator);
  let written = 0;
  for (; written < 17; ) await write(opened.store, ++written);
  await opened.store.checkpoint();
  for (; written < 20; ) await write(opened.store, ++written);
  await opened.store.close();

  files = files.restart({ prng: generator, ...(crashAt === undefined ? {} : { crashAt }) });
  let acknowledged = written;
  try {
    opened = await open(files, generator);
    const { store } = opened;
    const done = rekey(opened).then(
      () => true,
      () => false,
    );
    // Others write and read meanwhile.
    for (let n = 0; n < 6 && !files.crashed; n++) {
      await write(store, ++written).then(
        () => {
          acknowledged = written;
        },
        (error: unknown) => {
          if (!files.crashed) throw error;
        },
      );
      if (!files.crashed)
        await check(opened, acknowledged).catch((error: unknown) => !files.crashed && Promise.reject(error));
    }
    if (!(await done) && !files.crashed) throw new Error('the rekey failed without a crash');
    await store.close();
  } catch (error) {
    if (!files.crashed) throw error;
  }
  const { crashed } = files;

  files = files.restart({ prng: generator });
  opened = await open(files, generator);
  acknowledged = await check(opened, acknowledged);
  await rekey(opened);
  const epochs = opened.keeper.current.epochsOf(testDir);
  const epoch = opened.keeper.keysFor(testDir).epoch;
  assert.deepEqual(epochsOnDisk(files), [epoch]);
  assert.deepEqual(
    epochs.map(({ retired }) => retired),
    epochs.map((each) => each.epoch !== epoch),
  );
  await check(opened, acknowledged);
  await opened.store.close();
  opened = await open(files.restart({ prng: generator }), generator);
  await check(opened, acknowledged);
  await opened.store.close();
  return { crashed, epoch };
}

test('a crash at every step of a rekey', async (context) => {
  const seeds = Math.max(1, Math.min(20, Number(process.env.KMS_CRASH_RUNS ?? 0) / 500));
  let crashes = 0;
  const reached = new Set<number>();
  for (let seed = 1; seed <= seeds; seed++) {
    for (let crashAt = 1; ; crashAt++) {
      try {
        const { crashed, epoch } = await life(seed, crashAt);
        reached.add(epoch);
        if (!crashed) break;
        crashes++;
      } catch (error) {
        throw new Error(`seed ${seed}, crash at step ${crashAt}: ${error instanceof Error ? error.message : error}`, {
          cause: error,
        });
      }
    }
  }
  context.diagnostic(`${crashes} crashes`);
  assert.ok(crashes > 100, `${crashes} crashes`);
  assert.deepEqual([...reached].sort(), [2, 3], 'cut off before and after it counted');
});

test('readers in the middle of a segment, and copies that are being taken, are not disturbed', async () => {
  const generator = prng(4);
  const files = new SimFiles({ prng: generator });
  await make(files, generator);
  const opened = await open(files, generator);
  const { store } = opened;
  for (let number = 1; number <= 23; number++) await write(store, number);
  await store.checkpoint();
  await check(opened, 23);
  const reading = readAll(store);
  assert.equal((await reading.next()).value?.record.seq, 1);
  const hold = await store.hold?.(false);
  let done = false;
  const rekeyed = rekey(opened).then(() => {
    done = true;
  });
  for (let n = 0; n < 200; n++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(done, false, 'no file is replaced while somebody copies them');
  assert.ok(epochsOnDisk(files).includes(1));
  await check(opened, 23);
  hold?.release();
  await rekeyed;
  let last = 1;
  for (let next = await reading.next(); !next.done; next = await reading.next()) last = next.value.record.seq;
  assert.equal(last, 23);
  await check(opened, 23);
  await store.close();
});

test('a store that is closed meanwhile stops after the file at hand, and a full disk fails the rekey and nothing else', async () => {
  const generator = prng(5);
  const files = new SimFiles({ prng: generator });
  await make(files, generator);
  let opened = await open(files, generator);
  for (let number = 1; number <= 40; number++) await write(opened.store, number);
  await opened.store.checkpoint();
  const stopped = assert.rejects(rekey(opened), { code: 'unavailable' });
  while (!files.disk.names.has(`${testDir}/activity-000000000001.kms.tmp`))
    await new Promise((resolve) => setImmediate(resolve));
  await opened.store.close();
  await stopped;
  assert.deepEqual(epochsOnDisk(files), [1, 2]);

  opened = await open(files, generator);
  files.capacity = files.disk.used + 100;
  await assert.rejects(rekey(opened), { code: 'ENOSPC' });
  await check(opened, 40);
  files.capacity = Number.POSITIVE_INFINITY;
  await rekey(opened);
  assert.deepEqual(epochsOnDisk(files), [2]);
  await check(opened, 40);
  await opened.store.close();
});
