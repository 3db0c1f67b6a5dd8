// Damage to any byte of any file of a store is detected: no wrong data are served, and none are dropped silently.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { logHeaderLength } from '../../src/store/log-format.ts';
import type { StoreEvent } from '../../src/store/port.ts';
import { openEmbedded, simStore, testDir, testOptions } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { Inode, SimDisk } from '../support/sim-disk.ts';
import { SimFiles } from '../support/sim-files.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { type Content, sampleStore, writeNote } from '../support/store-sample.ts';

interface Found {
  readonly notes: number;
  readonly activity: number;
  readonly events: readonly StoreEvent[];
}

/** Opens the files and reads everything. */
async function look(content: Content): Promise<Found> {
  const generator = prng(1);
  const names = [...content].map(([name, bytes]) => {
    const inode = new Inode();
    inode.append(bytes);
    return [name, inode] as const;
  });
  const files = new SimFiles({ prng: { ...generator, int: () => 0 }, disk: new SimDisk(new Map(names)) });
  const events: StoreEvent[] = [];
  const store = await openEmbedded(testOptions(files, generator, { onEvent: (event) => events.push(event) }));
  try {
    const notes = await store.transaction((tx) => tx.notes.all());
    const ids: string[] = [];
    for await (const { record } of store.activity.read(1)) ids.push(record.id);
    assert.deepEqual(
      ids,
      notes.map((note) => note.name.replace('n', 'act_')),
    );
    return { notes: notes.length, activity: ids.length, events };
  } finally {
    await store.close();
  }
}

const isCorrupt = (name: string) => (error: unknown) => {
  assert.ok(error instanceof KmsError && error.code === 'corrupt', String(error));
  assert.ok(
    error.message.includes(name) || error.message.includes('activity'),
    `${error.message} does not name ${name}`,
  );
  assert.ok(error.hint);
  return true;
};

function changed(content: Content, name: string, change: (bytes: Uint8Array) => Uint8Array): Content {
  const bytes = content.get(name);
  if (!bytes) throw new Error(`no ${name}`);
  return new Map(content).set(name, change(bytes.slice()));
}

test('the sample holds each kind of file', async () => {
  const { content, names } = await sampleStore();
  assert.deepEqual(
    names.map((name) => name.replace(`${testDir}/`, '')),
    ['activity-000000000001.kms', 'log-0000000002.kms', 'log-0000000003.kms', 'snapshot-0000000001.kms'],
  );
  const { notes, activity } = await look(content);
  assert.deepEqual([notes, activity], [9, 9]);
});

test('a flipped bit in any byte of any file is found', async () => {
  const { content, names } = await sampleStore();
  const generator = prng(Number(process.env.KMS_FLIP_SEED ?? 1));
  for (const name of names) {
    const length = content.get(name)?.length ?? 0;
    for (let at = 0; at < length; at++) {
      const bit = 1 << generator.int(8);
      const damaged = changed(content, name, (bytes) => {
        bytes[at] = (bytes[at] ?? 0) ^ bit;
        return bytes;
      });
      await assert.rejects(look(damaged), isCorrupt(name), `${name}, byte ${at}, bit ${bit}`);
    }
  }
});

test('a byte that became zero in any place of a log is found', async () => {
  const { content, names } = await sampleStore();
  for (const name of names.filter((each) => each.includes('/log-'))) {
    const original = content.get(name) ?? new Uint8Array();
    for (let at = 0; at < original.length; at++) {
      if (original[at] === 0) continue;
      const damaged = changed(content, name, (bytes) => bytes.fill(0, at, at + 1));
      await assert.rejects(look(damaged), isCorrupt(name), `${name}, byte ${at}`);
    }
  }
});

test('a file that was cut anywhere is found; the last log is cut back to its last whole record, with a notice', async () => {
  const { content, names } = await sampleStore();
  const last = names.filter((name) => name.includes('/log-')).at(-1);
  for (const name of names) {
    const length = content.get(name)?.length ?? 0;
    const step = name.includes('/snapshot-') ? 37 : 1;
    for (let size = 0; size < length; size += step) {
      const damaged = changed(content, name, (bytes) => bytes.slice(0, size));
      if (name !== last || size < logHeaderLength) {
        // After a cut between two records, the next file does not follow on.
        await assert.rejects(look(damaged), { code: 'corrupt' }, `${name}, cut to ${size}`);
        continue;
      }
      const { notes, activity, events } = await look(damaged);
      assert.ok(notes >= 6 && notes < 9 && activity === notes);
      const whole = events.length === 0;
      assert.ok(whole || events[0]?.kind === 'torn-tail', `${name}, cut to ${size}`);
    }
  }
});

