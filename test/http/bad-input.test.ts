// Bad input on every endpoint, generated from the schemas: bodies that are not JSON, fields that are missing, empty or
// of another type, objects nested too deep. Each is answered with a 400 that names the field, and recorded as granted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { endpoints } from '../../src/api/endpoints.ts';
import { type Answer, type Appliance, type CallOptions, testAppliance } from '../support/appliance.ts';
import { type Sample, sampled, urlOf } from './samples.ts';

type Sampled = (typeof sampled)[number];

const wrongValues = [null, 7, 1.5, true, '', 'text', [], ['x'], [7], {}];

function send(a: Appliance, { endpoint }: Sampled, sample: Sample, raw: unknown): Promise<Answer> {
  return a.call(endpoint.method, urlOf(endpoint, sample), undefined, { raw: JSON.stringify(raw) });
}

function isInvalid(answer: Answer, field?: string, silent?: boolean): void {
  assert.equal(answer.status, 400, answer.text);
  if (silent) {
    assert.deepEqual(answer.body, {});
    return;
  }
  assert.equal(typeof answer.body.message, 'string');
  if (field === undefined) return;
  assert.match(answer.body.message, new RegExp(field));
  assert.ok(Object.keys(answer.body.errors).some((name) => name === field || name.startsWith(`${field}.`)));
}

for (const each of sampled) {
  const { endpoint, make } = each;
  if (!endpoint.body) continue;
  const { body: schema, method, silent400 } = endpoint;
  const isPublic = endpoint.access.kind === 'public';

  test(`${endpoint.id}: what is no JSON object in UTF-8 is 400`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    const url = urlOf(endpoint, sample);
    const good = JSON.stringify(sample.body);
    const raws = [
      '',
      ' ',
      '{',
      'nope',
      '{"a":1,}',
      "{'a':1}",
      `${good}x`,
      'null',
      '[]',
      `[${good}]`,
      '"x"',
      '7',
      'true',
    ];
    const key = sample.key ?? a.root.key;
    const refuses = async (options: CallOptions) =>
      isInvalid(await a.call(method, url, undefined, { key, ...options }), undefined, silent400);
    // With DELETE, many clients send no body.
    const mayBeNone = method === 'DELETE';
    for (const raw of raws) if (raw !== '' || !mayBeNone) await refuses({ raw });
    await refuses({ raw: Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d) });
    if (!mayBeNone) await refuses({});
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', '', 'application/jsonx', 'json']) {
      await refuses({ raw: good, headers: { 'Content-Type': type } });
    }
    const [last] = await a.activity();
    if (!isPublic) assert.deepEqual([last?.validAction, last?.status], [true, 400]);
    const headers = { 'Content-Type': 'Application/JSON ; charset=utf-8' };
    assert.equal((await a.call(method, url, undefined, { key, raw: good, headers })).status, 200);
  });

  test(`${endpoint.id}: required fields are required, and every field has its type`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    for (const [field, type] of Object.entries(schema.shape)) {
      const isRequired = !z.object({ type }).safeParse({}).success;
      const { [field]: _, ...without } = sample.body ?? {};
      if (isRequired) {
        isInvalid(await send(a, each, sample, without), field, silent400);
        isInvalid(await send(a, each, sample, { ...sample.body, [field]: '' }), field, silent400);
      }
      for (const value of wrongValues) {
        if (z.object({ type }).safeParse({ type: value }).success) continue;
        isInvalid(await send(a, each, sample, { ...sample.body, [field]: value }), field, silent400);
      }
    }
  });

  test(`${endpoint.id}: unknown fields are ignored, whatever their names`, async () => {
    const a = await testAppliance();
    const sample = await make(a);
    const number = '"number":12345678901234567890';
    const extra = `${number},"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"hasOwnProperty":1,"unknown":[{}],`;
    const raw = `{${extra}${JSON.stringify(sample.body).slice(1)}`;
    const key = sample.key ?? a.root.key;
    assert.equal((await a.call(method, urlOf(endpoint, sample), undefined, { key, raw })).status, 200);
    assert.equal(Reflect.get({}, 'admin'), undefined);
  });

  test(`${endpoint.id}: a body over the limit is 413, to those who may ask`, async () => {
    const a = await testAppliance({ bodyLimit: 4096 });
    const sample = await make(a);
    const raw = JSON.stringify({ ...sample.body, unknown: 'x'.repeat(4096) });
    const url = urlOf(endpoint, sample);
    assert.equal((await a.call(method, url, undefined, { raw })).status, 413);
    const headers = { 'Content-Length': String(raw.length) };
    assert.equal((await a.call(method, url, undefined, { raw, headers })).status, 413);
    if (isPublic) return;
    const { key } = await a.keyWith();
    const isFlagged = endpoint.access.kind === 'flag';
    assert.equal((await a.call(method, url, undefined, { raw, key })).status, isFlagged ? 403 : 413);
    assert.equal((await a.call(method, url, undefined, { raw, key: null })).status, 401);
  });
}

