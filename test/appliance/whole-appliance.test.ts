// Operations on the whole appliance, attempted with the operator tenant's keys, another tenant's, as a stranger, and by
// the administrator at the machine. Each is answered as the table says, and recorded in the log of every tenant or of
// none.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Initialised, initAppliance } from '../../src/appliance/init.ts';
import { socketFetch } from '../../src/cli/local-socket.ts';
import { sealMark } from '../../src/platform/data-dir.ts';
import { type Serving, serve } from '../../src/server/serve.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-whole-'));
const data = join(base, 'data');
let made: Initialised;
let serving: Serving;
let socket: (request: Request) => Promise<Response>;
const keys: Record<string, string> = {};

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

async function start(): Promise<void> {
  serving = await serve({ data, listen: '127.0.0.1:0', logLevel: 'silent' });
  socket = socketFetch(data);
}

async function answerOf(pending: Promise<Response>): Promise<Answer> {
  const response = await pending;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return { status: response.status, body: isJson ? JSON.parse(new TextDecoder().decode(bytes)) : bytes.length };
}

function request(url: string, method: string, body: object | undefined, headers: Record<string, string>): Request {
  if (method === 'GET') return new Request(url, { headers });
  return new Request(url, {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body ?? {}),
  });
}

function local(method: string, path: string, body?: object, tenant = 'default'): Promise<Answer> {
  return answerOf(socket(request(`http://kms.local${path}`, method, body, { 'kms-tenant': tenant })));
}

