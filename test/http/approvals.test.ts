// Approvals over the native interface: what falls under a rule is done with the words that it asks for, and not
// otherwise.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noteRestored } from '../../src/core/approval-decision.ts';
import { expireCoded } from '../../src/core/approval-ends.ts';
import type { Mail } from '../../src/core/links.ts';
import { type AnyJson, testAppliance } from '../support/appliance.ts';
import { approver, code, ids, proven, say, waits } from '../support/approvers.ts';
import { Authenticator } from '../support/authenticator.ts';
import { KmipClient, uid } from '../support/kmip-client.ts';
import { addPasskey, makeRing, makeRule, makeTransit, ok, pageOrigin, person } from './samples.ts';

const minute = 60_000;

const told = (record: { readonly props: AnyJson } | undefined): AnyJson => record?.props ?? {};

/** A ring, and two approvers of its deletion. */
async function desk(more: object = {}) {
  const a = await testAppliance();
  const [ada, bob] = [await approver(a), await approver(a)];
  const { name, id } = await makeRing(a);
  const rule = await makeRule(a, { objects: [name], approvers: { users: ids(ada, bob) }, count: 2, ...more });
  const { key, keyid } = await a.keyWith('keyring.*.delete', 'keyring.*.read');
  const remove = (as: string = key) => a.call('DELETE', `/ks/keyrings/${name}`, undefined, { key: as });
  return { a, ada, bob, name, id, rule, key, keyid, remove };
}

test('an act under a rule is done once with the words of all that it asks for', async () => {
  const { a, ada, bob, name, id: ringId, rule, keyid, remove } = await desk();
  const id = waits(await remove());
  assert.equal(waits(await remove()), id, 'asked again, it is the same request');
  const { body: shown } = await a.call('GET', `/approvals/requests/${id}`, undefined, { key: ada.key });
  assert.deepEqual(
    [shown.state, shown.requester.id, shown.action, shown.operation, shown.object.id, shown.needed, shown.given],
    ['pending', keyid, `keyring.${name}.delete`, 'deleteKeyring', ringId, 2, 0],
  );
  assert.equal(shown.may.approve, true);
  assert.equal((await say(a, ada, id)).status, 200);
  waits(await remove(), 1);
  assert.equal((await say(a, bob, id)).body.state, 'granted');
  assert.equal((await remove()).status, 200);
  const [act] = await a.activity();
  assert.deepEqual(act?.props.approval, {
    id,
    digest: shown.digest,
    use: 1,
    rules: [{ id: rule.id, count: 2, window: 'once', words: ids(ada, bob) }],
  });
  assert.equal((await a.call('POST', `/ks/keyrings/${ringId}/restore`)).status, 200);
  assert.notEqual(waits(await remove()), id, 'the approval is used up');
});

test('the request is recorded with its statement, the words with its digest', async () => {
  const { a, ada, keyid, remove } = await desk();
  const id = waits(await remove());
  await say(a, ada, id);
  const records = (await a.activity()).filter(({ action }) => action.startsWith('approval.'));
  const asked = records.find(({ action }) => action === 'approval.request');
  const said = records.find(({ action }) => action === 'approval.approve');
  assert.deepEqual([asked?.keyid, said?.keyid, said?.status], [keyid, ada.user.id, 200]);
  const { approval: request } = told(asked);
  const { approval: word } = told(said);
  assert.deepEqual([word.id, word.digest, word.verdict, word.factor.kind], [id, request.digest, 'approve', 'totp']);
  assert.equal(JSON.parse(request.statement).requester, keyid);
});

