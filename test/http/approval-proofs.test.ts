// Proofs of approval: what a passkey signs for each word, and that an export of what the appliance let happen verifies.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testAppliance } from '../support/appliance.ts';
import { type Approver, approver, code, ids, proven, say, waits } from '../support/approvers.ts';
import { Authenticator } from '../support/authenticator.ts';
import { addPasskey, makeRing, makeRule, makeTransit, ok, type Person, pageOrigin, person } from './samples.ts';

type Appliance = Awaited<ReturnType<typeof testAppliance>>;

const minute = 60_000;
const hour = 60 * minute;
const local = { key: null, env: { local: true } };
const verdicts = ['approve', 'deny', 'break-glass'] as const;
type Word = (typeof verdicts)[number];

/** Somebody with a passkey. */
async function signer(a: Appliance) {
  const one = await person(a);
  const authenticator = new Authenticator();
  await addPasskey(a, one, authenticator);
  return { ...one, authenticator };
}

type Signer = Awaited<ReturnType<typeof signer>>;

async function options(a: Appliance, { key }: Person, id: string, word: Word) {
  const path = `/approvals/requests/${id}/options?verdict=${word}`;
  return (await ok(a.call('GET', path, undefined, { key }))).passkeyOptions;
}

/** The answer to a word that is signed as `signed`. */
async function sign(a: Appliance, who: Signer, id: string, word: Word, signed: Word = word) {
  const passkey = who.authenticator.get(await options(a, who, id, signed), { origin: pageOrigin });
  const body = { passkey, ...(word === 'break-glass' && { reason: 'at night' }) };
  return a.call('POST', `/approvals/requests/${id}/${word}`, body, { key: who.key });
}

/** A ring whose deletion takes the words of these people. */
async function desk(a: Appliance, people: readonly Person[], more: object = {}) {
  const { name } = await makeRing(a);
  const approvers = { users: ids(...people) };
  const rule = await makeRule(a, { objects: [name], approvers, breakers: ids(...people), ...more });
  const { key } = await a.keyWith('keyring.*.delete', 'keyring.*.read');
  return { rule, remove: () => a.call('DELETE', `/ks/keyrings/${name}`, undefined, { key }) };
}

/** The person with a session of now. */
async function backAgain(a: Appliance, who: Approver): Promise<Approver> {
  const { user, password } = who;
  const body = { username: user.username, password, code: code(a, who) };
  const { accessToken: key } = await ok(a.call('POST', '/auth/basic/login', body, { key: null }));
  return { ...who, key };
}

for (const word of verdicts) {
  test(`a signature for ${word} is one for no other word`, async () => {
    const a = await testAppliance();
    const eve = await signer(a);
    const { remove } = await desk(a, [eve]);
    const id = waits(await remove());
    const path = `/approvals/requests/${id}`;
    const { digest } = await ok(a.call('GET', path, undefined, { key: eve.key }));
    const { challenge } = await options(a, eve, id, word);
    assert.equal(challenge === digest, word === 'approve');
    for (const other of verdicts) {
      if (other !== word) assert.equal((await sign(a, eve, id, other, word)).status, 400, `${word} as ${other}`);
    }
    a.advance(minute);
    const { status, body } = await sign(a, eve, id, word);
    assert.equal(status, 200, JSON.stringify(body));
    await remove();
    const records = (await a.activity()).filter(({ action }) => action === `approval.${word}`);
    const { clientDataJSON } = JSON.parse(JSON.stringify(records.at(0)?.props)).approval.assertion;
    assert.equal(JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString()).challenge, challenge);
  });
}

test('without a word in the query the options are those to approve', async () => {
  const a = await testAppliance();
  const eve = await signer(a);
  const { remove } = await desk(a, [eve]);
  const path = `/approvals/requests/${waits(await remove())}`;
  const { digest } = await ok(a.call('GET', path, undefined, { key: eve.key }));
  const { passkeyOptions } = await ok(a.call('GET', `${path}/options`, undefined, { key: eve.key }));
  assert.equal(passkeyOptions.challenge, digest);
  assert.equal((await a.call('GET', `${path}/options?verdict=perhaps`, undefined, { key: eve.key })).status, 400);
});

test('an export of what the appliance let happen verifies', async () => {
  const a = await testAppliance();
  const [eve, dan, ada] = [await signer(a), await signer(a), await approver(a)];
  const two = await desk(a, [eve, dan, ada], { count: 2 });
  const denied = waits(await two.remove());
  await ok(sign(a, eve, denied, 'deny'));
  const approved = waits(await two.remove());
  await ok(sign(a, eve, approved, 'approve'));
  await ok(sign(a, dan, approved, 'approve'));
  await ok(two.remove());

  const broken = await desk(a, [eve, dan]);
  await ok(sign(a, eve, waits(await broken.remove()), 'break-glass'));
  await ok(broken.remove());

  // A rule that asks for fewer meanwhile, by its own words.
  const looser = await desk(a, [ada, dan], { count: 2 });
  const change = () => a.call('PATCH', `/approvals/rules/${looser.rule.id}`, { count: 1 });
  const changing = waits(await change());
  const waiting = waits(await looser.remove());
  await ok(say(a, ada, waiting));
  await ok(say(a, ada, changing));
  await ok(sign(a, dan, changing, 'approve'));
  await ok(change());
  await ok(looser.remove());

  // A rule that ends while a request waits, beside one that stays.
  const end = a.world.now() + hour;
  const ending = await desk(a, [ada], { expires: end });
  const beside = { objects: ending.rule.objects, name: 'beside', approvers: { users: ids(dan) } };
  await makeRule(a, beside);
  const late = waits(await ending.remove());
  await ok(sign(a, dan, late, 'approve'));
  a.advance(2 * hour);
  await ok(ending.remove());
  await ok(a.call('DELETE', `/approvals/rules/${ending.rule.id}`));

  const proved = await proven(a);
  assert.deepEqual([proved.acts, proved.done.length, proved.unchecked, proved.broken.length], [4, 4, 0, 1]);
  const [first] = proved.done;
  assert.deepEqual(
    first?.words.map(({ by, passkey }) => [by, passkey !== undefined]),
    ids(eve, dan).map((id) => [id, true]),
  );
});

