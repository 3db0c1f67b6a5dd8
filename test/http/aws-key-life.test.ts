// The life of keys in AWS KMS: names and pages, tags, rotation, deletion and its end, import, and pairs of data keys.
import assert from 'node:assert/strict';
import {
  constants,
  createCipheriv,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  publicEncrypt,
  sign,
  verify,
} from 'node:crypto';
import { test } from 'node:test';
import { type AnyJson, testAppliance } from '../support/appliance.ts';
import { accessKey, around, base64, done, json, post, refused, signed } from '../support/aws-client.ts';
import { type Desk, deskOf, wrapped } from './aws-samples.ts';

const day = 24 * 60 * 60 * 1000;

/** A private key or long material, wrapped with AES-KWP under an AES key that is wrapped with OAEP. */
async function wrappedLong({ a, key }: Desk, KeyId: string, algorithm: string, spec: string, material: Buffer) {
  const input = { KeyId, WrappingAlgorithm: algorithm, WrappingKeySpec: spec };
  const { ImportToken, PublicKey } = await done(a, key, 'GetParametersForImport', input);
  const publicKey = createPublicKey({ key: Buffer.from(PublicKey, 'base64'), format: 'der', type: 'spki' });
  assert.equal(publicKey.asymmetricKeyDetails?.modulusLength, Number(spec.slice(4)));
  const aes = Buffer.alloc(32, 3);
  const oaepHash = algorithm.endsWith('_SHA_1') ? 'sha1' : 'sha256';
  const head = publicEncrypt({ key: publicKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash }, aes);
  const cipher = createCipheriv('id-aes256-wrap-pad', aes, Buffer.from('a65959a6', 'hex'));
  const EncryptedKeyMaterial = base64(Buffer.concat([head, cipher.update(material), cipher.final()]));
  return { KeyId, ImportToken, EncryptedKeyMaterial, ExpirationModel: 'KEY_MATERIAL_DOES_NOT_EXPIRE' };
}

test('material is imported, deleted, and comes back as the same or not at all', async () => {
  const { a, key } = await around();
  const desk = await deskOf(a, key);
  const { KeyId } = desk.keys.external;
  const input = { KeyId, Plaintext: base64('hello') };
  const state = async () => (await done(a, key, 'DescribeKey', { KeyId })).KeyMetadata;
  assert.equal((await state()).KeyState, 'PendingImport');
  await refused(a, key, 'KMSInvalidStateException', 'Encrypt', input);
  await done(a, key, 'ImportKeyMaterial', await wrapped(desk));
  const there = await state();
  assert.deepEqual([there.KeyState, there.Origin], ['Enabled', 'EXTERNAL']);
  assert.equal(there.ExpirationModel, 'KEY_MATERIAL_DOES_NOT_EXPIRE');
  assert.match(there.CurrentKeyMaterialId, /^[0-9a-f]{64}$/);
  const { CiphertextBlob } = await done(a, key, 'Encrypt', input);
  await refused(a, key, 'UnsupportedOperationException', 'ImportKeyMaterial', await wrapped(desk));
  await refused(a, key, 'UnsupportedOperationException', 'RotateKeyOnDemand', { KeyId });
  await done(a, key, 'DeleteImportedKeyMaterial', { KeyId });
  assert.equal((await state()).KeyState, 'PendingImport');
  await refused(a, key, 'KMSInvalidStateException', 'Decrypt', { CiphertextBlob });
  await done(a, key, 'DeleteImportedKeyMaterial', { KeyId });
  const other = await wrapped(desk, 'RSAES_OAEP_SHA_1', 'RSA_3072', Buffer.alloc(32, 8));
  await refused(a, key, 'IncorrectKeyMaterialException', 'ImportKeyMaterial', other);
  await done(a, key, 'ImportKeyMaterial', await wrapped(desk, 'RSAES_OAEP_SHA_1', 'RSA_3072'));
  assert.equal((await done(a, key, 'Decrypt', { CiphertextBlob })).Plaintext, base64('hello'));
  await refused(a, key, 'UnsupportedOperationException', 'DeleteImportedKeyMaterial', { KeyId: desk.keys.sym.KeyId });
});