test('nobody approves two times, nor what they asked for, nor for another person of theirs', async () => {
  const { a, ada, bob, name, remove } = await desk();
  const id = waits(await remove());
  await say(a, ada, id);
  assert.equal((await say(a, ada, id)).status, 403);
  const own = await a.call('POST', '/auth/apikey?uid=true', {
    flags: { 'keyring.*.delete': true },
    accountId: 'admin',
  });
  assert.equal(own.status, 200, JSON.stringify(own.body));
  // A User asks, and approves; then by an API key of theirs.
  const eve = await approver(a, { 'keyring.*.delete': true, 'apikey.create': true });
  await a.call('PATCH', `/approvals/rules/${(await a.call('GET', '/approvals/rules')).body.rules[0].id}`, {});
  const other = await makeRing(a);
  await makeRule(a, { objects: [other.name], approvers: { users: ids(eve, bob) } });
  const path = `/ks/keyrings/${other.name}`;
  const mine = waits(await a.call('DELETE', path, undefined, { key: eve.key }));
  assert.equal((await say(a, eve, mine)).status, 403);
  const { body: made } = await a.call(
    'POST',
    '/auth/apikey',
    { flags: { 'keyring.*.delete': true }, accountId: own.body.references.accountId },
    { key: eve.key },
  );
  const theirs = waits(await a.call('DELETE', path, undefined, { key: made.key }));
  assert.equal((await say(a, eve, theirs)).status, 403);
  assert.equal((await say(a, bob, theirs)).status, 200);
  assert.equal(name === other.name, false);
});

test('a User whom the requester gave a way in since the rule was set cannot approve', async () => {
  const { a, ada, name } = await desk({ count: 1 });
  const path = `/ks/keyrings/${name}`;
  const id = waits(await a.call('DELETE', path));
  a.advance(1);
  // Root made ada before the rule vouched for her; a new e-mail address is a new way in.
  await a.call('PATCH', `/auth/users/${ada.user.username}`, { email: 'root@example.org' });
  const { status, body } = await say(a, ada, id);
  assert.equal(status, 403);
  assert.match(body.message, /could have had access to this User's account/);
});

test('words go with who said them, with their second factor, and with their place among the approvers', async () => {
  const { a, ada, bob, rule, remove } = await desk();
  const id = waits(await remove());
  await say(a, ada, id);
  const local = { key: null, env: { local: true } };
  await a.call('POST', '/local/reset-second-factor', { username: ada.user.username }, local);
  waits(await remove(), 0);
  await say(a, bob, id);
  await a.call('DELETE', `/auth/users/${bob.user.username}`);
  waits(await remove(), 0);
  assert.equal((await a.call('GET', `/approvals/rules/${rule.id}`)).body.able, 0);
});

test('a word needs a session and a fresh second factor', async () => {
  const { a, ada, remove } = await desk();
  const id = waits(await remove());
  const path = `/approvals/requests/${id}/approve`;
  assert.equal((await a.call('POST', path, {})).status, 400, 'an API key');
  const stale = await a.call('POST', path, {}, { key: ada.key });
  assert.equal(stale.status, 403);
  assert.match(stale.body.message, /second factor/);
  const codes = await a.call('POST', path, { code: '000000' }, { key: ada.key });
  assert.equal(codes.status, 400);
  // A login with a second factor is fresh for five minutes.
  a.advance(minute);
  const body = { username: ada.user.username, password: ada.password, code: code(a, ada) };
  const { accessToken: key } = (await a.call('POST', '/auth/basic/login', body, { key: null })).body;
  a.advance(5 * minute + 1);
  assert.equal((await a.call('POST', path, {}, { key })).status, 403);
  const again = { ...body, code: code(a, ada) };
  const { accessToken: fresh } = (await a.call('POST', '/auth/basic/login', again, { key: null })).body;
  a.advance(5 * minute);
  assert.equal((await a.call('POST', path, {}, { key: fresh })).status, 200);
});

test('a passkey signs the digest, and the record keeps what it signed', async () => {
  const { a, remove, name } = await desk();
  const eve = await person(a);
  const authenticator = new Authenticator();
  await addPasskey(a, eve, authenticator);
  await makeRule(a, { objects: [name], approvers: { users: ids(eve) } });
  const id = waits(await remove());
  const path = `/approvals/requests/${id}`;
  const { passkeyOptions } = (await a.call('GET', `${path}/options`, undefined, { key: eve.key })).body;
  const { digest } = (await a.call('GET', path, undefined, { key: eve.key })).body;
  assert.equal(passkeyOptions.challenge, digest);
  const claims = { origin: pageOrigin, flags: 5 };
  for (const wrong of [
    { ...claims, flags: 1 },
    { ...claims, challenge: 'AAAA' },
    { ...claims, origin: 'http://x.test' },
  ]) {
    const passkey = authenticator.get(passkeyOptions, wrong);
    assert.equal((await a.call('POST', `${path}/approve`, { passkey }, { key: eve.key })).status, 400);
  }
  const passkey = authenticator.get(passkeyOptions, claims);
  const { status, body } = await a.call('POST', `${path}/approve`, { passkey }, { key: eve.key });
  assert.equal(status, 200, JSON.stringify(body));
  const [word] = (await a.activity()).filter(({ action, status: s }) => action === 'approval.approve' && s === 200);
  const { assertion } = told(word).approval;
  assert.equal(assertion.signature, passkey.response.signature);
  assert.equal(JSON.parse(Buffer.from(assertion.clientDataJSON, 'base64url').toString()).challenge, digest);
});

test('a window lets the same caller do the same to the same thing, until it ends and not again by asking', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const key = await makeTransit(a, {});
  const terms = { actions: ['key.*.encrypt'], objects: [key.name], approvers: { users: ids(ada) }, window: 600 };
  await makeRule(a, terms);
  const user = await a.keyWith('key.*.encrypt');
  const path = `/managed-keys/${key.name}/encrypt`;
  const encrypt = (plaintext: string, as = user.key, ref = path) =>
    a.call('POST', ref, { items: [{ plaintext }] }, { key: as });
  const id = waits(await encrypt('aGk='));
  await say(a, ada, id);
  assert.equal((await encrypt('aGk=')).status, 200);
  assert.equal((await encrypt('aG8=', user.key, `/managed-keys/${key.id}/encrypt`)).status, 200, 'by its id, too');
  waits(await encrypt('aGk=', (await a.keyWith('key.*.encrypt')).key));
  a.advance(600_001);
  assert.notEqual(waits(await encrypt('aGk=')), id);
});

