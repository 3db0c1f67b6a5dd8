// Logs of several pieces: records are read wherever they span pieces, a torn end is cut off, damage is located, and at
// most a piece and a record are read at once. A checkpoint makes segments on the way.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Files } from '../../src/store/files.ts';
import type { Store } from '../../src/store/port.ts';
import { openEmbedded, simStore, testDir, testOptions } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { Inode } from '../support/sim-disk.ts';
import { SimFiles } from '../support/sim-files.ts';
import { activityInput, type NoteTables } from './contract.ts';

const piece = 256 * 1024;
const log = `${testDir}/log-0000000001.kms`;
/** Lengths of values: many small ones, and some longer than a piece. */
const lengths = Array.from({ length: 90 }, (_, at) => (at % 30 === 7 ? piece + 40_000 * at : 50 + at * 173));

const add = (store: Store<NoteTables>, at: number) =>
  store.transaction((tx) => {
    tx.notes.add(`n${at}`, String(at % 10).repeat(lengths[at] ?? 1));
    tx.record(activityInput(`act_${at}`));
  });

/** A closed store with a single long log, and the end of each record in it. */
async function longLog() {
  const { store, files, generator } = await simStore({ limits: { checkpointBytes: 1e9 } });
  const ends: number[] = [store.status().logBytes];
  for (const at of lengths.keys()) {
    await add(store, at);
    ends.push(store.status().logBytes);
  }
  await store.close();
  return { files, generator, ends };
}

/** The same files with another log. */
function withLog(files: SimFiles, bytes: Uint8Array): SimFiles {
  const copy = new SimFiles({ prng: prng(3) });
  for (const [name, { data }] of files.disk.names) {
    const inode = new Inode();
    inode.append(name === log ? bytes : data.slice());
    copy.disk.change(testDir, (names) => names.set(name, inode));
  }
  return copy;
}

async function notesIn(files: Files): Promise<readonly unknown[]> {
  const store = await openEmbedded(testOptions(files, prng(2), { limits: { checkpointBytes: 1e9 } }));
  const read = await store.transaction(({ notes }) => notes.all());
  await store.close();
  assert.deepEqual(
    read.map(({ name }) => name),
    read.map((_, at) => `n${at}`),
  );
  return read.map(({ value }) => value);
}

const all = lengths.map((length, at) => String(at % 10).repeat(length));

describe('a log of several pieces', async () => {
  const { files, ends } = await longLog();
  const bytes = await files.read(log);

  it('is read whole, a piece at a time', async () => {
    assert.ok(bytes.length > 4 * piece);
    const asked: number[] = [];
    const watched = withLog(files, bytes);
    watched.read = (name) => (name === log ? assert.fail('the whole log was read') : files.read(name));
    watched.readAt = (name, offset, length) => {
      if (name === log) asked.push(length);
      return files.readAt(name, offset, length);
    };
    assert.deepEqual(await notesIn(watched), all);
    const longest = Math.max(...ends.map((end, at) => end - (ends[at - 1] ?? 0)));
    assert.ok(Math.max(...asked) <= Math.max(piece, longest), `${Math.max(...asked)} bytes at once`);
    assert.ok(asked.length < (3 * bytes.length) / piece, `${asked.length} times`);
  });

  it('loses its torn end, wherever the pieces end', async () => {
    for (const at of [7, 8, 37, 60, 67, 89]) {
      const [start = 0, end = 0] = [ends[at], ends[at + 1]];
      for (const cut of [start, start + 5, start + 13, Math.floor((start + end) / 2), end - 1]) {
        const read = await notesIn(withLog(files, bytes.slice(0, cut)));
        assert.deepEqual(read, all.slice(0, at), `${at}, cut at ${cut}`);
      }
    }
  });

  it('is refused with the place of what was changed in it', async () => {
    for (const at of [0, 7, 37, 66, 88]) {
      const start = ends[at] ?? 0;
      const changed = bytes.slice();
      changed[start + 40] = (changed[start + 40] ?? 0) ^ 1;
      await assert.rejects(notesIn(withLog(files, changed)), { code: 'corrupt', message: new RegExp(`${start}`) });
    }
  });

  it('becomes the same segments on the way as behind it', async () => {
    const segmentsOf = async (limits: object) => {
      const copy = withLog(files, bytes);
      const store = await openEmbedded(testOptions(copy, prng(2), { limits: { checkpointBytes: 1e9, ...limits } }));
      await store.checkpoint();
      await store.close();
      const segments = [...copy.disk.names].filter(([name]) => name.includes('/activity-'));
      assert.deepEqual(await notesIn(copy), all);
      return segments.map(([name, { data }]) => [name, data]);
    };
    const segments = await segmentsOf({ segmentRecords: 20 });
    assert.equal(segments.length, 4);
    assert.deepEqual(await segmentsOf({ segmentRecords: 1000 }), []);
  });
});
