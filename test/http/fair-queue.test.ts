// Requests beyond the concurrency limit: their order, and which are refused.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { type FairLimits, FairQueue } from '../../src/http/fair-queue.ts';
import { testAppliance } from '../support/appliance.ts';

const limits: FairLimits = { atOnce: 1, waiting: 8, ofOneTenant: 6, ofOneCaller: 4, patience: 10_000 };
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Admits callers such as `a.one` (of tenant a) one after the other, and returns their order. */
async function orderOf(queue: FairQueue, names: readonly string[]): Promise<string[]> {
  const order: string[] = [];
  for (const name of names) {
    const [tenant = '', caller = ''] = name.split('.');
    const turn = queue.enter(tenant, () => caller);
    if (turn) turn.then(() => order.push(name));
    else order.push(name);
  }
  for (let n = 0; n < names.length; n++) {
    await settled();
    queue.leave();
  }
  return order;
}

test('who finds room begins at once', () => {
  const queue = new FairQueue({ ...limits, atOnce: 3 });
  for (let n = 0; n < 3; n++)
    assert.equal(
      queue.enter('a', () => 'one'),
      undefined,
    );
  assert.ok(queue.enter('a', () => 'one') instanceof Promise);
});

test('callers have turns, however many requests one of them sent before', async () => {
  const sent = ['a.one', 'a.one', 'a.one', 'a.one', 'a.one', 'a.two', 'a.two', 'a.three'];
  const order = await orderOf(new FairQueue({ ...limits, ofOneTenant: 8 }), sent);
  assert.deepEqual(order, ['a.one', 'a.one', 'a.two', 'a.three', 'a.one', 'a.two', 'a.one', 'a.one']);
});

test('tenants have turns, however many callers one of them has', async () => {
  const sent = ['a.one', 'a.one', 'a.two', 'a.three', 'a.four', 'b.one', 'b.one'];
  const order = await orderOf(new FairQueue(limits), sent);
  assert.deepEqual(order, ['a.one', 'a.one', 'b.one', 'a.two', 'b.one', 'a.three', 'a.four']);
});

test('beyond the bounds of a caller, of a tenant and of all, the newest are refused, and the others stay', async () => {
  const refused = { code: 'unavailable', retryAfter: 1 };
  const queue = new FairQueue(limits);
  const entered: string[] = [];
  const enter = (tenant: string, caller: string) =>
    queue.enter(tenant, () => caller)?.then(() => void entered.push(`${tenant}.${caller}`));
  enter('a', 'one');
  for (let n = 0; n < 4; n++) enter('a', 'one');
  await assert.rejects(queue.enter('a', () => 'one') ?? Promise.resolve(), refused);
  for (let n = 0; n < 2; n++) enter('a', 'two');
  await assert.rejects(queue.enter('a', () => 'three') ?? Promise.resolve(), refused);
  for (let n = 0; n < 2; n++) enter('b', 'one');
  await assert.rejects(queue.enter('c', () => 'one') ?? Promise.resolve(), refused);
  for (let n = 0; n < 9; n++) {
    queue.leave();
    await settled();
  }
  assert.equal(entered.length, 8);
  assert.equal(
    queue.enter('c', () => 'one'),
    undefined,
  );
});

test('nobody waits for longer than the patience, and who came later goes on waiting', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    const clock = mock.method(performance, 'now', () => 0);
    const queue = new FairQueue(limits);
    queue.enter('a', () => 'one');
    const late = queue.enter('a', () => 'one');
    clock.mock.mockImplementation(() => 5000);
    const later = queue.enter('a', () => 'one');
    clock.mock.mockImplementation(() => 10_001);
    mock.timers.tick(1000);
    await assert.rejects(late ?? Promise.resolve(), { code: 'unavailable' });
    queue.leave();
    await later;
    clock.mock.restore();
  } finally {
    mock.timers.reset();
  }
});

test('a request that is refused for want of room says when to come back, and has done nothing', async () => {
  const a = await testAppliance({ fairLimits: { ...limits, waiting: 2, ofOneTenant: 2, ofOneCaller: 2 } });
  await a.call('POST', '/ks/keyrings', { name: 'r' });
  const before = (await a.activity()).length;
  const answers = await Promise.all(Array.from({ length: 10 }, () => a.call('POST', '/ks/encrypt', { ringname: 'r' })));
  const served = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 503);
  assert.equal(served.length + refused.length, 10);
  assert.ok(served.length >= 3 && refused.length > 0, `${served.length} of 10`);
  for (const { headers, body } of refused) {
    assert.equal(headers.get('retry-after'), '1');
    assert.match(body.message, /too many requests at once/);
  }
  assert.equal((await a.activity()).length, before + served.length);
  assert.equal((await a.call('GET', '/healthz', undefined, { key: null })).status, 200);
});
