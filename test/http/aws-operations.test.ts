// Every operation of AWS KMS: what it answers, that it is one record, that it needs its flag, and that a rehearsal with
// DryRun says that it would succeed and does nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsOf, fieldTable, type OperationName } from '../../src/dialects/aws/field-table.ts';
import { operations } from '../../src/dialects/aws/operations.ts';
import { testAppliance } from '../support/appliance.ts';
import { accessKey, around, call, done, refused } from '../support/aws-client.ts';
import { deskOf, namesOf, samples } from './aws-samples.ts';

// Cast: the table's own names.
const names = Object.keys(fieldTable) as OperationName[];

test('all 56 operations are there', () => {
  assert.equal(names.length, 56);
  assert.deepEqual(Object.keys(operations).sort(), [...names].sort());
  assert.deepEqual(Object.keys(samples).sort(), [...names].sort());
});

for (const name of names) {
  const { input, answer } = samples[name];

  test(`${name}: its answer, one record, and its flag`, async () => {
    const { a, key } = await around();
    const desk = await deskOf(a, key);
    const given = await input(desk);
    const stranger = await accessKey(a, 'key.elsewhere.read');
    const before = (await a.activity()).length;
    if (operations[name].about !== undefined && operations[name].about !== 'generateRandom') {
      await refused(a, stranger.key, 'AccessDeniedException', name, given);
      assert.equal((await a.activity()).length, before + 1, 'a denial is one record');
    }
    const since = (await a.activity()).length;
    const got = await call(a, key, name, given);
    assert.equal((await a.activity()).length, since + 1, 'an answer is one record');
    if (typeof answer === 'string') assert.equal(got.__type, answer, JSON.stringify(got));
    else assert.deepEqual(namesOf(got), answer);
    const [record] = await a.activity();
    assert.equal(record?.props.dialect, 'aws');
  });

  test(`${name}: what is not an object of its fields is refused and recorded`, async () => {
    const { a, key } = await around();
    for (const [field, rule] of Object.entries(fieldsOf(name) as Record<string, string>)) {
      const wrong = /^(?:text|word|blob)/.test(rule) ? 7 : 'x';
      const before = (await a.activity()).length;
      const got = await call(a, key, name, { [field]: wrong });
      assert.ok(['SerializationException', 'ValidationException'].includes(got.__type), `${field}: ${got.__type}`);
      assert.equal((await a.activity()).length, before + 1, field);
    }
  });

  if (!('DryRun' in fieldsOf(name)) || typeof answer === 'string') continue;

  test(`${name}: a rehearsal succeeds in words, does nothing, and refuses what would be refused`, async () => {
    const { a, key } = await around();
    const desk = await deskOf(a, key);
    const given = await input(desk);
    const store = a.tenants[0]?.handle.store ?? assert.fail();
    const all = () =>
      store.read(({ managedKeys, managedKeyUses }) => {
        const { items } = managedKeys.list({ limit: 100 }, undefined, (each) => each);
        return items.map((each) => [each, managedKeyUses.since(each.id, 0)]);
      });
    const before = all();
    const got = await refused(a, key, 'DryRunOperationException', name, { ...given, DryRun: true });
    assert.deepEqual([got.status, Object.keys(got).sort()], [412, ['__type', 'message', 'status']]);
    assert.deepEqual(all(), before);
    const stranger = await accessKey(a, 'key.elsewhere.read');
    await refused(a, stranger.key, 'AccessDeniedException', name, { ...given, DryRun: true });
    const about = given.KeyId ?? given.DestinationKeyId;
    await done(a, key, 'DisableKey', { KeyId: about });
    await refused(a, key, 'DisabledException', name, { ...given, DryRun: true });
  });
}

test('flags decide: an alias of the name that a flag has gives nothing, and keys that are not there are told to few', async () => {
  const { a, key } = await around();
  const { KeyMetadata: made } = await done(a, key, 'CreateKey');
  await done(a, key, 'CreateAlias', { AliasName: 'alias/payments', TargetKeyId: made.KeyId });
  const some = await accessKey(a, 'key.payments.*');
  const given = { KeyId: 'alias/payments', Plaintext: 'aGk=' };
  await refused(a, some.key, 'AccessDeniedException', 'Encrypt', given);
  const nowhere = { KeyId: '11111111-1111-4111-8111-111111111111' };
  for (const name of ['DescribeKey', 'GetPublicKey', 'DisableKey', 'ListResourceTags', 'GetKeyPolicy', 'ListGrants']) {
    await refused(a, some.key, 'AccessDeniedException', name, nowhere);
    await refused(a, key, 'NotFoundException', name, nowhere);
  }
  await refused(a, some.key, 'AccessDeniedException', 'DescribeKey', { KeyId: 'alias/none' });
  const { message } = await refused(a, key, 'NotFoundException', 'DescribeKey', { KeyId: 'alias/none' });
  assert.match(message, /^Alias arn:aws:kms:us-east-1:\d{12}:alias\/none is not found\.$/);
  // The type of a key is told only to those who may use it.
  const sign = { ...nowhere, KeyId: made.KeyId, Message: 'aGk=', SigningAlgorithm: 'ECDSA_SHA_256' };
  await refused(a, some.key, 'AccessDeniedException', 'Sign', sign);
  await refused(a, key, 'InvalidKeyUsageException', 'Sign', sign);
});

