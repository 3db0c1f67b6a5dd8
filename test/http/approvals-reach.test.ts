// The reach of rules: every way to an act is under the rule for it, whatever its endpoint is called, however the thing
// is named, and whichever further things it concerns.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { endpoints } from '../../src/api/endpoints.ts';
import { type LocalId, localEndpoints } from '../../src/api/local-endpoints.ts';
import { operations } from '../../src/dialects/kmip/operations.ts';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { KmsError } from '../../src/errors.ts';
import type { LocalHandlers } from '../../src/http/appliance-port.ts';
import { localActions } from '../../src/http/local-approvals.ts';
import { actProblem, furtherActions, presets } from '../../src/model/approval-rules.ts';
import { ringActions } from '../../src/model/flags.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { approver, ids, proven, say, waits } from '../support/approvers.ts';
import { accessKey, base64, call, done } from '../support/aws-client.ts';
import { KmipClient, uid, wrappingBy } from '../support/kmip-client.ts';
import { makeRule, makeTransit, ok } from './samples.ts';

const local = { key: null, env: { local: true } };

async function under(actions: readonly string[], more: object = {}) {
  const a = await testAppliance();
  const ada = await approver(a);
  const rule = (extra: object = {}) =>
    makeRule(a, { actions, objects: ['*'], approvers: { users: ids(ada) }, ...more, ...extra });
  return { a, ada, rule };
}

/** Handlers of all local endpoints that concern the appliance; but for those that look, they note that they were called. */
function handlers(called: string[]): LocalHandlers {
  const made = localEndpoints.map(({ id }) => [id, async () => void called.push(id)]);
  const getTenant = async ({ params: { name } }: AnyJson) => ({ id: name, name: `the name of ${name}` });
  // Cast: nothing else that they answer is looked at.
  return { ...Object.fromEntries(made), getTenant } as unknown as LocalHandlers;
}

const bodies: Readonly<Partial<Record<LocalId, object>>> = {
  makeResetLink: { username: 'linus' },
  resetSecondFactor: { username: 'linus' },
  unlinkOidc: { username: 'linus' },
  setOidc: { issuer: 'https://idp.test', clientId: 'kms', clientSecret: 's' },
  createTenant: { name: 'third', hosts: ['third.test'] },
  addCustodian: { kind: 'passphrase', passphrase: 'correct horse battery' },
};

test('every local endpoint that does something asks, and does nothing before', async () => {
  const called: string[] = [];
  const a = await testAppliance({ local: handlers(called) });
  const ada = await approver(a);
  const actions = ['system.*', 'tenant.*', 'user.*', 'admin.make', 'system.master'];
  await makeRule(a, { actions, objects: ['*'], approvers: { users: ids(ada) } });
  const asked: string[] = [];
  for (const { id, method, path } of localEndpoints) {
    if (!localActions[id]) continue;
    const answer = await a.call(method, path.replace(/\{\w+\}/g, 'default'), bodies[id] ?? {}, local);
    // Input that is refused comes to nothing either.
    if (answer.status !== 400) asked.push(id);
    if (answer.status !== 400) waits(answer);
  }
  assert.deepEqual(called, []);
  for (const id of ['streamBackup', 'rotateMaster', 'sealAppliance', 'makeSetUpLink', 'removeCustodian']) {
    assert.ok(asked.includes(id), `${id} of ${asked.join(' ')}`);
  }
});