const nested = (levels: number, array = false): unknown => {
  let value: unknown = array ? [] : {};
  for (let i = 1; i < levels; i++) value = array && i < levels - 1 ? [value] : { a: value };
  return value;
};

const freeFormFields = sampled.flatMap((each) =>
  Object.keys(each.endpoint.body?.shape ?? {})
    .filter((field) => field === 'props' || field === 'keyProps' || field === 'data')
    .map((field) => ({ each, field })),
);

for (const { each, field } of freeFormFields) {
  test(`${each.endpoint.id}: ${field} nests 32 levels and holds 20,000 values, and no more`, async () => {
    const a = await testAppliance();
    const sample = await each.make(a);
    for (const array of [false, true]) {
      isInvalid(await send(a, each, sample, { ...sample.body, [field]: nested(33, array) }), field);
    }
    isInvalid(await send(a, each, sample, { ...sample.body, [field]: { a: '\ud800' } }), field);
    isInvalid(await send(a, each, sample, { ...sample.body, [field]: { '\udfff': 1 } }), field);
    for (const number of ['1e999', '12345678901234567890', '-9007199254740993', '1e-999']) {
      const raw = `{"${field}":{"n":[${number}]},${JSON.stringify(sample.body).slice(1).replace(`"${field}"`, '"x"')}`;
      isInvalid(await a.call(each.endpoint.method, urlOf(each.endpoint, sample), undefined, { raw }), field);
    }
    const numbers = Array.from({ length: 20_000 }, (_, n) => n);
    isInvalid(await send(a, each, sample, { ...sample.body, [field]: { numbers } }), field);
    isInvalid(await send(a, each, sample, { ...sample.body, [field]: { ...numbers, one: 'more' } }), field);
    for (const good of [nested(32, true), { ...numbers }, { numbers: numbers.slice(1) }]) {
      const again = await each.make(a);
      assert.equal((await send(a, each, again, { ...again.body, [field]: good })).status, 200);
    }
  });
}

test('odd keys of free-form objects come back as they were', async () => {
  const a = await testAppliance();
  const props = '{"__proto__":{"x":[1,{"__proto__":2}]},"constructor":3,"\\u0000":"\\u0000","":null,"toString":[]}';
  const made = await a.call('POST', '/ks/keyrings', undefined, {
    raw: `{"name":"odd","props":${props},"keyProps":${props}}`,
  });
  assert.equal(made.status, 200);
  const asked = await a.call('GET', '/ks/keyrings/odd');
  assert.equal(JSON.stringify(asked.body.ring.props), JSON.stringify(JSON.parse(props)));
  assert.equal(JSON.stringify(made.body.key.props), JSON.stringify(JSON.parse(props)));
  const asset = await a.call('POST', '/ks/encrypt', undefined, { raw: `{"ringname":"odd","asset":{"data":${props}}}` });
  assert.equal(JSON.stringify(asset.body.asset.data), JSON.stringify(JSON.parse(props)));
  const opened = await a.call('POST', '/ks/decrypt', { header: asset.body.header });
  assert.equal(opened.body.asset.valid, true);
  assert.equal(JSON.stringify(opened.body.asset.data), JSON.stringify(JSON.parse(props)));
});