test('a denied, a withdrawn and an expired request are over', async () => {
  const { a, ada, key, remove } = await desk({ count: 1 });
  const denied = waits(await remove());
  assert.equal((await say(a, ada, denied, 'deny')).body.state, 'denied');
  const withdrawn = waits(await remove());
  assert.notEqual(withdrawn, denied);
  assert.equal((await a.call('POST', `/approvals/requests/${withdrawn}/withdraw`, undefined, { key })).status, 200);
  const expired = waits(await remove());
  a.advance(24 * 60 * minute);
  assert.notEqual(waits(await remove()), expired);
  const [record] = (await a.activity()).filter(({ action }) => action === 'approval.expire');
  assert.deepEqual(told(record).approval, { id: expired });
});

test('rules protect themselves, and a milder second rule loosens nothing', async () => {
  const { a, ada, bob, name, rule, remove } = await desk();
  const path = `/approvals/rules/${rule.id}`;
  waits(await a.call('PATCH', path, { count: 1 }));
  const id = waits(await a.call('DELETE', path));
  await makeRule(a, { objects: [name], approvers: { users: ids(ada) }, count: 1 });
  const asked = waits(await remove());
  await say(a, ada, asked);
  waits(await remove(), 1);
  await say(a, ada, id);
  await say(a, bob, id);
  assert.equal((await a.call('DELETE', path)).status, 200);
  assert.equal((await remove()).status, 200, 'what is left of the rules is satisfied');
});

test('making an administrator is an act of many ways', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await makeRule(a, { actions: ['admin.make'], objects: ['*'], approvers: { users: ids(ada) } });
  const { keyid } = await a.keyWith('key.list');
  const admin = { '*': true };
  const { body: account } = await a.call('POST', '/auth/accounts', { uid: 'x' });
  waits(await a.call('POST', '/auth/apikey', { flags: admin, accountId: account.id }));
  waits(await a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', flags: admin }));
  waits(await a.call('PATCH', `/auth/users/${ada.user.username}`, { flags: admin }));
  waits(await a.call('POST', `/auth/apikeys/${a.root.keyid}/proofs`, { kind: 'aws' }));
  const fields = { username: 'new', email: 'new@example.org', firstName: 'N', lastName: 'N' };
  waits(await a.call('POST', '/auth/user/invite', { ...fields, flags: admin }));
  assert.equal((await a.call('POST', '/auth/user/invite', fields)).status, 200);
});

