// One person never asks and approves, by whichever way they got into the other identity: every way into an API key or a
// User's account, for each giver and each caller. A chain of ways is not broken by deleting a link of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Mail } from '../../src/core/links.ts';
import { behind } from '../../src/core/persons.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { type Approver, approver, code, ids, say, waits } from '../support/approvers.ts';
import { prng } from '../support/prng.ts';
import { addTotp, goodPassword, makeRing, makeRule, ok, person } from './samples.ts';

const local = { key: null, env: { local: true } };
const deletes = { 'keyring.*.delete': true };
const all = { '*': true };

interface Caller {
  readonly id: string;
  /** Null for the administrator at the machine. */
  readonly key: string | null;
}

const machine: Caller = { id: 'local', key: null };

const as = ({ key }: Caller) => (key === null ? local : { key });

const callerOf = ({ user, key }: { user: AnyJson; key: string }): Caller => ({ id: user.id, key });

/** A ring whose deletion takes the word of one of two people, who were there when the rule was set. */
class Desk {
  readonly a: Appliance;
  readonly ada: Approver;
  readonly bob: Approver;
  readonly ring: string;
  readonly rule: string;
  #made = 0;

  constructor(from: Pick<Desk, 'a' | 'ada' | 'bob' | 'ring' | 'rule'>) {
    ({ a: this.a, ada: this.ada, bob: this.bob, ring: this.ring, rule: this.rule } = from);
  }

  static async make(terms: object = {}, options: Parameters<typeof testAppliance>[0] = {}): Promise<Desk> {
    const a = await testAppliance(options);
    const [ada, bob] = [await approver(a, all), await approver(a)];
    const { name: ring } = await makeRing(a);
    const { id: rule } = await makeRule(a, { objects: [ring], approvers: { users: ids(ada, bob) }, ...terms });
    return new Desk({ a, ada, bob, ring, rule });
  }

