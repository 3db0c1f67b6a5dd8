// AWS KMS in what its own clients count on: data keys that open by their key's name, aliases that move and keep their
// form, states of keys without bytes, types of refusals, hosts as they were signed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { awsIdOf } from '../../src/core/aws-names.ts';
import type { AnyJson } from '../support/appliance.ts';
import { around, base64, done, json, refused, signed } from '../support/aws-client.ts';
import { deskOf, wrapped } from './aws-samples.ts';
import { make, ok } from './managed-key-desk.ts';

const plain = base64('hello');

test('data keys are made under keys alone that Decrypt takes by name', async () => {
  const { a, key } = await around();
  for (const type of ['aes128-gcm', 'chacha20-poly1305', 'rsa-2048'] as const) {
    const made = await make(a, { type, ...(type === 'rsa-2048' && { uses: ['encrypt', 'decrypt'] }) });
    const KeyId = awsIdOf(made);
    for (const form of ['', 'WithoutPlaintext']) {
      const bytes = { KeyId, KeySpec: 'AES_256' };
      await refused(a, key, 'InvalidKeyUsageException', `GenerateDataKey${form}`, bytes);
      const pair = { KeyId, KeyPairSpec: 'ECC_NIST_P256' };
      await refused(a, key, 'InvalidKeyUsageException', `GenerateDataKeyPair${form}`, pair);
    }
  }
  const KeyId = awsIdOf(await make(a));
  const { CiphertextBlob, KeyId: arn } = await done(a, key, 'GenerateDataKey', { KeyId, KeySpec: 'AES_256' });
  await done(a, key, 'Decrypt', { CiphertextBlob, KeyId: arn });
});

test('an alias moves away from a key that is pending deletion, and is listed until then', async () => {
  const { a, key } = await around();
  const { KeyMetadata: old } = await done(a, key, 'CreateKey');
  await done(a, key, 'CreateAlias', { AliasName: 'alias/app', TargetKeyId: old.KeyId });
  await done(a, key, 'ScheduleKeyDeletion', { KeyId: old.KeyId });
  const [listed] = (await done(a, key, 'ListAliases')).Aliases;
  assert.deepEqual([listed.AliasName, listed.TargetKeyId], ['alias/app', old.KeyId]);
  assert.deepEqual((await done(a, key, 'ListKeys')).Keys, []);
  const { KeyMetadata: next } = await done(a, key, 'CreateKey');
  await done(a, key, 'UpdateAlias', { AliasName: 'alias/app', TargetKeyId: next.KeyId });
  assert.equal((await done(a, key, 'DescribeKey', { KeyId: 'alias/app' })).KeyMetadata.KeyId, next.KeyId);
  await done(a, key, 'CancelKeyDeletion', { KeyId: old.KeyId });
  assert.deepEqual((await done(a, key, 'ListAliases', { KeyId: old.KeyId })).Aliases, []);
});

test('the name of a deleted key is listed while it leads there, and is free for another', async () => {
  const { a, key } = await around();
  const deleted = async (name: string) => {
    const made = await make(a, { name, deletionAllowed: true });
    await ok(a.call('DELETE', `/managed-keys/${name}`));
    return awsIdOf(made);
  };
  const entriesOf = async (name: string, input = {}): Promise<string[]> => {
    const { Aliases } = await done(a, key, 'ListAliases', input);
    return (Aliases as AnyJson[]).filter((each) => each.AliasName === `alias/${name}`).map((each) => each.TargetKeyId);
  };
  const old = await deleted('dup');
  assert.deepEqual(await entriesOf('dup'), [old]);
  assert.deepEqual(await entriesOf('dup', { KeyId: old }), [old]);
  const again = awsIdOf(await make(a, { name: 'dup' }));
  const { KeyId: next } = (await done(a, key, 'CreateKey')).KeyMetadata;
  assert.deepEqual(await entriesOf('dup'), [again]);
  assert.deepEqual(await entriesOf('dup', { KeyId: old }), []);
  for (const [name, operation] of [
    ['gone', 'CreateAlias'],
    ['away', 'UpdateAlias'],
  ] as const) {
    const KeyId = await deleted(name);
    assert.equal((await done(a, key, 'DescribeKey', { KeyId: `alias/${name}` })).KeyMetadata.KeyId, KeyId);
    await refused(a, key, 'UnsupportedOperationException', 'DeleteAlias', { AliasName: `alias/${name}` });
    await done(a, key, operation, { AliasName: `alias/${name}`, TargetKeyId: next });
    assert.deepEqual(await entriesOf(name), [next]);
    assert.deepEqual(await entriesOf(name, { KeyId }), []);
    assert.equal((await done(a, key, 'DescribeKey', { KeyId: `alias/${name}` })).KeyMetadata.KeyId, next);
    await done(a, key, 'DeleteAlias', { AliasName: `alias/${name}` });
    assert.deepEqual(await entriesOf(name), [KeyId]);
  }
});