test('flags are a flat object of short names to booleans', async () => {
  const a = await testAppliance();
  const make = (flags: unknown) => a.call('POST', '/auth/apikey', { accountId: a.accountId, flags });
  for (const flags of [{ a: 1 }, { a: 'true' }, { a: null }, { a: { b: true } }, ['a'], { ['x'.repeat(257)]: true }]) {
    isInvalid(await make(flags), 'flags');
  }
  assert.deepEqual((await make({ ['x'.repeat(256)]: false, 'Own.Flag': true })).body.flags, {
    ['x'.repeat(256)]: false,
    'Own.Flag': true,
  });
  const raw = `{"accountId":"${a.accountId}","flags":{"__proto__":true,"constructor":false}}`;
  const odd = await a.call('POST', '/auth/apikey', undefined, { raw });
  assert.equal(JSON.stringify(odd.body.flags), '{"__proto__":true,"constructor":false}');
});

test('limits that are no integer of at least 1 are 400, large ones are capped, of doubles the first counts', async () => {
  const a = await testAppliance();
  for (const endpoint of endpoints.filter((each) => 'paginated' in each)) {
    const { make } = sampled.find((each) => each.endpoint.id === endpoint.id) ?? {};
    const sample = (await make?.(a)) ?? {};
    const ask = (limit: string) =>
      a.call(endpoint.method, urlOf(endpoint, { ...sample, query: { ...sample.query, limit } }), sample.body);
    for (const limit of ['', '0', '-1', '1.5', 'x', '1e3', '+5', ' 5', '5 ', '0x10', 'NaN', '٣', '00']) {
      isInvalid(await ask(limit), 'limit');
    }
    for (const [limit, used] of [
      ['1', 1],
      ['10000', 10_000],
      ['10001', 10_000],
      ['9'.repeat(400), 10_000],
    ] as const) {
      assert.equal((await ask(limit)).body.pagination.limit, used);
    }
  }
  assert.equal((await a.call('GET', '/ks/keyrings')).body.pagination.limit, 100);
  assert.equal((await a.call('GET', '/ks/keyrings?limit=2&limit=x')).body.pagination.limit, 2);
  isInvalid(await a.call('GET', '/ks/keyrings?limit=x&limit=2'), 'limit');
  isInvalid(await a.call('GET', '/ks/config'), 'ringname');
  isInvalid(await a.call('GET', '/ks/config?ringname='), 'ringname');
});

test('paths and texts of garbage are refused, never a failure', async () => {
  const a = await testAppliance();
  const garbage = [
    '%',
    '%zz',
    '%00',
    '%ff%fe',
    '%ED%A0%80',
    '..%2f..',
    '%2525',
    'a%20b',
    '%F0%9F%94%91',
    '__proto__',
    ' ',
  ];
  for (const { endpoint } of sampled) {
    if (!endpoint.params) continue;
    for (const value of garbage) {
      const path = endpoint.path.replace(/\{\w+\}/g, value);
      const body = endpoint.body ? {} : undefined;
      const { status, text } = await a.call(endpoint.method, path, body);
      assert.ok([200, 400, 404].includes(status), `${endpoint.method} ${path}: ${status} ${text}`);
    }
  }
  for (const uid of ['a\0b', '\ud800']) {
    isInvalid(await a.call('POST', '/auth/accounts', { uid }), 'uid');
  }
});