/** `localhost` is the other tenant's host; 127.0.0.1 is served by the operator tenant. */
function network(method: string, path: string, as: Who, body?: object): Promise<Answer> {
  const { host, key } = whos[as];
  const url = new URL(path, serving.url);
  url.hostname = host;
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${keys[key]}` };
  return answerOf(fetch(request(url.href, method, body, headers)));
}

const whos = {
  operator: { host: '127.0.0.1', key: 'operator' },
  'operator without the flag': { host: '127.0.0.1', key: 'weak' },
  'another tenant': { host: 'localhost', key: 'blue' },
  'another tenant, flag by flag': { host: 'localhost', key: 'blueSystem' },
  stranger: { host: '127.0.0.1', key: undefined },
  'stranger at another tenant': { host: 'localhost', key: undefined },
} as const;
type Who = keyof typeof whos;

interface Found {
  readonly keyid: string;
  readonly status: number;
  readonly validAction: boolean;
  readonly props: Readonly<Record<string, unknown>>;
  readonly address?: string;
}

async function recorded(tenant: string, action: string): Promise<Found[]> {
  const answer = await local('POST', '/auth/search/activity', { action }, tenant);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.data;
}

/** The records that an act leaves in each tenant's log. */
async function left(action: string, act: () => Promise<unknown>): Promise<{ own: Found[]; other: Found[] }> {
  const before = [await recorded('default', action), await recorded('blue', action)] as const;
  await act();
  const own = await recorded('default', action);
  const other = await recorded('blue', action);
  return { own: own.slice(0, own.length - before[0].length), other: other.slice(0, other.length - before[1].length) };
}

before(async () => {
  made = await initAppliance({ data });
  await start();
  const blue = await local('POST', '/local/tenants', { name: 'blue', hosts: ['localhost'] });
  const create = async (tenant: string, flags: object): Promise<string> =>
    (await local('POST', '/auth/apikey?uid=true', { accountId: 'admin', flags }, tenant)).body.key;
  keys.operator = made.apiKey.key;
  keys.blue = blue.body.apiKey.key;
  keys.weak = await create('default', { 'keyring.*': true, 'system.unheard-of': true });
  const all = { 'system.*': true, 'system.metrics': true, 'system.backup': true, 'system.seal': true, '*': true };
  keys.blueSystem = await create('blue', all);
  assert.ok(Object.values(keys).every(Boolean), JSON.stringify(Object.keys(keys)));
});
after(async () => {
  await serving.close();
  rmSync(base, { recursive: true, force: true });
});

const acts = [
  { action: 'system.metrics', method: 'GET', path: '/metrics', isForAll: false },
  { action: 'system.backup', method: 'POST', path: '/system/backup', isForAll: true },
  { action: 'system.seal', method: 'POST', path: '/system/seal', isForAll: true },
] as const;

for (const { action, method, path, isForAll } of acts) {
  test(`${method} ${path}: for the operator tenant alone`, async () => {
    for (const [who, status, message] of [
      ['operator without the flag', 403, `the permission flag ${action} is missing`],
      [
        'another tenant',
        403,
        `the permission flag ${action} concerns the whole appliance, and counts in the tenant default alone`,
      ],
      [
        'another tenant, flag by flag',
        403,
        `the permission flag ${action} concerns the whole appliance, and counts in the tenant default alone`,
      ],
      ['stranger', 401, undefined],
      ['stranger at another tenant', 401, undefined],
    ] as const) {
      let answer: Answer | undefined;
      const { own, other } = await left(action, async () => {
        answer = await network(method, path, who);
      });
      assert.equal(answer?.status, status, who);
      if (message !== undefined) assert.deepEqual(answer?.body, { message }, who);
      const records = [...own, ...other];
      assert.equal(records.length, status === 403 ? 1 : 0, `${who}: ${JSON.stringify(records)}`);
      for (const each of records)
        assert.deepEqual([each.validAction, each.status, each.props.by], [false, 403, undefined]);
      assert.equal(other.length, status === 403 && who.startsWith('another') ? 1 : 0);
    }
    assert.equal(
      (await network('GET', '/system/seal-status', 'stranger')).body.sealed,
      false,
      'nobody of them sealed it',
    );
    const { own, other } = await left(action, async () => {
      assert.equal((await network(method, path, 'operator')).status, 200);
      if (action === 'system.seal') await local('POST', '/system/unseal', { retry: true });
    });
    assert.deepEqual(
      own.map(({ keyid, props }) => [keyid, props]),
      [[made.apiKey.keyid, isForAll ? { by: 'operator' } : {}]],
    );
    assert.deepEqual(
      other.map(({ keyid, props, validAction, status }) => [keyid, props, validAction, status]),
      isForAll ? [['operator', { by: 'operator' }, true, 200]] : [],
      'nothing of the operator tenant’s key',
    );
  });
}

test('acts of the administrator at the machine are in every log', async () => {
  for (const [action, path] of [
    ['system.backup', '/local/backup'],
    ['system.master', '/local/master/rotate'],
    ['system.seal', '/local/seal'],
    ['system.unseal', '/system/unseal'],
  ] as const) {
    const { own, other } = await left(action, async () => {
      if (action === 'system.unseal') assert.equal((await local('POST', '/local/seal')).status, 200);
      assert.equal((await local('POST', path, action === 'system.unseal' ? { retry: true } : {})).status, 200, path);
      if (action === 'system.seal') await local('POST', '/system/unseal', { retry: true });
    });
    for (const records of [own, other]) {
      assert.deepEqual(
        records.map(({ keyid, props }) => [keyid, props.by]),
        [['local', 'operator']],
        action,
      );
    }
  }
});

test('the local paths are unknown to the network, whoever asks', async () => {
  for (const path of [
    '/local/status',
    '/local/seal',
    '/local/backup',
    '/local/tenants',
    '/local/master',
    '/local/drill',
  ]) {
    for (const who of Object.keys(whos) as Who[]) {
      for (const method of ['GET', 'POST']) {
        assert.equal((await network(method, path, who)).status, 404, `${who} ${method} ${path}`);
      }
    }
  }
});

test('unsealing from the network takes a secret; looking for the key and forgetting shares is local', async () => {
  const key = readFileSync(made.keyFile, 'utf8');
  for (const isSealed of [false, true]) {
    if (isSealed) assert.equal((await network('POST', '/system/seal', 'operator')).status, 200);
    for (const who of Object.keys(whos) as Who[]) {
      for (const body of [{ retry: true }, { reset: true }]) {
        // More often than wrong secrets are allowed: it does not count as an attempt.
        for (let i = 0; i < 7; i++) {
          const answer = await network('POST', '/system/unseal', who, body);
          assert.equal(answer.status, 403, who);
          assert.match(answer.body.message, /is for the local socket: run `kms unseal`/);
        }
      }
    }
    assert.equal((await network('GET', '/system/seal-status', 'stranger')).body.sealed, isSealed);
  }
  assert.equal((await network('POST', '/system/unseal', 'stranger', { key: 'nonsense' })).status, 400);
  const opened = await network('POST', '/system/unseal', 'stranger', { key });
  assert.deepEqual(opened, { status: 200, body: { sealed: false, kinds: ['keyfile'] } });
  for (const tenant of ['default', 'blue']) {
    const [last] = await recorded(tenant, 'system.unseal');
    assert.deepEqual([last?.keyid, last?.props.by, last?.props.kind], ['network', 'operator', 'keyfile']);
    assert.equal(last?.address, '127.0.0.1');
  }
});

test('a seal that somebody asked for outlasts restarts, whoever asked', async () => {
  const mark = join(data, sealMark);
  const key = readFileSync(made.keyFile, 'utf8');
  const ask = {
    network: () => network('POST', '/system/seal', 'operator'),
    socket: () => local('POST', '/local/seal'),
  };
  const open = {
    network: () => network('POST', '/system/unseal', 'stranger', { key }),
    socket: () => local('POST', '/system/unseal', { retry: true }),
  };
  for (const asked of ['network', 'socket'] as const) {
    for (const opened of ['network', 'socket'] as const) {
      assert.ok(!existsSync(mark));
      assert.equal((await ask[asked]()).status, 200);
      assert.ok(existsSync(mark), 'remembered before it is answered');
      for (let i = 0; i < 2; i++) {
        await serving.close();
        await start();
        assert.match(serving.sealed?.message ?? '', /somebody sealed it on purpose/);
        assert.equal((await network('GET', '/ks/keyrings', 'operator')).status, 503);
        assert.equal((await local('GET', '/local/status')).body.onPurpose, true);
      }
      assert.equal((await open[opened]()).status, 200);
      assert.ok(!existsSync(mark));
      assert.equal((await network('GET', '/ks/keyrings', 'operator')).status, 200);
      await serving.close();
      await start();
      assert.equal(serving.sealed, undefined);
    }
  }
});

test('what is sealed for want of its key stays so on request when the key comes back', async () => {
  assert.equal((await local('POST', '/local/seal')).status, 200);
  assert.equal((await local('POST', '/local/seal')).status, 200, 'twice is once');
  await serving.close();
  await start();
  assert.ok(serving.sealed);
  assert.equal((await local('POST', '/system/unseal', { retry: true })).body.sealed, false);
});

test('the operator tenant keeps its name and stays', async () => {
  const message = 'its flags system.* concern the whole appliance';
  for (const [method, body] of [
    ['DELETE', undefined],
    ['PATCH', { name: 'other' }],
  ] as const) {
    const answer = await local(method, '/local/tenants/default', body);
    assert.equal(answer.status, 400);
    assert.ok(answer.body.message.includes(message), answer.body.message);
  }
  assert.equal((await local('PATCH', '/local/tenants/blue', { name: 'default' })).status, 400);
  assert.equal((await local('PATCH', '/local/tenants/default', { name: 'default' })).status, 200);
  assert.equal((await network('POST', '/system/seal', 'another tenant')).status, 403);
});