test('a local act under the rules of two tenants takes a word of each, and no more', async () => {
  const called: string[] = [];
  const tenants = [
    { name: 'default', hosts: ['kms.test'] },
    { name: 't2', hosts: ['t2.test'] },
  ];
  const a = await testAppliance({ tenants, local: handlers(called) });
  const second = a.tenants[1]?.root.key ?? null;
  const b: Appliance = {
    ...a,
    call: (method, path, body, given) => a.call(method, path, body, { host: 't2.test', key: second, ...given }),
  };
  const [ada, bob] = [await approver(a), await approver(b)];
  const terms = { actions: ['tenant.*'], objects: ['*'] };
  await makeRule(a, { ...terms, approvers: { users: ids(ada) } });
  await makeRule(b, { ...terms, approvers: { users: ids(bob) } });
  const remove = () => a.call('DELETE', '/local/tenants/t2', {}, local);
  waits(await remove());
  for (const [at, who] of [
    [b, bob],
    [a, ada],
  ] as const) {
    assert.deepEqual(called, []);
    const { requests } = (await at.call('GET', '/approvals/requests?state=pending')).body;
    assert.equal(requests.length, 1, 'both are asked at once');
    await say(at, who, requests[0].id);
    await remove();
  }
  assert.deepEqual(called, ['deleteTenant']);
});

test('a rule means a tenant by its name or id, and keeps to it when it is renamed', async () => {
  const called: string[] = [];
  const tenants = [
    { name: 'default', hosts: ['kms.test'] },
    { name: 't2', hosts: ['t2.test'] },
  ];
  const a = await testAppliance({ tenants, local: handlers(called) });
  const ada = await approver(a);
  const id = a.tenants[1]?.handle.tenant.id;
  for (const object of ['t2', id]) {
    const rule = { actions: ['tenant.delete'], objects: [object], approvers: { users: ids(ada) } };
    const made = await makeRule(a, rule);
    waits(await a.call('DELETE', '/local/tenants/t2', {}, local));
    const renamed = await a.call('PATCH', '/local/tenants/t2', { name: 'zeta' }, local);
    if (object === 't2') waits(renamed);
    await a.call('PATCH', '/local/tenants/t2', { hosts: ['other.test'] }, local);
    assert.deepEqual(called.splice(0), object === 't2' ? ['updateTenant'] : ['updateTenant', 'updateTenant']);
    const removal = () => a.call('DELETE', `/approvals/rules/${made.id}`);
    await say(a, ada, waits(await removal()));
    assert.equal((await removal()).status, 200);
  }
});

test('a rule means a tenant that is made, or restored, by its name or id', async () => {
  const called: string[] = [];
  const a = await testAppliance({ local: handlers(called) });
  const ada = await approver(a);
  const actions = ['tenant.create', 'tenant.restore', 'tenant.update'];
  const restore = (body = {}) => a.call('POST', '/local/tenants/gone/restore', body, local);
  const make = (name: string) => a.call('POST', '/local/tenants', { name, hosts: [] }, local);
  await makeRule(a, { actions, objects: ['acme', 'the name of*'], approvers: { users: ids(ada) } });
  waits(await make('Acme'));
  waits(await a.call('PATCH', '/local/tenants/default', { name: 'acme' }, local));
  waits(await restore({ name: 'other' }));
  const id = waits(await restore());
  const { object } = (await a.call('GET', `/approvals/requests/${id}`)).body;
  assert.deepEqual(object, { type: 'tenant', id: 'gone', name: 'the name of gone' });
  assert.deepEqual(called, []);
  await make('other');
  assert.deepEqual(called, ['createTenant']);
});

test("a tenant's own rules hold for who names it by its id", async () => {
  const tenants = ['default', 't2'].map((name) => ({ name, hosts: [`${name}.test`] }));
  const called: string[] = [];
  const a = await testAppliance({ tenants, local: handlers(called) });
  const { handle, root } = a.tenants[1] ?? assert.fail();
  const at = { host: 't2.test', key: root.key };
  const rule = { name: 'own', actions: ['tenant.delete'], objects: ['t2'], approvers: { flag: 'approval.give' } };
  await ok(a.call('POST', '/approvals/rules', rule, at));
  waits(await a.call('DELETE', `/local/tenants/${handle.tenant.id}`, {}, local));
  assert.deepEqual(called, []);
});

test('what lets in any User falls under a rule for some', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const actions = ['user.*', 'admin.make'];
  await makeRule(a, { actions, objects: ['boss@example.org'], approvers: { users: ids(ada) } });
  const acts = [
    ['PUT', '/local/oidc', bodies.setOidc],
    ['DELETE', '/local/oidc', undefined],
    ['POST', '/local/set-up-link', {}],
  ] as const;
  for (const [method, url, body] of acts) {
    const id = waits(await a.call(method, url, body, local));
    assert.equal((await say(a, ada, id)).body.state, 'granted', 'the rule covers the request, too');
  }
});