test('the uid of an account has at most 256 characters, and one from before that stays', async () => {
  const a = await testAppliance();
  const [longest, longer] = ['\u{1f511}'.repeat(256), 'a'.repeat(257)];
  assert.equal((await a.call('POST', '/auth/accounts', { uid: longest })).status, 200);
  const refused = await a.call('POST', '/auth/accounts', { uid: longer });
  isInvalid(refused, 'uid');
  assert.match(refused.body.message, /expected at most 256 characters/);
  const path = `/auth/accounts/${longer}?uid=true`;
  assert.equal((await a.call('GET', path)).status, 404);
  await a.tenants[0]?.handle.store.transaction(({ accounts }) =>
    accounts.insert({ id: 'acct_earlier', uid: longer, notes: '', props: {}, createdAt: 0, updatedAt: 0 }),
  );
  assert.equal((await a.call('GET', path)).body.uid, longer);
  const kept = await a.call('PATCH', '/auth/accounts/acct_earlier', { uid: longer, notes: 'n' });
  assert.deepEqual([kept.status, kept.body.uid, kept.body.notes], [200, longer, 'n']);
  isInvalid(await a.call('PATCH', '/auth/accounts/acct_earlier', { uid: `${longer}a` }), 'uid');
  assert.equal((await a.call('DELETE', path)).status, 200);
});

test('whatever a user or an account is called, a path can ask for it', async () => {
  const a = await testAppliance();
  const printable = Array.from({ length: 95 }, (_, n) => `a${String.fromCharCode(32 + n)}b${n}`);
  const names = [...printable, '%2F', '%', '%zz', '...', '..a', '.a', 'a/../b', '/', '?', '#', 'é', 'x\u{10ffff}'];
  for (const [n, name] of names.entries()) {
    const person = { username: name, email: `${n}@example.org`, firstName: 'a', lastName: 'b' };
    const { id } = (await a.call('POST', '/auth/accounts', { uid: name })).body;
    assert.equal((await a.call('POST', '/auth/user/invite', person)).status, 200, name);
    const part = encodeURIComponent(name);
    assert.equal((await a.call('GET', `/auth/accounts/${part}?uid=true`)).body.id, id, name);
    assert.equal((await a.call('GET', `/auth/users/${part}`)).body.username, name);
  }
  const { id } = (await a.call('POST', '/auth/accounts', { uid: 'a' })).body;
  // In a path these segments would resolve to another path, escaped or not.
  for (const name of ['.', '..']) {
    const person = { username: name, email: 'dot@example.org', firstName: 'a', lastName: 'b' };
    isInvalid(await a.call('POST', '/auth/accounts', { uid: name }), 'uid');
    isInvalid(await a.call('PATCH', `/auth/accounts/${id}`, { uid: name }), 'uid');
    isInvalid(await a.call('POST', '/auth/users', person), 'username');
    isInvalid(await a.call('POST', '/auth/user/invite', person), 'username');
  }
});

test('no list and no object of a request is without a bound', () => {
  const unbounded: string[] = [];
  const walk = (schema: unknown, path: string): void => {
    if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional || schema instanceof z.ZodNullable) {
      walk(schema.unwrap(), path);
    } else if (schema instanceof z.ZodObject) {
      for (const [name, field] of Object.entries(schema.shape)) walk(field, `${path}.${name}`);
    } else if (schema instanceof z.ZodArray || schema instanceof z.ZodRecord || schema instanceof z.ZodTuple) {
      // Zod would check each entry before the count.
      unbounded.push(path);
    }
  };
  for (const { id, body } of endpoints.map((each): Endpoint => each)) walk(body, id);
  assert.deepEqual(unbounded, []);
});

test('lists in requests have at most 1,000 entries, all of them texts', async () => {
  const a = await testAppliance();
  const search = (parents: unknown) => a.call('POST', '/assets/search', { parents });
  const ids = Array.from({ length: 1000 }, (_, n) => `asset_${n}`);
  assert.equal((await search(ids)).status, 200);
  const long = await search([...ids, 'one more']);
  assert.deepEqual([long.status, long.body.errors], [400, { parents: 'must have at most 1000 entries' }]);
  const { body } = await search(Array(1000).fill(1));
  assert.equal(body.message, 'parents.0: expected a string, got a number');
  assert.equal(Object.keys(body.errors).length, 20);
  assert.equal((await search(Array(500_000).fill(1))).text.length < 200, true);
});

