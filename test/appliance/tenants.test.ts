// Tenants of an appliance on disk: made, changed, deleted, restored and erased while it serves, and isolated from each
// other.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { appCode } from '../support/authenticator.ts';
import { sealWords } from '../support/seal-words.ts';
import { deletedMeanwhile, type Place, place } from './tenant-appliance.ts';

const day = 86_400_000;

async function withBlue(): Promise<Place & { readonly blueKey: string }> {
  const p = await place();
  const { status, body } = await p.local('POST', '/local/tenants', { name: 'Blue', hosts: ['Blue.Example:8443'] });
  assert.equal(status, 200, JSON.stringify(body));
  return Object.assign(p, { blueKey: body.apiKey.key as string });
}

const names = async (p: Place, query = ''): Promise<string[]> =>
  (await p.local('GET', `/local/tenants${query}`)).body.data.map(({ name }: { name: string }) => name);

test('a new tenant answers at its hosts at once, with its own root key, and after a restart', async () => {
  await using p = await place();
  const { body } = await p.local('POST', '/local/tenants', {
    name: 'Blue',
    hosts: ['Blue.Example:8443', 'b2.example'],
  });
  assert.deepEqual(Object.keys(body), ['tenant', 'hosts', 'accountId', 'apiKey']);
  assert.equal(body.tenant, 'blue');
  assert.deepEqual(body.apiKey.flags, { '*': true });
  const { key } = body.apiKey;
  for (const round of ['at once', 'after a restart']) {
    for (const host of ['blue.example', 'BLUE.EXAMPLE:1', 'b2.example']) {
      const admin = await p.at(host, 'GET', '/auth/accounts/admin?uid=true', key);
      assert.deepEqual([admin.status, admin.body.id], [200, body.accountId], round);
    }
    assert.equal((await p.at('else.example', 'GET', '/ks/keyrings', key)).status, 401, round);
    assert.equal((await p.at('else.example', 'GET', '/ks/keyrings', p.made.apiKey.key)).status, 200, round);
    await p.reopen();
  }
  const shown = (await p.local('GET', '/local/tenants/BLUE')).body;
  assert.deepEqual(
    { ...shown, id: '', awsAccount: '', createdAt: '', updatedAt: '' },
    {
      id: '',
      name: 'blue',
      hosts: ['blue.example', 'b2.example'],
      url: 'https://blue.example:8443',
      awsAccount: '',
      limits: {},
      secondFactorFor: [],
      custody: 'any',
      createdAt: '',
      updatedAt: '',
    },
  );
  assert.deepEqual((await p.local('GET', `/local/tenants/${shown.id}`)).body, shown);
  const onDisk = await readdir(p.data, { recursive: true });
  assert.ok(!onDisk.some((name) => name.includes('blue') || name.endsWith('tenant.new')), String(onDisk));
  assert.ok(!sealWords(join(p.data, 'kms.seal')).includes('blue'));
});

test('names and hosts are one tenant’s alone, `*` too', async () => {
  await using p = await withBlue();
  const refused = async (body: object): Promise<object> => {
    const answer = await p.local('POST', '/local/tenants', body);
    assert.equal(answer.status, 400, JSON.stringify(answer.body));
    return answer.body;
  };
  assert.deepEqual(await refused({ name: 'BLUE', hosts: ['c.example'] }), {
    message: 'name: another tenant has this name',
    errors: { name: 'another tenant has this name' },
  });
  for (const host of ['blue.example', 'BLUE.example', 'blue.example:99']) {
    const body = await refused({ name: 'c', hosts: ['c.example', host] });
    assert.deepEqual(body, {
      message: 'hosts: the tenant blue lists blue.example already',
      errors: { hosts: 'the tenant blue lists blue.example already' },
    });
  }
  assert.match(JSON.stringify(await refused({ name: 'c', hosts: ['*'] })), /the tenant default lists \* already/);
  assert.equal((await p.local('PATCH', '/local/tenants/default', { hosts: ['blue.example'] })).status, 400);
  assert.equal((await p.local('PATCH', '/local/tenants/default', { name: 'blue' })).status, 400);
  assert.deepEqual(await names(p), ['default', 'blue']);
});

