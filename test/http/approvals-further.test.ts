// Rules hold for what an act takes along, and for a thing that loses the name by which a rule means it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { type Approver, approver, ids, say, waits } from '../support/approvers.ts';
import { ok, person } from './samples.ts';

interface Case {
  readonly actions: readonly string[];
  readonly objects?: readonly string[];
  /** Makes what is there before the rule; resolves to what the act needs to know of it. */
  make(a: Appliance): Promise<string>;
  act(a: Appliance, made: string): ReturnType<Appliance['call']>;
}

const key = (a: Appliance, fields: object) =>
  ok(a.call('POST', '/auth/apikey?uid=true', { accountId: 'shop', ...fields }));
const account = (a: Appliance) => ok(a.call('POST', '/auth/accounts', { uid: 'shop' }));

const cases: Record<string, Case> = {
  'an account takes its API keys along': {
    actions: ['apikey.delete'],
    objects: ['svc'],
    async make(a) {
      await account(a);
      await key(a, { name: 'other' });
      return (await key(a, { name: 'svc' })).keyid;
    },
    act: (a) => a.call('DELETE', '/auth/accounts/shop?uid=true'),
  },
  'a User takes the API keys that they own along': {
    actions: ['apikey.update'],
    async make(a) {
      await account(a);
      const { user } = await person(a, {});
      const { keyid } = await key(a, { name: 'svc' });
      await ok(a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', owner: user.id }));
      return user.username;
    },
    act: (a, username) => a.call('DELETE', `/auth/users/${username}`),
  },
  'a lower number of versions destroys the only one with the next write': {
    actions: ['key.*.delete'],
    async make(a) {
      await ok(a.call('POST', '/secrets/app%2Fx', { value: { text: '1' } }));
      return '';
    },
    act: (a) => a.call('PUT', '/secrets/app%2Fx/metadata', { maxVersions: 1 }),
  },
  'a lower number of versions destroys some': {
    actions: ['key.*.delete'],
    async make(a) {
      for (const text of ['1', '2', '3']) await ok(a.call('POST', '/secrets/app%2Fx', { value: { text } }));
      return '';
    },
    act: (a) => a.call('PUT', '/secrets/app%2Fx/metadata', { maxVersions: 2 }),
  },
  'an alias is removed': {
    actions: ['key.*.delete'],
    objects: ['pay'],
    async make(a) {
      await ok(a.call('POST', '/managed-keys', { name: 'payroll' }));
      await ok(a.call('POST', '/managed-keys/payroll/aliases', { alias: 'pay' }));
      return '';
    },
    act: (a) => a.call('DELETE', '/managed-keys/payroll/aliases/pay'),
  },
  'an alias is removed, spelt otherwise': {
    actions: ['key.*.delete'],
    objects: ['pay'],
    async make(a) {
      await ok(a.call('POST', '/managed-keys', { name: 'payroll' }));
      await ok(a.call('POST', '/managed-keys/payroll/aliases', { alias: 'Pay' }));
      return '';
    },
    act: (a) => a.call('DELETE', '/managed-keys/payroll/aliases/pAY'),
  },
  'an alias moves to another key': {
    actions: ['key.*.delete'],
    objects: ['pa*y'],
    async make(a) {
      for (const name of ['wages', 'other']) await ok(a.call('POST', '/managed-keys', { name }));
      await ok(a.call('POST', '/managed-keys/wages/aliases', { alias: 'pay' }));
      return '';
    },
    act: (a) => a.call('POST', '/managed-keys/other/aliases', { alias: 'pay' }),
  },
  'an API key gets another name': {
    actions: ['apikey.delete'],
    objects: ['svc'],
    async make(a) {
      await account(a);
      return (await key(a, { name: 'svc' })).keyid;
    },
    act: (a, apikeyid) => a.call('PUT', '/auth/apikeyid', { apikeyid, op: 'merge', name: 'web' }),
  },
  'an API key gets another name by its secret': {
    actions: ['apikey.*'],
    objects: ['svc'],
    async make(a) {
      await account(a);
      return (await key(a, { name: 'svc' })).key;
    },
    act: (a, secret) => a.call('PUT', '/auth/apikey', { key: secret, op: 'merge', name: 'web' }),
  },
  'an account gets another uid': {
    actions: ['account.delete'],
    objects: ['shop'],
    make: async (a) => (await account(a)).id,
    act: (a, id) => a.call('PATCH', `/auth/accounts/${id}`, { uid: 'store' }),
  },
  'a User gets another e-mail address': {
    actions: ['user.delete'],
    objects: ['*@example.org'],
    async make(a) {
      const { user } = await person(a, {});
      await ok(a.call('PATCH', `/auth/users/${user.username}`, { email: 'ada@example.org' }));
      return user.username;
    },
    act: (a, username) => a.call('PATCH', `/auth/users/${username}`, { email: 'ada@example.net' }),
  },
  'a User who is invited again gets another e-mail address': {
    actions: ['user.delete'],
    objects: ['ada@example.org'],
    async make(a) {
      const fields = { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'L' };
      await ok(a.call('POST', '/auth/user/invite', fields));
      return '';
    },
    act: (a) =>
      a.call('POST', '/auth/user/invite', { username: 'ada', email: 'a@example.net', firstName: 'A', lastName: 'L' }),
  },
  'a link at the machine for a User whom the rule means by their address': {
    actions: ['user.update'],
    objects: ['*@example.org'],
    async make(a) {
      const { user } = await person(a, {});
      await ok(a.call('PATCH', `/auth/users/${user.username}`, { email: 'ada@example.org' }));
      return user.username;
    },
    act: (a, username) => a.call('POST', '/local/reset-link', { username }, { key: null, env: { local: true } }),
  },
};

for (const [name, { actions, objects, make, act }] of Object.entries(cases)) {
  test(`${name}: once it is approved`, async () => {
    const a = await testAppliance();
    const made = await make(a);
    const ada: Approver = await approver(a);
    const rule = { name: 'rule', actions, ...(objects && { objects }), approvers: { users: ids(ada) } };
    await ok(a.call('POST', '/approvals/rules', rule));
    const asked = waits(await act(a, made));
    assert.equal(waits(await act(a, made)), asked);
    assert.equal((await say(a, ada, asked)).body.state, 'granted');
    assert.equal((await act(a, made)).status, 200);
  });
}

test('what a rule means by another name, or not at all, is renamed without a word', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await account(a);
  await ok(a.call('POST', '/managed-keys', { name: 'payroll' }));
  for (const alias of ['pay', 'wages']) await ok(a.call('POST', '/managed-keys/payroll/aliases', { alias }));
  const { keyid } = await key(a, { name: 'pay' });
  const rule = { name: 'rule', actions: ['key.*.delete'], objects: ['pay*'], approvers: { users: ids(ada) } };
  await ok(a.call('POST', '/approvals/rules', rule));
  for (const alias of ['pay', 'wages']) await ok(a.call('DELETE', `/managed-keys/payroll/aliases/${alias}`));
  await ok(a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', name: 'web' }));
});

test('API keys that come to an account after its deletion was approved are no part of it', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await account(a);
  await key(a, { name: 'svc' });
  const rule = { name: 'rule', actions: ['apikey.delete'], approvers: { users: ids(ada) } };
  await ok(a.call('POST', '/approvals/rules', rule));
  const remove = () => a.call('DELETE', '/auth/accounts/shop?uid=true');
  const asked = waits(await remove());
  await say(a, ada, asked);
  await key(a, { name: 'late' });
  assert.notEqual(waits(await remove()), asked);
});