test('a file with something added is found', async () => {
  const { content, names } = await sampleStore();
  for (const name of names) {
    for (const added of [new Uint8Array(64), new Uint8Array(600).fill(7)]) {
      const damaged = changed(content, name, (bytes) => Uint8Array.from([...bytes, ...added]));
      const isLast = name.includes('/log-0000000003');
      // Zeros at the end of the last log count as preallocated space.
      if (isLast && added[0] === 0) assert.deepEqual((await look(damaged)).events, []);
      else await assert.rejects(look(damaged), isCorrupt(name), name);
    }
  }
});

test('sectors of the last log that became zeros are found where an acknowledged record follows them', async () => {
  const { store, files } = await simStore();
  for (let i = 0; i < 3; i++) await writeNote(store, i, 'x'.repeat(900));
  await store.close();
  const content = new Map([...files.disk.names].map(([name, inode]) => [name, inode.data]));
  const name = `${testDir}/log-0000000001.kms`;
  const length = content.get(name)?.length ?? 0;
  let torn = 0;
  for (let at = 512; at < length; at += 512) {
    const damaged = changed(content, name, (bytes) => bytes.fill(0, at, Math.min(length, at + 512)));
    try {
      const { events } = await look(damaged);
      assert.equal(events[0]?.kind, 'torn-tail');
      torn++;
    } catch (error) {
      isCorrupt(name)(error);
      assert.equal(torn, 0, 'damage after what was taken for a torn end');
    }
  }
  assert.ok(torn >= 1 && torn <= 3, `${torn} sectors taken for a torn end`);
});

test('a file that is missing is found', async () => {
  const { content, names } = await sampleStore();
  for (const name of names.filter((each) => !each.includes('/log-0000000003'))) {
    const less = new Map(content);
    less.delete(name);
    await assert.rejects(look(less), { code: 'corrupt' }, name);
  }
  await assert.rejects(look(new Map()), { code: 'not-found' });
});

test('a file of another store with the same keys, or from another place, is found', async () => {
  const { content, names } = await sampleStore();
  const other = (await sampleStore(5)).content;
  for (const name of names) {
    const bytes = other.get(name);
    assert.ok(bytes);
    await assert.rejects(look(new Map(content).set(name, bytes)), { code: 'corrupt' }, name);
  }
  const [, first, second] = names;
  assert.ok(first && second);
  const swapped = new Map(content)
    .set(first, content.get(second) ?? new Uint8Array())
    .set(second, content.get(first) ?? new Uint8Array());
  await assert.rejects(look(swapped), { code: 'corrupt' });
});

test('a record that another life of the same store wrote in the same place is found', async () => {
  const name = `${testDir}/log-0000000001.kms`;
  const life = async (value: string) => {
    const { store, files } = await simStore();
    await writeNote(store, 0, value);
    const middle = store.status().logBytes;
    await writeNote(store, 1);
    await store.close();
    return { bytes: await files.read(name), middle, files };
  };
  const [one, other] = [await life('a'), await life('b')];
  assert.equal(one.middle, other.middle);
  const content = new Map([...one.files.disk.names].map(([each, inode]) => [each, inode.data]));
  assert.equal((await look(content)).notes, 2);
  const mixed = Uint8Array.from([...one.bytes.subarray(0, one.middle), ...other.bytes.subarray(other.middle)]);
  await assert.rejects(look(new Map(content).set(name, mixed)), isCorrupt(name));
});

test('other files beside those of the store are left alone', async () => {
  const { content } = await sampleStore();
  const more = new Map(content)
    .set(`${testDir}/notes.txt`, Uint8Array.of(1))
    .set(`${testDir}/log-x.kms`, Uint8Array.of(1));
  assert.equal((await look(more)).notes, 9);
});

test('with other keys nothing opens', async () => {
  const { files } = await simStore();
  const generator = prng(1);
  await assert.rejects(openEmbedded(testOptions(files, generator, { keys: testStoreKeys('other') })), {
    code: 'corrupt',
  });
  const uid = new Uint8Array(16);
  await assert.rejects(openEmbedded(testOptions(files, generator, { uid })), {
    code: 'corrupt',
    message: /another store/,
  });
});

test('a schema newer than the program is refused before anything runs on it', async () => {
  const { files, store } = await simStore();
  await store.checkpoint();
  await store.close();
  await assert.rejects(openEmbedded(testOptions(files, prng(1), { migrations: [] })), {
    code: 'refused',
    message: /schema version 1, this program knows versions up to 0/,
  });
});
