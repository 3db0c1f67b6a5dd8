// How a node that was sealed by itself opens automatically: when it tries, and what it reports.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AutoUnsealer } from '../../src/custody/auto-unsealer.ts';
import { StaysSealed } from '../../src/custody/key-sources.ts';
import { KmsError } from '../../src/errors.ts';

function setUp() {
  const state = { isSealed: true, isOnPurpose: false, failure: undefined as Error | undefined };
  let now = 0;
  let next: (() => void) | undefined;
  const tries: number[] = [];
  const said: string[] = [];
  const lookOut = new AutoUnsealer({
    isSealed: () => state.isSealed,
    async isOnPurpose() {
      return state.isOnPurpose;
    },
    async open() {
      tries.push(now / 1000);
      if (state.failure) throw state.failure;
      state.isSealed = false;
      lookOut.forget();
    },
    onEvent: ({ level, message }) => void said.push(`${level}: ${message}`),
    now: () => now,
    later(milliseconds, run) {
      assert.equal(milliseconds, 1000);
      assert.equal(next, undefined, 'one look at a time');
      next = run;
    },
  });
  /** Lets this many seconds pass. */
  const pass = async (seconds: number): Promise<void> => {
    for (let each = 0; each < seconds; each++) {
      now += 1000;
      const run = next;
      next = undefined;
      run?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { state, tries, said, lookOut, pass, waits: () => next !== undefined };
}

test('a node that cannot open tries again, ever less often, at least each minute, and says why once', async () => {
  const { state, tries, said, lookOut, pass } = setUp();
  state.failure = new StaysSealed('its master key is with a command');
  lookOut.start();
  await pass(300);
  assert.deepEqual(tries, [1, 2, 4, 8, 16, 32, 64, 124, 184, 244]);
  assert.equal(lookOut.reason, 'its master key is with a command');
  const start = 'warn: the appliance is not open on this node, which tries again by itself: ';
  assert.deepEqual(said, [`${start}its master key is with a command`]);
  state.failure = new KmsError('unavailable', 'the database is away');
  await pass(10);
  assert.deepEqual([said.length, said[1]], [2, `${start}the database is away`]);
  state.failure = undefined;
  await pass(60);
  assert.deepEqual([state.isSealed, lookOut.reason, said.length], [false, undefined, 2]);
  const { length } = tries;
  await pass(100);
  assert.equal(tries.length, length, 'an open one is not opened');
});

test('one that is sealed on purpose is not opened; once that ends it is at once, whatever failed before', async () => {
  const { state, tries, said, lookOut, pass, waits } = setUp();
  lookOut.note(new StaysSealed('no key'));
  state.failure = new StaysSealed('no key');
  lookOut.start();
  await pass(50);
  assert.equal(said.length, 0, 'the start has said it');
  state.isOnPurpose = true;
  await pass(20);
  assert.equal(lookOut.reason, undefined);
  const { length } = tries;
  Object.assign(state, { isOnPurpose: false, failure: undefined });
  await pass(1);
  assert.deepEqual([tries.length, state.isSealed], [length + 1, false]);
  state.isSealed = true;
  lookOut.end();
  await pass(5);
  assert.deepEqual([tries.length, waits()], [length + 1, false]);
});
