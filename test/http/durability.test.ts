// An answer means that the change is durable: if the transaction fails, so does the request, and the cause goes only to
// the log.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { KmsError } from '../../src/errors.ts';
import type { Store } from '../../src/store/port.ts';
import { testAppliance } from '../support/appliance.ts';
import { sampled, urlOf } from './samples.ts';

async function withStore(change: (store: Store) => Partial<Store>, options?: Parameters<typeof testAppliance>[0]) {
  const a = await testAppliance(options);
  const [seat] = a.tenants;
  assert.ok(seat);
  Object.assign(seat.handle.store, change({ ...seat.handle.store }));
  const ask = async (method: string, path: string) => {
    const headers = { Authorization: `Bearer ${a.root.key}` };
    const response = await a.app.fetch(new Request(`http://kms.test${path}`, { method, headers }), {});
    return { status: response.status, body: await response.json(), id: response.headers.get('x-request-id') };
  };
  return { ask, log: a.log, a };
}

test('a transaction that does not become durable is 500, whatever the operation answered', async () => {
  const { ask, log } = await withStore((store) => ({
    transaction: async (fn) => {
      await store.transaction(fn);
      throw new Error('fsync failed on /secret/place');
    },
  }));
  for (const [method, path] of [
    ['GET', '/ks/keyrings'],
    ['GET', '/ks/keyrings/none'],
    ['PUT', '/ks/encrypt'],
  ] as const) {
    const { status, body, id } = await ask(method, path);
    assert.equal(status, 500);
    assert.deepEqual(body, { message: 'internal error' });
    assert.ok(log.some((line) => line.includes('fsync failed') && id !== null && line.includes(id)));
  }
});

test('an answer that is made while it is read begins once it is durable, and keeps nothing where it is not', async () => {
  let isDurable = false;
  const read: string[] = [];
  async function* backup(): AsyncGenerator<Uint8Array> {
    read.push(`backup ${isDurable}`);
    yield new Uint8Array(1);
  }
  const change = (store: Store): Partial<Store> => ({
    transaction: async (fn) => {
      const result = await store.transaction(fn);
      // Takes as long as a disk would.
      for (let turns = 0; turns < 10; turns++) await setImmediate();
      if (!isDurable) throw new KmsError('unavailable', 'the store is recovering from a failed write');
      return result;
    },
    activity: {
      async *read(from) {
        read.push(`activity ${isDurable}`);
        yield* store.activity.read(from);
      },
      search: (...asked) => store.activity.search(...asked),
      find: (id) => store.activity.find(id),
    },
  });
  const { a } = await withStore(change, { backup });
  // More often than there are slots.
  for (let n = 0; n < 10; n++) {
    assert.equal((await a.call('POST', '/auth/activity/export', {})).status, 503);
    assert.equal((await a.call('POST', '/system/backup')).status, 503);
  }
  assert.deepEqual(read, []);
  isDurable = true;
  assert.equal((await a.call('POST', '/auth/activity/export', {})).status, 200);
  assert.equal((await a.call('POST', '/system/backup')).status, 200);
  assert.deepEqual(read, ['activity true', 'backup true']);
  const given = await a.app.fetch(
    new Request('http://kms.test/auth/activity/export', {
      method: 'POST',
      headers: { Authorization: `Bearer ${a.root.key}`, 'Content-Type': 'application/json' },
      body: '{}',
    }),
    {},
  );
  for (let turns = 0; turns < 50; turns++) await setImmediate();
  assert.equal(read.length, 2, 'nobody reads it');
  // Cancelled before its first line.
  await given.body?.cancel();
  for (let n = 0; n < 3; n++) assert.equal((await a.call('POST', '/auth/activity/export', {})).status, 200);
});

test('a store that cannot write is 503 with its reason', async () => {
  const unavailable = async () => {
    throw new KmsError('unavailable', 'the store is recovering from a failed write');
  };
  const { ask } = await withStore(() => ({ transaction: unavailable, peek: unavailable }));
  for (const path of ['/ks/keyrings', '/auth/activity/act_x']) {
    const { status, body } = await ask('GET', path);
    assert.equal(status, 503);
    assert.deepEqual(body, { message: 'the store is recovering from a failed write' });
  }
});

test('a defect in an operation is 500, recorded, and takes nothing with it', async () => {
  const { ask, log, a } = await withStore((store) => ({
    transaction: (fn) =>
      store.transaction((tx) =>
        fn({
          ...tx,
          accounts: {
            ...tx.accounts,
            list: () => {
              throw new TypeError('a defect');
            },
          },
        }),
      ),
  }));
  const { status, body } = await ask('GET', '/auth/accounts');
  assert.equal(status, 500);
  assert.deepEqual(body, { message: 'internal error' });
  assert.ok(log.some((line) => line.includes('a defect')));
  const [last] = await a.activity();
  assert.deepEqual([last?.action, last?.validAction, last?.status], ['account.read', true, 500]);
});

test('what an operation throws after it wrote is taken back', async () => {
  const a = await testAppliance({ tenants: [{ name: 'small', hosts: ['*'], limits: { keyrings: 1 } }] });
  assert.equal((await a.call('POST', '/ks/keyrings', { name: 'a' })).status, 200);
  const { status, body } = await a.call('POST', '/ks/keyrings', { name: 'b' });
  assert.equal(status, 403);
  assert.deepEqual(Object.keys(body), ['message']);
  const [last] = await a.activity();
  assert.deepEqual([last?.action, last?.validAction, last?.status, last?.ringname], ['keyring.create', true, 403, 'b']);
  assert.equal((await a.call('GET', '/ks/keyrings')).body.data.length, 1);
});

test('a list that was read is answered to nobody who may not ask any more when the request is recorded', async () => {
  const lists = sampled.filter(({ endpoint }) => endpoint.paginated);
  assert.ok(lists.length >= 9);
  for (const { endpoint, make } of lists) {
    let before: (count: number) => Promise<void> = async () => {};
    let count = 0;
    const { a } = await withStore((store) => ({
      transaction: async (fn) => {
        await before(count++);
        return store.transaction(fn);
      },
    }));
    const sample = await make(a);
    const { key, keyid } = await a.keyWith('*');
    const url = urlOf(endpoint, sample);
    const ask = () => a.call(endpoint.method, url, endpoint.body ? (sample.body ?? {}) : undefined, { key });
    count = 0;
    assert.equal((await ask()).status, 200, url);
    const transactions = count;
    assert.ok(endpoint.id === 'searchActivity' || transactions > 1, `${url} is read beside the transaction`);
    const records = (await a.activity()).length;
    const change = { apikeyid: keyid, op: 'replace', flags: { 'system.none': true } };
    before = async (number) => {
      if (number !== transactions - 1) return;
      before = async () => {};
      assert.equal((await a.call('PUT', '/auth/apikeyid', change)).status, 200);
    };
    count = 0;
    const { status, body: answer } = await ask();
    assert.deepEqual([status, 'data' in answer], [403, false], url);
    const [last, changed, ...earlier] = await a.activity();
    assert.deepEqual([last?.keyid, last?.validAction, last?.status], [keyid, false, 403]);
    assert.equal(changed?.action, 'apikey.update');
    assert.equal(earlier.length, records);
  }
});
