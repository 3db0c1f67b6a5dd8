// Memory goes back when a process that worked has little to do, four times, and not while it works.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { giveMemoryBack } from '../../src/server/idle-memory.ts';

const second = 1_000_000;

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
  assert.equal(pass(second / 10), 0, 'too little was done');
  assert.equal(pass(2 * second), 0, 'it works');
  assert.equal(pass(9 * second), 0, 'it works');
  assert.equal(pass(second / 20), 1, 'it has little to do');
  for (const time of [2, 3, 4]) assert.equal(pass(0), time, 'once more');
  assert.equal(pass(0), 4, 'nothing was done since');
  for (let i = 0; i < 5; i++) assert.equal(pass(second / 20), 4, 'little was done since');
  assert.equal(pass(second / 20), 5, 'a little, for long');
  assert.equal(pass(second), 5, 'it works');
  end();
  assert.equal(pass(0), 5, 'it has ended');
});

test('where the runtime lets nobody collect, nothing is done', (context) => {
  const timer = context.mock.method(globalThis, 'setInterval');
  assert.equal(globalThis.gc, undefined, 'these tests run without --expose-gc');
  giveMemoryBack()();
  assert.equal(timer.mock.callCount(), 0);
});
