// Callers of AWS KMS: temporary credentials apart from their signature, rubbish beside good tokens, and the traces that
// refused and malformed requests leave.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Looks } from '../../src/dialects/aws/found-keys.ts';
import { operations } from '../../src/dialects/aws/operations.ts';
import { KmsError } from '../../src/errors.ts';
import { testAppliance } from '../support/appliance.ts';
import { accessKey, around, base64, call, done, formType, json, post, signed } from '../support/aws-client.ts';
import { assume, identityOf, withSession } from '../support/aws-token-service.ts';
import { v1 } from '../support/vault-client.ts';
import { make } from './managed-key-desk.ts';

test('the token of temporary credentials lets nobody in without their signature, at no listener', async () => {
  const { a, apiKey, issuer, account } = await withSession();
  await make(a, { name: 'mine' });
  const { key: session } = await assume(a, issuer, account, apiKey.keyid);
  const token = { key: session.token ?? '' };
  const items = { items: [{ plaintext: base64('x') }] };
  for (const [method, path, body] of [
    ['POST', '/managed-keys/mine/encrypt', items],
    ['GET', '/managed-keys', undefined],
    ['GET', '/auth/workload/session', undefined],
    ['POST', '/auth/workload/renew', {}],
    ['POST', '/auth/workload/logout', {}],
  ] as const) {
    const { status } = await a.call(method, path, body, token);
    assert.equal(status, 401, `${method} ${path}`);
  }
  const [record] = await a.activity();
  assert.deepEqual([record?.keyid, record?.validAction, record?.status], [apiKey.keyid, false, 401]);
  for (const [method, path] of [
    ['POST', 'transit/encrypt/mine'],
    ['GET', 'auth/token/lookup-self'],
    ['POST', 'auth/token/renew-self'],
    ['POST', 'auth/token/revoke-self'],
  ] as const) {
    const body = method === 'GET' ? undefined : { plaintext: base64('x') };
    assert.equal((await v1(a, method, path, body, { token: session.token ?? '' })).status, 403, path);
  }
  await done(a, session, 'Encrypt', { KeyId: 'alias/mine', Plaintext: base64('x') });
  // A login of the native kind has no secret, and needs none.
  const native = { token: await issuer.token(), role: apiKey.keyid };
  const { body } = await a.call('POST', '/auth/workload/login', native, { key: null });
  assert.equal((await a.call('POST', '/managed-keys/mine/encrypt', items, { key: body.accessToken })).status, 200);
});

test('a right token is let in, however much rubbish its address sends', async () => {
  const { a, apiKey, issuer, account } = await withSession();
  const codes = new Set<string>();
  for (let n = 0; n < 70; n++) {
    codes.add((await assume(a, issuer, account, 'nobody', { WebIdentityToken: `rubbish ${n}` })).code);
  }
  assert.ok(codes.has('Throttling'), [...codes].join());
  const wrong = { WebIdentityToken: await issuer.token({ aud: 'another' }) };
  const told = await assume(a, issuer, account, apiKey.keyid, wrong);
  assert.equal(told.code, 'Throttling');
  assert.match(told.text, /the token was refused: .*audience.*; too many failed logins; try again in \d+ s/);
  const { status, key } = await assume(a, issuer, account, apiKey.keyid);
  assert.equal(status, 200);
  await done(a, key, 'ListKeys');
  assert.notEqual((await assume(a, issuer, account, 'nobody', { WebIdentityToken: 'rubbish' })).code, 'Throttling');
});

test('who knows an id or a name alone writes a record a minute under it, between good requests, too', async () => {
  const { a, key, apiKey, issuer, account } = await withSession();
  const wrong = { ...key, secret: 'x'.repeat(40) };
  const refusals = async () => {
    const all = await a.activity();
    return all.filter(({ keyid, props }) => keyid === apiKey.keyid && props.refusedBy !== undefined);
  };
  for (let n = 0; n < 120; n++) {
    await call(a, wrong, 'ListKeys', { Limit: n + 1 });
    await assume(a, issuer, account, apiKey.keyid, { WebIdentityToken: await issuer.token({ aud: 'x', n }) });
    if (n % 20 > 0) continue;
    await done(a, key, 'ListKeys');
    await assume(a, issuer, account, apiKey.keyid);
  }
  assert.deepEqual((await refusals()).map(({ props }) => props.refusedBy).sort(), ['audience', 'signature']);
  // Another check is another record, of the same body, too; and so is the next minute.
  const headers = { 'content-type': json, 'x-amz-target': 'TrentService.ListKeys' };
  await post(a, signed(a, wrong, headers, '{"Limit":1}', { region: 'eu-west-1' }));
  assert.equal((await refusals()).length, 3);
  a.advance(61_000);
  await call(a, wrong, 'ListKeys', { Limit: 1 });
  assert.equal((await refusals()).length, 4);
});

