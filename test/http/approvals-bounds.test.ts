// Bounds of requests for approval: of one caller and a tenant, in number and in an hour, of what is told and kept; and
// of what approvers are shown of a long one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Mail } from '../../src/core/links.ts';
import { requestLasts } from '../../src/model/approval-rules.ts';
import type { Tables } from '../../src/store/port.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { approver, ids, say, waits } from '../support/approvers.ts';
import { until } from '../support/until.ts';
import { makeRule, ok } from './samples.ts';

const hour = 3_600_000;

async function desk(people: object = {}) {
  const a = await testAppliance({ people });
  const ada = await approver(a);
  const rule = await makeRule(a, {
    actions: ['keyring.create'],
    objects: ['*'],
    approvers: { users: ids(ada) },
  });
  const { key, keyid } = await a.keyWith('keyring.create');
  let made = 0;
  const make = (as: string = key) => a.call('POST', '/ks/keyrings', { name: `r${++made}` }, { key: as });
  return { a, ada, rule, key, keyid, make };
}

function inStore<R>({ tenants: [seat] }: Appliance, run: (tx: Tables) => R): Promise<R> {
  if (!seat) throw new Error('an appliance has a tenant');
  return seat.handle.store.transaction(run);
}

let planted = 0;

/** Requests as if a caller had made them. */
function plant(a: Appliance, count: number, more: { requester: string; endsAt?: number; endedAt?: number }) {
  const now = a.world.now();
  const { requester, endsAt = now + requestLasts, endedAt } = more;
  return inStore(a, (tx) =>
    Array.from({ length: count }, () => {
      const id = a.world.newId('appr');
      const terms = { actions: ['keyring.create'], objects: [], itself: [], isOnce: true, lasts: requestLasts };
      const shown = { parameters: {}, body: null, effects: {}, statement: '', digest: '', object: null };
      tx.approvalRequests.insert({
        ...{ id, act: `planted ${++planted}`, requester, holder: requester, state: 'pending', terms },
        ...{ createdAt: now - 2 * hour, grantedAt: undefined, endsAt, endedAt: undefined, uses: 0 },
        brokenBy: undefined,
        details: { action: 'key.create', operation: 'createManagedKey', ...shown },
      });
      if (endedAt !== undefined) tx.approvalRequests.end(id, 'withdrawn', endedAt);
      return id;
    }),
  );
}

const quota = ({ status, body }: { status: number; body: AnyJson }): void =>
  assert.deepEqual([status, body.approval], [403, undefined], JSON.stringify(body));

test('requests whose time is over count no more, however many others are open', async () => {
  const { a, keyid, make } = await desk();
  await plant(a, 40, { requester: 'apik_other' });
  await plant(a, 100, { requester: keyid });
  quota(await make());
  a.advance(requestLasts);
  await plant(a, 40, { requester: 'apik_other' });
  waits(await make());
});

test('others, and the administrators, can ask, however many keys ask for whatever they can', async () => {
  const { a, make } = await desk();
  for (let n = 0; n < 9; n++) await plant(a, 100, { requester: `apik_${n}` });
  quota(await make());
  const other = await a.keyWith('keyring.create', 'approval.rule');
  waits(await make(other.key));
  waits(await a.call('POST', '/ks/keyrings', { name: 'local' }, { key: null, env: { local: true } }));
});

test('where few places are left, nobody takes more than a share of them', async () => {
  const { a, key, keyid, make } = await desk();
  for (let n = 0; n < 8; n++) await plant(a, 100, { requester: `apik_${n}` });
  await plant(a, 19, { requester: keyid });
  quota(await make(key));
  waits(await make((await a.keyWith('keyring.create')).key));
});

test('API keys of one User are counted together', async () => {
  const { a, make } = await desk();
  const eve = await approver(a, { 'keyring.create': true, 'apikey.create': true });
  const { id: accountId } = (await a.call('POST', '/auth/accounts', { uid: 'eve' })).body;
  await plant(a, 100, { requester: eve.user.id });
  const fields = { flags: { 'keyring.create': true }, accountId };
  const { key } = (await a.call('POST', '/auth/apikey', fields, { key: eve.key })).body;
  quota(await make(key));
  quota(await make(eve.key));
});