test('the administrator at the machine is bound too, unless they break the glass, loudly', async () => {
  const { a, name, ada: keeper } = await desk();
  const local = { key: null, env: { local: true } };
  await ok(a.call('PATCH', `/auth/users/${keeper.user.username}`, { flags: { 'approval.rule': true } }));
  const path = `/ks/keyrings/${name}`;
  waits(await a.call('DELETE', path, undefined, local));
  const headers = { 'Kms-Break-Glass': encodeURIComponent('es brennt – sofort') };
  assert.equal((await a.call('DELETE', path, undefined, { headers })).status, 403, 'not over the network');
  assert.equal((await a.call('DELETE', path, undefined, { ...local, headers })).status, 200);
  const { broken } = (await a.call('GET', '/approvals/broken-glass')).body;
  assert.deepEqual([broken.length, broken[0].by.id, broken[0].reason], [1, 'local', 'es brennt – sofort']);
  assert.equal(broken[0].acknowledged, null);
  const acknowledge = `/approvals/broken-glass/${broken[0].id}/acknowledge`;
  assert.equal((await a.call('POST', acknowledge, undefined, local)).status, 403, 'not by who broke it');
  assert.equal((await a.call('POST', acknowledge)).status, 403, 'nor with an API key that they made');
  const { user, key } = await person(a, { 'approval.rule': true });
  assert.equal((await a.call('POST', acknowledge, undefined, { key })).status, 403, 'nor by a User that they made');
  assert.equal(
    (await a.call('POST', acknowledge, undefined, { key: keeper.key })).body.acknowledged.by.id,
    keeper.user.id,
  );
  assert.notEqual(user.id, keeper.user.id);
});

test('no local endpoint is a way around a rule', async () => {
  const a = await testAppliance();
  const [ada, root] = [await approver(a), await approver(a, { '*': true })];
  await makeRule(a, { actions: ['admin.make'], objects: ['*'], approvers: { users: ids(ada) } });
  const local = { key: null, env: { local: true } };
  a.advance(1);
  const reset = (of: string) => a.call('POST', '/local/reset-link', { username: of }, local);
  assert.equal((await reset(ada.user.username)).status, 200);
  const id = waits(await reset(root.user.username));
  waits(await a.call('POST', '/local/reset-second-factor', { username: root.user.username }, local));
  // The administrator gave ada a new way in, and she is no other person any more.
  assert.equal((await say(a, ada, id)).status, 403);
  const headers = { 'Kms-Break-Glass': 'locked out' };
  assert.equal(
    (await a.call('POST', '/local/reset-link', { username: root.user.username }, { ...local, headers })).status,
    200,
  );
});

test('an act that fails uses up nothing', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { key } = await a.keyWith('keyring.create');
  await makeRule(a, { actions: ['keyring.create'], objects: ['*'], approvers: { users: ids(ada) } });
  const make = (body: object) => a.call('POST', '/ks/keyrings', body, { key });
  assert.equal((await make({ name: '' })).status, 400);
  const id = waits(await make({ name: 'pay' }));
  assert.notEqual(waits(await make({ name: 'other' })), id, 'another body is another request');
  await say(a, ada, id);
  assert.equal((await make({ name: '' })).status, 400);
  assert.equal((await make({ name: 'pay' })).status, 200);
});

test('requests concern those who made them and those who can decide', async () => {
  const { a, ada, key, remove } = await desk();
  const id = waits(await remove());
  const other = await a.keyWith('keyring.list');
  assert.equal((await a.call('GET', `/approvals/requests/${id}`, undefined, { key: other.key })).status, 404);
  assert.equal((await a.call('GET', '/approvals/requests', undefined, { key: other.key })).body.requests.length, 0);
  assert.equal((await a.call('GET', '/approvals/requests?mine=true', undefined, { key })).body.requests[0].id, id);
  const inbox = await a.call('GET', '/approvals/requests?inbox=true', undefined, { key: ada.key });
  assert.equal(inbox.body.requests[0].id, id);
});

test('a caller has a hundred requests at most', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await makeRule(a, { actions: ['keyring.create'], objects: ['*'], approvers: { users: ids(ada) } });
  const { key } = await a.keyWith('keyring.create');
  for (let n = 0; n < 100; n++) waits(await a.call('POST', '/ks/keyrings', { name: `r${n}` }, { key }));
  const { status, body } = await a.call('POST', '/ks/keyrings', { name: 'more' }, { key });
  assert.deepEqual([status, body.approval], [403, undefined]);
});

