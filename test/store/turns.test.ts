// Many jobs that each block the event loop for a while, queued at once or one after the other: other work gets its
// turns in between. Counted in turns, not in time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { runSlices, yieldBeforeRequest, yieldToEventLoop } from '../../src/store/event-loop.ts';
import { SerialQueue } from '../../src/store/serial-queue.ts';

/** Blocks the event loop, by default for longer than the queues run without yielding. */
function holdLoop(milliseconds = 30): void {
  const before = process.threadCpuUsage();
  for (let used = 0; used < milliseconds * 1000; ) {
    const { user, system } = process.threadCpuUsage(before);
    used = user + system;
  }
}

/** Turns of the event loop left to others between the beginnings of two jobs, out of `count` that `put` queues. */
async function turnsBetween(count: number, put: (job: () => Promise<void>) => Promise<void>): Promise<number[]> {
  let turns = 0;
  const began: number[] = [];
  const job = async (): Promise<void> => {
    began.push(turns);
    holdLoop();
  };
  for (let n = 0; n < count; n++) await put(job);
  while (began.length < count) {
    await nextTurn();
    turns++;
  }
  return began.slice(1).map((at, n) => at - (began[n] ?? 0));
}

/** Enough turns to accept as many connections, one a turn, before a request that came last. */
const enough = 16;

/** Runs a job as a request would. */
async function inItsTurn(job: () => Promise<void>): Promise<void> {
  const rest = yieldBeforeRequest();
  if (rest) await rest;
  await job();
}

test('requests that come together let others have their turns in between', async () => {
  const put = async (job: () => Promise<void>): Promise<void> => void inItsTurn(job);
  for (const turns of await turnsBetween(6, put)) assert.ok(turns >= enough, `${turns}`);
});

test('so do slices of long work, each of them', async () => {
  let turns = 0;
  const began: number[] = [];
  function* slices(): Generator<void, void, void> {
    for (let n = 0; n < 6; n++) {
      began.push(turns);
      holdLoop();
      yield;
    }
  }
  let isOver = false;
  const ended = runSlices(slices()).then(() => {
    isOver = true;
  });
  for (; !isOver; turns++) await nextTurn();
  await ended;
  for (const [n, at] of began.entries()) if (n > 0) assert.ok(at - (began[n - 1] ?? 0) >= enough, began.join());
});

test('and requests of which each comes when the one before is done', async () => {
  let ended = 0;
  let turnsSince = enough;
  for (let n = 0; n < 6; n++) {
    void inItsTurn(async () => {
      assert.ok(turnsSince >= enough, `job ${n} began ${turnsSince} turns after the one before`);
      holdLoop();
      turnsSince = 0;
      ended++;
    });
    while (ended <= n) {
      await nextTurn();
      turnsSince++;
    }
  }
});

test('short jobs keep their order, and the failure of one is its own', async () => {
  const queue = new SerialQueue();
  const order: number[] = [];
  const all = Array.from({ length: 100 }, (_, n) =>
    queue.run(async () => {
      order.push(n);
      if (n === 50) throw new Error('one fails');
      return n;
    }),
  );
  const settled = await Promise.allSettled(all);
  assert.deepEqual(order, [...Array(100).keys()]);
  assert.deepEqual(settled.filter(({ status }) => status === 'rejected').length, 1);
  await queue.idle();
});

test('a short job of an idle queue begins at once while others rest, however many of those wait to go on', async () => {
  let isOver = false;
  const long = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      await yieldToEventLoop();
      holdLoop(2);
      await nextTurn();
    }
  });
  const took: number[] = [];
  for (let n = 0; n < 40; n++) {
    // At another phase of their running and resting each time.
    for (let turn = 0; turn < 7 + n; turn++) await nextTurn();
    let turns = 0;
    let isDone = false;
    void inItsTurn(async () => {
      isDone = true;
    });
    for (; !isDone; turns++) await nextTurn();
    took.push(turns);
  }
  isOver = true;
  await Promise.all(long);
  const atOnce = took.filter((turns) => turns === 0).length;
  assert.ok(atOnce > 20, `${atOnce} of 40, the others after ${took.filter((turns) => turns > 0).join()} turns`);
});