test('API keys and Users that a caller made are counted with it, also those that these made, and that are gone', async () => {
  const { a, make } = await desk();
  const flags = { 'keyring.create': true, 'apikey.create': true, 'user.create': true };
  const mal = await a.keyWith(...Object.keys(flags), 'apikey.delete');
  const made = async (by: string): Promise<AnyJson> =>
    ok(a.call('POST', '/auth/apikey?uid=true', { accountId: 'admin', flags }, { key: by }));
  const first = await made(mal.key);
  const second = await made(first.key);
  assert.equal((await a.call('DELETE', `/auth/apikeyid/${first.keyid}`)).status, 200);
  const fields = { username: 'm', email: 'm@example.org', firstName: 'M', lastName: 'M', flags };
  const { password } = (await a.call('POST', '/auth/users', fields, { key: second.key })).body;
  const login = await a.call('POST', '/auth/basic/login', { username: 'm', password }, { key: null });
  await plant(a, 100, { requester: mal.keyid });
  for (const key of [mal.key, second.key, login.body.accessToken]) quota(await make(key));
  // Those that an administrator made are on their own.
  waits(await make((await made(a.root.key)).key));
});

test('a caller asks so often in an hour, and the first of it is mailed', async () => {
  const mails: Mail[] = [];
  const events: AnyJson[] = [];
  const { a, ada, key, make } = await desk({
    mailer: { send: async (mail: Mail) => void mails.push(mail) },
    notifier: { send: async (_id: string, event: AnyJson) => void events.push(event) },
  });
  mails.length = 0;
  for (let n = 0; n < 200; n++) {
    const id = waits(await make());
    assert.equal((await a.call('POST', `/approvals/requests/${id}/withdraw`, undefined, { key })).status, 200);
    a.advance(1);
  }
  quota(await make());
  assert.ok(mails.length <= 20, `${mails.length}`);
  assert.ok(mails.every(({ to }) => to === ada.user.email));
  a.advance(hour);
  mails.length = 0;
  waits(await make());
  await until('that one is mailed', () => mails.length === 1);
});

test('the last mail of the hour says so', async () => {
  const mails: Mail[] = [];
  const { a, make } = await desk({ mailer: { send: async (mail: Mail) => void mails.push(mail) } });
  mails.length = 0;
  for (let n = 1; n <= 22; n++) {
    waits(await make());
    a.advance(1);
    if (n <= 20) await until('it is mailed', () => mails.length === n);
  }
  assert.equal(mails.length, 20);
  assert.match(mails[19]?.text ?? '', /within the hour are not mailed/);
  assert.doesNotMatch(mails[18]?.text ?? '', /within the hour are not mailed/);
});

test('of one caller the latest requests that ended are kept', async () => {
  const { a, keyid, make } = await desk();
  const [oldest = ''] = await plant(a, 10, { requester: keyid, endedAt: a.world.now() - hour });
  await plant(a, 500, { requester: keyid, endedAt: a.world.now() });
  waits(await make());
  const kept = await inStore(a, (tx) => [
    tx.approvalRequests.page({ isOpen: false }, undefined, 1000).requests.length,
    tx.approvalRequests.byId(oldest),
  ]);
  assert.deepEqual(kept, [501, undefined]);
});

