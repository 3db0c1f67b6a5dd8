// A store is closed in the middle of everything, at a place that fails now and then: every call gets an answer, nothing
// acknowledged is lost, and files stay as they are while they are held.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store, StoreHold } from '../../src/store/port.ts';
import { prng } from '../support/prng.ts';
import { DatabasePlace, DiskPlace, type SimPlace } from '../support/sim-places.ts';
import { activityInput, type NoteTables } from './contract.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const later = (_milliseconds: number, run: () => void) => void setTimeout(run, 1).unref();
const limits = { segmentRecords: 2, checkpointBytes: 2000, turnRequests: 3 };

async function contentOf({ files, source }: StoreHold): Promise<readonly Uint8Array[]> {
  return Promise.all(files.map(({ name, bytes }) => source.readAt(name, 0, bytes)));
}

/** Reads the held files twice, some time apart. Returns whether they are as they were. */
async function staysHeld(store: Store<NoteTables>, isOver: () => boolean): Promise<boolean> {
  const hold = await store.hold(true);
  try {
    const before = await contentOf(hold);
    for (let n = 0; n < 40 && !isOver(); n++) await turn();
    assert.deepEqual(await contentOf(hold), before);
    return true;
  } catch (error) {
    // Reading may fail with the place.
    return !(error instanceof assert.AssertionError) && !/ENOENT/.test(String(error));
  } finally {
    hold.release();
  }
}

for (const [where, placeOf] of [
  ['files', DiskPlace],
  ['rows', DatabasePlace],
] as const) {
  test(`a store in ${where} that is closed in the middle of everything answers every call`, async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = prng(seed);
      const place: SimPlace = new placeOf(random);
      await place.create();
      const store = await place.open({ limits, later });
      let isOver = false;
      const acknowledged: string[] = [];
      const add = async (name: string) => {
        await store.transaction((tx) => {
          tx.notes.add(name);
          tx.record(activityInput(`act_${name}`));
        });
        acknowledged.push(name);
      };
      const addInSlices = async (name: string) => {
        await store.transactionInSlices(function* (tx) {
          for (let n = 0; n < 4; n++) yield void tx.notes.add(`${name}.${n}`);
        });
        acknowledged.push(`${name}.3`);
      };
      const hold = async () => assert.ok(await staysHeld(store, () => isOver), `seed ${seed}: held files changed`);
      const search = () => store.activity.search({}, { limit: 10 });
      const others = [hold, search, () => store.reseal(), () => store.checkpoint(), () => store.dropActivity(2)];
      const calls: Promise<unknown>[] = [];
      for (let n = 5 + random.int(25); n > 0; n--) {
        const call = random.pick([add, add, addInSlices, ...others]);
        calls.push(call(`n${n}`));
        calls.at(-1)?.catch(() => {});
        if (random.chance(0.1)) place.failAWhile();
        if (random.chance(0.3)) place.failNoMore();
        for (let turns = random.int(4); turns > 0; turns--) await turn();
      }
      const closed = store.close();
      isOver = random.chance(0.5);
      await closed;
      isOver = true;
      for (const each of await Promise.allSettled(calls)) {
        if (each.status === 'rejected' && each.reason instanceof assert.AssertionError) throw each.reason;
      }
      place.failNoMore();
      const again = await place.open({ limits, later });
      const names = new Set((await again.transaction((tx) => tx.notes.all())).map(({ name }) => name));
      for (const name of acknowledged) assert.ok(names.has(name), `seed ${seed}: ${name} was lost`);
      await again.close();
    }
  });
}