test('private keys are imported with RSA_AES_KEY_WRAP, and deleted ones come back', async () => {
  const { a, key } = await around();
  const desk = await deskOf(a, key);
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const material = pair.privateKey.export({ format: 'der', type: 'pkcs8' });
  const input = { KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY', Origin: 'EXTERNAL' };
  const { KeyId } = (await done(a, key, 'CreateKey', input)).KeyMetadata;
  const oaep = { KeyId, WrappingAlgorithm: 'RSAES_OAEP_SHA_256', WrappingKeySpec: 'RSA_2048' };
  await refused(a, key, 'ValidationException', 'GetParametersForImport', oaep);
  for (const [algorithm, spec] of [
    ['RSA_AES_KEY_WRAP_SHA_256', 'RSA_4096'],
    ['RSA_AES_KEY_WRAP_SHA_1', 'RSA_2048'],
  ] as const) {
    await done(a, key, 'ImportKeyMaterial', await wrappedLong(desk, KeyId, algorithm, spec, material));
    const message = { KeyId, Message: base64('m'), SigningAlgorithm: 'ECDSA_SHA_256' };
    const { Signature } = await done(a, key, 'Sign', message);
    assert.equal(verify('sha256', Buffer.from('m'), pair.publicKey, Buffer.from(Signature, 'base64')), true);
    await done(a, key, 'DeleteImportedKeyMaterial', { KeyId });
    await refused(a, key, 'KMSInvalidStateException', 'Sign', message);
    await refused(a, key, 'KMSInvalidStateException', 'GetPublicKey', { KeyId });
  }
});

test('an import token is of one key, and holds for a day; what is wrapped otherwise is no material', async () => {
  const { a, key } = await around();
  const desk = await deskOf(a, key);
  const good = await wrapped(desk);
  const other = (await done(a, key, 'CreateKey', { Origin: 'EXTERNAL' })).KeyMetadata.KeyId;
  await refused(a, key, 'InvalidImportTokenException', 'ImportKeyMaterial', { ...good, KeyId: other });
  const bytes = Buffer.from(good.ImportToken, 'base64');
  for (const at of [0, 31, 32, bytes.length - 2]) {
    const forged = Buffer.from(bytes);
    forged[at] = (forged[at] ?? 0) ^ 1;
    const given = { ...good, ImportToken: base64(forged) };
    await refused(a, key, 'InvalidImportTokenException', 'ImportKeyMaterial', given);
  }
  const rubbish = { ...good, EncryptedKeyMaterial: base64(Buffer.alloc(256, 1)) };
  await refused(a, key, 'InvalidCiphertextException', 'ImportKeyMaterial', rubbish);
  const short = { ...good, EncryptedKeyMaterial: base64('short') };
  await refused(a, key, 'InvalidCiphertextException', 'ImportKeyMaterial', short);
  const wrongLength = await wrapped(desk, 'RSAES_OAEP_SHA_256', 'RSA_2048', Buffer.alloc(31, 7));
  await refused(a, key, 'InvalidCiphertextException', 'ImportKeyMaterial', wrongLength);
  const { ExpirationModel: _, ...usual } = good;
  await refused(a, key, 'ValidationException', 'ImportKeyMaterial', usual);
  const dated = { ...usual, ValidTo: a.world.now() / 1000 + 60 };
  await refused(a, key, 'UnsupportedOperationException', 'ImportKeyMaterial', dated);
  const stranger = await accessKey(a, 'key.*.read');
  await refused(a, stranger.key, 'AccessDeniedException', 'ImportKeyMaterial', good);
  a.advance(day);
  await refused(a, key, 'ExpiredImportTokenException', 'ImportKeyMaterial', good);
});

test('a key waits 7 to 30 days, keeps its names, and comes back disabled', async () => {
  const { a, key } = await around();
  const { KeyId, Arn } = (await done(a, key, 'CreateKey')).KeyMetadata;
  const { CiphertextBlob } = await done(a, key, 'Encrypt', { KeyId, Plaintext: 'aGk=' });
  await done(a, key, 'CreateAlias', { AliasName: 'alias/app', TargetKeyId: KeyId });
  for (const days of [6, 31]) {
    const input = { KeyId, PendingWindowInDays: days };
    await refused(a, key, 'ValidationException', 'ScheduleKeyDeletion', input);
  }
  const gone = await done(a, key, 'ScheduleKeyDeletion', { KeyId, PendingWindowInDays: 7 });
  assert.equal(gone.KeyId, Arn);
  assert.equal(Math.round(gone.DeletionDate * 1000 - a.world.now()), 7 * day);
  const described = (await done(a, key, 'DescribeKey', { KeyId: 'alias/app' })).KeyMetadata;
  assert.deepEqual([described.KeyState, described.DeletionDate], ['PendingDeletion', gone.DeletionDate]);
  for (const [operation, input] of [
    ['ScheduleKeyDeletion', { KeyId }],
    ['DisableKey', { KeyId }],
    ['TagResource', { KeyId, Tags: [] }],
    ['CreateAlias', { AliasName: 'alias/other', TargetKeyId: KeyId }],
    ['Decrypt', { CiphertextBlob }],
    ['EnableKeyRotation', { KeyId }],
  ] as const) {
    const { message } = await refused(a, key, 'KMSInvalidStateException', operation, input);
    assert.match(message, /is pending deletion/, operation);
  }
  const { KeyId: other } = (await done(a, key, 'CreateKey')).KeyMetadata;
  const taken = { AliasName: 'alias/app', TargetKeyId: other };
  await refused(a, key, 'AlreadyExistsException', 'CreateAlias', taken);
  assert.equal((await done(a, key, 'CancelKeyDeletion', { KeyId })).KeyId, Arn);
  await refused(a, key, 'KMSInvalidStateException', 'CancelKeyDeletion', { KeyId });
  assert.equal((await done(a, key, 'DescribeKey', { KeyId })).KeyMetadata.KeyState, 'Disabled');
  await refused(a, key, 'DisabledException', 'Decrypt', { CiphertextBlob });
  await done(a, key, 'EnableKey', { KeyId });
  await done(a, key, 'Decrypt', { CiphertextBlob });
  await done(a, key, 'ScheduleKeyDeletion', { KeyId });
  await done(a, key, 'DeleteAlias', { AliasName: 'alias/app' });
  await done(a, key, 'CreateAlias', taken);
});

test('aliases are made, moved between keys of a kind, listed and taken away', async () => {
  const { a, key } = await around();
  const { sym, sign: signs } = (await deskOf(a, key)).keys;
  const AliasName = 'alias/App_1/db-2';
  for (const [type, name] of [
    ['ValidationException', 'app'],
    ['ValidationException', 'alias/'],
    ['ValidationException', 'alias/a:b'],
    ['NotAuthorizedException', 'alias/aws/ebs'],
  ] as const) {
    await refused(a, key, type, 'CreateAlias', { AliasName: name, TargetKeyId: sym.KeyId });
  }
  await refused(a, key, 'NotFoundException', 'UpdateAlias', { AliasName, TargetKeyId: sym.KeyId });
  await done(a, key, 'CreateAlias', { AliasName, TargetKeyId: sym.KeyId });
  await refused(a, key, 'AlreadyExistsException', 'CreateAlias', { AliasName, TargetKeyId: sym.KeyId });
  await refused(a, key, 'ValidationException', 'UpdateAlias', { AliasName, TargetKeyId: signs.KeyId });
  const { KeyId: other } = (await done(a, key, 'CreateKey')).KeyMetadata;
  await done(a, key, 'UpdateAlias', { AliasName, TargetKeyId: other });
  const { Aliases } = await done(a, key, 'ListAliases', { KeyId: other });
  assert.equal(Aliases[0].TargetKeyId, other);
  await done(a, key, 'DeleteAlias', { AliasName });
  await refused(a, key, 'NotFoundException', 'DeleteAlias', { AliasName });
  // The name of a key of our own is an alias there, which stays.
  await a.call('POST', '/managed-keys', { name: 'payments' });
  await done(a, key, 'Encrypt', { KeyId: 'alias/payments', Plaintext: 'aGk=' });
  await refused(a, key, 'UnsupportedOperationException', 'DeleteAlias', { AliasName: 'alias/payments' });
  const move = { AliasName: 'alias/payments', TargetKeyId: sym.KeyId };
  await refused(a, key, 'UnsupportedOperationException', 'UpdateAlias', move);
});

test('lists are read page by page, each marker once given, and no other', async () => {
  const { a, key } = await around();
  const { KeyId } = (await done(a, key, 'CreateKey')).KeyMetadata;
  for (let n = 0; n < 6; n++) await done(a, key, 'CreateKey');
  for (let n = 0; n < 5; n++) await done(a, key, 'CreateAlias', { AliasName: `alias/${n}`, TargetKeyId: KeyId });
  const Tags = Array.from({ length: 5 }, (_, n) => ({ TagKey: `t${n}`, TagValue: '' }));
  await done(a, key, 'TagResource', { KeyId, Tags });
  for (let n = 0; n < 4; n++) await done(a, key, 'RotateKeyOnDemand', { KeyId });
  for (const [operation, list, count, input] of [
    ['ListKeys', 'Keys', 7, {}],
    ['ListAliases', 'Aliases', 5, { KeyId }],
    ['ListResourceTags', 'Tags', 5, { KeyId }],
    ['ListKeyRotations', 'Rotations', 4, { KeyId }],
  ] as const) {
    const all: string[] = [];
    let Marker: string | undefined;
    for (let pages = 0; pages < 10; pages++) {
      const page = await done(a, key, operation, { ...input, Limit: 2, ...(Marker !== undefined && { Marker }) });
      assert.ok(page[list].length <= 2);
      all.push(...page[list].map((item: object) => JSON.stringify(item)));
      Marker = page.NextMarker;
      assert.equal(page.Truncated, Marker !== undefined);
      if (Marker === undefined) break;
    }
    assert.deepEqual([new Set(all).size, all.length], [count, count], operation);
    await refused(a, key, 'InvalidMarkerException', operation, { ...input, Marker: 'no marker' });
    await refused(a, key, 'ValidationException', operation, { ...input, Limit: 0 });
  }
});

test('tags, descriptions and rotation are kept, and each change leaves the others', async () => {
  const { a, key } = await around();
  const { KeyId, Arn } = (await done(a, key, 'CreateKey', { Tags: [{ TagKey: 'a', TagValue: '1' }] })).KeyMetadata;
  await done(a, key, 'TagResource', { KeyId, Tags: [{ TagKey: 'b', TagValue: '2' }] });
  await done(a, key, 'UpdateKeyDescription', { KeyId, Description: 'for payments' });
  await done(a, key, 'UntagResource', { KeyId, TagKeys: ['a', 'none'] });
  assert.deepEqual((await done(a, key, 'ListResourceTags', { KeyId })).Tags, [{ TagKey: 'b', TagValue: '2' }]);
  assert.equal((await done(a, key, 'DescribeKey', { KeyId })).KeyMetadata.Description, 'for payments');
  for (const [type, tag] of [
    ['TagException', { TagKey: 'aws:x', TagValue: '' }],
    ['TagException', { TagKey: 'x' }],
    ['ValidationException', { TagKey: '', TagValue: '' }],
  ] as const) {
    await refused(a, key, type, 'TagResource', { KeyId, Tags: [tag] });
  }
  assert.deepEqual(await done(a, key, 'GetKeyRotationStatus', { KeyId }), {
    status: 200,
    KeyId: Arn,
    KeyRotationEnabled: false,
  });
  await done(a, key, 'EnableKeyRotation', { KeyId });
  assert.equal((await done(a, key, 'GetKeyRotationStatus', { KeyId })).RotationPeriodInDays, 365);
  const { CiphertextBlob } = await done(a, key, 'Encrypt', { KeyId, Plaintext: 'aGk=' });
  a.advance(365 * day);
  await done(a, key, 'Encrypt', { KeyId, Plaintext: 'aGk=' });
  await done(a, key, 'RotateKeyOnDemand', { KeyId });
  const { Rotations } = await done(a, key, 'ListKeyRotations', { KeyId });
  assert.deepEqual(
    Rotations.map(({ RotationType, KeyMaterialState }: Record<string, string>) => [RotationType, KeyMaterialState]),
    [
      ['ON_DEMAND', 'CURRENT'],
      ['AUTOMATIC', 'NON_CURRENT'],
    ],
  );
  const all = await done(a, key, 'ListKeyRotations', { KeyId, IncludeKeyMaterial: 'ALL_KEY_MATERIAL' });
  assert.equal(all.Rotations.length, 3);
  assert.equal((await done(a, key, 'Decrypt', { CiphertextBlob })).Plaintext, 'aGk=');
});

test('pairs of data keys are of the spec, and their private keys open again', async () => {
  const { a, key } = await around();
  const { sym, rsa } = (await deskOf(a, key)).keys;
  for (const KeyPairSpec of ['RSA_2048', 'ECC_NIST_P384', 'ECC_SECG_P256K1', 'ECC_NIST_EDWARDS25519']) {
    const EncryptionContext = { spec: KeyPairSpec };
    const made = await done(a, key, 'GenerateDataKeyPair', { KeyId: sym.KeyId, KeyPairSpec, EncryptionContext });
    const opened = await done(a, key, 'Decrypt', { CiphertextBlob: made.PrivateKeyCiphertextBlob, EncryptionContext });
    assert.equal(opened.Plaintext, made.PrivateKeyPlaintext);
    const der = (text: string) => Buffer.from(text, 'base64');
    const privateKey = createPrivateKey({ key: der(made.PrivateKeyPlaintext), format: 'der', type: 'pkcs8' });
    const publicKey = createPublicKey({ key: der(made.PublicKey), format: 'der', type: 'spki' });
    const hash = KeyPairSpec.includes('ED') ? null : 'sha256';
    assert.equal(verify(hash, der('aGk='), publicKey, sign(hash, der('aGk='), privateKey)), true);
  }
  for (const KeyPairSpec of ['SM2', 'ML_KEM_768']) {
    await refused(a, key, 'UnsupportedOperationException', 'GenerateDataKeyPair', { KeyId: sym.KeyId, KeyPairSpec });
  }
  const input = { KeyId: rsa.KeyId, KeyPairSpec: 'RSA_2048' };
  await refused(a, key, 'InvalidKeyUsageException', 'GenerateDataKeyPair', input);
});

test('messages go from key to key, RSA takes short ones, and Decrypt rehearses without one', async () => {
  const { a, key, apiKey } = await around();
  const { sym, rsa } = (await deskOf(a, key)).keys;
  const EncryptionAlgorithm = 'RSAES_OAEP_SHA_256';
  const sealed = { KeyId: rsa.KeyId, EncryptionAlgorithm };
  await refused(a, key, 'ValidationException', 'Encrypt', { ...sealed, Plaintext: base64(Buffer.alloc(191)) });
  const { CiphertextBlob } = await done(a, key, 'Encrypt', { ...sealed, Plaintext: base64(Buffer.alloc(190, 5)) });
  assert.equal(Buffer.from(CiphertextBlob, 'base64').length, 256);
  await refused(a, key, 'ValidationException', 'Decrypt', { CiphertextBlob, EncryptionAlgorithm });
  const moved = await done(a, key, 'ReEncrypt', {
    CiphertextBlob,
    SourceKeyId: rsa.Arn,
    SourceEncryptionAlgorithm: EncryptionAlgorithm,
    DestinationKeyId: sym.KeyId,
    DestinationEncryptionContext: { a: 'b' },
  });
  assert.deepEqual([moved.SourceKeyId, moved.KeyId], [rsa.Arn, sym.Arn]);
  const opened = await done(a, key, 'Decrypt', {
    CiphertextBlob: moved.CiphertextBlob,
    EncryptionContext: { a: 'b' },
  });
  assert.equal(opened.Plaintext, base64(Buffer.alloc(190, 5)));
  const back = await done(a, key, 'ReEncrypt', {
    CiphertextBlob: moved.CiphertextBlob,
    SourceEncryptionContext: { a: 'b' },
    DestinationKeyId: rsa.KeyId,
    DestinationEncryptionAlgorithm: 'RSAES_OAEP_SHA_1',
  });
  const again = { ...sealed, EncryptionAlgorithm: 'RSAES_OAEP_SHA_1', CiphertextBlob: back.CiphertextBlob };
  assert.equal((await done(a, key, 'Decrypt', again)).Plaintext, opened.Plaintext);
  const [, record] = (await a.activity()).filter(({ action }) => action === 'key.decrypt');
  assert.equal(record?.keyid, apiKey.keyid);
  const props: AnyJson = record?.props;
  assert.match(props.objects[0].id, /^mkey_/);
  const modifiers = { DryRun: true, DryRunModifiers: ['IGNORE_CIPHERTEXT'] };
  await refused(a, key, 'DryRunOperationException', 'Decrypt', { KeyId: sym.KeyId, ...modifiers });
  await refused(a, key, 'ValidationException', 'Decrypt', modifiers);
  for (const DryRun of [true, false]) {
    const wrong = { KeyId: sym.KeyId, CiphertextBlob: moved.CiphertextBlob, DryRun, DryRunModifiers: ['OTHER'] };
    await refused(a, key, 'ValidationException', 'Decrypt', wrong);
  }
  await refused(a, key, 'ValidationException', 'Decrypt', { KeyId: sym.KeyId });
  const half = await accessKey(a, 'key.*.decrypt');
  const input = { CiphertextBlob: moved.CiphertextBlob, DestinationKeyId: sym.KeyId };
  await refused(a, half.key, 'AccessDeniedException', 'ReEncrypt', { ...input, SourceEncryptionContext: { a: 'b' } });
});

test('only the default policy is taken, in any form that says the same', async () => {
  const { a, key } = await around();
  const { KeyId, AWSAccountId } = (await done(a, key, 'CreateKey')).KeyMetadata;
  const statement = { Effect: 'Allow', Principal: { AWS: [`arn:aws:iam::${AWSAccountId}:root`] }, Action: ['kms:*'] };
  const policy = (more: object) =>
    JSON.stringify({ Version: '2012-10-17', Statement: [{ ...statement, Resource: '*', Sid: 'x', ...more }] });
  await done(a, key, 'PutKeyPolicy', { KeyId, Policy: policy({}) });
  await done(a, key, 'CreateKey', { Policy: policy({}), BypassPolicyLockoutSafetyCheck: true });
  for (const Policy of ['no JSON', '{}', policy({ Effect: 'Deny' }), policy({ Action: 'kms:Decrypt' })]) {
    await refused(a, key, 'MalformedPolicyDocumentException', 'PutKeyPolicy', { KeyId, Policy });
  }
  const deep = (levels: number, inner: string) => `${'{"a":'.repeat(levels)}${inner}${'}'.repeat(levels)}`;
  for (const Policy of [
    `{"Statement":{"x":${deep(5000, '1')}}}`,
    `{"Version":"2012-10-17","Statement":${deep(10_000, '1')}}`,
    `${'['.repeat(60_000)}${']'.repeat(60_000)}`,
  ]) {
    for (const [operation, input] of [
      ['PutKeyPolicy', { KeyId, Policy }],
      ['CreateKey', { Policy }],
    ] as const) {
      const before = (await a.activity()).length;
      await refused(a, key, 'MalformedPolicyDocumentException', operation, input);
      assert.equal((await a.activity()).length, before + 1, 'one record');
    }
  }
  await refused(a, key, 'NotFoundException', 'GetKeyPolicy', { KeyId, PolicyName: 'other' });
  await refused(a, key, 'InvalidGrantTokenException', 'DescribeKey', { KeyId, GrantTokens: ['x'] });
  // A field that the operation does not have is ignored, as any other.
  await done(a, key, 'GetKeyRotationStatus', { KeyId, GrantTokens: ['x'] });
});

test('limits, lengths and forms of requests are told by their types', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], limits: { keyrings: 1 } }] });
  const { key } = await accessKey(a);
  await done(a, key, 'CreateKey');
  await refused(a, key, 'LimitExceededException', 'CreateKey');
  const headers = { 'content-type': json, 'x-amz-target': 'TrentService.ListKeys' };
  for (const [body, type] of [
    ['', 'SerializationException'],
    ['[]', 'SerializationException'],
    ['{', 'SerializationException'],
    ['{"Limit":1,"Limit":2}', 'SerializationException'],
    ['{"Limit":1,"\\u004cimit":2}', 'SerializationException'],
    ['{"Limit" : 1, "Limit" : 2}', 'SerializationException'],
    ['{"x":[{"y":":","y":2}]}', 'SerializationException'],
    ['{"Unknown":"{\\"a\\":1}"}', undefined],
    ['{"a:b":"c\\\\","d":[":",{"e\\":":"f"}]}', undefined],
  ] as const) {
    const answer = await post(a, signed(a, key, headers, body));
    assert.equal(answer.body.__type, type, body);
    assert.match(answer.headers.get('x-amzn-requestid') ?? '', /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.equal(answer.headers.get('content-type'), json);
  }
  const long = await post(a, signed(a, key, headers, JSON.stringify({ x: 'x'.repeat(200_000) })));
  assert.equal(long.body.__type, 'ValidationException');
  const other = signed(a, key, headers, '{}', { region: 'eu-central-1' });
  assert.equal((await post(a, other, 'eu-central-1')).status, 200);
  assert.match((await post(a, other)).body.message, /this is 'us-east-1'/);
  const packed = signed(a, key, { ...headers, 'content-encoding': 'gzip' }, '{}');
  assert.equal((await post(a, packed)).body.__type, 'SerializationException');
});