test('what is no request of these services leaves a line in the log; of a known caller, a record', async () => {
  const { a, key, apiKey, issuer, account } = await withSession();
  const last = () => JSON.parse(a.log.at(-1) ?? '{}');
  for (const more of [
    { Policy: '{}' },
    { RoleArn: `arn:aws-cn:iam::${account}:role/${apiKey.keyid}` },
    { DurationSeconds: '1' },
    { Version: '1' },
  ]) {
    const lines = a.log.length;
    assert.equal((await assume(a, issuer, account, apiKey.keyid, more)).code, 'ValidationError');
    assert.equal(a.log.length, lines + 1);
    assert.deepEqual([last().action, last().status], ['aws.form', 400]);
    assert.match(last().reason, /^refused by form: \w/);
  }
  const headers = { 'content-type': json, 'x-amz-target': 'TrentService.ListKeys' };
  for (const sent of [
    signed(a, key, { ...headers, 'content-encoding': 'gzip' }, '{}'),
    signed(a, key, headers, JSON.stringify({ Marker: 'x'.repeat(140_000) })),
    { headers: { host: 'kms.test', 'content-type': formType }, body: 'Action=GetSessionToken' },
  ]) {
    const lines = a.log.length;
    const { status, headers: answered } = await post(a, sent);
    assert.equal(status, 400);
    assert.equal(a.log.length, lines + 1);
    assert.deepEqual([last().action, last().requestId], ['aws.form', answered.get('x-amzn-requestid')]);
  }
  const form = { 'content-type': formType };
  const { status, text } = await post(a, signed(a, key, form, 'Action=GetSessionToken', { service: 'sts' }));
  assert.equal(status, 400);
  assert.match(text, /InvalidAction/);
  const [record] = await a.activity();
  assert.deepEqual([record?.keyid, record?.action, record?.status], [apiKey.keyid, 'none', 400]);
  assert.equal(last().keyid, apiKey.keyid);
});

test('requests that no endpoint serves are logged, and so counted, under a name of their own', async () => {
  const { a, key, apiKey } = await around();
  const last = () => JSON.parse(a.log.at(-1) ?? '{}');
  assert.equal((await identityOf(a, key)).status, 200);
  assert.deepEqual([last().action, last().status, last().keyid], ['aws.other', 200, apiKey.keyid]);
  const before = a.log.length;
  await done(a, key, 'ListRetirableGrants', { RetiringPrincipal: 'arn:aws:iam::1:user/a' });
  assert.equal(a.log.length, before + 1);
  assert.equal(last().action, 'aws.other');
});

test('access keys work on after their tenant changed its name, whoever has the old one', async () => {
  const names = ['one', 'two'];
  const a = await testAppliance({ tenants: names.map((name) => ({ name, hosts: [`${name}.test`] })) });
  const keys = await Promise.all(
    a.tenants.map(async ({ accountId, root }, n) => {
      const as = { host: `${names[n]}.test`, key: root.key };
      const { keyid } = (await a.call('POST', '/auth/apikey', { accountId, flags: { 'key.*': true } }, as)).body;
      const { body } = await a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'aws' }, as);
      return { id: body.accessKeyId, secret: body.secretAccessKey };
    }),
  );
  for (const key of keys) await done(a, key, 'CreateKey');
  const ids = async () => Promise.all(keys.map(async (key) => (await done(a, key, 'ListKeys')).Keys[0].KeyId));
  const before = await ids();
  const rename = (n: number, name: string) => Object.assign(a.tenants[n]?.handle.tenant ?? {}, { name });
  rename(0, 'former');
  rename(1, 'one');
  assert.deepEqual(await ids(), before);
  rename(0, 'two');
  assert.deepEqual(await ids(), before);
});

