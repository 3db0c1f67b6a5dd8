// Setting approvals up: whichever order of the steps an operator takes, an act is done with the word of another in the
// end, or a refusal says what is missing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unmetRules } from '../../src/core/approval-rules.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { type Approver, ids, say, waits } from '../support/approvers.ts';
import { addTotp, goodPassword, makeRing, ok, type Person, person } from './samples.ts';

const gives = { 'approval.give': true };

/** An appliance with a ring, before anything of approvals is set up. */
class SetUp {
  readonly a: Appliance;
  readonly ring: string;
  #made = 0;

  constructor(a: Appliance, ring: string) {
    this.a = a;
    this.ring = ring;
  }

  user(flags: Record<string, boolean> = {}): Promise<Person> {
    return person(this.a, flags);
  }

  async enrol(who: Person): Promise<Approver> {
    const { secret } = await addTotp(this.a, who);
    this.a.advance(60_000);
    return { ...who, secret };
  }

  makeRule(terms: object) {
    const body = { name: `rule-${++this.#made}`, actions: ['keyring.*.delete'], objects: [this.ring], ...terms };
    return this.a.call('POST', '/approvals/rules', body);
  }

  async rule(terms: object): Promise<AnyJson> {
    return ok(this.makeRule(terms));
  }

  async refusesRule(terms: object, why: RegExp): Promise<void> {
    const { status, body } = await this.makeRule(terms);
    assert.equal(status, 400);
    assert.match(body.message, why);
  }

  remove(key: string) {
    return this.a.call('DELETE', `/ks/keyrings/${this.ring}`, undefined, { key });
  }

  async resetFactorOf({ user: { username } }: Person): Promise<void> {
    await ok(this.a.call('POST', '/local/reset-second-factor', { username }, { key: null, env: { local: true } }));
  }

  /** The act is refused, and cannot be approved as things are. */
  async cannot(why: RegExp): Promise<void> {
    const { status, body } = await this.remove(this.a.root.key);
    assert.equal(status, 403);
    assert.match(body.message, why);
  }

  /** The act is asked for, approved and done. */
  async does(approver: Approver, key = this.a.root.key): Promise<void> {
    const asked = await this.remove(key);
    assert.match(asked.body.message, /; try again once it is approved$/);
    assert.equal((await say(this.a, approver, waits(asked))).body.state, 'granted');
    assert.equal((await this.remove(key)).status, 200);
  }
}