test('approvers are told once of a request, and of broken glass, by mail and webhook', async () => {
  const mails: Mail[] = [];
  const events: AnyJson[] = [];
  const a = await testAppliance({
    people: {
      mailer: { send: async (mail) => void mails.push(mail) },
      notifier: { send: async (_id, event) => void events.push(event) },
    },
  });
  const ada = await approver(a);
  const { name } = await makeRing(a);
  await makeRule(a, { objects: [name], approvers: { users: ids(ada) } });
  const { key } = await a.keyWith('keyring.*.delete');
  const headers = { 'Kms-Reason': encodeURIComponent('außer Betrieb') };
  mails.length = 0;
  const id = waits(await a.call('DELETE', `/ks/keyrings/${name}`, undefined, { key, headers }));
  waits(await a.call('DELETE', `/ks/keyrings/${name}`, undefined, { key }));
  const glass = { 'Kms-Break-Glass': 'leaks' };
  await a.call('DELETE', `/ks/keyrings/${name}`, undefined, { key: null, env: { local: true }, headers: glass });
  while (mails.length < 2 || events.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(
    mails.map(({ to }) => to),
    [ada.user.email, ada.user.email],
  );
  assert.ok(mails[0]?.text.includes(id) && mails[0].text.includes('außer Betrieb'));
  assert.deepEqual(
    events.map(({ type, request, brokenGlass }) => [type, request?.id, brokenGlass?.reason]),
    [
      ['approval.requested', id, undefined],
      ['approval.glass-broken', undefined, 'leaks'],
    ],
  );
});

test('a restored backup is broken glass where a rule says so', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const [seat] = a.tenants;
  const restored = async () => {
    await seat?.handle.store.transaction((tx) => noteRestored({ tx, world: a.world }, 'backup'));
    return (await a.call('GET', '/approvals/broken-glass')).body.broken.length;
  };
  assert.equal(await restored(), 0);
  await makeRule(a, { actions: ['system.restore'], objects: ['*'], approvers: { users: ids(ada) } });
  assert.equal(await restored(), 1);
});

test('a restored store forgets the words that were said until then, and only those', async () => {
  const { a, ada, bob, remove, key } = await desk({ window: 600 });
  const { id: other, key: asking } = await (async () => {
    const one = await a.keyWith('keyring.*.delete');
    return { ...one, id: waits(await remove(one.key)) };
  })();
  const granted = waits(await remove());
  for (const who of [ada, bob]) await say(a, who, granted);
  const [seat] = a.tenants;
  await seat?.handle.store.transaction((tx) => noteRestored({ tx, world: a.world }, 'backup'));
  const id = waits(await remove(key));
  assert.notEqual(id, granted);
  assert.equal((await a.call('GET', `/approvals/requests/${granted}`)).body.state, 'expired');
  const [ended] = (await a.activity()).filter(({ action }) => action === 'approval.expire');
  assert.equal(told(ended).object?.id, granted);
  assert.equal(waits(await remove(asking)), other, 'without a word it waits as before');
  for (const who of [ada, bob]) await say(a, who, id);
  assert.equal((await remove(key)).status, 200);
  assert.equal((await proven(a)).acts, 1);
});

test('with another tenant key, requests with codes end: no later try has the same', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { name } = await makeTransit(a, { deletionAllowed: true });
  const terms = { actions: ['key.*.encrypt', 'key.*.delete'], objects: [name], approvers: { users: ids(ada) } };
  await makeRule(a, terms);
  const items = [{ plaintext: 'aGk=' }];
  const coded = waits(await a.call('POST', `/managed-keys/${name}/encrypt`, { items }));
  const plain = waits(await a.call('DELETE', `/managed-keys/${name}`));
  await say(a, ada, coded);
  const [seat] = a.tenants;
  await seat?.handle.store.transaction((tx) => expireCoded({ tx, world: a.world }));
  const state = async (id: string) => (await a.call('GET', `/approvals/requests/${id}`)).body.state;
  assert.deepEqual([await state(coded), await state(plain)], ['expired', 'pending']);
});