test('what a local act that is refused used up is given back, broken glass too', async () => {
  let isThere = false;
  const deleteTenant = async () => {
    if (!isThere) throw new KmsError('not-found', 'there is no such tenant');
    return {};
  };
  // Cast: what it answers is not looked at.
  const a = await testAppliance({ local: { deleteTenant } as unknown as LocalHandlers });
  const ada = await approver(a);
  await makeRule(a, { actions: ['tenant.*'], objects: ['*'], approvers: { users: ids(ada) } });
  const remove = (headers: Record<string, string> = {}) =>
    a.call('DELETE', '/local/tenants/none', {}, { ...local, headers });
  assert.equal((await remove({ 'Kms-Break-Glass': 'typo' })).status, 404);
  assert.deepEqual((await a.call('GET', '/approvals/broken-glass')).body.broken, []);
  const [taken, broken] = (await a.activity()).filter(({ action }) => action === 'approval.break-glass');
  assert.deepEqual([taken?.status, broken?.status], [404, 200]);
  await say(a, ada, waits(await remove()));
  const again = await remove();
  assert.equal(again.status, 404, a.log.slice(-3).join());
  isThere = true;
  assert.equal((await remove()).status, 200, 'the word is good for one that is done');
  waits(await remove());
});

test('a second key that an act encrypts under, imports to or takes an alias from is under its own rules', async () => {
  const { a, ada, rule } = await under(['key.*.encrypt', 'key.*.config', 'key.*.state']);
  const [one, two] = [await makeTransit(a), await makeTransit(a)];
  await a.call('POST', `/managed-keys/${two.name}/aliases`, { alias: 'pay' });
  const { ciphertext } = (
    await a.call('POST', `/managed-keys/${one.name}/encrypt`, { items: [{ plaintext: base64('hi') }] })
  ).body.items[0];
  await rule({ objects: [two.id] });
  const { key } = await a.keyWith('key.*');
  const reencrypt = () =>
    a.call('POST', `/managed-keys/${one.name}/decrypt`, { items: [{ ciphertext }], toKey: two.name }, { key });
  const id = waits(await reencrypt());
  await say(a, ada, id);
  assert.equal((await reencrypt()).status, 200);
  waits(await reencrypt());
  waits(await a.call('POST', `/managed-keys/${one.name}/aliases`, { alias: 'pay' }, { key }));
  const later = a.world.now() + 86_400_000;
  waits(await a.call('PUT', `/managed-keys/${two.name}/config`, { deactivateAt: later }, { key }));
  assert.equal((await a.call('PUT', `/managed-keys/${one.name}/config`, { deactivateAt: later }, { key })).status, 200);
});

test('a window for one thing is none for a further one', async () => {
  const { a, ada, rule } = await under(['key.*.encrypt', 'key.*.decrypt'], { window: 600 });
  const [one, two, three] = [await makeTransit(a), await makeTransit(a), await makeTransit(a)];
  const sealed = (await a.call('POST', `/managed-keys/${one.name}/encrypt`, { items: [{ plaintext: base64('hi') }] }))
    .body.items[0];
  await rule();
  const { key } = await a.keyWith('key.*');
  const decrypt = (toKey?: string, item = sealed) =>
    a.call('POST', `/managed-keys/${one.name}/decrypt`, { items: [item], toKey }, { key });
  const plain = waits(await decrypt());
  assert.equal((await say(a, ada, plain)).body.state, 'granted');
  assert.equal((await decrypt()).status, 200);
  const asked = waits(await decrypt(two.name));
  assert.notEqual(asked, plain);
  const { shown, statement } = (await a.call('GET', `/approvals/requests/${asked}`, undefined, { key: ada.key })).body;
  const further = { action: `key.${two.name}.encrypt`, object: { type: 'managed-key', id: two.id, name: two.name } };
  assert.deepEqual([shown.body, shown.further], [null, [further]]);
  assert.deepEqual(JSON.parse(statement).further, [{ action: further.action, object: two.id }]);
  await say(a, ada, asked);
  // However it is named, and whatever is encrypted.
  for (const toKey of [two.name, two.id]) assert.equal((await decrypt(toKey)).status, 200);
  assert.notEqual(waits(await decrypt(three.name)), asked);
  const [done] = (await a.activity()).filter(({ props }) => JSON.stringify(props).includes('"further":'));
  assert.ok(done);
  assert.deepEqual(Object(done.props.approval).further, JSON.parse(statement).further);
  assert.deepEqual((await proven(a)).acts, 3);
});

