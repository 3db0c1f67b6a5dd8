// A disk that fails or fills up under a running store: a failed operation reports it and leaves nothing behind, and the
// store recovers by itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeCheckpoint } from '../../src/store/checkpoint.ts';
import { FileJournal } from '../../src/store/file-journal.ts';
import type { Store, StoreEvent } from '../../src/store/port.ts';
import { headerLength } from '../../src/store/store-files.ts';
import { simStore, testDir } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import type { Step } from '../support/sim-files.ts';
import { ChangingKeys, testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';
import { activityInput, type NoteTables } from './contract.ts';

async function setUp() {
  const later: (() => void)[] = [];
  const events: StoreEvent[] = [];
  const made = await simStore({
    later: (_milliseconds, run) => later.push(run),
    onEvent: (event) => events.push(event),
  });
  const kinds = () => events.map((event) => event.kind);
  const retry = async () => {
    for (const run of later.splice(0)) run();
    // A request during a recovery waits for it.
    await made.store.transaction(() => undefined).catch(() => undefined);
  };
  return { ...made, events, kinds, retry, later };
}

const add = (store: Store<NoteTables>, name: string) =>
  store.transaction((tx) => {
    tx.notes.add(name);
    tx.record(activityInput(`act_${name}`));
  });

const names = (store: Store<NoteTables>) => store.transaction((tx) => tx.notes.all().map((note) => note.name));

const once = (wanted: Step, code: string) => {
  let done = false;
  return (step: Step) => {
    if (done || step !== wanted) return undefined;
    done = true;
    return code;
  };
};

// A write that was refused as a whole may be repeated; after any other failure the disk's content is unknown.
for (const [step, code, told] of [
  ['append', 'EIO', 'internal'],
  ['append', 'ENOSPC', 'unavailable'],
  ['append', 'EDQUOT', 'unavailable'],
  ['append', 'EFBIG', 'unavailable'],
  ['sync', 'EFBIG', 'unavailable'],
  ['sync', 'EIO', 'internal'],
] as const) {
  test(`a failed ${step} (${code}) fails its whole group, and the next request is served again`, async () => {
    const { store, files, open, kinds } = await setUp();
    await add(store, 'before');
    files.failure = once(step, code);
    const group = await Promise.allSettled([add(store, 'a'), add(store, 'b'), names(store)]);
    assert.deepEqual(
      group.map((each) => each.status === 'rejected' && each.reason.code),
      [told, told, told],
    );
    await add(store, 'after');
    assert.deepEqual(await names(store), ['before', 'after']);
    assert.equal(await store.activity.find('act_a'), undefined);
    assert.deepEqual(kinds(), ['write-failed', 'recovered']);
    assert.equal(store.status().writable, true);
    await store.close();
    const again = await open();
    assert.deepEqual(await names(again), ['before', 'after']);
    await again.close();
  });
}

test('a full disk refuses with the reason until there is space again, without a restart', async () => {
  const { store, files, kinds, retry, later } = await setUp();
  await add(store, 'before');
  // Less than what is stored already, so that releasing log space gains nothing; the preallocated space is used up
  // first.
  files.capacity = 100;
  await add(store, 'in the room');
  await assert.rejects(add(store, 'a'.repeat(5000)), {
    code: 'unavailable',
    message: 'the request could not be made durable and was taken back: the disk is full',
  });
  await retry();
  assert.equal(store.status().writable, false);
  assert.match(store.status().reason ?? '', /the disk is full/);
  await assert.rejects(add(store, 'b'), { code: 'unavailable', message: /the disk is full/ });
  await assert.rejects(names(store), { code: 'unavailable' });
  await assert.rejects(store.activity.search({}, { limit: 1 }), { code: 'unavailable' });
  await assert.rejects(store.checkpoint(), { code: 'unavailable' });
  assert.equal(later.length, 1, 'one try at a time is waiting');
  files.capacity = Number.POSITIVE_INFINITY;
  await retry();
  assert.equal(store.status().writable, true);
  assert.equal(store.status().reason, undefined);
  await add(store, 'c');
  assert.deepEqual(await names(store), ['before', 'in the room', 'c']);
  assert.equal(kinds()[0], 'write-failed');
  assert.equal(kinds().at(-1), 'recovered');
  assert.equal(store.status().activityCount, 3);
  await store.close();
});

test('a long log is not written anew for want of room at an fsync: a little room is enough to go on', async () => {
  const { store, files, retry } = await setUp();
  for (let i = 0; i < 20; i++) await add(store, `n${i}`);
  const wanted = await names(store);
  files.failure = (step) => (step === 'sync' ? 'ENOSPC' : undefined);
  await assert.rejects(add(store, 'lost'), { code: 'unavailable' });
  files.failure = undefined;
  files.capacity = files.disk.used + 200;
  await retry();
  assert.equal(store.status().writable, true);
  assert.deepEqual(await names(store), wanted);
  await store.close();
});

test('what was refused for want of room, and could not be taken back, is no refusal: it may have been done', async () => {
  const { store, files } = await setUp();
  await add(store, 'before');
  const fails = once('append', 'ENOSPC');
  files.failure = (step) => (step === 'truncate' ? 'EIO' : fails(step));
  await assert.rejects(add(store, 'a'), { code: 'internal' });
  files.failure = undefined;
  await store.close();
});

test('transactions that ran on a state that was lost fail too, also one that is in the middle', async () => {
  const { store, files } = await setUp();
  files.failure = once('sync', 'EIO');
  let mayGoOn = false;
  const first = add(store, 'a');
  const second = store.transactionInSlices(function* (tx) {
    const seen = tx.notes.get('a');
    while (!mayGoOn) yield;
    tx.notes.add(`saw ${seen?.name}`);
  });
  await assert.rejects(first, { code: 'internal' });
  const third = add(store, 'c');
  mayGoOn = true;
  await assert.rejects(second, { code: 'internal' });
  await third;
  assert.deepEqual(await names(store), ['c']);
  await store.close();
});

test('a store that cannot be recovered stays refused and keeps trying', async () => {
  const { store, files, retry, kinds } = await setUp();
  await add(store, 'before');
  files.failure = () => 'EIO';
  await assert.rejects(add(store, 'a'), { code: 'internal' });
  for (let i = 0; i < 3; i++) await retry();
  assert.deepEqual(kinds(), ['write-failed', 'recovery-failed'], 'said once, not at each try');
  await assert.rejects(add(store, 'b'), { code: 'unavailable', hint: /by itself/ });
  files.failure = undefined;
  await retry();
  assert.deepEqual(await names(store), ['before']);
  await store.close();
});

test('a failed checkpoint loses nothing and is tried again', async () => {
  const { store: first, files, open, kinds } = await setUp();
  let store = first;
  for (let i = 0; i < 3; i++) await add(store, `n${i}`);
  for (const step of ['create', 'append', 'sync', 'rename', 'syncDir', 'read'] as const) {
    // The steps of the new log file come first; the snapshot's are the later ones.
    for (let skip = 0; skip < 3; skip++) {
      let left = skip;
      files.failure = (each) => (each === step && left-- === 0 ? 'ENOSPC' : undefined);
      await store.checkpoint().catch((error: Error) => assert.match(error.message, /ENOSPC|durable/));
      files.failure = undefined;
      const before = await names(store);
      await add(store, `${step}${skip}`);
      await store.close();
      store = await open();
      assert.deepEqual(await names(store), [...before, `${step}${skip}`]);
    }
  }
  assert.ok(kinds().includes('checkpoint-failed'));
  await store.checkpoint();
  const wanted = await names(store);
  assert.equal(wanted.length, 3 + 18);
  const left = await files.list('tenants/a');
  assert.equal(left.filter((name) => /^(log|snapshot)-/.test(name)).length, 2, left.join());
  await store.close();
  const again = await open();
  assert.deepEqual(await names(again), wanted);
  await again.close();
});

test('checkpoints come by themselves when the log outgrows the snapshot, and bound the log', async () => {
  const { store, kinds, open } = await (async () => {
    const events: StoreEvent[] = [];
    const made = await simStore({
      limits: { checkpointBytes: 10_000, segmentRecords: 50 },
      onEvent: (event) => events.push(event),
    });
    return { ...made, kinds: () => events.map((event) => event.kind) };
  })();
  for (let i = 0; i < 300; i++) await add(store, `n${i}`);
  assert.ok(kinds().length >= 2 && kinds().every((kind) => kind === 'checkpoint'), kinds().join());
  const { logBytes, snapshotBytes, activityBytes, lastCheckpointAt, sequence } = store.status();
  assert.ok(logBytes < 2 * snapshotBytes, `${logBytes} bytes of log, ${snapshotBytes} of snapshot`);
  assert.ok(activityBytes > 0);
  assert.equal(lastCheckpointAt, 1000);
  assert.equal(sequence, 301);
  await store.close();
  const again = await open();
  assert.equal((await names(again)).length, 300);
  assert.equal(again.status().sequence, 301);
  await again.close();
});

test('a checkpoint of a store in which nothing happened does nothing', async () => {
  const { store, files } = await setUp();
  await store.checkpoint();
  // It checks whether the log is still in place.
  const changes = () => files.steps - (files.counts.read ?? 0);
  const before = changes();
  await store.checkpoint();
  assert.equal(changes(), before);
  await store.close();
});

test('requests are served while a checkpoint runs', async () => {
  let finish = () => {};
  const running = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const { store } = await simStore({
    runCheckpoint: async () => {
      await running;
      throw new Error('given up');
    },
  });
  await add(store, 'a');
  const checkpoint = store.checkpoint();
  await add(store, 'b');
  await add(store, 'c');
  finish();
  await assert.rejects(checkpoint, /given up/);
  assert.deepEqual(await names(store), ['a', 'b', 'c']);
  await store.close();
});

test('a checkpoint that was not heard of to its end, though its snapshot stands, is followed by one that is', async () => {
  let isLost = true;
  const { store, files, open } = await simStore({
    runCheckpoint: async (job) => {
      const generator = prng(2);
      const random = (length: number) => generator.bytes(length);
      const journal = new FileJournal({ files, dir: testDir, keys: testStoreKeys() });
      const made = await writeCheckpoint(journal, { wasm: sqlWasm, random }, job);
      if (isLost) throw new Error('lost');
      return made;
    },
  });
  await add(store, 'a');
  for (let i = 0; i < 2; i++) await assert.rejects(store.checkpoint(), /lost/);
  isLost = false;
  // Nothing was written since.
  await store.checkpoint();
  await add(store, 'b');
  await store.checkpoint();
  await store.close();
  const again = await open();
  assert.deepEqual(await names(again), ['a', 'b']);
  await again.close();
});

test('what waits for a checkpoint or a resealing does not begin while the store is closed', async () => {
  let finish = () => {};
  const running = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let begun = 0;
  let ended = 0;
  const { store } = await simStore({
    runCheckpoint: async () => {
      begun++;
      await running;
      ended++;
      throw new Error('given up');
    },
  });
  await add(store, 'a');
  const first = assert.rejects(store.checkpoint(), /given up/);
  while (begun === 0) await new Promise((resolve) => setImmediate(resolve));
  const waiting = [store.checkpoint(), store.reseal(), store.reseal(), store.dropActivity(1)];
  const refused = waiting.map((each) => assert.rejects(each, { code: 'unavailable' }));
  // They wait if the transaction under way is in their way.
  await new Promise((resolve) => setImmediate(resolve));
  const closed = store.close().then(() => assert.equal(ended, 1));
  finish();
  await Promise.all([first, closed, ...refused]);
  assert.equal(begun, 1);
});

test('a write that fails while the store is being closed is repaired before the end of it', async () => {
  const { store, files, open, kinds } = await setUp();
  await add(store, 'a');
  files.failure = once('sync', 'EIO');
  const lost = assert.rejects(add(store, 'b'), { code: 'internal' });
  await store.close();
  const { steps } = files;
  await lost;
  for (let n = 0; n < 30; n++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(files.steps, steps, 'it uses its files after the end');
  assert.deepEqual(kinds(), ['write-failed', 'recovered']);
  const again = await open();
  assert.deepEqual(await names(again), ['a']);
  await again.close();
});

test('files that are held stay as they are if a checkpoint has to drop segments once more', async () => {
  const { store, files } = await simStore({ limits: { segmentRecords: 2 } });
  for (const name of ['a', 'b', 'c', 'd']) await add(store, name);
  files.failure = once('remove', 'EIO');
  await assert.rejects(store.dropActivity(2));
  files.failure = undefined;
  const { files: held, release } = await store.hold(false);
  const content = () => Promise.all(held.map(({ name, bytes }) => files.readAt(name, 0, bytes)));
  const before = await content();
  await store.checkpoint();
  await add(store, 'e');
  await store.checkpoint();
  assert.deepEqual(await content(), before);
  assert.equal(store.status().activityDropped?.seq, 2);
  release();
  await store.close();
});

test('a checkpoint that ends while a resealing looks at the files takes none of them away', async () => {
  const keys = new ChangingKeys();
  let checkpoints = 0;
  const { store, files } = await simStore({ keys, onEvent: () => void checkpoints++ });
  await add(store, 'a');
  keys.epoch = 2;
  const readAt = files.readAt.bind(files);
  files.readAt = async (name, offset, length) => {
    if (checkpoints === 1 && length === headerLength) {
      checkpoints++;
      await add(store, 'b');
      await store.checkpoint();
    }
    return readAt(name, offset, length);
  };
  assert.deepEqual(await store.reseal(), [2]);
  assert.equal(checkpoints, 3);
  await store.close();
});

test('a copy that ends once the store is closed takes no file away', async () => {
  const { store, files } = await simStore();
  await add(store, 'a');
  const held = await store.hold(false);
  assert.ok(held);
  await add(store, 'b');
  await store.checkpoint();
  await store.close();
  const { steps } = files;
  held.release();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(files.steps, steps);
  assert.ok(await Promise.all(held.files.map(({ name }) => files.read(name))));
});

test('a store that was being made when the machine crashed can be made again', async () => {
  const { files } = await setUp();
  for (const name of [...files.disk.names.keys()]) if (name.includes('snapshot')) files.disk.names.delete(name);
  const { createTestStore } = await import('../support/embedded-store.ts');
  const { prng } = await import('../support/prng.ts');
  // The log holds the migrations' record: it is not left over from a creation.
  await assert.rejects(createTestStore(files, prng(3)), { code: 'refused' });
  for (const inode of files.disk.names.values()) inode.truncate(104);
  await createTestStore(files, prng(3));
});
