// Clients of AWS at a node whose data are old: another node made, changed or took away what they ask about. The answers
// are those of a node that knows, and nothing that was answered is lost.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OperationName } from '../../src/dialects/aws/field-table.ts';
import { tenantKeys } from '../../src/seal/tenant-keys.ts';
import type { AnyJson, Appliance } from '../support/appliance.ts';
import { type AccessKey, accessKey, base64, call, done, refused } from '../support/aws-client.ts';
import { assume, identityOf } from '../support/aws-token-service.ts';
import { twoNodes } from '../support/nodes.ts';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';
import { samples as awsSamples, deskOf, namesOf, wrapped } from './aws-samples.ts';

/** Two nodes, and an access key that both know; the second node remembers nothing else. */
async function around() {
  const nodes = await twoNodes();
  const { key, apiKey } = await accessKey(nodes.a);
  await nodes.remember();
  return { ...nodes, key, apiKey };
}

const make = async (a: Appliance, key: AccessKey, input: AnyJson = {}): Promise<string> =>
  (await done(a, key, 'CreateKey', input)).KeyMetadata.KeyId;

const plain = base64('hello');
const rsa = { KeySpec: 'RSA_2048', KeyUsage: 'ENCRYPT_DECRYPT' };
const p256 = { KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY' };

/** Operations after which the keys of a desk are no longer what they were. */
const spoiling: ReadonlySet<string> = new Set([
  ...['CancelKeyDeletion', 'ScheduleKeyDeletion', 'DisableKey', 'CreateAlias', 'UpdateAlias'],
  ...['DeleteAlias', 'ImportKeyMaterial', 'DeleteImportedKeyMaterial'],
]);

test('every operation of AWS KMS answers on a node that knows none of the keys as on the one that made them', async () => {
  const { a, b, key } = await around();
  let desk = await deskOf(a, key);
  for (const name of Object.keys(awsSamples) as OperationName[]) {
    const { input, answer } = awsSamples[name];
    const given = await input(desk);
    const before = (await a.activity()).length;
    const got = await call(b, key, name, given);
    assert.equal((await a.activity()).length, before + 1, `${name} is one record`);
    if (typeof answer === 'string') assert.equal(got.__type, answer, name);
    else assert.deepEqual([got.status, got.__type ?? namesOf(got)], [200, answer], `${name}: ${JSON.stringify(got)}`);
    if (spoiling.has(name)) desk = await deskOf(a, key);
  }
});

test('what is encrypted under a key or alias that another node just made opens everywhere, and with its context alone', async () => {
  const { a, b, key } = await around();
  const KeyId = await make(a, key);
  await done(a, key, 'CreateAlias', { AliasName: 'alias/new', TargetKeyId: KeyId });
  const other = await make(a, key);
  const EncryptionContext = { for: 'test' };
  const opens = async (CiphertextBlob: string, context: AnyJson, what: string) => {
    for (const node of [a, b]) {
      const opened = await done(node, key, 'Decrypt', { CiphertextBlob, KeyId, EncryptionContext: context });
      assert.match(opened.KeyId, new RegExp(`${KeyId}$`), what);
      const wrong = { CiphertextBlob, EncryptionContext: { for: 'another' } };
      await refused(node, key, 'InvalidCiphertextException', 'Decrypt', wrong);
    }
  };
  for (const named of [KeyId, 'alias/new']) {
    for (const context of [{}, EncryptionContext]) {
      const given = { KeyId: named, EncryptionContext: context };
      const { CiphertextBlob } = await done(b, key, 'Encrypt', { ...given, Plaintext: plain });
      await opens(CiphertextBlob, context, `Encrypt ${named}`);
      for (const name of ['GenerateDataKey', 'GenerateDataKeyWithoutPlaintext']) {
        await opens((await done(b, key, name, { ...given, KeySpec: 'AES_256' })).CiphertextBlob, context, name);
      }
      for (const name of ['GenerateDataKeyPair', 'GenerateDataKeyPairWithoutPlaintext']) {
        const pair = await done(b, key, name, { ...given, KeyPairSpec: 'ECC_NIST_P256' });
        await opens(pair.PrivateKeyCiphertextBlob, context, name);
      }
      const from = await done(a, key, 'Encrypt', { KeyId: other, Plaintext: plain });
      const moved = { CiphertextBlob: from.CiphertextBlob, DestinationKeyId: named };
      const to = await done(b, key, 'ReEncrypt', { ...moved, DestinationEncryptionContext: context });
      await opens(to.CiphertextBlob, context, 'ReEncrypt');
    }
  }
});

test('keys of a kind that does not fit are refused on a node that knows none of them', async () => {
  const { a, b, key } = await around();
  const [ofRsa, signs, mac, usual] = [
    await make(a, key, rsa),
    await make(a, key, p256),
    await make(a, key, { KeySpec: 'HMAC_256', KeyUsage: 'GENERATE_VERIFY_MAC' }),
    await make(a, key),
  ];
  const sign = { KeyId: signs, Message: plain };
  for (const [type, operation, input] of [
    ['InvalidKeyUsageException', 'Encrypt', { KeyId: ofRsa, Plaintext: plain }],
    ['InvalidKeyUsageException', 'Encrypt', { KeyId: mac, Plaintext: plain }],
    ['InvalidKeyUsageException', 'GenerateDataKey', { KeyId: ofRsa, KeySpec: 'AES_256' }],
    ['InvalidKeyUsageException', 'Sign', { ...sign, SigningAlgorithm: 'RSASSA_PSS_SHA_512' }],
    ['InvalidKeyUsageException', 'Sign', { ...sign, SigningAlgorithm: 'ECDSA_SHA_384' }],
    ['UnsupportedOperationException', 'RotateKeyOnDemand', { KeyId: mac }],
    ['UnsupportedOperationException', 'EnableKeyRotation', { KeyId: signs }],
    ['UnsupportedOperationException', 'GetPublicKey', { KeyId: usual }],
    [
      'UnsupportedOperationException',
      'GetParametersForImport',
      { KeyId: usual, WrappingAlgorithm: 'RSAES_OAEP_SHA_256', WrappingKeySpec: 'RSA_2048' },
    ],
  ] as const) {
    await refused(b, key, type, operation, input);
  }
  const oaep = { KeyId: ofRsa, EncryptionAlgorithm: 'RSAES_OAEP_SHA_256' };
  const { CiphertextBlob } = await done(b, key, 'Encrypt', { ...oaep, Plaintext: plain });
  assert.equal((await done(b, key, 'Decrypt', { ...oaep, CiphertextBlob })).Plaintext, plain);
});

test('a change of a state holds at once, whatever a node remembers of it', async () => {
  const { a, b, key, remember } = await around();
  const [on, off, kept, gone] = [await make(a, key), await make(a, key), await make(a, key), await make(a, key)];
  await done(a, key, 'DisableKey', { KeyId: off });
  await done(a, key, 'ScheduleKeyDeletion', { KeyId: kept, PendingWindowInDays: 7 });
  await done(a, key, 'CreateAlias', { AliasName: 'alias/moves', TargetKeyId: on });
  await remember();
  await done(a, key, 'DisableKey', { KeyId: on });
  await done(a, key, 'EnableKey', { KeyId: off });
  await done(a, key, 'CancelKeyDeletion', { KeyId: kept });
  await done(a, key, 'ScheduleKeyDeletion', { KeyId: gone, PendingWindowInDays: 7 });
  await done(a, key, 'UpdateAlias', { AliasName: 'alias/moves', TargetKeyId: off });
  const input = (KeyId: string) => ({ KeyId, Plaintext: plain });
  await refused(b, key, 'DisabledException', 'Encrypt', input(on));
  const { CiphertextBlob } = await done(b, key, 'Encrypt', input(off));
  await done(b, key, 'Decrypt', { CiphertextBlob });
  assert.match((await done(b, key, 'Encrypt', input('alias/moves'))).KeyId, new RegExp(`${off}$`));
  await refused(b, key, 'DisabledException', 'Encrypt', input(kept));
  await refused(b, key, 'KMSInvalidStateException', 'Encrypt', input(gone));
  await refused(b, key, 'KMSInvalidStateException', 'CancelKeyDeletion', { KeyId: kept });
  await done(b, key, 'CancelKeyDeletion', { KeyId: gone });
});

test('an alias that is there is never moved by CreateAlias, and one that was just made is moved by UpdateAlias', async () => {
  const { a, b, key } = await around();
  const [first, second, signer] = [await make(a, key), await make(a, key), await make(a, key, p256)];
  const leadsTo = async (AliasName: string) =>
    (await done(a, key, 'DescribeKey', { KeyId: AliasName })).KeyMetadata.KeyId;
  await done(a, key, 'CreateAlias', { AliasName: 'alias/one', TargetKeyId: first });
  await refused(b, key, 'AlreadyExistsException', 'CreateAlias', { AliasName: 'alias/one', TargetKeyId: second });
  assert.equal(await leadsTo('alias/one'), first);
  await refused(b, key, 'ValidationException', 'UpdateAlias', { AliasName: 'alias/one', TargetKeyId: signer });
  await done(b, key, 'UpdateAlias', { AliasName: 'alias/one', TargetKeyId: second });
  assert.equal(await leadsTo('alias/one'), second);
  await done(b, key, 'DeleteAlias', { AliasName: 'alias/one' });
  await refused(b, key, 'NotFoundException', 'UpdateAlias', { AliasName: 'alias/one', TargetKeyId: second });
  const given = (n: number) => ({ AliasName: 'alias/raced', TargetKeyId: n % 2 === 0 ? first : second });
  const raced = await Promise.all([0, 1, 2, 3, 4, 5].map((n) => call(n < 3 ? a : b, key, 'CreateAlias', given(n))));
  assert.equal(raced.filter(({ status }) => status === 200).length, 1);
  assert.equal(raced.filter(({ __type }) => __type === 'AlreadyExistsException').length, 5);
});

test('an alias is given by one of several requests at once on one node', async () => {
  const { b, key } = await around();
  const targets = await Promise.all([1, 2, 3, 4].map(() => make(b, key)));
  const raced = await Promise.all(
    targets.map((TargetKeyId) => call(b, key, 'CreateAlias', { AliasName: 'alias/raced', TargetKeyId })),
  );
  assert.deepEqual(raced.map(({ status, __type }) => __type ?? status).sort(), [
    200,
    ...Array.from({ length: 3 }, () => 'AlreadyExistsException'),
  ]);
});

test('what is encrypted by an alias while it is being made opens, or is refused', async () => {
  const { b, key } = await around();
  for (let n = 0; n < 10; n++) {
    const KeyId = await make(b, key);
    const input = { KeyId: `alias/now-${n}`, Plaintext: plain };
    const [, ...tried] = await Promise.all([
      done(b, key, 'CreateAlias', { AliasName: input.KeyId, TargetKeyId: KeyId }),
      ...Array.from({ length: 5 }, () => call(b, key, 'Encrypt', input)),
    ]);
    for (const { status, __type, CiphertextBlob } of tried) {
      if (status === 200) await done(b, key, 'Decrypt', { KeyId, CiphertextBlob });
      else assert.equal(__type, 'NotFoundException');
    }
  }
});

test('of several imports at once one is done, and a token is good for its own key alone', async () => {
  const { a, b, key } = await around();
  const desk = await deskOf(a, key);
  const { KeyId } = desk.keys.external;
  const mine = await wrapped(desk);
  const others = await Promise.all([1, 2, 3].map((n) => wrapped(desk, undefined, undefined, Buffer.alloc(32, n))));
  const later = await make(a, key, { Origin: 'EXTERNAL' });
  await refused(b, key, 'InvalidImportTokenException', 'ImportKeyMaterial', { ...mine, KeyId: later });
  const asked = [mine, ...others];
  const raced = await Promise.all(asked.map((each, n) => call(n % 2 === 0 ? a : b, key, 'ImportKeyMaterial', each)));
  assert.equal(raced.filter(({ status }) => status === 200).length, 1, JSON.stringify(raced));
  for (const each of asked) await refused(b, key, 'UnsupportedOperationException', 'ImportKeyMaterial', each);
  const { body } = await a.call('GET', `/managed-keys/${KeyId}`);
  assert.equal(body.key.latestVersion, 1);
  await done(b, key, 'DeleteImportedKeyMaterial', { KeyId });
});

test('a token for an import that a node gave out for a new key is good for it', async () => {
  const { a, b, key } = await around();
  const desk = await deskOf(a, key);
  await done(a, key, 'ImportKeyMaterial', await wrapped({ ...desk, a: b }));
});

test('access keys and temporary credentials sign on every node at once', async () => {
  const { a, b, apiKey } = await around();
  const { key } = await accessKey(a);
  await done(b, key, 'ListKeys');
  const issuer = await TokenIssuer.make(() => a.world.now());
  await trustIssuer(a, apiKey.keyid, issuer);
  const account = /<Account>(\d+)</.exec((await identityOf(a, key)).text)?.[1] ?? '';
  const { key: session } = await assume(a, issuer, account, apiKey.keyid);
  assert.equal((await identityOf(b, session)).status, 200);
  await done(b, session, 'ListKeys');
  const { key: opened } = await assume(b, issuer, account, apiKey.keyid);
  await done(a, opened, 'ListKeys');
});

test('unknown access keys cost a transaction each until their address has to wait, and then none', async () => {
  const { a, b, key, transactions } = await around();
  const named = (n: number): AccessKey => ({
    id: `KMSA${String(n).padStart(16, 'A').replaceAll('0', 'Q')}`,
    secret: 'x',
  });
  const before = transactions();
  const types = new Set<string>();
  for (let n = 0; n < 300; n++) types.add((await call(b, named(n), 'ListKeys')).__type);
  assert.deepEqual([...types].sort(), ['ThrottlingException', 'UnrecognizedClientException']);
  assert.ok(transactions() - before < 100, `${transactions() - before} transactions`);
  // Known ones are let in.
  await done(b, key, 'ListKeys');
  // The refusal of one that is not known yet is one after which clients try again.
  const { key: fresh } = await accessKey(a);
  await refused(b, fresh, 'ThrottlingException', 'ListKeys');
});

test('what was encrypted after a rekey on another node opens, moves and imports on one that learns of it only then', async () => {
  const { a, b, key } = await around();
  const KeyId = await make(a, key);
  const desk = await deskOf(a, key);
  const rekeyed = () => tenantKeys(new Map([1, 2].map((epoch) => [epoch, new Uint8Array(32).fill(epoch)])));
  Object.assign(a.tenants[0]?.handle.tenant ?? {}, { keys: rekeyed() });
  const { CiphertextBlob } = await done(a, key, 'Encrypt', { KeyId, Plaintext: plain });
  const material = await wrapped(desk);
  for (const [name, input] of [
    ['Decrypt', { CiphertextBlob }],
    ['ReEncrypt', { CiphertextBlob, DestinationKeyId: KeyId }],
    ['ImportKeyMaterial', material],
  ] as const) {
    // The second node forgets the new epoch, and hears of it in its next transaction, as from its seal.
    const { tenant, store } = b.tenants[0]?.handle ?? assert.fail();
    Object.assign(tenant, { keys: tenantKeys(new Map([[1, new Uint8Array(32).fill(1)]])) });
    const { transaction } = store;
    store.transaction = (work) => {
      store.transaction = transaction;
      Object.assign(tenant, { keys: rekeyed() });
      return transaction(work) as never;
    };
    await done(b, key, name, input);
  }
});