const orders: Record<string, (s: SetUp) => Promise<void>> = {
  'users, their second factors, the rule': async (s) => {
    const ada = await s.enrol(await s.user());
    assert.equal((await s.rule({ approvers: { users: ids(ada) } })).able, 1);
    await s.does(ada);
  },
  'users, the rule, their second factors': async (s) => {
    const user = await s.user();
    assert.equal((await s.rule({ approvers: { users: ids(user) } })).able, 0);
    await s.cannot(/none of its approvers can approve this now .*no second factor yet; once they add one/);
    await s.does(await s.enrol(user));
  },
  'users with a flag, the rule by it, their second factors': async (s) => {
    const user = await s.user(gives);
    await s.rule({ approvers: { flag: 'approval.give' } });
    await s.cannot(/no second factor yet/);
    await s.does(await s.enrol(user));
  },
  'the rule by a flag that nobody has yet': async (s) => {
    const terms = { approvers: { flag: 'approval.give' } };
    const user = await s.user();
    assert.equal((await s.rule(terms)).able, 0);
    await s.cannot(/none of its approvers can approve this now/);
    await ok(s.a.call('PATCH', `/auth/users/${user.user.username}`, { flags: gives }));
    await s.does(await s.enrol(user));
  },
  'the rule by a flag with a slip, though an administrator has all flags': async (s) => {
    const admin = await s.enrol(await s.user({ '*': true }));
    await s.refusesRule({ approvers: { flag: 'aproval.give' } }, /did you mean approval\.give\?/);
    await s.rule({ approvers: { flag: 'approval.give' } });
    await s.does(admin);
  },
  'the rule before an invite is accepted': async (s) => {
    const fields = { username: 'ada', email: 'ada@example.org', firstName: 'A', lastName: 'L', flags: gives };
    const { loginUrl, user } = await ok(s.a.call('POST', '/auth/user/invite', fields));
    for (const approvers of [{ users: ['ada'] }, { flag: 'approval.give' }]) {
      assert.equal((await s.rule({ approvers })).able, 0);
    }
    const invite = { token: new URL(loginUrl).searchParams.get('token'), password: goodPassword };
    const { accesstoken } = await ok(s.a.call('POST', '/auth/user/invite-complete', invite, { key: null }));
    await s.does(await s.enrol({ user, key: accesstoken, password: goodPassword }));
  },
  'the rule first: it takes as many as it needs, and no more': async (s) => {
    await s.rule({ approvers: { flag: 'approval.give' } });
    const ada = await s.enrol(await s.user(gives));
    const late = await s.enrol(await s.user(gives));
    const asked = waits(await s.remove(s.a.root.key));
    const { status, body } = await say(s.a, late, asked);
    assert.deepEqual([status, /became an approver after it was made/.test(body.message)], [403, true]);
    const said = (await s.a.activity()).filter(({ action }) => action === 'approval.vouch');
    assert.deepEqual(
      said.map(({ keyid }) => keyid),
      ids(ada),
    );
    assert.equal((await say(s.a, ada, asked)).body.state, 'granted');
  },
  'the rule first: who leaves before they are enough makes room': async (s) => {
    await s.rule({ approvers: { flag: 'approval.give' }, count: 2 });
    const gone = await s.enrol(await s.user(gives));
    await ok(s.a.call('DELETE', `/auth/users/${gone.user.username}`));
    const [ada, bob] = [await s.enrol(await s.user(gives)), await s.enrol(await s.user(gives))];
    const asked = waits(await s.remove(s.a.root.key));
    for (const who of [ada, bob]) await ok(say(s.a, who, asked));
    assert.equal((await s.remove(s.a.root.key)).status, 200);
  },
  'the rule first: a way into an account before they are enough lets in nobody else': async (s) => {
    await s.rule({ approvers: { flag: 'approval.give' }, count: 2 });
    await s.resetFactorOf(await s.enrol(await s.user(gives)));
    const ada = await s.enrol(await s.user(gives));
    const late = await s.enrol(await s.user(gives));
    const asked = waits(await s.remove(s.a.root.key));
    assert.equal((await say(s.a, late, asked)).status, 403);
    await ok(say(s.a, ada, asked));
    assert.equal((await s.remove(s.a.root.key)).status, 403);
  },
  'the second factor of the only approver is reset after the rule: another one alone does not help': async (s) => {
    const ada = await s.enrol(await s.user());
    await s.rule({ name: "ada's rule", approvers: { users: ids(ada) } });
    await s.resetFactorOf(ada);
    const why = /could have had access to this User's account .*update 'ada'\\''s rule' --vouch/;
    await s.cannot(why);
    const { accessToken: key } = await ok(
      s.a.call('POST', '/auth/basic/login', { username: ada.user.username, password: ada.password }, { key: null }),
    );
    await s.enrol({ ...ada, key });
    await s.cannot(why);
  },
  'the rule first: a way into the account of who came takes their word away': async (s) => {
    const ada = await s.user(gives);
    await s.rule({ approvers: { flag: 'approval.give' } });
    const enrolled = await s.enrol(ada);
    await ok(s.a.call('PATCH', `/auth/users/${ada.user.username}`, { email: 'new@example.com' }));
    const { body } = await say(s.a, enrolled, waits(await s.remove(s.a.root.key)));
    assert.match(body.message, /somebody else could have had access to this User's account/);
  },
  'more words by a change: those who came since count once the rule vouches for them': async (s) => {
    const ada = await s.enrol(await s.user(gives));
    const { id } = await s.rule({ approvers: { flag: 'approval.give' } });
    const change = (changes: object) => s.a.call('PATCH', `/approvals/rules/${id}`, changes);
    await say(s.a, ada, waits(await change({ count: 2 })));
    assert.equal((await ok(change({ count: 2 }))).able, 1);
    const bob = await s.enrol(await s.user(gives));
    const asked = waits(await s.remove(s.a.root.key));
    assert.equal((await say(s.a, bob, asked)).status, 403);
    const headers = { 'Kms-Break-Glass': 'it has one approver left' };
    const local = { key: null, env: { local: true }, headers };
    assert.equal((await s.a.call('PATCH', `/approvals/rules/${id}`, { vouch: true }, local)).body.able, 2);
    for (const who of [bob, ada]) await say(s.a, who, asked);
    assert.equal((await s.remove(s.a.root.key)).status, 200);
  },
  'another second factor, and another password, after the rule': async (s) => {
    const ada = await s.enrol(await s.user());
    await s.rule({ approvers: { users: ids(ada) } });
    const { secret } = await addTotp(s.a, ada, 'the other phone');
    s.a.advance(60_000);
    await s.does({ ...ada, secret });
  },
  'more words than there are who can log in': async (s) => {
    const users = ids(await s.user(), await s.user());
    await s.refusesRule({ approvers: { users }, count: 3 }, /is more than the 2 approvers/);
    const { id } = await s.rule({ approvers: { users }, count: 2 });
    await s.cannot(/the approval of 2 others/);
    assert.equal((await s.a.call('PATCH', `/approvals/rules/${id}`, { count: 3 })).status, 400);
  },
  'an approver who gets the flag after the rule': async (s) => {
    const [ada, bob] = [await s.enrol(await s.user(gives)), await s.enrol(await s.user())];
    const { id, name } = await s.rule({ approvers: { flag: 'approval.give' } });
    await ok(s.a.call('PATCH', `/auth/users/${bob.user.username}`, { flags: gives }));
    const asked = waits(await s.remove(s.a.root.key));
    const { body } = await say(s.a, bob, asked);
    assert.match(body.message, new RegExp(`ask for .kms approval rule update ${name} --vouch`));
    const vouch = () => s.a.call('PATCH', `/approvals/rules/${id}`, { vouch: true });
    await say(s.a, ada, waits(await vouch()));
    await ok(vouch());
    await s.does(bob);
  },
  'an administrator changes the address of the only approver after the rule': async (s) => {
    const ada = await s.enrol(await s.user());
    const { name } = await s.rule({ approvers: { users: ids(ada) } });
    await ok(s.a.call('PATCH', `/auth/users/${ada.user.username}`, { email: 'new@example.com' }));
    await s.cannot(
      new RegExp(`could have had access to this User.s account .*update ${name} --vouch.*can break the glass`),
    );
  },
  'the only approver asks': async (s) => {
    const admin = await s.user({ '*': true });
    const ada = await s.enrol(admin);
    await s.rule({ approvers: { users: ids(ada) } });
    const { body } = await s.remove(ada.key);
    assert.match(body.message, /none of its approvers can approve this now .*it was asked for by this User/);
    await s.does(ada, (await s.a.keyWith('keyring.*.delete')).key);
  },
  'another API key asks': async (s) => {
    const ada = await s.enrol(await s.user());
    await s.rule({ approvers: { users: ids(ada) } });
    await s.does(ada, (await s.a.keyWith('keyring.*.delete')).key);
  },
};

test('the doctor tells of rules that cannot be satisfied as things are, and of no others', async () => {
  const s = new SetUp(await testAppliance(), 'pay');
  const [ada, bob] = [await s.enrol(await s.user()), await s.user()];
  await s.rule({ name: 'met', approvers: { users: ids(ada) } });
  await s.rule({ name: 'unmet', approvers: { users: ids(ada, bob) }, count: 2 });
  const unmet = () => s.a.tenants[0]?.handle.store.transaction((tx) => unmetRules(tx, s.a.world.now()));
  assert.deepEqual(await unmet(), [{ name: 'unmet', able: 1, count: 2 }]);
  await s.enrol(bob);
  assert.deepEqual(await unmet(), []);
});

for (const [order, take] of Object.entries(orders)) {
  test(`set up: ${order}`, async () => {
    const a = await testAppliance();
    await take(new SetUp(a, (await makeRing(a)).name));
  });
}