test('a request never waits for words that could not be enough', async (t) => {
  /** Ways in which an act comes under another rule after it was asked for. */
  const ways: Record<
    string,
    (a: Appliance, key: AnyJson, rule: (more: object) => Promise<AnyJson>) => Promise<unknown>
  > = {
    'another rule is made': (_, { id }, rule) => rule({ objects: [id] }),
    'the thing gets an alias that another rule names': async (a, { name }, rule) => {
      await rule({ objects: ['pay'] });
      return a.call('POST', `/managed-keys/${name}/aliases`, { alias: 'pay' });
    },
    'the thing loses the alias that a rule names': async (a, { name }, rule) => {
      await rule({ objects: ['early'] });
      return a.call('DELETE', `/managed-keys/${name}/aliases/early`);
    },
  };
  for (const window of ['once', 600] as const)
    for (const isGranted of [false, true])
      for (const [way, change] of Object.entries(ways)) {
        await t.test(`${way}, window ${window}, ${isGranted ? 'granted' : 'pending'}`, async () => {
          const { a, ada, rule } = await under(['key.*.decrypt'], { window });
          const bob = await approver(a);
          const key = await makeTransit(a);
          await a.call('POST', `/managed-keys/${key.name}/aliases`, { alias: 'early' });
          const items = [{ plaintext: base64('hi') }];
          const { ciphertext } = (await a.call('POST', `/managed-keys/${key.name}/encrypt`, { items })).body.items[0];
          await rule({ objects: [key.name] });
          const { key: as } = await a.keyWith('key.*.decrypt');
          const decrypt = () =>
            a.call('POST', `/managed-keys/${key.name}/decrypt`, { items: [{ ciphertext }] }, { key: as });
          const first = waits(await decrypt());
          if (isGranted) await say(a, ada, first);
          await change(a, key, (more) => rule({ ...more, name: 'other', approvers: { users: ids(bob) } }));
          // Both say their word on whatever waits, until it is done.
          for (let tries = 0; tries < 3; tries++) {
            const { status, body } = await decrypt();
            if (status === 200) return;
            const { needed, given, id } = body.approval;
            assert.ok(given < needed, JSON.stringify(body));
            for (const who of [ada, bob]) await say(a, who, id);
          }
          assert.fail('it waits for ever');
        });
      }
});

test('what was approved is what is done: a name in the body that means another key by then is another act', async () => {
  const { a, ada, rule } = await under(['key.*.decrypt', 'key.*.encrypt']);
  const [one, good, evil] = [await makeTransit(a), await makeTransit(a), await makeTransit(a)];
  const items = [{ plaintext: base64('hi') }];
  const { ciphertext } = (await a.call('POST', `/managed-keys/${one.name}/encrypt`, { items })).body.items[0];
  await a.call('POST', `/managed-keys/${good.name}/aliases`, { alias: 'escrow' });
  await rule();
  const act = () => a.call('POST', `/managed-keys/${one.name}/decrypt`, { items: [{ ciphertext }], toKey: 'escrow' });
  const id = waits(await act());
  await say(a, ada, id);
  assert.equal((await a.call('POST', `/managed-keys/${evil.name}/aliases`, { alias: 'escrow' })).status, 200);
  assert.notEqual(waits(await act()), id);
  await a.call('POST', `/managed-keys/${good.name}/aliases`, { alias: 'escrow' });
  assert.equal((await act()).status, 200);
});