test("what is asked by KMIP, and changes of a ring's configuration, are shown", async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const client = await KmipClient.make(a, 'kmip.*');
  const key = await client.aes();
  const ring = await makeRing(a);
  await makeRule(a, { actions: ['key.*', 'keyring.*.config'], objects: ['*'], approvers: { users: ids(ada) } });
  const shown = async (operation: string) => {
    const { requests } = (await a.call('GET', '/approvals/requests', undefined, { key: ada.key })).body;
    return requests.find((each: AnyJson) => each.operation === operation)?.shown.body;
  };
  await client.refused('Get', [uid(key)]);
  const { payload, fields } = await shown('kmip:Get');
  assert.deepEqual([Object.keys(payload), fields], [['hidden'], { uniqueIdentifier: key }]);
  const config = { key: { props: { team: 'pay' } } };
  waits(await a.call('PUT', '/ks/config', { ringname: ring.name, config }));
  assert.deepEqual((await shown('putConfig')).config, config);
});

/** A key that may be encrypted with for a while once ada said so, and what she said. */
async function windowed(window: 'once' | number, more: object = {}) {
  const a = await testAppliance();
  const [ada, bob] = [await approver(a), await approver(a)];
  const { name } = await makeTransit(a);
  const terms = { actions: ['key.*.config'], objects: [name], approvers: { users: ids(ada, bob) }, window };
  const rule = await makeRule(a, { ...terms, ...more });
  const { key } = await a.keyWith('key.*.config');
  const act = () => a.call('PUT', `/managed-keys/${name}/config`, { deletionAllowed: true }, { key });
  const change = (changes: object) =>
    a.call('PATCH', `/approvals/rules/${rule.id}`, changes, {
      ...{ key: null, env: { local: true } },
      headers: { 'Kms-Break-Glass': 'test' },
    });
  const id = waits(await act());
  return { a, ada, bob, act, change, id };
}

test('what was granted lasts no longer than those who granted it were told', async () => {
  const narrow = await windowed(600);
  await say(narrow.a, narrow.ada, narrow.id);
  assert.equal((await narrow.change({ window: 86_400 })).status, 200);
  assert.equal((await narrow.act()).status, 200);
  narrow.a.advance(600_001);
  assert.notEqual(waits(await narrow.act()), narrow.id);

  const once = await windowed('once');
  await say(once.a, once.ada, once.id);
  assert.equal((await once.change({ window: 86_400 })).status, 200);
  assert.equal((await once.act()).status, 200);
  waits(await once.act());

  const narrowed = await windowed(86_400);
  await say(narrowed.a, narrowed.ada, narrowed.id);
  assert.equal((await narrowed.change({ window: 300 })).status, 200);
  narrowed.a.advance(300_001);
  assert.notEqual(waits(await narrowed.act()), narrowed.id);
});

test('a clock that is set back lengthens no window', async () => {
  const { a, ada, act, id } = await windowed(300);
  await say(a, ada, id);
  assert.equal((await act()).status, 200);
  a.advance(-60 * minute);
  assert.notEqual(waits(await act()), id);
});

test('glass that a User broke is broken for the rules that name them, as long as they are there', async () => {
  const breaking = async () => {
    const a = await testAppliance();
    const ada = await approver(a);
    const { name } = await makeRing(a);
    await makeRule(a, { objects: [name], approvers: { users: ids(ada) }, breakers: ids(ada) });
    const { key } = await a.keyWith('keyring.*.delete');
    const remove = () => a.call('DELETE', `/ks/keyrings/${name}`, undefined, { key });
    const id = waits(await remove());
    a.advance(minute / 2);
    const body = { reason: 'leaks', code: code(a, ada) };
    const broken = await a.call('POST', `/approvals/requests/${id}/break-glass`, body, { key: ada.key });
    assert.equal(broken.status, 200, JSON.stringify(broken.body));
    return { a, ada, name, remove };
  };
  const usual = await breaking();
  assert.equal((await usual.remove()).status, 200);
  const other = await breaking();
  await makeRule(other.a, { objects: [other.name], approvers: { users: ids(other.ada) } });
  waits(await other.remove());
  const gone = await breaking();
  await gone.a.call('DELETE', `/auth/users/${gone.ada.user.username}`);
  waits(await gone.remove());
});
