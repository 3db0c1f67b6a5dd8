// Acts that are held while they wait for approval: one time, with nothing that others wait for, and not for a client
// that has left.
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { endServer, httpServer, listen } from '../../src/server/http-server.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { approver, ids, say } from '../support/approvers.ts';
import { until } from '../support/until.ts';
import { makeRing, makeRule } from './samples.ts';

async function requests(a: Appliance): Promise<{ id: string; state: string }[]> {
  return (await a.call('GET', '/approvals/requests')).body.requests;
}

/** The request that waits, once there is one. */
async function pending(a: Appliance): Promise<string> {
  for (;;) {
    const found = (await requests(a)).find(({ state }) => state === 'pending');
    if (found) return found.id;
    await pause(10);
  }
}

/** A ring whose deletion is held for the word of ada or bob. */
async function desk(options: Parameters<typeof testAppliance>[0] = {}) {
  const a = await testAppliance(options);
  const [ada, bob] = [await approver(a), await approver(a)];
  const { name } = await makeRing(a);
  const terms = { objects: [name], approvers: { users: ids(ada, bob) }, mode: 'hold' };
  await makeRule(a, terms);
  const { key, keyid } = await a.keyWith('keyring.*.delete');
  const path = `/ks/keyrings/${name}`;
  const remove = (env: object = {}) => a.call('DELETE', path, undefined, { key, env });
  const isThere = async () => (await a.call('GET', path)).status === 200;
  return { a, ada, bob, key, keyid, path, remove, isThere };
}

const refusals = async (a: Appliance) =>
  (await a.activity()).filter(({ action, status }) => action === 'keyring.delete' && status === 403).length;

for (const how of ['deny', 'withdraw']) {
  test(`an act whose request ends while it is held is refused, and asks no second time: ${how}`, async () => {
    const { a, ada, key, remove, isThere } = await desk();
    const held = remove();
    const id = await pending(a);
    if (how === 'deny') await say(a, ada, id, how);
    else await a.call('POST', `/approvals/requests/${id}/withdraw`, undefined, { key });
    const { status, body } = await held;
    assert.deepEqual([status, body.approval.id], [403, id]);
    assert.match(body.message, how === 'deny' ? /was denied/ : /was withdrawn/);
    assert.deepEqual([(await requests(a)).length, await refusals(a), await isThere()], [1, 1, true]);
  });
}

test('what was granted and lacks words now is held for what it lacks, without trying over and over', async () => {
  const { a, ada, bob, remove, isThere } = await desk();
  let isGone = false;
  const first = remove({ isGone: () => isGone });
  const id = await pending(a);
  isGone = true;
  assert.equal((await first).status, 403);
  assert.equal((await say(a, ada, id)).body.state, 'granted');
  await a.call('DELETE', `/auth/users/${ada.user.username}`);
  const second = remove();
  await pending(a);
  await pause(1000);
  assert.equal(await refusals(a), 2);
  await say(a, bob, id);
  assert.deepEqual([(await second).status, await isThere()], [200, false]);
});

test('an appliance that is about to close waits for no word: a held act is refused, and its request stays', async () => {
  const closing = new AbortController();
  const { a, remove, isThere } = await desk({ closing: closing.signal });
  const held = remove();
  const id = await pending(a);
  closing.abort();
  const { status, body } = await held;
  assert.deepEqual([status, body.approval.id], [403, id]);
  assert.match(body.message, /request appr_\w+ is pending/);
  assert.equal((await remove()).body.approval.id, id, 'nor is another one held from then on');
  assert.deepEqual([(await requests(a)).map(({ state }) => state), await isThere()], [['pending'], true]);
});

test('nothing is done for a client that has left', async () => {
  const { a, ada, remove, isThere } = await desk();
  let isGone = false;
  const held = remove({ isGone: () => isGone });
  const id = await pending(a);
  isGone = true;
  await say(a, ada, id);
  assert.deepEqual([(await held).status, await isThere()], [403, true]);
});

test('the server knows of a client that has left', async () => {
  const { a, ada, key, path, isThere } = await desk();
  let isOver = false;
  const answer: Parameters<typeof httpServer>[0] = async (request) => {
    const { outcome } = await a.app.handle(request);
    isOver = true;
    return { outcome };
  };
  const server = httpServer(answer, { origin: () => ({}) });
  await listen(server, { host: '127.0.0.1', port: 0 });
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`DELETE ${path} HTTP/1.1\r\nHost: kms.test\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  const id = await pending(a);
  socket.destroy();
  await say(a, ada, id);
  await until('the request is over', () => isOver);
  assert.equal(await isThere(), true);
  await endServer(server, { grace: 0 });
});

test('a held request keeps no room for its answer, nor for its body', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await makeRule(a, {
    actions: ['keyring.list', 'keyring.create'],
    objects: ['*'],
    approvers: { users: ids(ada) },
    mode: 'hold',
  });
  const { key } = await a.keyWith('keyring.list', 'keyring.create');
  const told: string[] = [];
  const room = {
    take: async () => void told.push('take'),
    takeNow: () => {},
    left: () => {},
    release: () => void told.push('release'),
    cut: () => {},
  };
  const list = a.call('GET', '/ks/keyrings', undefined, { key, env: { room } });
  const id = await pending(a);
  await until('it gives back its room', () => told.length === 2);
  await say(a, ada, id);
  assert.equal((await list).status, 200);
  assert.deepEqual(told, ['take', 'release', 'take']);

  const text = JSON.stringify({ name: 'pay' });
  const body = {
    read: async () => Buffer.from(text),
    release: () => void told.push('body released'),
    reclaim: () => void told.push('body reclaimed'),
  };
  const headers = { host: 'kms.test', authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const made = a.app.handle({ method: 'POST', path: '/ks/keyrings', search: '', headers, body });
  const other = await pending(a);
  await until('it gives back the room of its body', () => told.at(-1) === 'body released');
  await say(a, ada, other);
  assert.equal((await made).outcome.status, 200);
  assert.equal(told.at(-1), 'body reclaimed');
});

test('one caller has a few places, one tenant some more, and who finds none is answered at once', async () => {
  const { a, path, remove } = await desk();
  let isGone = false;
  const env = { isGone: () => isGone };
  const held = Array.from({ length: 4 }, () => remove(env));
  await pending(a);
  assert.equal((await remove(env)).status, 403, 'the fifth of a caller');
  for (let n = 0; n < 3; n++) {
    const { key } = await a.keyWith('keyring.*.delete');
    for (let m = 0; m < 4; m++) held.push(a.call('DELETE', path, undefined, { key, env }));
  }
  await until('all ask', async () => (await requests(a)).length === 4);
  const { key } = await a.keyWith('keyring.*.delete');
  assert.equal((await a.call('DELETE', path, undefined, { key, env })).status, 403, 'the seventeenth of a tenant');
  isGone = true;
  for (const each of held) assert.equal((await each).status, 403);
});

test('a held export gives back its slot', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const terms = { actions: ['activity.read'], objects: ['*'], approvers: { users: ids(ada) }, mode: 'hold' };
  await makeRule(a, terms);
  const { key } = await a.keyWith('activity.read');
  const take = () => a.call('POST', '/auth/activity/export', {}, { key });
  for (let n = 0; n < 4; n++) {
    const held = take();
    await say(a, ada, await pending(a), 'deny');
    const { status, body } = await held;
    assert.deepEqual([status, typeof body.approval], [403, 'object']);
  }
  const held = take();
  await say(a, ada, await pending(a));
  assert.equal((await held).status, 200);
});
