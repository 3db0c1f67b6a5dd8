// Memory is given back when a process is idle: soon after a start, unless requests come, and four times after work, but
// not during it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { trimHeap } from '../../src/platform/trim-heap.ts';
import { giveMemoryBack } from '../../src/server/idle-memory.ts';

const second = 1_000_000;

test('what a start leaves goes back at once, unless somebody asks', (context) => {
  context.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  for (const [asked, expected] of [
    [second / 1000, [true]],
    [second / 100, [false, false, false, false]],
  ] as const) {
    let used = 0;
    const collections: boolean[] = [];
    const collect = (thoroughly = false) => void collections.push(thoroughly);
    let trims = 0;
    const end = giveMemoryBack({ used: () => used, worked: () => used, collect, trim: () => void trims++ });
    used += second / 3;
    context.mock.timers.tick(1500);
    used += asked;
    context.mock.timers.tick(150);
    assert.deepEqual(collections, expected[0] ? [true] : []);
    assert.equal(trims, 0, 'what is collected is not free at once');
    context.mock.timers.tick(100);
    assert.equal(trims, expected[0] ? 1 : 0);
    for (let i = 0; i < 8; i++) context.mock.timers.tick(5000);
    assert.deepEqual(collections, expected);
    assert.equal(trims, expected.length);
    end();
  }
  // One that ends first does nothing.
  const end = giveMemoryBack({
    used: () => 0,
    worked: () => 0,
    collect: () => assert.fail(),
    trim: () => assert.fail(),
  });
  context.mock.timers.tick(1500);
  end();
  context.mock.timers.tick(60_000);
});

test('memory goes back four times after work', (context) => {
  context.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  let used = 0;
  let collections = 0;
  let trims = 0;
  const trim = () => void trims++;
  const collect = () => {
    collections++;
    used += second / 20;
  };
  const end = giveMemoryBack({ used: () => used, worked: () => used, collect, trim, every: 10_000 });
  const pass = (work: number): number => {
    used += work;
    context.mock.timers.tick(10_000);
    return collections;
  };
  for (const time of [1, 2, 3, 4]) assert.equal(pass(second / 100), time, 'of what its start left');
  assert.equal(pass(second / 10), 4, 'too little was done');
  assert.equal(pass(2 * second), 4, 'it works');
  assert.equal(pass(9 * second), 4, 'it works');
  assert.equal(pass(second / 20), 5, 'it has little to do');
  for (const time of [6, 7, 8]) assert.equal(pass(0), time, 'once more');
  assert.equal(pass(0), 8, 'nothing was done since');
  for (let i = 0; i < 5; i++) assert.equal(pass(second / 20), 8, 'little was done since');
  assert.equal(pass(second / 20), 9, 'a little, for long');
  assert.equal(pass(second), 9, 'it works');
  assert.equal(trims, 9);
  end();
  assert.equal(pass(0), 9, 'it has ended');
});

test('what another thread worked with goes back too, but not again and again while it works for hours', (context) => {
  context.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  let worked = 0;
  let collections = 0;
  const end = giveMemoryBack({
    used: () => 0,
    worked: () => worked,
    collect: () => void collections++,
    trim: () => {},
  });
  const wait = (seconds: number, work: number): number => {
    for (let i = 0; i < seconds; i += 5) {
      worked += work * 5;
      context.mock.timers.tick(5000);
    }
    return collections;
  };
  context.mock.timers.tick(1500);
  context.mock.timers.tick(150);
  assert.equal(wait(30, 0), 1, 'of what its start left, once since nobody asked');
  worked += second;
  assert.equal(wait(30, 0), 5, 'of what the thread left');
  const before = wait(60, 0);
  const inAnHour = wait(3600, second) - before;
  assert.ok(inAnHour >= 50 && inAnHour <= 61, `${inAnHour} in an hour`);
  end();
});

test('where the runtime lets nobody collect, nothing is done', (context) => {
  const timer = context.mock.method(globalThis, 'setInterval');
  assert.equal(globalThis.gc, undefined, 'these tests run without --expose-gc');
  giveMemoryBack()();
  assert.equal(timer.mock.callCount(), 0);
});

test('what the C library keeps between what is in use goes back', async () => {
  const megabytes = (): number => process.memoryUsage.rss() / 1024 ** 2;
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  let pieces = Array.from({ length: 6000 }, () => Buffer.allocUnsafeSlow(20_000).fill(1));
  pieces = pieces.filter((_, place) => place % 50 === 0);
  collect();
  await setTimeout(200);
  const kept = megabytes();
  trimHeap();
  const { glibcVersionRuntime } = Object(process.report.getReport()).header;
  // Other C libraries, and other systems, have no such call.
  if (glibcVersionRuntime !== undefined) assert.ok(kept - megabytes() > 50, `${kept} MB, then ${megabytes()}`);
  assert.equal(pieces.length, 120);
});
