// Bad input on every endpoint, generated from the schemas: bodies that are none, fields that are missing, empty or of another
// type, objects that nest too deep. Each is a 400 that names the field, recorded as granted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
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
    const refuses = async (options: CallOptions) =>
      isInvalid(await a.call(method, url, undefined, options), undefined, silent400);
    for (const raw of raws) await refuses({ raw });
    await refuses({ raw: Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d) });
    await refuses({});
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', '', 'application/jsonx', 'json']) {
      await refuses({ raw: good, headers: { 'Content-Type': type } });
    }
    const [last] = await a.activity();
    if (!isPublic) assert.deepEqual([last?.validAction, last?.status], [true, 400]);
    const headers = { 'Content-Type': 'Application/JSON ; charset=utf-8' };
    assert.equal((await a.call(method, url, undefined, { raw: good, headers })).status, 200);
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
    assert.equal((await a.call(method, urlOf(endpoint, sample), undefined, { raw })).status, 200);
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
    assert.equal((await a.call(method, url, undefined, { raw, key })).status, 403);
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
  test(`${each.endpoint.id}: ${field} nests 32 levels and no more`, async () => {
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
    const good = { ...sample.body, [field]: nested(32, true) };
    assert.equal((await send(a, each, sample, good)).status, 200);
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