test('things that an act would make are not shown: they get other ids when it is done', async () => {
  const { a, ada, rule } = await under(['keyring.create', 'key.create', 'key.*.import']);
  await rule();
  for (const [method, path, body] of [
    ['POST', '/ks/keyrings', { name: 'pay' }],
    ['POST', '/secrets/app%2Fnew', { value: { password: 'x' } }],
  ] as const) {
    const id = waits(await a.call(method, path, body));
    const { object, effects } = (await a.call('GET', `/approvals/requests/${id}`, undefined, { key: ada.key })).body;
    assert.deepEqual([object, effects.objects], [null, []], path);
  }
});

test("AWS's client comes under the rules of the key that it encrypts under again", async () => {
  const { a, rule } = await under(['key.*.encrypt']);
  const { key } = await accessKey(a);
  const make = async () => (await done(a, key, 'CreateKey')).KeyMetadata.KeyId;
  const [one, two] = [await make(), await make()];
  const { CiphertextBlob } = await done(a, key, 'Encrypt', { KeyId: one, Plaintext: base64('hi') });
  await rule({ objects: [(await a.call('GET', '/managed-keys')).body.data[0].id] });
  const results = await Promise.all(
    [one, two].map((DestinationKeyId) => call(a, key, 'ReEncrypt', { CiphertextBlob, DestinationKeyId })),
  );
  assert.equal(results.filter(({ __type }) => __type === 'AccessDeniedException').length, 1);
});

test("KMIP's client comes under the rules of the key that it wraps with", async () => {
  const { a, ada, rule } = await under(['key.*.wrap']);
  const c = await KmipClient.make(a, 'kmip.*');
  const kek = await c.aes(['Cryptographic Usage Mask', 0x10], ['Activation Date', 1]);
  const [one, other] = [await c.aes(), await c.aes(['Cryptographic Usage Mask', 0x10], ['Activation Date', 1])];
  await rule({ objects: [kek] });
  await c.did('Get', [uid(one), wrappingBy(other)]);
  const get = [uid(one), wrappingBy(kek)];
  assert.equal(await c.refused('Get', get), reasons.permissionDenied);
  const [request] = (await a.call('GET', '/approvals/requests')).body.requests;
  await say(a, ada, request.id);
  await c.did('Get', get);
});

test('a thing is under a rule by its names, its id and its aliases, however the request names it', async () => {
  const { a, rule } = await under(['key.*.config']);
  const key = await makeTransit(a);
  await a.call('POST', `/managed-keys/${key.name}/aliases`, { alias: 'Pay' });
  const { key: as } = await a.keyWith('key.*.config');
  for (const object of ['pay', key.id, key.name]) {
    const { id } = await rule({ objects: [object], name: object });
    for (const ref of ['pay', key.id, key.name]) {
      waits(await a.call('PUT', `/managed-keys/${ref}/config`, { deletionAllowed: true }, { key: as }));
    }
    await a.call('DELETE', `/approvals/rules/${id}`, undefined, {
      ...local,
      headers: { 'Kms-Break-Glass': 'next' },
    });
  }
});

test('a thing is under a rule by a path or an address that it has, also when the act takes that away', async () => {
  const { a, rule } = await under(['key.*.delete', 'key.*.config', 'user.*', 'admin.make']);
  await a.call('POST', '/secrets/app%2Fprod', { value: { password: 'x' } });
  const fields = { username: 'linus', email: 'linus@example.org', firstName: 'L', lastName: 'T' };
  assert.equal((await a.call('POST', '/auth/users', fields)).status, 200);
  await rule({ objects: ['app/prod', 'linus@example.org'] });
  waits(await a.call('DELETE', '/managed-keys/app.prod'));
  waits(await a.call('PATCH', '/auth/users/linus', { firstName: 'M' }));
  waits(await a.call('PATCH', '/auth/users/linus', { email: 'other@example.org' }));
});

