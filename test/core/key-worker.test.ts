// The queue at the thread for costly work: long work has turns of its own, and nothing is done for a client that has gone.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import type { Ordered } from '../../src/crypto/managed/key-work.ts';
import { keyWorker } from '../../src/platform/threads/key-work.ts';

/** A worker that has every order done at once, and the orders of each turn. */
function watched() {
  const turns: Ordered[][] = [];
  const thread = new EventEmitter();
  const postMessage = ({ id, work }: { id: number; work: Ordered[] }): void => {
    turns.push(work);
    setImmediate(() => thread.emit('message', { id, value: work.map((_, n) => ({ value: n })) }));
  };
  // Cast: the parts of a thread that are called.
  const start = () => Object.assign(thread, { postMessage, ref() {}, unref() {} }) as unknown as Worker;
  return { turns, worker: keyWorker({ start, turns: { enter: () => undefined, leave() {} } }) };
}

const key = new Uint8Array(32);
const derive: Ordered = {
  name: 'passwordKey',
  input: { hash: 'sha2-256', key, salt: key, iterations: 1, length: 32 },
};
const rsa: Ordered = { name: 'generate', type: 'rsa-4096' };
const short: Ordered = { name: 'generate', type: 'ed25519' };
const times = (count: number, order: Ordered): Ordered[] => Array.from({ length: count }, () => order);
const from = { tenant: 't', caller: 'c' };

test('each long piece of work has a turn of its own, and short ones share one', async () => {
  const { turns, worker } = watched();
  const orders = [...times(40, short), derive, ...times(2, rsa), ...times(3, short)];
  assert.equal((await worker.run(orders, from)).length, orders.length);
  assert.deepEqual(
    turns.map(({ length }) => length),
    [32, 8, 1, 1, 1, 3],
  );
  assert.deepEqual(turns.flat(), orders);
});

test('the rest of the work of a client that has gone is dropped', async () => {
  const { turns, worker } = watched();
  await assert.rejects(worker.run(times(5, derive), { ...from, isGone: () => turns.length === 2 }), /has gone/);
  assert.equal(turns.length, 2);
});