test('no key is made for a day or region that a request merely claims', async () => {
  const { a } = await around();
  const { key } = await accessKey(a);
  const [seat] = a.tenants;
  const { keys } = seat?.handle.tenant ?? {};
  assert.ok(keys);
  const made: string[] = [];
  const opened = keys.opened.bind(keys);
  Object.assign(keys, {
    opened(name: string, open: () => Uint8Array) {
      made.push(name);
      return opened(name, open);
    },
  });
  const headers = { 'content-type': json, 'x-amz-target': 'TrentService.ListKeys' };
  for (let n = 0; n < 5; n++) await post(a, signed(a, key, headers, '{}', { region: `made-up-${n}` }));
  assert.deepEqual(made, []);
  await done(a, key, 'ListKeys');
  assert.notDeepEqual(made, []);
});

test('a request that fails unexpectedly is one record and one line in the log, and tells nothing of why', async () => {
  const { a, key, apiKey } = await around();
  const { plan } = operations.GetKeyPolicy;
  const broken = () => {
    throw new RangeError('the reason');
  };
  const KeyId = (await done(a, key, 'CreateKey')).KeyMetadata.KeyId;
  const [records, lines] = [(await a.activity()).length, a.log.length];
  try {
    Object.assign(operations.GetKeyPolicy, { plan: broken });
    const answer = await call(a, key, 'GetKeyPolicy', { KeyId });
    assert.deepEqual(answer, { status: 500, __type: 'KMSInternalException' });
  } finally {
    Object.assign(operations.GetKeyPolicy, { plan });
  }
  assert.equal((await a.activity()).length, records + 1);
  const [record] = await a.activity();
  assert.deepEqual([record?.keyid, record?.action, record?.status], [apiKey.keyid, 'key.read', 500]);
  assert.equal(a.log.length, lines + 1);
  assert.match(a.log.at(-1) ?? '', /RangeError: the reason/);
});

test('a request whose keys change at each of its plans is told to try again, with one record, and does nothing', async () => {
  const { a, key } = await around();
  const KeyId = (await done(a, key, 'CreateKey')).KeyMetadata.KeyId;
  const { isStale } = Looks.prototype;
  const [records, lines] = [(await a.activity()).length, a.log.length];
  try {
    Looks.prototype.isStale = () => true;
    const answer = await call(a, key, 'DisableKey', { KeyId });
    assert.deepEqual([answer.status, answer.__type], [503, 'ServiceUnavailableException']);
  } finally {
    Looks.prototype.isStale = isStale;
  }
  assert.equal((await a.activity()).length, records + 1);
  assert.equal((await a.activity())[0]?.status, 503);
  assert.equal(a.log.length, lines + 1);
  assert.equal((await done(a, key, 'DescribeKey', { KeyId })).KeyMetadata.KeyState, 'Enabled');
});

test('a tenant that cannot serve is in no way of the keys of others', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'broken', hosts: ['broken.test'] },
      { name: 'sound', hosts: ['*'] },
    ],
  });
  const as = { key: a.tenants[1]?.root.key ?? '' };
  const { accountId } = (await a.call('GET', '/auth/apikey', undefined, as)).body.data[0].references;
  const { keyid } = (await a.call('POST', '/auth/apikey', { accountId, flags: { 'key.*': true } }, as)).body;
  const { body } = await a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'aws' }, as);
  const { store } = a.tenants[0]?.handle ?? assert.fail();
  const unable = () => new KmsError('unavailable', 'its disk is gone');
  store.read = () => {
    throw unable();
  };
  store.transaction = () => Promise.reject(unable());
  const key = { id: body.accessKeyId, secret: body.secretAccessKey };
  await done(a, key, 'CreateKey');
  // Whether a key that no other has is one of its own cannot be told.
  const answer = await call(a, { ...key, id: 'AKIAAAAAAAAAAAAAAAAA' }, 'ListKeys');
  assert.equal(answer.status, 503);
});
