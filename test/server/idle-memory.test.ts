// Memory goes back when a process that started or worked has little to do: after a start at once, where nobody asks,
// after work four times, and not while it works.
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
    const end = giveMemoryBack({ used: () => used, collect });
    used += second / 3;
    context.mock.timers.tick(1500);
    used += asked;
    context.mock.timers.tick(150);
    assert.deepEqual(collections, expected[0] ? [true] : []);
    for (let i = 0; i < 8; i++) context.mock.timers.tick(5000);
    assert.deepEqual(collections, expected);
    end();
  }
  // One that ends before is left alone.
  const end = giveMemoryBack({ used: () => 0, collect: () => assert.fail() });
  context.mock.timers.tick(1500);
  end();
  context.mock.timers.tick(60_000);
});

test('memory goes back four times after work', (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  let used = 0;
  let collections = 0;
  const collect = () => {
    collections++;
    used += second / 20;
  };
  const end = giveMemoryBack({ used: () => used, collect, every: 10_000 });
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
  end();
  assert.equal(pass(0), 9, 'it has ended');
});

test('where the runtime lets nobody collect, nothing is done', (context) => {
  const timer = context.mock.method(globalThis, 'setInterval');
  assert.equal(globalThis.gc, undefined, 'these tests run without --expose-gc');
  giveMemoryBack()();
  assert.equal(timer.mock.callCount(), 0);
});
