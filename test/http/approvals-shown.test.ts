// Effects of an act as its approvers see them: each change that matters shows in the object before and after, and
// nothing of a long list is left out without a number.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differencesBetween, unseenChanges } from '../../src/console/approvals/differences.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { type Approver, approver, ids, waits } from '../support/approvers.ts';
import { makeRing, makeRule, makeTransit, ok, person } from './samples.ts';

async function asked(a: Appliance, ada: Approver, answer: Parameters<typeof waits>[0]): Promise<AnyJson> {
  return ok(a.call('GET', `/approvals/requests/${waits(answer)}`, undefined, { key: ada.key }));
}

interface Act {
  /** Makes what is there before the rule; its answer is handed on. */
  readonly prepare: (a: Appliance) => Promise<AnyJson>;
  readonly go: (a: Appliance, there: AnyJson) => ReturnType<Appliance['call']>;
  /** Fields that differ. */
  readonly fields: readonly string[];
}

const configured = (change: object, fields = Object.keys(change)): Act => ({
  prepare: async (a) => {
    const { name } = await makeTransit(a);
    await ok(a.call('POST', `/managed-keys/${name}/rotate`));
    return { name };
  },
  go: (a, { name }) => a.call('PUT', `/managed-keys/${name}/config`, change),
  fields,
});

const apiKey = async (a: Appliance) => {
  const { id: accountId } = await ok(a.call('POST', '/auth/accounts', { uid: 'shop' }));
  return ok(a.call('POST', '/auth/apikey', { accountId, flags: {} }));
};

const acts: Readonly<Record<string, Act>> = {
  'the least version that decrypts': configured({ minDecryptVersion: 2 }),
  'how often a key rotates': configured({ rotateAfter: 86_400 }),
  'when a key is deactivated': configured({ deactivateAt: 4_000_000_000_000 }),
  'tags of a key': configured({ tags: { team: 'blue' } }, ['tags.team']),
  'an alias that is taken away': {
    prepare: async (a) => {
      const { name } = await makeTransit(a);
      await ok(a.call('POST', `/managed-keys/${name}/aliases`, { alias: 'pay' }));
      return { name };
    },
    go: (a, { name }) => a.call('DELETE', `/managed-keys/${name}/aliases/pay`),
    fields: ['aliases'],
  },
  'versions that are destroyed': {
    prepare: async (a) => {
      const { name } = await makeTransit(a);
      await ok(a.call('POST', `/managed-keys/${name}/rotate`));
      await ok(a.call('PUT', `/managed-keys/${name}/config`, { minDecryptVersion: 2, minEncryptVersion: 2 }));
      return { name };
    },
    go: (a, { name }) => a.call('POST', `/managed-keys/${name}/trim`, { minAvailableVersion: 2 }),
    fields: ['versions.1'],
  },
  'a new version': {
    prepare: (a) => makeTransit(a),
    go: (a, { name }) => a.call('POST', `/managed-keys/${name}/rotate`),
    fields: ['latestVersion', 'versions.2'],
  },
  'the owner of an API key': {
    prepare: async (a) => {
      const { keyid } = await apiKey(a);
      return { keyid, owner: (await person(a)).user };
    },
    go: (a, { keyid, owner }) => a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', owner: owner.id }),
    fields: ['owner'],
  },
  'a proof of an API key': {
    prepare: (a) => apiKey(a),
    go: (a, { keyid }) => a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'aws' }),
    fields: ['proofs'],
  },
  'an account': {
    prepare: (a) => ok(a.call('POST', '/auth/accounts', { uid: 'shop' })),
    go: (a, { id }) => a.call('PATCH', `/auth/accounts/${id}`, { uid: 'mall', notes: 'moved' }),
    fields: ['uid', 'notes'],
  },
  'settings of a keyring': {
    prepare: (a) => makeRing(a),
    go: (a, { name }) => a.call('PUT', '/ks/config', { ringname: name, config: { rotateAfter: 86_400_000 } }),
    fields: ['rotateAfter'],
  },
};