test('what is no name, no host, no limit is 400 with the field', async () => {
  await using p = await withBlue();
  const create = (name: unknown, hosts: unknown) => ['POST', '/local/tenants', { name, hosts }] as const;
  const limits = (body: object) => ['PUT', '/local/tenants/blue/limits', body] as const;
  for (const [method, path, body, field] of [
    ...['', 'a b', '../x', 'x'.repeat(65), '-a', 'ä', 7, undefined, null].map((name) => [
      ...create(name, ['c.example']),
      'name',
    ]),
    ...[
      '',
      ' ',
      'a b',
      'http://c.example',
      'c.example/x',
      'c.example:',
      'c.example:port',
      '*.example',
      'c..example',
      '-c',
      '.c',
      'c..',
      '[::1',
      '[nope]',
      '[127.0.0.1]',
      ...['256.1.1.1', '127.1', '0x7f.1', '1.2.3.4.5', 'c.1', '1'],
      `${'x'.repeat(64)}.example`,
      `${'x.'.repeat(130)}y`,
      'c\u0000',
      7,
      null,
    ].map((host) => [...create('c', [host]), 'hosts']),
    ...[[], undefined, 'c.example', {}, null].map((hosts) => [...create('c', hosts), 'hosts']),
    [...create('c', ['c.example']).slice(0, 2), { name: 'c', hosts: ['c.example'], host: 'x' }, 'host'],
    [...limits({ users: -1 }), 'users'],
    [...limits({ users: 1.5 }), 'users'],
    [...limits({ users: '3' }), 'users'],
    [...limits({ rings: 3 }), 'rings'],
    ['PATCH', '/local/tenants/blue', { hosts: [] }, 'hosts'],
  ] as [string, string, object, string][]) {
    const answer = await p.local(method, path, body);
    assert.equal(answer.status, 400, JSON.stringify([body, answer.body]));
    assert.deepEqual(Object.keys(answer.body.errors), [field], JSON.stringify(body));
    assert.ok(answer.body.message.startsWith(`${field}: `));
  }
  assert.equal((await p.local('PUT', '/local/tenants/blue/limits', {})).status, 400);
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['PUT', '/limits'],
    ['DELETE', ''],
  ] as const) {
    const body = method === 'PUT' ? { users: 1 } : method === 'PATCH' ? { name: 'x' } : undefined;
    assert.equal((await p.local(method, `/local/tenants/nobody${path}`, body)).status, 404, method);
  }
  assert.deepEqual(await names(p), ['default', 'blue']);
});

test('hosts are kept in the form in which clients send them', async () => {
  await using p = await place();
  const names = ['Bücher.example', 'a_b.example', 'A_B.example', 'Bücher.example.', 'A_B.example.:80'];
  const addresses = [
    '127.0.0.1:80',
    '[::ffff:127.0.0.1]',
    '::FFFF:7f00:1',
    '[0:0:0:0:0:0:0:1]:443',
    '::1',
    '[fe80::1%eth0]',
  ];
  const hosts = [...names, ...addresses, 'fe80:0::1'];
  await p.local('POST', '/local/tenants', { name: 'c', hosts });
  assert.deepEqual((await p.local('GET', '/local/tenants/c')).body.hosts, [
    'xn--bcher-kva.example',
    'a_b.example',
    '127.0.0.1',
    '[::1]',
    '[fe80::1]',
  ]);
});

test('the network knows nothing of these endpoints', async () => {
  await using p = await withBlue();
  for (const [method, path] of [
    ['GET', '/local/tenants'],
    ['POST', '/local/tenants'],
    ['GET', '/local/tenants/blue'],
    ['PATCH', '/local/tenants/blue'],
    ['DELETE', '/local/tenants/blue'],
    ['PUT', '/local/tenants/blue/limits'],
    ['GET', '/local/activity/head'],
    ['POST', '/local/activity/verify'],
    ['POST', '/local/activity/export'],
  ] as const) {
    const body = method === 'GET' || method === 'DELETE' ? undefined : {};
    const answer = await p.at('blue.example', method, path, p.blueKey, body);
    assert.deepEqual([answer.status, answer.body], [404, { message: 'no such path' }], `${method} ${path}`);
  }
});

