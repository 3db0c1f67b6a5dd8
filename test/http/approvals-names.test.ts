// A rule means a thing by any of its names, and a request under it may name the thing by any other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { text } from '../../src/dialects/kmip/ttlv.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { type Approver, approver, ids, say, waits } from '../support/approvers.ts';
import { attr, KmipClient, uid } from '../support/kmip-client.ts';
import { makeRule, ok, samples } from './samples.ts';

type Request = readonly [method: string, url: string, body?: object];

interface Thing {
  readonly actions: readonly string[];
  /** Makes it; resolves to its names, and to requests about it by its several names. */
  make(a: Appliance): Promise<{ readonly names: readonly string[]; readonly requests: readonly Request[] }>;
}

const boss = { username: 'boss', email: 'boss@example.org', firstName: 'B', lastName: 'O' };

const things: Record<string, Thing> = {
  'a User': {
    actions: ['user.*'],
    async make(a) {
      await ok(a.call('POST', '/auth/users', boss));
      const { id } = await ok(a.call('GET', '/auth/users/boss'));
      const requests: Request[] = [
        ['GET', '/auth/users/boss'],
        ['GET', '/auth/users/boss@example.org?email=true'],
        ['PATCH', '/auth/users/boss', { email: 'other@example.org' }],
        ['DELETE', '/auth/users/boss'],
        ['DELETE', `/auth/users/${id}?id=true`],
      ];
      return { names: ['boss', 'boss@example.org', id], requests };
    },
  },
  'an account': {
    actions: ['account.*', 'apikey.read'],
    async make(a) {
      const { id } = await ok(a.call('POST', '/auth/accounts', { uid: 'shop' }));
      const requests: Request[] = [['PATCH', `/auth/accounts/${id}`, { uid: 'store' }]];
      for (const ref of [id, 'shop?uid=true']) {
        const [path, query] = ref.split('?');
        requests.push(['GET', `/auth/accounts/${ref}`], ['DELETE', `/auth/accounts/${ref}`]);
        requests.push(['GET', `/auth/accounts/${path}/apikeys?${query ?? ''}`]);
      }
      return { names: ['shop', id], requests };
    },
  },
  'an API key': {
    actions: ['apikey.*'],
    async make(a) {
      await ok(a.call('POST', '/auth/accounts', { uid: 'shop' }));
      const fields = { accountId: 'shop', name: 'svc' };
      const { keyid, key } = await ok(a.call('POST', '/auth/apikey?uid=true', fields));
      const requests: Request[] = [
        ['GET', `/auth/apikey/${keyid}`],
        ['GET', `/auth/apikey/${keyid}/props`],
        ['GET', `/auth/apikeys/${keyid}/proofs`],
        ['PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', name: 'web' }],
        ['PUT', '/auth/apikey', { key, op: 'merge', name: 'web' }],
        ['DELETE', `/auth/apikey/${key}`],
        ['DELETE', `/auth/apikeyid/${keyid}`],
      ];
      return { names: ['svc', keyid], requests };
    },
  },
  'a managed key': { actions: ['key.*.*'], make: (a) => managedKey(a) },
  'a managed key that waits for its deletion': {
    actions: ['key.*.*', 'key.restore'],
    async make(a) {
      const made = await managedKey(a);
      await ok(a.call('DELETE', '/managed-keys/payroll'));
      const [, , id = ''] = made.names;
      const requests = made.requests.filter(([method, url]) => method === 'GET' || url.includes('/aliases/'));
      return { ...made, requests: [...requests, ['POST', `/managed-keys/${id}/restore`]] };
    },
  },
  'a rule': {
    actions: ['approval.rule'],
    async make(a) {
      const other = await approver(a);
      const { id } = await makeRule(a, { name: 'inner', approvers: { users: ids(other) } });
      const requests = ['inner', id].flatMap((ref): Request[] => [
        ['PATCH', `/approvals/rules/${ref}`, { name: 'renamed' }],
        ['PATCH', `/approvals/rules/${ref}`, { count: 1, window: 600 }],
        ['DELETE', `/approvals/rules/${ref}`],
      ]);
      return { names: ['inner', id], requests };
    },
  },
};

async function managedKey(a: Appliance) {
  const { id, aws } = (await ok(a.call('POST', '/managed-keys', { name: 'payroll', deletionAllowed: true }))).key;
  await ok(a.call('POST', '/managed-keys/payroll/aliases', { alias: 'pay' }));
  const place = `arn:aws:kms:eu-1:${aws.account}:`;
  const ofAws = [
    aws.keyId,
    `${place}key/${aws.keyId}`,
    `arn:aws:kms:*:key/${aws.keyId}`,
    'alias/pay',
    `${place}alias/pay`,
  ];
  const requests = ['payroll', 'pay', id, aws.keyId].flatMap((ref): Request[] => [
    ['GET', `/managed-keys/${ref}`],
    ['GET', `/managed-keys/${ref}/dependents`],
    ['DELETE', `/managed-keys/${ref}/aliases/pay`],
    ['DELETE', `/managed-keys/${ref}`],
  ]);
  return { names: ['payroll', 'pay', String(id), ...ofAws], requests };
}