test('a request waits for a day, though it had its words meanwhile', async () => {
  const a = await testAppliance();
  const [ada, bob]: Approver[] = [await approver(a), await approver(a)];
  assert.ok(ada && bob);
  const { remove } = await desk(a, [ada, bob]);
  const id = waits(await remove());
  a.advance(23 * hour);
  await ok(say(a, await backAgain(a, ada), id));
  await ok(a.call('POST', '/local/reset-second-factor', { username: ada.user.username }, local));
  assert.equal(waits(await remove()), id, 'it waits once more');
  a.advance(2 * hour);
  const { body } = await a.call('GET', `/approvals/requests/${id}`);
  assert.equal(body.state, 'expired');
  const { status, body: refusal } = await say(a, await backAgain(a, bob), id);
  assert.deepEqual([status, refusal.message], [400, 'the request is expired already']);
  assert.notEqual(waits(await remove()), id);
});

test('a window counts from the word that completed it, whenever the rule asked for fewer', async () => {
  const a = await testAppliance();
  const [ada, bob]: Approver[] = [await approver(a), await approver(a)];
  assert.ok(ada && bob);
  const key = await makeTransit(a, {});
  const approvers = { users: ids(ada, bob) };
  const terms = { actions: ['key.*.encrypt'], objects: [key.name], approvers, count: 2, window: 600 };
  const rule = await makeRule(a, terms);
  const user = await a.keyWith('key.*.encrypt');
  const encrypt = () =>
    a.call('POST', `/managed-keys/${key.name}/encrypt`, { items: [{ plaintext: 'aGk=' }] }, { key: user.key });
  const loosen = (count: number) =>
    ok(
      a.call(
        'PATCH',
        `/approvals/rules/${rule.id}`,
        { count },
        { ...local, headers: { 'Kms-Break-Glass': 'a%20test' } },
      ),
    );
  const id = waits(await encrypt());
  await ok(say(a, ada, id));
  await loosen(1);
  await ok(encrypt());
  a.advance(10 * minute);
  assert.notEqual(waits(await encrypt()), id, 'not ten minutes from the first use, or from the change');
  const proved = await proven(a);
  assert.deepEqual([proved.acts, proved.broken.length], [1, 1]);
});

test('a passkey signs for one User, whatever became of it', async () => {
  const a = await testAppliance();
  const [eve, dan, mallory] = [await signer(a), await signer(a), await person(a)];
  const { remove } = await desk(a, [eve, dan, mallory], { count: 2 });
  const id = waits(await remove());
  await ok(sign(a, eve, id, 'approve'));
  await ok(a.call('DELETE', `/auth/users/${eve.user.username}`));
  await addPasskey(a, mallory, eve.authenticator);
  const second = { ...mallory, authenticator: eve.authenticator };
  const answer = await sign(a, second, id, 'approve');
  assert.deepEqual([answer.status, answer.body.message], [403, 'this passkey has signed for another User before']);
  assert.equal((await sign(a, second, id, 'deny')).status, 403);
  assert.equal((await sign(a, second, id, 'break-glass')).status, 403);
  await ok(sign(a, dan, id, 'approve'));
  waits(await remove(), 1);
});

test('a window is never wider than what was signed', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { name, id: ringId } = await makeRing(a);
  const rule = await makeRule(a, { objects: [name], approvers: { users: ids(ada) } });
  const { key } = await a.keyWith('keyring.*.delete');
  const remove = () => a.call('DELETE', `/ks/keyrings/${name}`, undefined, { key });
  const restore = () => ok(a.call('POST', `/ks/keyrings/${ringId}/restore`));
  const widen = (window: number) => {
    const headers = { 'Kms-Break-Glass': 'a%20test' };
    return ok(a.call('PATCH', `/approvals/rules/${rule.id}`, { window }, { ...local, headers }));
  };
  const once = waits(await remove());
  await ok(say(a, ada, once));
  await widen(600);
  await ok(remove());
  await restore();
  const narrow = waits(await remove());
  assert.notEqual(narrow, once, 'it was approved for one time');
  await ok(say(a, ada, narrow));
  await widen(86_400);
  await ok(remove());
  await restore();
  a.advance(10 * minute);
  assert.notEqual(waits(await remove()), narrow, 'it was approved for ten minutes');
  const { acts } = await proven(a);
  assert.equal(acts, 2);
});
