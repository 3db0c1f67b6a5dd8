// The time by which data expire: it follows the machine's clock, and holds back when that jumps, for a moment, at a
// start, for good, or before any program looked.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { Aging } from '../../src/storage/aging.ts';
import type { Store } from '../../src/store/port.ts';
import { type SystemTables, systemTables } from '../../src/store/tables/databases.ts';
import { systemMigrations } from '../../src/store/tables/migrations.ts';
import { activityInput } from '../store/contract.ts';
import { testTenant } from '../support/context.ts';
import { createMemoryStore } from '../support/memory-store.ts';

const hour = 3_600_000;
const day = 24 * hour;
const start = Date.UTC(2026, 0, 1);
const years = 10 * 365 * day;

async function machine({ recordedAt = [start - hour] }: { recordedAt?: readonly number[] } = {}) {
  const system: Store<SystemTables> = await createMemoryStore({ migrations: systemMigrations, tables: systemTables });
  const { store } = await testTenant();
  const record = (createdAt: number) =>
    store.transaction((tx) => tx.record({ ...activityInput(`act_${createdAt}`), createdAt }));
  for (const at of recordedAt) await record(at);
  const clock = { now: start, up: 5, wrong: 0 };
  const said: string[] = [];
  // Cast: only a tenant's name and store are read.
  const tenants = { all: [{ record: { name: 'blue' }, handle: { store } }] } as never;
  const world = { now: () => clock.now + clock.wrong };
  const boot = (over: object = {}): Aging => {
    // Another process counts its uptime from another origin.
    clock.up = clock.up % 1000;
    const deps = { system, tenants, world, uptime: () => clock.up, mustWait: () => false };
    return new Aging({ ...deps, onEvent: ({ level, message }) => said.push(`${level}: ${message}`), ...over });
  };
  return {
    clock,
    said,
    boot,
    record,
    store,
    kept: () => system.transaction(({ settings }) => settings.get('age')),
    /** The difference to the true time after `ran` more milliseconds. */
    async offAfter(aging: Aging, ran: number): Promise<number> {
      clock.now += ran;
      clock.up += ran;
      return (await aging.now()) - clock.now;
    },
  };
}

test('it is the time of the clock, which it also follows back', async () => {
  const { clock, said, boot, offAfter } = await machine();
  const aging = boot();
  assert.equal(await offAfter(aging, 0), 0);
  for (const ran of [1, hour, 3 * day]) assert.equal(await offAfter(aging, ran), 0);
  for (const wrong of [-hour, 0, 20 * hour, 0, -years]) {
    clock.wrong = wrong;
    assert.equal(await offAfter(aging, hour), wrong);
  }
  assert.deepEqual(said, []);
  // Returning from years behind is a jump ahead like any other.
  clock.wrong = 0;
  assert.equal(await offAfter(aging, hour), -years);
});

test('a clock that is years ahead for a moment makes nothing older', async () => {
  const { clock, said, boot, offAfter } = await machine();
  const aging = boot();
  assert.equal(await offAfter(aging, hour), 0);
  clock.wrong = years;
  assert.deepEqual(await aging.doubt(), { aheadSeconds: years / 1000, believedAfterSeconds: (7 * day) / 1000 });
  for (const ran of [1, hour, hour]) assert.equal(await offAfter(aging, ran), 0);
  const left = Math.floor((7 * day - 2 * hour - 1) / 1000);
  assert.deepEqual(await aging.doubt(), { aheadSeconds: years / 1000, believedAfterSeconds: left });
  clock.wrong = 0;
  assert.equal(await aging.doubt(), undefined);
  assert.equal(await offAfter(aging, hour), 0);
  assert.deepEqual(said, [
    'warn: the clock of this machine is 3650 days ahead of where it was last seen: nothing is erased for its age until that has lasted 7 days of running',
    'info: the clock of this machine is right again',
  ]);
});

test('a clock that stays ahead is believed after 7 days of running, over restarts too', async () => {
  const { clock, said, boot, offAfter } = await machine();
  const early = boot();
  assert.equal(await offAfter(early, hour), 0);
  await early.close();
  clock.wrong = years;
  for (let n = 0; n < 6; n++) {
    const aging = boot();
    // Downtime, which does not count as time lived through.
    clock.now += 8 * hour;
    const off = -8 * hour * (n + 1);
    assert.equal(await offAfter(aging, 0), off);
    assert.equal(await offAfter(aging, day), off);
    await aging.close();
  }
  const aging = boot();
  assert.equal(await offAfter(aging, day - 1), -48 * hour);
  assert.equal(await offAfter(aging, 1), years);
  assert.equal(said.filter((each) => each.startsWith('warn')).length, 7, 'once in each process');
  assert.equal(said.at(-1), 'info: the clock of this machine is believed now');
  await aging.close();
  assert.equal(await offAfter(boot(), 0), years);
});

test('a night without the machine passes, a longer time is waited out', async () => {
  const { clock, boot, offAfter } = await machine();
  const first = boot();
  await offAfter(first, hour);
  await first.close();
  clock.now += 20 * hour;
  const second = boot();
  assert.equal(await offAfter(second, 0), 0);
  await offAfter(second, hour);
  await second.close();
  clock.now += 3 * day;
  const third = boot();
  assert.equal(await offAfter(third, 0), -3 * day);
  assert.equal(await offAfter(third, 6 * day), -3 * day);
  assert.equal(await offAfter(third, day), 0);
});

test('where no program looked before, only what was recorded before the start vouches for the clock', async () => {
  for (const { recordedAt, off } of [
    { recordedAt: [], off: 0 },
    { recordedAt: [start - hour], off: 0 },
    { recordedAt: [start - 2 * day], off: -2 * day },
    // Only the last record counts, whatever the clock was at earlier ones.
    { recordedAt: [start - 9 * day, start - 5 * day, start - hour], off: 0 },
  ]) {
    const { boot, offAfter } = await machine({ recordedAt });
    assert.equal(await offAfter(boot(), 0), off, JSON.stringify(recordedAt));
  }
  const { clock, boot, record, offAfter, kept } = await machine();
  clock.wrong = years;
  for (let n = 0; n < 3; n++) {
    const aging = boot();
    await record(clock.now + clock.wrong);
    assert.equal(await offAfter(aging, 0), -hour, `start ${n + 1}, with records of the wrong time before it`);
    assert.match((await kept()) ?? '', /"time":/);
  }
  const broken = await machine();
  broken.store.activity.search = async () => {
    throw new KmsError('corrupt', 'a segment is missing');
  };
  assert.ok((await broken.offAfter(broken.boot(), 0)) < -years, 'activity that cannot be read vouches for nothing');
});

test('nothing is written where nothing is to be told, or nothing may be', async () => {
  const { clock, boot, offAfter, kept } = await machine();
  const aging = boot();
  await offAfter(aging, 0);
  await offAfter(aging, 9 * 60_000);
  assert.equal(await kept(), undefined);
  await offAfter(aging, 60_000);
  assert.equal(await kept(), JSON.stringify({ version: 1, time: clock.now, ahead: 0 }));
  const before = await kept();
  const full = boot({ mustWait: () => true });
  await offAfter(full, day / 2);
  clock.wrong = years;
  await offAfter(full, hour);
  assert.equal(await kept(), before);
});