for (const [thing, { actions, make }] of Object.entries(things)) {
  test(`${thing} is under a rule by each of its names, however a request names it`, async () => {
    const outer = await testAppliance();
    const { names } = await make(outer);
    for (const at of names.keys()) {
      const a = await testAppliance();
      const ada = await approver(a);
      const made = await make(a);
      const object = made.names[at];
      await makeRule(a, { name: 'outer', actions, objects: [object], approvers: { users: ids(ada) } });
      for (const [method, url, body] of made.requests) {
        const { status, body: answer } = await a.call(method, url, body);
        const [request] = answer.approval
          ? (await a.call('GET', '/approvals/requests?state=pending')).body.requests
          : [];
        const rules = request?.rules.map(({ name }: { name: string }) => name) ?? [];
        assert.equal(status, 403, `${object}: ${method} ${url} ${JSON.stringify(answer)}`);
        assert.ok(rules.includes('outer'), `${object}: ${method} ${url} is under ${rules}`);
        await a.call('POST', `/approvals/requests/${answer.approval.id}/withdraw`);
      }
    }
  });
}

test("a key's names for clients of KMIP are its names for rules, and it keeps to those that name it", async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const c = await KmipClient.make(a, 'kmip.*');
  const id = await c.aes(['Name', 'backup']);
  await makeRule(a, { actions: ['kmip.get', 'key.*.read'], objects: ['back*'], approvers: { users: ids(ada) } });
  waits(await a.call('GET', `/managed-keys/${id}`));
  const requests = {
    Get: [uid(id)],
    'Modify Attribute': [uid(id), attr('Name', 'other')],
    'Delete Attribute': [uid(id), text(tags.attributeName, 'Name')],
    'Re-key': [uid(id)],
  };
  for (const [operation, fields] of Object.entries(requests)) {
    assert.equal(await c.refused(operation, fields), reasons.permissionDenied, operation);
  }
  await c.did('Modify Attribute', [uid(id), attr('Name', 'backup-2')]);
  await c.did('Add Attribute', [uid(id), attr('Contact Information', 'ops')]);
});

test('a rule for what clients of KMIP do keeps to a key whose alias it names', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await managedKey(a);
  await makeRule(a, { actions: ['kmip.get'], objects: ['pay'], approvers: { users: ids(ada) } });
  waits(await a.call('DELETE', '/managed-keys/payroll/aliases/pay'));
});

test('a key that is imported under the name of a deleted one is another key', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await managedKey(a);
  await ok(a.call('DELETE', '/managed-keys/payroll'));
  const actions = ['key.*.import'];
  await makeRule(a, { name: 'alias', actions, objects: ['pay'], approvers: { users: ids(ada) } });
  await makeRule(a, { name: 'name', actions, objects: ['payroll'], approvers: { users: ids(ada) } });
  const { body } = await samples.importManagedKey(a);
  const answer = await a.call('POST', '/managed-keys/payroll/import', body);
  const { object, rules } = (await a.call('GET', `/approvals/requests/${waits(answer)}`)).body;
  assert.deepEqual([object, rules.map(({ name }: { name: string }) => name)], [null, ['name']]);
});

/** Requests that name a thing, and how another thing gets its name between the approval and the act. */
const swaps: Record<
  string,
  {
    readonly actions: readonly string[];
    act: Request;
    make(a: Appliance): unknown;
    swap(a: Appliance, ada: Approver): unknown;
  }
> = {
  'an API key for an account': {
    actions: ['apikey.create'],
    act: ['POST', '/auth/apikey?uid=true', { accountId: 'shop', name: 'svc' }],
    make: (a) => ok(a.call('POST', '/auth/accounts', { uid: 'shop' })),
    async swap(a) {
      const { id } = await ok(a.call('GET', '/auth/accounts/shop?uid=true'));
      await ok(a.call('PATCH', `/auth/accounts/${id}`, { uid: 'old' }));
      await ok(a.call('POST', '/auth/accounts', { uid: 'shop' }));
    },
  },
  'a User who is invited again': {
    actions: ['user.invite', 'admin.make'],
    act: ['POST', '/auth/user/invite', { ...boss, email: 'other@example.org' }],
    make: (a) => ok(a.call('POST', '/auth/user/invite', boss)),
    async swap(a, ada) {
      await ok(a.call('DELETE', '/auth/users/boss'));
      const invite = () => a.call('POST', '/auth/user/invite', boss);
      await say(a, ada, waits(await invite()));
      await ok(invite());
    },
  },
};

for (const [what, { actions, act, make, swap }] of Object.entries(swaps)) {
  test(`${what}: what another has the name of by then is another act`, async () => {
    const a = await testAppliance();
    const ada = await approver(a);
    await make(a);
    await makeRule(a, { actions, objects: ['*'], approvers: { users: ids(ada) } });
    const asked = waits(await a.call(...act));
    await say(a, ada, asked);
    await swap(a, ada);
    assert.notEqual(waits(await a.call(...act)), asked);
  });
}