test('before an act only what has an answer is looked at, and a list only looks at what its caller may see', async () => {
  const { a, ada, key, keyid, make } = await desk();
  const answered = waits(await make());
  await plant(a, 20, { requester: keyid });
  await plant(a, 20, { requester: 'apik_other' });
  assert.deepEqual(await inStore(a, (tx) => tx.approvalRequests.answeredOf(keyid, 'createKeyring')), []);
  await say(a, ada, answered);
  const found = await inStore(a, (tx) => tx.approvalRequests.answeredOf(keyid, 'createKeyring').map(({ id }) => id));
  assert.deepEqual(found, [answered]);
  const { requests } = (await a.call('GET', '/approvals/requests', undefined, { key })).body;
  assert.deepEqual([requests.length, new Set(requests.map((each: AnyJson) => each.requester.id)).size], [21, 1]);
  const asApprover = (await a.call('GET', '/approvals/requests', undefined, { key: ada.key })).body.requests;
  assert.equal(asApprover.length, 41);
  await say(a, ada, asApprover.find(({ state }: AnyJson) => state === 'pending').id);
  for (const [state, count] of [
    ['granted', 2],
    ['pending', 39],
    ['done', 0],
  ] as const) {
    const all = (await a.call('GET', `/approvals/requests?state=${state}`)).body.requests;
    assert.equal(all.length, count, state);
  }
});

test('newer requests hide none: the inbox begins with the oldest, and each list goes on', async () => {
  const { a, ada, key, keyid, make } = await desk();
  const oldest = waits(await make());
  const many = await plant(a, 230, { requester: 'apik_other' });
  const newest = waits(await make(key));
  const list = async (query: string) => {
    const pages: string[][] = [];
    let cursor = '';
    do {
      const path = `/approvals/requests?${query}${cursor && `&cursor=${cursor}`}`;
      const { status, body } = await a.call('GET', path, undefined, { key: ada.key });
      assert.equal(status, 200, JSON.stringify(body));
      pages.push(body.requests.map(({ id }: AnyJson) => id));
      cursor = body.nextCursor ?? '';
    } while (cursor);
    return pages;
  };
  const whole = [oldest, ...many, newest];
  const inbox = await list('inbox=true');
  assert.deepEqual([inbox.flat(), inbox.length], [whole, 3]);
  assert.deepEqual((await list('state=pending')).flat(), whole.toReversed());
  assert.deepEqual(await list(`requester=${keyid}`), [[newest, oldest]]);
  const { nextCursor } = (await a.call('GET', '/approvals/requests?inbox=true', undefined, { key: ada.key })).body;
  const other = await a.call('GET', `/approvals/requests?cursor=${nextCursor}`, undefined, { key: ada.key });
  assert.deepEqual([other.status, Object.keys(other.body.errors)], [400, ['cursor']]);
});

test('a change of a rule with long terms shows what the rule comes to', async () => {
  const { a, ada } = await desk();
  const { id: rule } = await makeRule(a, { actions: ['keyring.*.delete'], approvers: { users: ids(ada) } });
  const objects = Array.from({ length: 100 }, (_, n) => `${n} ${'x'.repeat(200)}`);
  const id = waits(await a.call('PATCH', `/approvals/rules/${rule}`, { objects }));
  const { effects } = (await a.call('GET', `/approvals/requests/${id}`, undefined, { key: ada.key })).body;
  assert.deepEqual(effects.after.objects, { first: objects.slice(0, 20), count: 100 });
  assert.deepEqual(effects.after.actions, ['keyring.*.delete']);
});

test('long fields hide none of those that decide, nor mighty flags behind harmless ones', async () => {
  const { a, ada } = await desk();
  await makeRule(a, { actions: ['apikey.create'], objects: ['*'], approvers: { users: ids(ada) } });
  const flags: Record<string, boolean> = {};
  for (let n = 0; n < 120; n++) flags[`harmless.${n}`] = true;
  flags['user.delete'] = true;
  flags['key.*'] = true;
  const { id: accountId } = (await a.call('POST', '/auth/accounts', { uid: 'x' })).body;
  const props = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`p${n}`, 'x'.repeat(200)]));
  const id = waits(await a.call('POST', '/auth/apikey', { props, flags, accountId }));
  const { shown, effects } = (await a.call('GET', `/approvals/requests/${id}`, undefined, { key: ada.key })).body;
  assert.deepEqual([shown.body.flags['user.delete'], shown.body.flags['key.*']], [true, true]);
  assert.deepEqual(Object.keys(shown.body.props), ['hidden']);
  assert.deepEqual(effects.granted.slice(0, 2), ['key.*', 'user.delete']);
  assert.deepEqual([effects.granted.length, effects.grantedCount], [100, 122]);
});
