// A fault at every step of a tenant's rekey, on a simulated disk: the seal and the store always open together,
// everything acknowledged is there, and after resuming no file is left under an old key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { finishRekey, isUnfinished } from '../../src/appliance/rekey.ts';
import { SealKeeper, sealInFiles } from '../../src/custody/seal-keeper.ts';
import { sealFile } from '../../src/platform/data-dir.ts';
import { openSeal, sealFor } from '../../src/seal/seal.ts';
import { makeCustodian } from '../../src/seal/slot.ts';
import type { ChainedActivity, Store } from '../../src/store/port.ts';
import { activityInput, type NoteTables } from '../store/contract.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import { createTestStore, openEmbedded, testDir, testOptions } from '../support/embedded-store.ts';
import { type Prng, prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';

const secret = new Uint8Array(32).fill(9);
const before = 11;
const limits = { segmentRecords: 5, checkpointBytes: 4096 };

interface Opened {
  readonly keeper: SealKeeper;
  readonly store: Store<NoteTables>;
}

function keeperOf(files: SimFiles, generator: Prng, bytes: Uint8Array): SealKeeper {
  return new SealKeeper(
    openSeal(bytes, secret, (length) => generator.bytes(length)),
    sealInFiles(files, '/nowhere'),
  );
}

async function open(files: SimFiles, generator: Prng): Promise<Opened> {
  const keeper = keeperOf(files, generator, await files.read(sealFile));
  const store = await openEmbedded(testOptions(files, generator, { keys: keeper.keysFor(testDir), limits }));
  return { keeper, store };
}

async function make(files: SimFiles, generator: Prng): Promise<void> {
  const seal = sealFor([makeCustodian('keyfile', secret)], (length) => generator.bytes(length)).withStore(testDir);
  await files.replace(sealFile, seal.toBytes());
  await createTestStore(files, generator, { keys: seal.keysFor(testDir) });
}

async function write(store: Store<NoteTables>, number: number): Promise<void> {
  await store.transaction((tx) => {
    tx.notes.add(`note ${number}`, 'x'.repeat(200));
    tx.record(activityInput(`act_${String(number).padStart(26, '0')}`));
  });
}

async function check({ store }: Opened, acknowledged: number): Promise<number> {
  const notes = await store.transaction((tables) => tables.notes.all());
  assert.ok(notes.length >= acknowledged, `${notes.length} of ${acknowledged} acknowledged are there`);
  assert.deepEqual(
    notes.map(({ name }) => name),
    notes.map((_, at) => `note ${at + 1}`),
  );
  let records = 0;
  for await (const { record } of store.activity.read(1)) assert.equal(record.seq, ++records);
  assert.equal(records, notes.length);
  const found = await store.activity.search({ ringname: 'payroll' }, { limit: 1000 });
  assert.equal(found.items.length, records);
  return notes.length;
}

async function* readAll(store: Store<NoteTables>): AsyncGenerator<ChainedActivity> {
  yield* store.activity.read(1);
}

async function rekey({ keeper, store }: Opened): Promise<void> {
  if (!isUnfinished(keeper, testDir)) await keeper.change((seal) => seal.withNextEpoch(testDir));
  await finishRekey({ seal: keeper, dir: testDir, store, resealKeys: async () => {} });
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

async function prepare(generator: Prng): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  await make(files, generator);
  const { store } = await open(files, generator);
  for (let n = 1; n <= before; n++) await write(store, n);
  await store.checkpoint();
  await write(store, before + 1);
  await store.close();
  return files;
}

/** Epochs that the recoveries reached. */
const reachedEpochs = new Set<number>();

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const files = breaking(base, fault, generator);
  let acknowledged = before + 1;
  const work = async (): Promise<void> => {
    const opened = await open(files, generator);
    const rekeyed = done(files, fault, rekey(opened));
    // Others write and read meanwhile.
    for (let n = 0; n < 3 && !files.crashed; n++) {
      if (await done(files, fault, write(opened.store, acknowledged + 1))) acknowledged++;
      if (!files.crashed) await done(files, fault, check(opened, acknowledged));
    }
    await rekeyed;
    await opened.store.close();
  };
  await done(files, fault, work());
  const came = mend(files, fault);

  const after = files.restart({ prng: generator });
  let opened = await open(after, generator);
  const found = await check(opened, acknowledged);
  assert.ok(found <= acknowledged + 1);
  await rekey(opened);
  const epochs = opened.keeper.current.epochsOf(testDir);
  const epoch = opened.keeper.keysFor(testDir).epoch;
  reachedEpochs.add(epoch);
  assert.deepEqual(epochsOnDisk(after), [epoch]);
  assert.deepEqual(
    epochs.map(({ retired }) => retired),
    epochs.map((each) => each.epoch !== epoch),
  );
  await opened.store.close();
  const last = after.restart({ prng: generator });
  opened = await open(last, generator);
  await check(opened, found);
  await opened.store.close();
  return came;
}

test('a fault at every step of a rekey', async (context) => {
  const points = await crashSweep({ file: import.meta.filename, seeds: 1, prepare, attempt });
  reached(context, 'rekey', points);
  if (points > 1) assert.deepEqual([...reachedEpochs].sort(), [2, 3], 'cut off before and after it counted');
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
  const hold = await store.hold(false);
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
  const first = `${testDir}/activity-000000000001.kms`;
  const epoch = (): number => Buffer.from(files.disk.names.get(first)?.data ?? []).readUInt16BE(10);
  while (!files.disk.names.has(`${first}.tmp`) && epoch() === 1) await new Promise((resolve) => setImmediate(resolve));
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