test('an alias is listed as it was given, and found in any case', async () => {
  const { a, key } = await around();
  const { KeyId } = (await done(a, key, 'CreateKey')).KeyMetadata;
  await done(a, key, 'CreateAlias', { AliasName: 'alias/MyApp/Db', TargetKeyId: KeyId });
  for (const input of [{}, { KeyId }]) {
    const [alias] = (await done(a, key, 'ListAliases', input)).Aliases;
    assert.match(alias.AliasArn, /:alias\/MyApp\/Db$/);
    assert.equal(alias.AliasName, 'alias/MyApp/Db');
  }
  assert.equal((await done(a, key, 'DescribeKey', { KeyId: 'alias/myapp/DB' })).KeyMetadata.KeyId, KeyId);
  const same = { AliasName: 'alias/myapp/db', TargetKeyId: KeyId };
  await refused(a, key, 'AlreadyExistsException', 'CreateAlias', same);
  const { KeyId: other } = (await done(a, key, 'CreateKey')).KeyMetadata;
  for (const [AliasName, TargetKeyId] of [
    ['alias/MYAPP/DB', KeyId],
    ['alias/myApp/dB', other],
    ['alias/MyApp/DB', other],
  ]) {
    await done(a, key, 'UpdateAlias', { AliasName, TargetKeyId });
    assert.deepEqual(
      (await done(a, key, 'ListAliases')).Aliases.map((each: AnyJson) => [each.AliasName, each.TargetKeyId]),
      [[AliasName, TargetKeyId]],
    );
  }
  await done(a, key, 'DeleteAlias', { AliasName: 'alias/MYAPP/db' });
  assert.deepEqual((await done(a, key, 'ListAliases')).Aliases, []);
});

test('a key that waits for its bytes still does so after a deletion that was cancelled, and is not disabled', async () => {
  const { a, key } = await around();
  const desk = await deskOf(a, key);
  const { KeyId } = desk.keys.external;
  const state = async () => (await done(a, key, 'DescribeKey', { KeyId })).KeyMetadata.KeyState;
  await done(a, key, 'ScheduleKeyDeletion', { KeyId });
  await done(a, key, 'CancelKeyDeletion', { KeyId });
  assert.equal(await state(), 'PendingImport');
  for (const operation of ['DisableKey', 'EnableKey']) {
    await refused(a, key, 'KMSInvalidStateException', operation, { KeyId });
  }
  await done(a, key, 'ImportKeyMaterial', await wrapped(desk));
  assert.equal(await state(), 'Enabled');
  await done(a, key, 'Encrypt', { KeyId, Plaintext: plain });
  // Disabled natively, or before its bytes were deleted, it is no more than that until it is enabled.
  await done(a, key, 'DisableKey', { KeyId });
  await done(a, key, 'DeleteImportedKeyMaterial', { KeyId });
  assert.equal(await state(), 'Disabled');
  await refused(a, key, 'KMSInvalidStateException', 'ImportKeyMaterial', await wrapped(desk));
  await done(a, key, 'EnableKey', { KeyId });
  assert.equal(await state(), 'PendingImport');
  await done(a, key, 'ImportKeyMaterial', await wrapped(desk));
  assert.equal(await state(), 'Enabled');
});