test('a key is named by its id, so that flags can name it', async () => {
  const { a, key } = await around();
  const { KeyMetadata: made } = await done(a, key, 'CreateKey');
  const some = await accessKey(a, `key.${made.KeyId}.encrypt`);
  assert.equal((await done(a, some.key, 'Encrypt', { KeyId: made.KeyId, Plaintext: 'aGk=' })).KeyId, made.Arn);
  await refused(a, some.key, 'AccessDeniedException', 'DescribeKey', { KeyId: made.KeyId });
  assert.equal((await a.call('GET', `/managed-keys/${made.KeyId}`)).body.key.displayName, made.KeyId);
});

test('keys are named by id, ARN, alias and alias ARN, of this account and region alone', async () => {
  const { a, key } = await around();
  const { KeyMetadata: made } = await done(a, key, 'CreateKey');
  await done(a, key, 'CreateAlias', { AliasName: 'alias/app', TargetKeyId: made.KeyId });
  const arn = (path: string, region = 'us-east-1', account = made.AWSAccountId) =>
    `arn:aws:kms:${region}:${account}:${path}`;
  for (const KeyId of [made.KeyId, made.Arn, 'alias/app', arn('alias/app'), arn(`key/${made.KeyId}`)]) {
    assert.equal((await done(a, key, 'DescribeKey', { KeyId })).KeyMetadata.Arn, made.Arn);
  }
  for (const KeyId of [
    'app',
    made.KeyId.slice(1),
    `mrk-${made.KeyId.replaceAll('-', '')}`,
    arn(`key/${made.KeyId}`, 'eu-west-1'),
    arn(`key/${made.KeyId}`, 'us-east-1', '000000000001'),
  ]) {
    await refused(a, key, 'NotFoundException', 'DescribeKey', { KeyId });
  }
  for (const KeyId of [
    `arn:aws:s3:us-east-1:1:key/${made.KeyId}`,
    ...['arn:aws-cn:', 'arn::'].map((other) => made.Arn.replace('arn:aws:', other)),
    ...['', 'key/alias/', 'keys/'].map((other) => made.Arn.replace('key/', other)),
    arn('key/alias/app'),
    `${made.Arn}:1`,
  ]) {
    await refused(a, key, 'InvalidArnException', 'DescribeKey', { KeyId });
  }
  // An id is no alias.
  const { id } = (await a.call('GET', `/managed-keys/${made.KeyId}`)).body.key;
  for (const KeyId of [`alias/${id}`, `alias/${made.KeyId}`, arn(`alias/${id}`), arn(`alias/${made.KeyId}`)]) {
    await refused(a, key, 'NotFoundException', 'DescribeKey', { KeyId });
  }
  await refused(a, key, 'NotFoundException', 'DisableKey', { KeyId: 'alias/app' });
});

test('nothing of one tenant is found, opened or named by another', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'one', hosts: ['one.test'] },
      { name: 'two', hosts: ['two.test'] },
    ],
  });
  const keyOf = async (index: number, host: string) => {
    const as = { host, key: a.tenants[index]?.root.key ?? '' };
    const { accountId } = (await a.call('GET', '/auth/apikey', undefined, as)).body.data[0].references;
    const { keyid } = (await a.call('POST', '/auth/apikey', { accountId, flags: { 'key.*': true } }, as)).body;
    const { body } = await a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'aws' }, as);
    return { id: body.accessKeyId, secret: body.secretAccessKey };
  };
  const [one, two] = [await keyOf(0, 'one.test'), await keyOf(1, 'two.test')];
  const { KeyMetadata: made } = await done(a, one, 'CreateKey');
  await done(a, one, 'CreateAlias', { AliasName: 'alias/app', TargetKeyId: made.KeyId });
  const { CiphertextBlob } = await done(a, one, 'Encrypt', { KeyId: made.KeyId, Plaintext: 'aGk=' });
  const { KeyMetadata: other } = await done(a, two, 'CreateKey');
  assert.notEqual(other.AWSAccountId, made.AWSAccountId);
  for (const KeyId of [made.KeyId, made.Arn, 'alias/app']) {
    await refused(a, two, 'NotFoundException', 'DescribeKey', { KeyId });
  }
  await refused(a, two, 'InvalidCiphertextException', 'Decrypt', { CiphertextBlob });
  await refused(a, two, 'InvalidCiphertextException', 'Decrypt', { CiphertextBlob, KeyId: other.KeyId });
  assert.equal((await done(a, two, 'ListKeys')).Keys.length, 1);
  assert.equal((await done(a, one, 'Decrypt', { CiphertextBlob })).Plaintext, 'aGk=');
});