test('a refusal that would repeat something long does not', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['kms.test'] }] });
  const long = 'x'.repeat(12_000);
  const raw = JSON.stringify({ [long]: 1, name: long, publicKey: long, username: long, email: long, hash: long });
  for (const { endpoint, make } of sampled) {
    const sample = await make(a);
    const params = Object.fromEntries(Object.keys(sample.params ?? {}).map((name) => [name, long]));
    const query = Object.fromEntries(Object.keys(endpoint.query?.shape ?? {}).map((name) => [name, long]));
    const body = endpoint.body ? { raw } : {};
    for (const key of [a.root.key, long, null]) {
      const answer = await a.call(endpoint.method, urlOf(endpoint, { params, query }), undefined, { ...body, key });
      const isShort = answer.status < 400 || answer.text.length < 65_536;
      assert.ok(answer.status < 500 && isShort, `${endpoint.id}: ${answer.text.length}`);
    }
  }
});

test('booleans of queries are true or false', async () => {
  const a = await testAppliance();
  for (const { endpoint, make } of sampled) {
    for (const name of Object.keys(endpoint.query?.shape ?? {})) {
      if (!['id', 'uid', 'email', 'wildcard', 'deleted'].includes(name)) continue;
      const sample = await make(a);
      const ask = (value: string) => {
        const url = urlOf(endpoint, { ...sample, query: { ...sample.query, [name]: value } });
        const key = endpoint.access.kind === 'public' ? null : a.root.key;
        return a.call(endpoint.method, url, sample.body, { key });
      };
      for (const value of ['1', '', 'TRUE', 'yes', '0', 'null', ' true']) isInvalid(await ask(value), name);
      for (const value of ['true', 'false']) {
        const { body } = await ask(value);
        assert.equal(body.errors?.[name], undefined);
      }
    }
  }
});

test('numbers that are not kept cost nothing and change nothing; those that are kept are told of', async () => {
  const a = await testAppliance();
  const send = (raw: string) => a.call('PUT', '/ks/config', undefined, { raw });
  await a.call('POST', '/ks/keyrings', { name: 'n' });
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const set = (count: string) => `{"ringname":"n","config":{"algos":{"aes256":{"maxEncryptCount":${count}}}}}`;
  const large = await send(set('9007199254740993'));
  assert.deepEqual(
    [large.status, large.body.message],
    [
      400,
      'config.algos.aes256.maxEncryptCount: must be an integer of at most 9007199254740991: a larger one cannot be kept exactly',
    ],
  );
  assert.equal((await send(set('9007199254740991'))).status, 200);
  assert.equal((await send(`{"ignored":[12345678901234567890],${set('5').slice(1)}`)).status, 200);
  const asset = (more: string, amount: string) =>
    a.call('POST', '/ks/encrypt', undefined, { raw: `{"ringname":"n"${more},"asset":{"data":{"amount":${amount}}}}` });
  assert.equal((await asset(`,"deep":${deep}`, '9007199254740992')).status, 200);
  isInvalid(await asset(`,"deep":${deep}`, '9007199254740993'), 'asset.data');
});

test('a decrypt that is refused is no longer either, whatever props its key has', async () => {
  const a = await testAppliance();
  for (const [length, isLeftOut] of [
    [10, false],
    [200_000, true],
  ] as const) {
    const keyProps = { text: '\u4e2d'.repeat(length) };
    await a.call('POST', '/ks/keyrings', { name: `long-${length}`, keyProps });
    const { body } = await a.call('POST', '/ks/encrypt', { ringname: `long-${length}`, asset: {} });
    await a.call('DELETE', `/assets/${body.asset.id}`);
    const answer = await a.call('POST', '/ks/decrypt', { header: body.header });
    assert.equal(answer.status, 422);
    assert.ok(Buffer.byteLength(answer.text) <= 65_536);
    assert.deepEqual(answer.body.key, { ...body.key, props: isLeftOut ? {} : keyProps });
    assert.equal(answer.body.asset.valid, false);
  }
});
