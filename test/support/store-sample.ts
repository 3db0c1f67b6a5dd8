// A small store with a file of each kind: a snapshot, an activity segment, a closed log and the last log.
import assert from 'node:assert/strict';
import { writeCheckpoint } from '../../src/store/checkpoint.ts';
import { FileJournal } from '../../src/store/file-journal.ts';
import type { Store } from '../../src/store/port.ts';
import { activityInput, type NoteTables } from '../store/contract.ts';
import { simStore, testDir } from './embedded-store.ts';
import { prng } from './prng.ts';
import { sectorLength } from './sim-disk.ts';
import { testStoreKeys } from './store-keys.ts';
import { sqlWasm } from './wasm.ts';

/** Bytes by file name. */
export type Content = ReadonlyMap<string, Uint8Array>;

/** Notes n0 to n8 with as many activity records: the first four in the snapshot, the others in the logs. */
export async function sampleStore(seed = 1): Promise<{ content: Content; names: string[] }> {
  const runCheckpoint = { fails: false };
  const { store, files } = await simStore(
    {
      limits: { segmentRecords: 3 },
      runCheckpoint: (job) => {
        if (runCheckpoint.fails) throw new Error('no checkpoint');
        const journal = new FileJournal({ files, dir: testDir, keys: testStoreKeys() });
        return writeCheckpoint(journal, { wasm: sqlWasm, random: (length) => nonces.bytes(length) }, job);
      },
    },
    seed,
  );
  const nonces = prng(seed + 1);
  for (let i = 0; i < 4; i++) await writeNote(store, i);
  await store.checkpoint();
  for (let i = 4; i < 6; i++) await writeNote(store, i);
  runCheckpoint.fails = true;
  await assert.rejects(store.checkpoint(), /no checkpoint/);
  for (let i = 6; i < 9; i++) await writeNote(store, i);
  await store.close();
  const content = new Map([...files.disk.names].map(([name, inode]) => [name, inode.data]));
  return { content, names: [...content.keys()].sort() };
}

/**
 * The same notes, the first four in the snapshot, as left by a crash in the middle of a write, which is torn.
 * `dropped`: the last activity record that retention drops.
 */
export async function crashedStore({ seed = 1, dropped = 0 } = {}): Promise<Content> {
  const { store, files } = await simStore({ limits: { segmentRecords: 3 } }, seed);
  for (let i = 0; i < 4; i++) await writeNote(store, i);
  await store.checkpoint();
  if (dropped > 0) await store.dropActivity(dropped);
  for (let i = 4; i < 9; i++) await writeNote(store, i);
  const end = store.status().logBytes;
  await writeNote(store, 9, 'x'.repeat(1500));
  const content = new Map([...files.disk.names].map(([name, inode]) => [name, inode.data.slice()]));
  const log =
    [...content.keys()]
      .filter((name) => name.includes('/log-'))
      .sort()
      .at(-1) ?? '';
  const sector = Math.ceil(end / sectorLength) * sectorLength;
  content.get(log)?.fill(0, sector, sector + sectorLength);
  await store.close();
  return content;
}

/** Adds a note with its activity record. */
export async function writeNote(store: Store<NoteTables>, i: number, value: string | number = i): Promise<void> {
  await store.transaction((tx) => {
    tx.notes.add(`n${i}`, value);
    tx.record(activityInput(`act_${i}`, i % 2 === 0 ? {} : { address: '192.0.2.7' }));
  });
}