test('a custodian can be added after approval, though its secret is another one at each try', async () => {
  const called: string[] = [];
  const a = await testAppliance({ local: handlers(called) });
  const ada = await approver(a);
  await makeRule(a, { actions: ['system.master'], objects: ['*'], approvers: { users: ids(ada) } });
  const add = (publicKey: string, kind = 'recovery-kit') =>
    a.call('POST', '/local/master/custodians', { kind, params: {}, publicKey, master: 'm', proof: publicKey }, local);
  const asked = await add('one');
  await say(a, ada, waits(asked));
  await add('two');
  assert.deepEqual(called, ['addCustodian']);
});

test('a thing that only the body names is under a rule for it', async () => {
  const { a, rule } = await under(['user.*', 'admin.make']);
  const fields = { username: 'linus', email: 'linus@example.org', firstName: 'L', lastName: 'T' };
  assert.equal((await a.call('POST', '/auth/user/invite', fields)).status, 200);
  await rule({ objects: ['linus'] });
  waits(await a.call('PATCH', '/auth/users/linus', { firstName: 'M' }));
  waits(await a.call('POST', '/auth/user/invite', { ...fields, email: 'evil@example.org', flags: { '*': true } }));
  assert.equal((await a.call('POST', '/auth/user/invite', { ...fields, username: 'm', email: 'm@x.org' })).status, 200);
});

test('erasing the bytes of an imported key is among the acts of the preset for deleting', async () => {
  const [preset] = presets.filter(({ name }) => name === 'delete-keys');
  const { a, rule } = await under(preset?.actions ?? []);
  await rule();
  const { key } = await accessKey(a);
  const { KeyId } = (await done(a, key, 'CreateKey', { Origin: 'EXTERNAL' })).KeyMetadata;
  assert.equal((await call(a, key, 'DeleteImportedKeyMaterial', { KeyId })).__type, 'AccessDeniedException');
});

test('a rule that can cover nothing is refused, with what was probably meant', async () => {
  const { a, rule } = await under([]);
  const wrong = ['secret.*', 'key.delete', 'nonsense', 'key.pay*.delete', 'key..delete', ' key.*.delete', ''];
  for (const action of wrong) {
    const { status } = await a.call('POST', '/approvals/rules', {
      name: 'r',
      actions: [action],
      approvers: { flag: 'approval.give' },
    });
    assert.equal(status, 400, action);
  }
  const refused = await a.call('POST', '/approvals/rules', {
    name: 'r',
    actions: ['key.delete'],
    approvers: { flag: 'approval.give' },
  });
  assert.match(refused.body.message, /did you mean key\.\*\.delete\?/);
  assert.match(actProblem('keyring.*.delet') ?? '', /did you mean keyring\.\*\.delete\?/);
  const { id } = await rule({ actions: ['key.*.delete'] });
  const { status } = await a.call('PATCH', `/approvals/rules/${id}`, { actions: ['keys.*'] });
  assert.equal(status, 400);
});

test('every act that the appliance asks about can be named in a rule', () => {
  const ofEndpoints = endpoints.flatMap(({ access }: Endpoint) =>
    access.kind === 'flag' ? [access.action, access.recorded ?? access.action] : [],
  );
  const asked = [
    ...ofEndpoints,
    ...Object.values(localActions).flat(),
    ...operations.map(({ action }) => action),
    ...Object.values(furtherActions),
  ];
  const named = asked.map((action) => (ringActions.has(action) ? action.replace('.', '.*.') : action));
  // Acknowledging broken glass is never under a rule; a ring's acts go by its name.
  const isKnown = (name: string) => actProblem(name) === undefined;
  const unknown = named.filter((name) => !isKnown(name) && !isKnown(name.replace('.', '.*.')));
  assert.deepEqual(
    [...new Set(unknown)].filter((name) => name !== 'approval.acknowledge'),
    [],
  );
  for (const { actions } of presets)
    assert.deepEqual(
      actions.filter((action) => actProblem(action) !== undefined),
      [],
    );
});
