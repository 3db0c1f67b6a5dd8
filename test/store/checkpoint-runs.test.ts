// Scheduling of checkpoints: one at a time, when the log is due, and again later after a failure.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CheckpointRuns } from '../../src/store/checkpoint-runs.ts';
import type { StoreEvent } from '../../src/store/port.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function setUp() {
  const clock = { now: 0 };
  const events: StoreEvent[] = [];
  const made: (number | undefined)[] = [];
  const yielding: boolean[] = [];
  const state = { running: 0, most: 0, fails: false, answer: 'made' as string | undefined };
  const world = {
    limits: { checkpointBytes: 100, checkpointRetry: 60 },
    elapsed: () => clock.now,
    onEvent: (event: StoreEvent) => void events.push(event),
  };
  const runs = new CheckpointRuns<string>(world, async (dropTo, _how, yields) => {
    state.most = Math.max(state.most, ++state.running);
    await turn();
    state.running--;
    made.push(dropTo);
    yielding.push(yields);
    if (state.fails) throw new Error('no room');
    return state.answer;
  });
  return { clock, events, made, yielding, state, runs };
}

test('of several that are asked for at once each runs alone, also behind one that fails', async () => {
  const { state, made, runs } = setUp();
  state.fails = true;
  const first = assert.rejects(runs.run(), /no room/);
  const others = Array.from({ length: 5 }, () => runs.run());
  await Promise.allSettled([first, ...others]);
  assert.deepEqual([state.most, made.length], [1, 6]);
});

test('one starts when the log has outgrown the limit and the snapshot, and after a failure not before its time', async () => {
  const { clock, events, state, made, runs } = setUp();
  for (const [log, snapshot] of [
    [100, 0],
    [500, 500],
  ] as const) {
    runs.startWhenDue(log, snapshot);
    await turn();
  }
  assert.equal(made.length, 0);
  state.fails = true;
  for (const at of [0, 59, 60]) {
    clock.now = at;
    runs.startWhenDue(501, 500);
    runs.startWhenDue(501, 500);
    await turn();
    await turn();
  }
  assert.equal(made.length, 2);
  assert.deepEqual(
    events.map(({ kind, message }) => [kind, message]),
    Array(2).fill(['checkpoint-failed', 'a checkpoint failed, nothing is lost, the log grows on: no room']),
  );
});

test('one that is due gives way, unless the log is far ahead of it, and one that somebody waits for does not', async () => {
  const { yielding, runs } = setUp();
  for (const log of [501, 1000, 1001]) {
    runs.startWhenDue(log, 500);
    await turn();
    await turn();
  }
  await runs.run();
  assert.deepEqual(yielding, [true, true, false, false]);
});

test('what is to be dropped is asked for until one was made that did it', async () => {
  const { state, made, runs } = setUp();
  state.answer = undefined;
  runs.drop(7);
  await runs.run();
  state.fails = true;
  runs.drop(5);
  await assert.rejects(runs.run(), /no room/);
  Object.assign(state, { fails: false, answer: 'made' });
  await runs.run();
  await runs.run();
  assert.deepEqual(made, [7, 7, 7, undefined]);
});

test('once they are stopped none begins, neither one that waits nor one that is due or asked for', async () => {
  const { state, made, runs } = setUp();
  const first = runs.run();
  const waiting = [runs.run(), runs.run(), runs.run()].map((run) => assert.rejects(run, { code: 'unavailable' }));
  await runs.stop();
  assert.deepEqual([made.length, state.running], [1, 0]);
  assert.equal(await first, 'made');
  await Promise.all(waiting);
  runs.startWhenDue(501, 500);
  await assert.rejects(runs.run(), { code: 'unavailable' });
  await runs.stop();
  assert.deepEqual([made.length, state.most], [1, 1]);
});