for (const [name, { prepare, go, fields }] of Object.entries(acts)) {
  test(`approvers see what changes: ${name}`, async () => {
    const a = await testAppliance();
    const ada = await approver(a);
    const there = await prepare(a);
    await makeRule(a, { actions: ['*'], objects: ['*'], approvers: { users: ids(ada) } });
    const { effects } = await asked(a, ada, await go(a, there));
    const { before, after, changed } = effects;
    const differences = differencesBetween(before, after);
    assert.deepEqual(
      differences.map(({ field }) => field),
      fields,
      JSON.stringify(effects),
    );
    assert.deepEqual(unseenChanges(changed, differences), [], changed.join());
    assert.doesNotMatch(JSON.stringify([before, after]), /sealed|secretHash|"secret"/);
  });
}

test('who approves and who may break the glass is shown by name', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { user } = await person(a);
  const { id } = await makeRule(a, { approvers: { users: ids(ada) } });
  const { effects } = await asked(a, ada, await a.call('PATCH', `/approvals/rules/${id}`, { breakers: [user.id] }));
  assert.deepEqual(effects.before.breakers, []);
  assert.deepEqual(effects.after.breakers, [{ id: user.id, name: user.username }]);
  assert.deepEqual(effects.after.approvers, { users: [{ id: ada.user.id, name: ada.user.username }] });
});

test('inviting an administrator again is shown as a change of that User, which may let somebody in', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const fields = { username: 'boss', email: 'boss@example.org', firstName: 'B', lastName: 'B', flags: { '*': true } };
  await ok(a.call('POST', '/auth/user/invite', fields));
  await makeRule(a, { actions: ['admin.make'], objects: ['*'], approvers: { users: ids(ada) } });
  const again = await a.call('POST', '/auth/user/invite', { ...fields, email: 'evil@example.net' });
  const { object, actions, effects } = await asked(a, ada, again);
  assert.equal(object.name, 'boss');
  assert.deepEqual(actions, ['user.invite', 'admin.make']);
  assert.deepEqual([effects.before.email, effects.after.email], ['boss@example.org', 'evil@example.net']);
  assert.deepEqual(effects.before.flags, { '*': true });
});

test('of very many things along with an act, the number is told', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { id: accountId } = await ok(a.call('POST', '/auth/accounts', { uid: 'shop' }));
  for (let n = 0; n < 103; n++) await ok(a.call('POST', '/auth/apikey', { accountId, flags: {} }));
  await makeRule(a, { actions: ['account.delete'], objects: ['*'], approvers: { users: ids(ada) } });
  const { effects } = await asked(a, ada, await a.call('DELETE', `/auth/accounts/${accountId}`));
  assert.deepEqual([effects.objects.length, effects.objectCount], [100, 103]);
});

test('what people wrote into props under the name of a secret is shown to nobody', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { name } = await makeTransit(a);
  const { id } = await ok(a.call('POST', '/auth/accounts', { uid: 'shop', props: { password: 'hunter1' } }));
  await ok(a.call('PUT', `/managed-keys/${name}/config`, { props: { deep: [{ token: 'hunter2' }] } }));
  await makeRule(a, { actions: ['*'], objects: ['*'], approvers: { users: ids(ada) } });
  for (const [method, url, body] of [
    ['PATCH', `/auth/accounts/${id}`, { props: { password: 'hunter3', team: 'blue' } }],
    ['PUT', `/managed-keys/${name}/config`, { props: { deep: [{ token: 'hunter4' }], team: 'blue' } }],
  ] as const) {
    const request = await asked(a, ada, await a.call(method, url, body));
    assert.doesNotMatch(JSON.stringify(request), /hunter/);
    assert.equal(request.effects.after.props.team, 'blue');
  }
});