test('hosts and names change while it serves; the links of people follow', async () => {
  await using p = await withBlue();
  const invite = async (host: string, name: string): Promise<string> => {
    const person = { username: name, email: `${name}@x.example`, firstName: 'A', lastName: 'B' };
    return (await p.at(host, 'POST', '/auth/user/invite', p.blueKey, person)).body.loginUrl;
  };
  assert.match(await invite('blue.example', 'ada'), /^https:\/\/blue\.example:8443\/console\/invite\?token=/);
  const changed = await p.local('PATCH', '/local/tenants/blue', { hosts: ['green.example'], name: 'Green' });
  assert.deepEqual([changed.body.name, changed.body.hosts], ['green', ['green.example']]);
  assert.equal((await p.at('blue.example', 'GET', '/ks/keyrings', p.blueKey)).status, 401, 'now the one with *');
  assert.match(await invite('green.example', 'eve'), /^https:\/\/green\.example:8443\//);
  assert.equal((await p.local('GET', '/ks/keyrings', undefined, 'green')).status, 200);
  assert.equal((await p.local('GET', '/ks/keyrings', undefined, 'blue')).status, 404);
  await p.local('PATCH', '/local/tenants/default', { hosts: ['one.example'] });
  assert.equal((await p.at('blue.example', 'GET', '/ks/keyrings', p.blueKey)).status, 404, 'nobody has * any more');
  await p.reopen();
  assert.equal((await p.at('green.example', 'GET', '/ks/keyrings', p.blueKey)).status, 200);
  const other = await p.local(
    'POST',
    '/auth/user/invite',
    { username: 'x', email: 'x@x.x', firstName: 'A', lastName: 'B' },
    'default',
  );
  assert.match(other.body.loginUrl, /^https:\/\/one\.example:8443\//);
});

test('limits are set, seen, kept and lifted, one by one', async () => {
  await using p = await withBlue();
  const limit = async (body: object) => (await p.local('PUT', '/local/tenants/blue/limits', body)).body.limits;
  assert.deepEqual(await limit({ keyrings: 1, users: 0 }), { keyrings: 1, users: 0 });
  assert.deepEqual(await limit({ users: null, assets: 5 }), { keyrings: 1, assets: 5 });
  const ring = (name: string) => p.at('blue.example', 'POST', '/ks/keyrings', p.blueKey, { name });
  assert.deepEqual([(await ring('a')).status, (await ring('b')).status], [200, 403]);
  await p.reopen();
  assert.deepEqual(await ring('b').then(({ status, body }) => [status, body]), [
    403,
    { message: 'the limit of 1 keyrings is reached' },
  ]);
  await limit({ keyrings: null });
  assert.equal((await ring('b')).status, 200);
});

test('each operation is in the activity log of its tenant', async () => {
  await using p = await withBlue();
  await p.local('PATCH', '/local/tenants/blue', { hosts: ['b.example'] });
  await p.local('PUT', '/local/tenants/blue/limits', { users: 3 });
  const { id } = (await p.local('DELETE', '/local/tenants/blue')).body;
  assert.equal((await p.local('POST', `/local/tenants/${id}/restore`, {})).status, 200);
  const found = await p.at('b.example', 'POST', '/auth/search/activity', p.blueKey, {
    action: 'system.tenant',
    keyid: 'local',
  });
  const object = { type: 'tenant', id, name: 'blue' };
  const [create] = found.body.data.at(-1).props.objects.splice(0);
  assert.deepEqual([create.type, create.name], ['account', 'admin']);
  assert.deepEqual(
    found.body.data
      .map(({ props, validAction, status }: Record<string, unknown>) => [props, validAction, status])
      .reverse(),
    [
      [{ operation: 'create', name: 'blue', hosts: ['blue.example'], object, objects: [], granted: ['*'] }, true, 200],
      [{ operation: 'update', hosts: ['b.example'], object, changed: ['hosts'] }, true, 200],
      [{ operation: 'limits', limits: { users: 3 }, object, changed: ['limits'] }, true, 200],
      [{ operation: 'delete', object }, true, 200],
      [{ operation: 'restore', object }, true, 200],
    ],
  );
  const elsewhere = await p.at('else', 'POST', '/auth/search/activity', p.made.apiKey.key, { action: 'system.tenant' });
  assert.deepEqual(elsewhere.body.data, []);
});

test('a request that is on its way when its tenant is deleted is told what the next one is', async () => {
  for (const [hosts, status, message] of [
    [undefined, 401, /credential is not known/],
    [['only.example'], 404, /no tenant answers this host/],
  ] as const) {
    await using p = await place(hosts);
    const { body } = await p.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
    const { key } = body.apiKey;
    const answers = await deletedMeanwhile(
      (request) => p.appliance.app.fetch(request, {}),
      { host: 'blue.example', key },
      async () => assert.equal((await p.local('DELETE', '/local/tenants/blue', undefined, 'blue')).status, 200),
    );
    for (const each of answers) assert.deepEqual([each.status, message.test(each.body.message)], [status, true]);
    assert.equal((await p.at('blue.example', 'GET', '/ks/keyrings', key)).status, status);
  }
});

test('a deleted tenant is gone at once, restorable for 30 days, and erased after them', async () => {
  await using p = await withBlue();
  await p.at('blue.example', 'POST', '/ks/keyrings', p.blueKey, { name: 'r' });
  const deleted = (await p.local('DELETE', '/local/tenants/blue')).body;
  assert.equal(Date.parse(deleted.restorableUntil) - Date.parse(deleted.deletedAt), 30 * day);
  assert.equal((await p.at('blue.example', 'GET', '/ks/keyrings', p.blueKey)).status, 401);
  assert.deepEqual([await names(p), await names(p, '?deleted=true')], [['default'], ['default', 'blue']]);
  assert.equal((await p.local('GET', '/local/tenants?deleted=1')).status, 400);
  assert.equal((await p.local('GET', '/local/tenants/blue')).status, 404, 'its name is free');
  assert.equal((await p.local('PUT', `/local/tenants/${deleted.id}/limits`, { users: 1 })).status, 404);
  const second = await p.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
  assert.equal(second.status, 200);

  p.clock.ahead = 29 * day;
  await p.reopen();
  const restore = (body: object) => p.local('POST', `/local/tenants/${deleted.id}/restore`, body);
  assert.match((await restore({})).body.message, /^name: /);
  assert.match((await restore({ name: 'old-blue' })).body.message, /^hosts: /);
  assert.equal((await restore({ name: 'old-blue', hosts: ['old.example'] })).status, 200);
  assert.equal((await restore({})).status, 404, 'it is there');
  assert.equal((await p.at('old.example', 'GET', '/ks/keyrings/r', p.blueKey)).status, 200);

  await p.local('DELETE', '/local/tenants/old-blue');
  const before = await stores(p);
  p.clock.ahead += 30 * day + 1;
  assert.equal((await restore({})).status, 404);
  await p.reopen();
  // Closing waits for the purge that the start began.
  await p.reopen();
  assert.deepEqual(await names(p, '?deleted=true'), ['default', 'blue']);
  assert.deepEqual(
    [before, await stores(p)],
    [
      [3, 4],
      [2, 3],
    ],
  );
  assert.ok(p.events.some(({ message }) => /old-blue .* is erased/.test(message)));
});

/** The number of directories, and of stores that the seal has keys for. */
async function stores({ data }: Place): Promise<number[]> {
  const seal = JSON.parse(await readFile(join(data, 'kms.seal'), 'utf8'));
  return [(await readdir(join(data, 'tenants'))).length, seal.keys.length];
}

test('the operator tenant stays', async () => {
  await using p = await place();
  const answer = await p.local('DELETE', '/local/tenants/default');
  assert.equal(answer.status, 400);
  assert.match(answer.body.message, /^the tenant default cannot be deleted: its flags system\.\* concern/);
  assert.equal((await p.at('x', 'GET', '/ks/keyrings', p.made.apiKey.key)).status, 200);
});

test('of twenty that make one name or one host, one wins', async () => {
  await using p = await place();
  const race = async (body: (n: number) => object): Promise<number[]> =>
    (await Promise.all(Array.from({ length: 20 }, (_, n) => p.local('POST', '/local/tenants', body(n)))))
      .map(({ status }) => status)
      .sort();
  const oneWins = [200, ...Array(19).fill(400)];
  assert.deepEqual(await race((n) => ({ name: 'same', hosts: [`h${n}.example`] })), oneWins);
  assert.deepEqual(await race((n) => ({ name: `n${n}`, hosts: ['same.example'] })), oneWins);
  assert.deepEqual(await stores(p), [3, 4]);
});

test('requests under way and a deletion at once: each is answered, none with 500', async () => {
  await using p = await withBlue();
  const requests = Array.from({ length: 50 }, (_, n) =>
    p.at('blue.example', 'POST', '/ks/keyrings', p.blueKey, { name: `r${n}` }),
  );
  const deletion = p.local('DELETE', '/local/tenants/blue');
  const statuses = new Set((await Promise.all(requests)).map(({ status }) => status));
  assert.equal((await deletion).status, 200);
  for (const status of statuses) assert.ok([200, 401, 503].includes(status), String([...statuses]));
});

test('without serving, links lead to where it was last served', async () => {
  const { openAppliance } = await import('../../src/appliance/command-appliance.ts');
  await using p = await place();
  await p.appliance.close();
  const appliance = await openAppliance({ data: p.data });
  const person = { username: 'x', email: 'x@x.x', firstName: 'A', lastName: 'B' };
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(person) };
  const response = await appliance.fetchLocal(new Request('http://kms.local/auth/user/invite', init));
  const { loginUrl } = (await response.json()) as { loginUrl: string };
  assert.match(loginUrl, /^https:\/\/kms\.example\.org:8443\/console\//);
  await appliance.close();
});

test('whose logins need a second factor holds at once, in that tenant, and after a restart', async () => {
  await using p = await withBlue();
  const person = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Lovelace', flags: { '*': true } };
  const { body: made } = await p.local('POST', '/auth/users', { username: 'ada', ...person }, 'blue');
  const blue = 'blue.example';
  const login = async (code?: string) => {
    const body = { username: 'ada', password: made.password, ...(code !== undefined && { code }) };
    return (await p.at(blue, 'POST', '/auth/basic/login', undefined, body)).body.accessToken;
  };
  const users = async (key: string) => (await p.at(blue, 'GET', '/auth/users', key)).status;
  const key = await login();
  assert.equal(await users(key), 200);
  const { status } = await p.local('PATCH', '/local/tenants/default', { secondFactorFor: ['*'] });
  assert.deepEqual([status, await users(key)], [200, 200], 'of another tenant');
  const changed = await p.local('PATCH', '/local/tenants/blue', { secondFactorFor: ['*'] });
  assert.deepEqual(changed.body.secondFactorFor, ['*']);
  assert.equal(await users(key), 403);
  await p.reopen();
  assert.equal(await users(key), 403);

  const proof = { currentPassword: made.password };
  const begun = (await p.at(blue, 'POST', '/auth/user/second-factors/totp', key, proof)).body;
  const code = appCode(begun.secret, Date.now());
  const done = await p.at(blue, 'POST', '/auth/user/second-factors/totp/finish', key, { id: begun.id, code });
  assert.deepEqual([done.status, await users(key)], [200, 200]);
  await p.reopen();
  assert.equal((await p.local('POST', '/local/tenants/blue/rekey')).status, 200);
  assert.equal(await users(await login(done.body.recoveryCodes[3])), 200);
  assert.equal(await login(done.body.recoveryCodes[3]), undefined, 'used once, through restarts');
  assert.equal(await login(), undefined);
  const lifted = await p.local('PATCH', '/local/tenants/blue', { secondFactorFor: [] });
  assert.deepEqual(lifted.body.secondFactorFor, []);
  for (const secondFactorFor of ['*', [5], ['user.fly'], Array.from({ length: 101 }, () => '*')]) {
    assert.equal((await p.local('PATCH', '/local/tenants/blue', { secondFactorFor })).status, 400);
  }
});
