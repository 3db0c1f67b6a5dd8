// The guard of free disk space, on a disk whose space the test sets.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { reserveFile } from '../../../src/platform/data-dir.ts';
import type { DiskSpace } from '../../../src/platform/disk.ts';
import type { ApplianceEvent } from '../../../src/platform/events.ts';
import { guardedFiles, SpaceGuard } from '../../../src/platform/space-guard.ts';
import { prng } from '../../support/prng.ts';
import { SimFiles } from '../../support/sim-files.ts';

const kib = 1024;
const mib = 1024 * kib;

function place(): string {
  const dir = mkdtempSync(join(tmpdir(), 'kms-space-'));
  after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function guarded(free: number, total = 1000 * mib) {
  const dir = place();
  const disk: { -readonly [K in keyof DiskSpace]: DiskSpace[K] } = { free, total, freeFiles: undefined };
  const said: ApplianceEvent[] = [];
  const settings = { every: 3_600_000, reserve: mib, floor: 2 * mib, look: async () => ({ ...disk }) };
  const guard = await SpaceGuard.open(dir, settings, (event) => said.push(event));
  after(() => guard.close());
  const reserve = (): number => statSync(join(dir, reserveFile), { throwIfNoEntry: false })?.size ?? 0;
  const messages = (level: ApplianceEvent['level']): string[] =>
    said.filter((each) => each.level === level).map(({ message }) => message);
  return { dir, disk, guard, reserve, messages };
}

test('the reserve is made, with blocks of its own, at the first look', async () => {
  const { dir, guard, reserve } = await guarded(500 * mib);
  assert.equal(reserve(), 0);
  await guard.look();
  assert.equal(reserve(), mib);
  const { blocks, mode } = statSync(join(dir, reserveFile));
  assert.ok(blocks * 512 >= mib);
  assert.equal(mode & 0o777, 0o600);
  assert.equal(guard.refusal, undefined);
});

test('below the floor writes are refused, with the reason; with room again they are taken', async () => {
  const { disk, guard, messages } = await guarded(500 * mib);
  await guard.look();
  disk.free = 2 * mib - 1;
  await guard.look();
  assert.equal(guard.refusal?.code, 'unavailable');
  assert.match(guard.refusal.message, /nearly full: 2\.0 MiB are free, writing needs 2\.0 MiB/);
  assert.equal(guard.status()?.reason, guard.refusal.message);
  disk.free = 2 * mib + 1;
  await guard.look();
  assert.ok(guard.refusal, 'a byte more is not enough to go back and forth for');
  disk.free = 3 * mib;
  await guard.look();
  assert.equal(guard.refusal, undefined);
  assert.equal(messages('error').length, 1);
  assert.deepEqual(messages('info'), ['there is room on the disk again: writes are accepted']);
});

test('a disk without files left to make is full too', async () => {
  const { disk, guard } = await guarded(500 * mib);
  await guard.look();
  disk.freeFiles = 3;
  await guard.look();
  assert.match(guard.refusal?.message ?? '', /3 more files/);
  disk.freeFiles = 1000;
  await guard.look();
  assert.equal(guard.refusal, undefined);
});

test('warnings at 20, 10 and 5 percent, each once until there was more room', async () => {
  const { disk, guard, messages } = await guarded(500 * mib);
  for (const percent of [30, 19, 18, 19, 12, 9, 9, 4, 4, 3]) {
    disk.free = percent * 10 * mib;
    await guard.look();
  }
  const levels = () => messages('warn').map((message) => /less than (\d+) percent/.exec(message)?.[1]);
  assert.deepEqual(levels(), ['20', '10', '5']);
  for (const percent of [50, 15]) {
    disk.free = percent * 10 * mib;
    await guard.look();
  }
  assert.deepEqual(levels(), ['20', '10', '5', '20']);
});

test('a full disk takes the reserve piece by piece, and freeing space makes it anew', async () => {
  const { disk, guard, reserve, messages } = await guarded(500 * mib);
  await guard.look();
  let given = 0;
  while (await guard.full(100)) given++;
  assert.ok(given >= 8 && given <= 16, `${given} pieces`);
  assert.equal(reserve(), 0);
  assert.match(guard.refusal?.message ?? '', /no space left/);
  assert.match(messages('error').at(-1) ?? '', /last of the reserve/);
  disk.free = 0;
  await guard.look();
  assert.equal(reserve(), 0);
  disk.free = 4 * mib;
  await guard.look();
  assert.equal(reserve(), mib);
  assert.equal(guard.refusal, undefined);
});

test('reserve and floor are a sixteenth of a small disk', async () => {
  const { guard, reserve } = await guarded(3 * mib, 4 * mib);
  await guard.look();
  assert.equal(reserve(), 256 * kib);
  assert.equal(guard.refusal, undefined);
});

test('who does not watch makes no reserve and leaves it as it is', async () => {
  const dir = place();
  const look = async (): Promise<DiskSpace> => ({ free: 500 * mib, total: 1000 * mib, freeFiles: undefined });
  const guard = await SpaceGuard.open(dir, { look });
  await guard.look();
  assert.equal(statSync(join(dir, reserveFile), { throwIfNoEntry: false }), undefined);
  assert.equal(guard.refusal, undefined);
  await guard.close();
});

test('a disk that does not answer refuses nothing', async () => {
  const guard = await SpaceGuard.open(place(), { look: () => Promise.reject(new Error('no such call')) });
  assert.equal(guard.refusal, undefined);
  assert.equal(guard.status(), undefined);
  await guard.close();
});

test('no room for a checkpoint is said before it is begun', async () => {
  const { disk, guard } = await guarded(500 * mib);
  await guard.needFreeSpace(400 * mib);
  disk.free = 10 * mib;
  await assert.rejects(guard.needFreeSpace(10 * mib), /needs 10\.0 MiB on the disk, and 10\.0 MiB are free/);
});

test('an append that finds the disk full is written whole once there is room', async () => {
  const sim = new SimFiles({ prng: prng(1), capacity: 100 });
  let asked = 0;
  const files = guardedFiles(sim, async (bytes) => {
    asked++;
    sim.capacity += Math.min(bytes, 30);
    return true;
  });
  const file = await files.openAppend('log', true);
  await file.append(new Uint8Array(90).fill(1));
  await file.sync();
  await file.append(new Uint8Array(50).fill(2));
  await file.append(new Uint8Array(5).fill(3));
  await file.sync();
  const bytes = await files.read('log', 2 ** 20);
  assert.deepEqual([...bytes], [...Array(90).fill(1), ...Array(50).fill(2), ...Array(5).fill(3)]);
  assert.ok(asked >= 2);
  await files.replace('small', new Uint8Array(60).fill(4));
  assert.equal((await files.read('small', 2 ** 20)).length, 60);
});

test('a sync that finds the disk full writes everything behind the last good one anew', async () => {
  const sim = new SimFiles({ prng: prng(2) });
  const files = guardedFiles(sim, async () => true);
  const file = await files.openAppend('log', true);
  await file.append(new Uint8Array(40).fill(1));
  await file.sync();
  await file.append(new Uint8Array(1000).fill(2));
  let failing = 2;
  sim.failure = (step) => (step === 'sync' && failing-- > 0 ? 'ENOSPC' : undefined);
  await file.sync();
  sim.failure = undefined;
  const after = sim.restart({ prng: prng(3) });
  const survived = [...after.disk.names.values()].map(({ data }) => data.length);
  // The name was never synced and may be gone; if the file is there, it is complete.
  for (const length of survived) assert.equal(length, 1040);
});

test('with nothing to give back the failure stands', async () => {
  const sim = new SimFiles({ prng: prng(4), capacity: 10 });
  const files = guardedFiles(sim, async () => false);
  const file = await files.openAppend('log', true);
  await assert.rejects(file.append(new Uint8Array(11)), { code: 'ENOSPC' });
  sim.failure = () => 'EIO';
  let asked = false;
  const others = guardedFiles(sim, async () => {
    asked = true;
    return true;
  });
  await assert.rejects(others.replace('other', new Uint8Array(1)), { code: 'EIO' });
  assert.equal(asked, false);
});