test('too many tags and aliases are told as limits, of a disabled key, too', async () => {
  const { a, key } = await around();
  const { KeyId } = (await done(a, key, 'CreateKey')).KeyMetadata;
  const tags = Array.from({ length: 49 }, (_, n) => ({ TagKey: `t${n}`, TagValue: 'x' }));
  await done(a, key, 'TagResource', { KeyId, Tags: tags });
  for (let n = 0; n < 49; n++) await done(a, key, 'CreateAlias', { AliasName: `alias/a${n}`, TargetKeyId: KeyId });
  await done(a, key, 'DisableKey', { KeyId });
  await done(a, key, 'TagResource', { KeyId, Tags: [{ TagKey: 'last', TagValue: 'x' }] });
  await done(a, key, 'CreateAlias', { AliasName: 'alias/last', TargetKeyId: KeyId });
  for (const operation of ['DisableKey', 'EnableKey']) {
    await done(a, key, operation, { KeyId });
    const tag = { KeyId, Tags: [{ TagKey: 'over', TagValue: 'x' }] };
    await refused(a, key, 'LimitExceededException', 'TagResource', tag);
    const alias = { AliasName: 'alias/over', TargetKeyId: KeyId };
    await refused(a, key, 'LimitExceededException', 'CreateAlias', alias);
  }
});

test('what is listed is described', async () => {
  const { a, key } = await around();
  await make(a, { uses: ['decrypt'], aliases: ['half'] });
  await make(a, { type: 'ed25519', uses: ['verify'] });
  await make(a, { type: 'secret' });
  await make(a, { type: 'aes128-gcm' });
  await make(a, { derived: true });
  await make(a);
  const { Keys } = await done(a, key, 'ListKeys');
  assert.ok(Keys.length >= 2);
  for (const { KeyId } of Keys) await done(a, key, 'DescribeKey', { KeyId });
  const { Aliases } = await done(a, key, 'ListAliases');
  for (const { TargetKeyId } of Aliases) await done(a, key, 'DescribeKey', { KeyId: TargetKeyId });
});

test('a message that is too long for the other key is no fault of the ciphertext', async () => {
  const { a, key } = await around();
  const { KeyId } = (await done(a, key, 'CreateKey')).KeyMetadata;
  const rsa = { KeySpec: 'RSA_2048', KeyUsage: 'ENCRYPT_DECRYPT' };
  const { KeyId: DestinationKeyId } = (await done(a, key, 'CreateKey', rsa)).KeyMetadata;
  const long = base64(new Uint8Array(500));
  const { CiphertextBlob } = await done(a, key, 'Encrypt', { KeyId, Plaintext: long });
  const input = { CiphertextBlob, DestinationKeyId, DestinationEncryptionAlgorithm: 'RSAES_OAEP_SHA_256' };
  const { message } = await refused(a, key, 'ValidationException', 'ReEncrypt', input);
  assert.match(message, /at most 190 bytes/);
});

test('the host counts as it was sent, with capitals and a dot at its end', async () => {
  const { a, key } = await around();
  const { app } = a;
  const headers = { 'content-type': json, 'x-amz-target': 'TrentService.ListKeys' };
  for (const host of ['KMS.test', 'kms.ns.svc.cluster.local.', 'kms.test.:4599']) {
    const sent = signed(a, key, { ...headers, host }, '{}');
    const ask = (sentHost: string) =>
      app.fetch(new Request('http://kms.test/', { method: 'POST', body: sent.body }), {
        surface: 'aws',
        remoteAddress: '192.0.2.1',
        headers: { ...sent.headers, host: 'kms.test' },
        sentHost,
      });
    assert.equal((await ask(host)).status, 200, host);
    assert.equal((await ask(host.toLowerCase().replace('.:', ':').replace(/\.$/, ''))).status, 400, host);
  }
  assert.ok(await ok(a.call('GET', '/managed-keys')));
});

test('a key and an access key say by what clients of AWS know them, and that leads back to the key', async () => {
  const { a, key, apiKey } = await around();
  const made = await make(a, { name: 'shop' });
  const { KeyMetadata: theirs } = await done(a, key, 'DescribeKey', { KeyId: 'alias/shop' });
  const shown = (await ok(a.call('GET', '/managed-keys/shop'))).key.aws;
  assert.deepEqual(shown, { account: theirs.AWSAccountId, keyId: theirs.KeyId });
  const { key: found } = await ok(a.call('GET', `/managed-keys/${theirs.KeyId}`));
  assert.deepEqual([found.id, found.name], [made.id, 'shop']);
  const { proofs } = await ok(a.call('GET', `/auth/apikeys/${apiKey.keyid}/proofs`));
  const [proof] = proofs.filter(({ kind }: { readonly kind: string }) => kind === 'aws');
  assert.equal(proof.awsAccount, theirs.AWSAccountId);
});