  async ok(by: Caller, ...[method, path, body]: [string, string, AnyJson?]): Promise<AnyJson> {
    const answer = await this.a.call(method, path, body, as(by));
    assert.equal(answer.status, 200, `${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  get root(): Caller {
    return { id: this.a.root.keyid, key: this.a.root.key };
  }

  async key(by: Caller, more: object = {}): Promise<Caller> {
    const { keyid: id, key } = await this.ok(by, 'POST', '/auth/apikey?uid=true', {
      accountId: 'admin',
      flags: all,
      ...more,
    });
    return { id, key };
  }

  async deleteKey(by: Caller, { id: apikeyid }: Caller): Promise<void> {
    await this.ok(by, 'DELETE', `/auth/apikeyid/${apikeyid}`);
  }

  /** A User whom `by` makes, and whose first password they know. */
  async user(by: Caller, flags: object = deletes): Promise<Caller & { username: string; password: string }> {
    const username = `made-${++this.#made}`;
    const fields = { username, email: `${username}@example.org`, firstName: 'M', lastName: 'M', flags };
    const { user, password } = await this.ok(by, 'POST', '/auth/users', fields);
    const login = await this.a.call('POST', '/auth/basic/login', { username, password }, { key: null });
    return { id: user.id, key: login.body.accessToken, username, password };
  }

  remove(by: Caller) {
    return this.a.call('DELETE', `/ks/keyrings/${this.ring}`, undefined, as(by));
  }

  /** Whether the User could approve what that caller asks for; their word is refused if they could not. */
  async couldApprove(who: Approver, by: Caller): Promise<boolean> {
    const id = waits(await this.remove(by));
    const { body } = await this.a.call('GET', `/approvals/requests/${id}`, undefined, { key: who.key });
    const could = body.may.approve;
    const { status } = could ? { status: 200 } : await say(this.a, who, id);
    assert.equal(status === 200, could, JSON.stringify(body.may));
    return could;
  }
}

/** Ways into an API key, given to `to`; the answer is who asks in the end. */
const waysIntoKeys: Record<string, (d: Desk, to: Caller) => Promise<Caller>> = {
  'is the identity itself': async (_, to) => to,
  'made the API key': (d, to) => d.key(to),
  'made the maker, which is gone': async (d, to) => {
    const first = await d.key(to);
    const second = await d.key(first);
    await d.deleteKey(d.root, first);
    return second;
  },
  'stands at the beginning of a long chain': async (d, to) => {
    let last = to;
    for (let made = 0; made < 56; made++) last = await d.key(last);
    return last;
  },
  'has a new secret of it': async (d, to) => {
    const key = await d.key(d.root);
    await d.ok(to, 'DELETE', `/auth/apikeys/${key.id}/proofs/secret`);
    const { key: secret } = await d.ok(to, 'POST', `/auth/apikeys/${key.id}/proofs`, { kind: 'secret' });
    return { ...key, key: secret };
  },
  'added a proof, which is gone': async (d, to) => {
    const key = await d.key(d.root);
    const { id } = await d.ok(to, 'POST', `/auth/apikeys/${key.id}/proofs`, { kind: 'aws' });
    await d.ok(d.root, 'DELETE', `/auth/apikeys/${key.id}/proofs/${id}`);
    return key;
  },
  'owned it once': async (d, to) => {
    const key = await d.key(to);
    await d.ok(to, 'PUT', '/auth/apikeyid', { apikeyid: key.id, op: 'merge', owner: d.bob.user.id });
    return key;
  },
  'made a User': (d, to) => d.user(to),
  'made a User, whose API key asks': async (d, to) => d.key(await d.user(to, all)),
  'invited a User': async (d, to) => {
    const fields = { username: 'puppet', email: 'puppet@example.org', firstName: 'P', lastName: 'P', flags: deletes };
    const { loginUrl } = await d.ok(to, 'POST', '/auth/user/invite', fields);
    const token = new URL(loginUrl).searchParams.get('token');
    const body = { token, password: goodPassword };
    const done = await d.a.call('POST', '/auth/user/invite-complete', body, { key: null });
    return { id: done.body.user.id, key: done.body.accesstoken };
  },
  'gave a User another e-mail address': async (d, to) => {
    const user = await d.user(d.root);
    await d.ok(to, 'PATCH', `/auth/users/${user.username}`, { email: 'ada@example.com' });
    return user;
  },
};

test('nobody approves what an identity asks for that they could have got into', async (t) => {
  for (const [way, giving] of Object.entries(waysIntoKeys)) {
    await t.test(`who ${way}`, async () => {
      const d = await Desk.make();
      const asks = await giving(d, callerOf(d.ada));
      assert.equal(await d.couldApprove(d.ada, asks), false);
      // The owner that an API key was handed to is one who could use it, too.
      assert.equal(await d.couldApprove(d.bob, asks), way !== 'owned it once');
    });
  }
});

test('so many Users could have got in that the appliance cannot tell: then none approves', async () => {
  const d = await Desk.make();
  const { id } = await d.key(d.root);
  const [seat] = d.a.tenants;
  await seat?.handle.store.transaction(({ waysIn }) => {
    for (let n = 0; n < 501; n++) waysIn.note(id, `user_${n}`);
  });
  const key = await d.key(d.root);
  assert.equal(await d.couldApprove(d.ada, key), true);
  await seat?.handle.store.transaction(({ waysIn }) => {
    for (let n = 0; n < 501; n++) waysIn.note(key.id, `user_${n}`);
  });
  assert.equal(await d.couldApprove(d.ada, key), false);
});

test('API keys and Users that are gone are in nobody’s way, however many they were', async (t) => {
  await t.test('a service whose key makes its successor', async () => {
    const d = await Desk.make();
    let last = d.root;
    for (let made = 0; made < 120; made++) {
      const next = await d.key(last);
      if (last !== d.root) await d.deleteKey(next, last);
      last = next;
    }
    assert.equal(await d.couldApprove(d.ada, last), true);
  });
  for (const kind of ['key', 'user'] as const) {
    await t.test(`many of kind ${kind} that were given a way into the root API key`, async () => {
      const d = await Desk.make();
      const mal = await d.key(d.root);
      for (let made = 0; made < 110; made++) {
        const one = kind === 'key' ? await d.key(mal) : await d.user(mal, all);
        const { id } = await d.ok(one, 'POST', `/auth/apikeys/${d.root.id}/proofs`, { kind: 'aws' });
        await d.ok(one, 'DELETE', `/auth/apikeys/${d.root.id}/proofs/${id}`);
        if ('username' in one) await d.ok(mal, 'DELETE', `/auth/users/${one.username}`);
        else await d.deleteKey(mal, one);
      }
      const [seat] = d.a.tenants;
      const known = await seat?.handle.store.read(({ waysIn }) => waysIn.since(d.root.id, 0).length);
      assert.ok(known !== undefined && known < 5, `${known} ways are known`);
      assert.equal(await d.couldApprove(d.ada, d.root), true);
    });
  }
  await t.test('but those behind them stay', async () => {
    const d = await Desk.make();
    const puppet = await d.user(callerOf(d.ada), all);
    const key = await d.key(d.root);
    await d.ok(puppet, 'POST', `/auth/apikeys/${key.id}/proofs`, { kind: 'aws' });
    await d.ok(d.root, 'DELETE', `/auth/users/${puppet.username}`);
    assert.equal(await d.couldApprove(d.ada, key), false);
    assert.equal(await d.couldApprove(d.bob, key), true);
  });
});

test('an API key of their own gives nobody else a way into the account of an approver', async () => {
  const d = await Desk.make();
  const email = (by: Caller, name: string) =>
    d.ok(by, 'PATCH', `/auth/users/${d.ada.user.username}`, { email: `${name}@example.com` });
  await email(await d.key(callerOf(d.ada)), 'one');
  assert.equal(await d.couldApprove(d.ada, d.root), true);
  // Another has a way into this one.
  const shared = await d.key(callerOf(d.ada));
  await d.ok(d.root, 'POST', `/auth/apikeys/${shared.id}/proofs`, { kind: 'aws' });
  await email(shared, 'two');
  assert.equal(await d.couldApprove(d.ada, d.root), false);
});

test('an API key of before that time may be another’s, who was in the account then', async () => {
  const a = await testAppliance();
  const ada = await approver(a, all);
  const early = await a.call('POST', '/auth/apikey?uid=true', { accountId: 'admin', flags: all }, { key: ada.key });
  const { name: ring } = await makeRing(a);
  const { id: rule } = await makeRule(a, { objects: [ring], approvers: { users: ids(ada) } });
  const d = new Desk({ a, ada, bob: ada, ring, rule });
  await a.call('PATCH', `/auth/users/${ada.user.username}`, { email: 'x@example.com' }, { key: early.body.key });
  assert.equal(await d.couldApprove(ada, d.root), false);
});

test('who could get into an API key later is not behind what it made before', async () => {
  const d = await Desk.make();
  const before = await d.key(d.root);
  await d.ok(callerOf(d.ada), 'POST', `/auth/apikeys/${d.a.root.keyid}/proofs`, { kind: 'aws' });
  const after = await d.key(d.root);
  assert.equal(await d.couldApprove(d.ada, before), true);
  assert.equal(await d.couldApprove(d.ada, after), false);
  assert.equal(await d.couldApprove(d.ada, d.root), false);
});

/** Ways into the account of an approver, given to `to`. */
const waysIntoAccounts: Record<string, { by: 'anybody' | 'local'; give: (d: Desk, to: Caller) => Promise<unknown> }> = {
  'an e-mail address': {
    by: 'anybody',
    give: (d, to) => d.ok(to, 'PATCH', `/auth/users/${d.ada.user.username}`, { email: 'other@example.com' }),
  },
  'a login without the second factor': {
    by: 'local',
    give: async (d, to) => {
      const { user, password } = d.ada;
      await d.ok(to, 'POST', '/local/reset-second-factor', { username: user.username });
      // They log in with the password, and add an app of their own.
      const login = { username: user.username, password };
      const { accessToken: key } = (await d.a.call('POST', '/auth/basic/login', login, { key: null })).body;
      Object.assign(d.ada, { key, ...(await addTotp(d.a, { user, password, key })) });
    },
  },
  'a link to reset the password': {
    by: 'local',
    give: (d, to) => d.ok(to, 'POST', '/local/reset-link', { username: d.ada.user.username }),
  },
};

test('an approver into whose account another could have got counts no more, whoever asks, until vouched for', async (t) => {
  const givers: Record<string, (d: Desk) => Promise<Caller>> = {
    'the root API key': async (d) => d.root,
    'an API key that the administrator at the machine made': (d) => d.key(machine),
    'another User': (d) => d.user(d.root, all),
    'the administrator at the machine': async () => machine,
  };
  for (const [what, { by, give }] of Object.entries(waysIntoAccounts)) {
    for (const [whom, made] of Object.entries(givers)) {
      if (by === 'local' && whom !== 'the administrator at the machine') continue;
      await t.test(`${what}, given by ${whom}`, async () => {
        const d = await Desk.make();
        const giver = await made(d);
        const asking = [d.root, await d.key(machine), await d.key(d.root), await d.user(d.root), machine, giver];
        for (const each of asking) assert.equal(await d.couldApprove(d.ada, each), true);
        await give(d, giver);
        if (giver.id.startsWith('apik_') && giver.id !== d.root.id) await d.deleteKey(d.root, giver);
        for (const each of asking) {
          if (each.id !== giver.id || giver === d.root || giver === machine) {
            assert.equal(await d.couldApprove(d.ada, each), false);
            assert.equal(await d.couldApprove(d.bob, each), true);
          }
        }
        const vouch = { vouch: true };
        const id = waits(await d.a.call('PATCH', `/approvals/rules/${d.rule}`, vouch));
        assert.equal((await say(d.a, d.bob, id)).status, 200);
        await d.ok(d.root, 'PATCH', `/approvals/rules/${d.rule}`, vouch);
        assert.equal(await d.couldApprove(d.ada, d.root), true);
      });
    }
  }
});

test('without a second factor, a password set by mail is a way in for who runs the machine', async () => {
  const mails: Mail[] = [];
  const d = await Desk.make({}, {
    people: { mailer: { send: async (mail: Mail) => void mails.push(mail) } },
  } as object);
  const [seat] = d.a.tenants;
  const last = () => seat?.handle.store.read(({ waysIn }) => waysIn.last());
  /** Whether it gave anybody a way in. */
  const reset = async ({ user }: { user: AnyJson }) => {
    const before = await last();
    await d.a.call('POST', '/auth/basic/reset-password-start', { email: user.email }, { key: null });
    while (mails.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const token = /token=(\S+)/.exec(mails.pop()?.text ?? '')?.[1];
    const body = { token, password: goodPassword };
    assert.equal((await d.a.call('POST', '/auth/basic/reset-password-complete', body, { key: null })).status, 200);
    return (await last()) !== before;
  };
  assert.equal(await reset(d.ada), false);
  assert.equal(await reset(await person(d.a)), true);
});

test('an approver who came after the rule was set counts once it vouches for them', async () => {
  const d = await Desk.make({ approvers: { flag: 'approval.give' } });
  const { ada: first } = d;
  const by = await d.key(d.root);
  const path = `/approvals/rules/${d.rule}`;
  const evil = await approver(d.a, { 'approval.give': true });
  assert.equal((await d.ok(d.root, 'GET', path)).able, 1);
  const could = async () => [await d.couldApprove(first, by), await d.couldApprove(evil, by)];
  assert.deepEqual(await could(), [true, false]);
  const change = async (body: object) => {
    const asked = waits(await d.a.call('PATCH', path, body));
    const { effects } = await d.ok(callerOf(first), 'GET', `/approvals/requests/${asked}`);
    assert.equal((await say(d.a, first, asked)).status, 200);
    await d.ok(d.root, 'PATCH', path, body);
    return effects;
  };
  // Changes that leave the approvers as they are vouch for none of them.
  for (const harmless of [{ name: 'nicer' }, { count: 1 }, { approvers: { flag: 'approval.give' } }]) {
    assert.deepEqual((await change(harmless)).vouched, undefined);
    assert.deepEqual(await could(), [true, false]);
  }
  const { vouched, changed } = await change({ vouch: true });
  assert.deepEqual(vouched, [{ id: evil.user.id, name: evil.user.username, reached: true }]);
  assert.deepEqual(changed, ['vouched']);
  assert.deepEqual(await could(), [true, true]);
  const [record] = (await d.a.activity()).filter(({ action, status }) => action === 'approval.rule' && status === 200);
  assert.deepEqual(record?.props.objects, [{ type: 'user', id: evil.user.id, name: evil.user.username }]);
});

test('a word for vouching vouches for those who were shown, as their accounts were then', async (t) => {
  /** Ways to another outcome between the word and the change. */
  const ways: Record<string, (d: Desk, cy: Approver) => Promise<unknown>> = {
    'another approver': (d) => d.user(d.root, { 'approval.give': true }),
    'a way into the account': (d, cy) =>
      d.ok(d.root, 'PATCH', `/auth/users/${cy.user.username}`, { email: 'other@example.com' }),
    'another User of that name': async (d, cy) => {
      const { username } = cy.user;
      await d.ok(d.root, 'DELETE', `/auth/users/${username}`);
      const fields = {
        username,
        email: 'e@example.org',
        firstName: 'E',
        lastName: 'V',
        flags: { 'approval.give': true },
      };
      await d.ok(d.root, 'POST', '/auth/users', fields);
    },
  };
  for (const [way, take] of Object.entries(ways))
    for (const by of ['flag', 'name'] as const) {
      if (by === 'name' && way === 'another approver') continue;
      await t.test(`${way}, by ${by}`, async () => {
        const d = await Desk.make({ approvers: { flag: 'approval.give' }, window: 86_400 });
        const cy = await approver(d.a, { 'approval.give': true });
        const body =
          by === 'flag' ? { vouch: true } : { approvers: { users: [d.ada.user.username, cy.user.username] } };
        const change = () => d.a.call('PATCH', `/approvals/rules/${d.rule}`, body);
        const id = waits(await change());
        assert.equal((await say(d.a, d.ada, id)).body.state, 'granted');
        await take(d, cy);
        assert.notEqual(waits(await change()), id);
      });
    }
  await t.test('one time, whatever the window', async () => {
    const d = await Desk.make({ approvers: { flag: 'approval.give' }, window: 86_400 });
    await approver(d.a, { 'approval.give': true });
    const change = () => d.a.call('PATCH', `/approvals/rules/${d.rule}`, { vouch: true });
    await say(d.a, d.ada, waits(await change()));
    assert.equal((await change()).status, 200);
    waits(await change());
  });
});

test('a change of the approvers vouches for those who come, and for no other', async () => {
  const d = await Desk.make();
  const cy = await approver(d.a);
  await d.ok(d.root, 'PATCH', `/auth/users/${d.ada.user.username}`, { email: 'other@example.com' });
  const body = { approvers: { users: ids(d.ada, d.bob, cy) } };
  const path = `/approvals/rules/${d.rule}`;
  const asked = waits(await d.a.call('PATCH', path, body));
  const { effects } = await d.ok(callerOf(d.bob), 'GET', `/approvals/requests/${asked}`);
  assert.deepEqual(effects.vouched, [{ id: cy.user.id, name: cy.user.username, reached: true }]);
  await say(d.a, d.bob, asked);
  await d.ok(d.root, 'PATCH', path, body);
  assert.equal(await d.couldApprove(cy, d.root), true);
  assert.equal(await d.couldApprove(d.ada, d.root), false);
});

test('who breaks the glass for their own request does not acknowledge it, with no identity of theirs', async () => {
  const a = await testAppliance();
  const [ada, grace] = [await approver(a, all), await approver(a, { 'approval.rule': true })];
  const { name } = await makeRing(a);
  await makeRule(a, { objects: [name], approvers: { users: ids(grace) }, breakers: ids(ada) });
  const flags = { 'approval.rule': true };
  const keyOf = async (key: string) =>
    (await a.call('POST', '/auth/apikey?uid=true', { accountId: 'admin', flags }, { key })).body;
  const early = await keyOf(ada.key);
  const path = `/ks/keyrings/${name}`;
  const id = waits(await a.call('DELETE', path, undefined, { key: ada.key }));
  a.advance(30_000);
  const breaking = { code: code(a, ada), reason: 'it leaks' };
  const broken = await a.call('POST', `/approvals/requests/${id}/break-glass`, breaking, { key: ada.key });
  assert.equal(broken.body.state, 'granted');
  assert.equal((await a.call('DELETE', path, undefined, { key: ada.key })).status, 200);
  const [glass] = (await a.call('GET', '/approvals/broken-glass')).body.broken;
  const acknowledge = (key: string) =>
    a.call('POST', `/approvals/broken-glass/${glass.id}/acknowledge`, undefined, { key });
  const late = await keyOf(ada.key);
  const fields = { username: 'puppet', email: 'p@example.org', firstName: 'P', lastName: 'P', flags };
  const { password } = (await a.call('POST', '/auth/users', fields, { key: ada.key })).body;
  const login = { username: 'puppet', password };
  const { accessToken } = (await a.call('POST', '/auth/basic/login', login, { key: null })).body;
  for (const key of [ada.key, early.key, late.key, accessToken]) assert.equal((await acknowledge(key)).status, 403);
  assert.equal((await acknowledge(grace.key)).status, 200);
});

test('nor with a User whom they made beforehand, and a rule of their own that vouches for that User', async () => {
  const rules = { none: undefined, 'another act': ['tang.delete'], 'the same act': ['keyring.*.delete'] };
  for (const [name, actions] of Object.entries(rules)) {
    const d = await Desk.make();
    const evil = await d.user(machine, { 'approval.rule': true });
    const rule = { name: 'own', actions, objects: ['*'], approvers: { users: [evil.id] } };
    if (actions) assert.equal((await d.a.call('POST', '/approvals/rules', rule, local)).status, 200);
    const headers = { 'Kms-Break-Glass': 'at night' };
    assert.equal((await d.a.call('DELETE', `/ks/keyrings/${d.ring}`, undefined, { ...local, headers })).status, 200);
    const [glass] = (await d.ok(d.root, 'GET', '/approvals/broken-glass')).broken;
    const acknowledge = (key: string) =>
      d.a.call('POST', `/approvals/broken-glass/${glass.id}/acknowledge`, undefined, { key });
    const { status, body } = await d.a.call(
      'POST',
      `/approvals/broken-glass/${glass.id}/acknowledge`,
      undefined,
      as(evil),
    );
    assert.equal(status, 403, name);
    // Bob would need the flag first, which is said.
    const [ada, bob] = [d.ada.user.username, d.bob.user.username];
    assert.ok(body.message.endsWith(`: ${ada}, ${bob} can, with the permission flag approval.rule`), body.message);
    assert.equal((await acknowledge(d.bob.key)).status, 403);
    await d.ok(d.root, 'PATCH', `/auth/users/${bob}`, { flags: { 'approval.rule': true } });
    assert.equal((await acknowledge(d.bob.key)).status, 200, name);
  }
});

test('nor with a User for whom a rule vouches only since then', async () => {
  const a = await testAppliance();
  const grace = await approver(a, { 'approval.rule': true });
  const evil = await person(a, { 'approval.rule': true });
  const { name } = await makeRing(a);
  await makeRule(a, { objects: [name], approvers: { users: ids(grace) } });
  const headers = { 'Kms-Break-Glass': 'at night' };
  assert.equal((await a.call('DELETE', `/ks/keyrings/${name}`, undefined, { ...local, headers })).status, 200);
  await makeRule(a, { actions: ['tang.delete'], objects: ['*'], approvers: { users: ids(evil) } });
  const [glass] = (await a.call('GET', '/approvals/broken-glass')).body.broken;
  const acknowledge = (key: string) =>
    a.call('POST', `/approvals/broken-glass/${glass.id}/acknowledge`, undefined, { key });
  assert.equal((await acknowledge(evil.key)).status, 403);
  assert.equal((await acknowledge(grace.key)).status, 200);
});

test('if none of those is left for whom a rule vouched before, one for whom a rule vouches now acknowledges it', async (t) => {
  const all = { 'approval.rule': true };
  const losses = {
    'the approver is deleted': (a: Appliance, name: string) => a.call('DELETE', `/auth/users/${name}`),
    'another could have got into their account': (a: Appliance, name: string) =>
      a.call('PATCH', `/auth/users/${name}`, { email: 'new@example.net' }),
  };
  for (const [loss, lose] of Object.entries(losses)) {
    await t.test(loss, async () => {
      const a = await testAppliance();
      const [ada, cy] = [await approver(a, all), await approver(a, all)];
      const { name } = await makeRing(a);
      const rule = await makeRule(a, { objects: [name], approvers: { users: ids(ada) } });
      await ok(lose(a, ada.user.username));
      const headers = { 'Kms-Break-Glass': 'she left' };
      const breaking = { ...local, headers };
      await ok(a.call('DELETE', `/ks/keyrings/${name}`, undefined, breaking));
      const [glass] = (await a.call('GET', '/approvals/broken-glass')).body.broken;
      const acknowledge = () =>
        a.call('POST', `/approvals/broken-glass/${glass.id}/acknowledge`, undefined, { key: cy.key });
      // The administrator at the machine made them.
      assert.equal((await acknowledge()).status, 403);
      const changes = { approvers: { users: ids(cy) } };
      await ok(a.call('PATCH', `/approvals/rules/${rule.id}`, changes, breaking));
      assert.equal((await acknowledge()).status, 200);
    });
  }
});

test('glass broken for a request lets pass what its breaker may break, as long as they are there', async (t) => {
  const desk = async () => {
    const a = await testAppliance();
    const [ada, grace] = [await approver(a), await approver(a)];
    const { name } = await makeRing(a);
    const rule = await makeRule(a, { objects: [name], approvers: { users: ids(grace) }, breakers: ids(ada) });
    const remove = () => a.call('DELETE', `/ks/keyrings/${name}`);
    const id = waits(await remove());
    a.advance(30_000);
    const body = { code: code(a, ada), reason: 'it leaks' };
    assert.equal((await a.call('POST', `/approvals/requests/${id}/break-glass`, body, { key: ada.key })).status, 200);
    const state = async () => (await a.call('GET', `/approvals/requests/${id}`)).body.state;
    return { a, ada, grace, name, rule, remove, state };
  };
  await t.test('nothing changed', async () => {
    const { remove, state } = await desk();
    assert.equal(await state(), 'granted');
    assert.equal((await remove()).status, 200);
  });
  await t.test('another rule that does not name them', async () => {
    const { a, grace, name, remove, state } = await desk();
    await makeRule(a, { objects: [name], approvers: { users: ids(grace) } });
    assert.equal(await state(), 'pending');
    waits(await remove());
  });
  await t.test('they are gone', async () => {
    const { a, ada, remove, state } = await desk();
    assert.equal((await a.call('DELETE', `/auth/users/${ada.user.username}`)).status, 200);
    assert.equal(await state(), 'pending');
    waits(await remove());
  });
});

test('ways keep to the model: who could have got in then approves never, whatever is deleted', async (t) => {
  for (const seed of [1, 2, 3]) {
    await t.test(`seed ${seed}`, async () => {
      const d = await Desk.make();
      const r = prng(seed);
      const people = [callerOf(d.ada), d.root];
      const callers: Caller[] = [...people];
      /** Those who could have got in, by the id of the identity. */
      const could = new Map<string, Set<string>>(callers.map(({ id }) => [id, new Set([id])]));
      const give = (into: string, to: string) => {
        const known = could.get(into) ?? new Set([into]);
        could.set(into, new Set([...known, ...(could.get(to) ?? [to])]));
      };
      for (let step = 0; step < 60; step++) {
        const by = r.pick(callers);
        const other = r.pick(callers.filter(({ id }) => id.startsWith('apik_')));
        const chance = r.int(10);
        if (chance < 5) {
          const key = await d.key(by);
          give(key.id, by.id);
          callers.push(key);
        } else if (chance < 7 && other !== d.root) {
          const { id, status } = (await d.a.call('POST', `/auth/apikeys/${other.id}/proofs`, { kind: 'aws' }, as(by)))
            .body;
          if (id && status === undefined) give(other.id, by.id);
        } else if (chance < 8 && other !== d.root) {
          await d.ok(by, 'PUT', '/auth/apikeyid', { apikeyid: other.id, op: 'merge', owner: d.ada.user.id });
          give(other.id, d.ada.user.id);
        } else if (other !== d.root && other !== by) {
          await d.deleteKey(by, other);
          callers.splice(callers.indexOf(other), 1);
        }
      }
      for (const caller of callers) {
        assert.equal(await d.couldApprove(d.ada, caller), !could.get(caller.id)?.has(d.ada.user.id), caller.id);
      }
    });
  }
});

test('an API key is forgotten when it is deleted', async () => {
  const d = await Desk.make();
  const [seat] = d.a.tenants;
  const known = (id: string) => seat?.handle.store.read((tables) => behind(tables, id, () => 0)?.size);
  const [leaf, link] = [await d.key(d.root), await d.key(d.root)];
  const last = await d.key(link);
  for (const key of [leaf, link]) await d.deleteKey(d.root, key);
  assert.deepEqual([await known(leaf.id), await known(link.id), await known(last.id)], [1, 1, 2]);
});
