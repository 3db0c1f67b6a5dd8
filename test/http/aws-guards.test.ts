// AWS KMS against those who would take what is another's or learn of it: ARNs, the brake, sessions, refusals and their
// records.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { awsIdOf, newUuidName } from '../../src/core/aws-names.ts';
import { resealAccessKeys } from '../../src/core/proofs/access-keys.ts';
import { hashSecret } from '../../src/crypto/secrets.ts';
import { tenantKeys } from '../../src/seal/tenant-keys.ts';
import type { AnyJson } from '../support/appliance.ts';
import { accessKey, around, base64, call, done, post, refused, signed } from '../support/aws-client.ts';
import { assume, identityOf, withSession } from '../support/aws-token-service.ts';
import { make, ok, refused as refusedNatively } from './managed-key-desk.ts';

const plain = base64('hello');

test('no name or alias has the form of an id, wherever names are made', async () => {
  const { a, key } = await around();
  const { name, id } = await make(a);
  const other = await make(a);
  const { KeyMetadata: gone } = await done(a, key, 'CreateKey');
  await done(a, key, 'ScheduleKeyDeletion', { KeyId: gone.KeyId });
  const free = newUuidName((length) => a.world.random(length));
  const refs = [id, awsIdOf({ id, name }), gone.KeyId, free, free.toUpperCase(), id.replace('mkey_', 'ring_')];
  const isId = /which has the form of a key id$/;
  for (const ref of refs) {
    await refusedNatively(a.call('POST', '/managed-keys', { name: ref }), 400, isId);
    const aliased = { name: `k${ref.slice(-8)}`, aliases: [ref] };
    await refusedNatively(a.call('POST', '/managed-keys', aliased), 400, isId);
    await refusedNatively(a.call('POST', `/managed-keys/${other.name}/aliases`, { alias: ref }), 400, isId);
    const transit = await a.call('POST', `/transit/keys/${ref}`, {}, { env: { surface: 'vault' } });
    assert.notEqual(transit.status, 200, ref);
    const secret = { value: { a: 'b' } };
    await a.call('PUT', `/secrets/${ref}`, secret);
    const alias = { AliasName: `alias/${ref}`, TargetKeyId: awsIdOf(other) };
    assert.notEqual((await call(a, key, 'CreateAlias', alias)).status, 200, ref);
  }
  const imported = { type: 'secret', wrapped: plain };
  await refusedNatively(a.call('POST', `/managed-keys/${free}/import`, imported), 400, isId);
  const { data } = await ok(a.call('GET', '/managed-keys?limit=100'));
  const names = (data as AnyJson[]).flatMap((each) => [each.name, ...each.aliases]);
  assert.deepEqual(
    names.filter((each) => /^[0-9a-f]{8}-|^(mkey|ring)_/.test(each) && each.length < 38),
    [],
  );
  // A key that AWS's clients made is restored under its own.
  await done(a, key, 'CancelKeyDeletion', { KeyId: gone.KeyId });
});

test("an ARN leads to its key, though an earlier program let another have the key's id as its name", async () => {
  const { a, key } = await around();
  const { name, id } = await make(a);
  const KeyId = awsIdOf({ id, name });
  const other = await make(a);
  const [seat] = a.tenants;
  await seat?.handle.store.transaction((tx) => {
    tx.managedKeys.addAlias(KeyId, other.id, 0, KeyId);
  });
  const before = await done(a, key, 'Encrypt', { KeyId, Plaintext: plain });
  const named = await make(a);
  await seat?.handle.store.transaction((tx) => {
    const row = tx.managedKeys.byId(named.id);
    assert.ok(row);
    tx.managedKeys.erase(named.id);
    tx.managedKeys.insert({ ...row, name: KeyId, displayName: KeyId });
  });
  assert.equal((await done(a, key, 'DescribeKey', { KeyId })).KeyMetadata.Arn, before.KeyId);
  await done(a, key, 'Decrypt', { KeyId, CiphertextBlob: before.CiphertextBlob });
  assert.equal((await ok(a.call('GET', `/managed-keys/${KeyId}`))).key.id, id);
  assert.equal((await ok(a.call('GET', `/managed-keys/${KeyId.toUpperCase()}`))).key.name, name);
});

test('a right signature never waits, whoever fails from its address, with signatures or with tokens', async () => {
  const { a, key, issuer, account } = await withSession();
  const wrong = { ...key, secret: 'x'.repeat(40) };
  const types = new Set<string>();
  for (let n = 0; n < 60; n++) {
    const answer = await call(a, wrong, 'ListKeys', { Limit: n + 1 });
    types.add(answer.__type);
    if (answer.__type === 'ThrottlingException') assert.match(answer.message, /^The request signature we calculated/);
    await assume(a, issuer, account, 'nobody', { WebIdentityToken: `rubbish ${n}` });
  }
  assert.deepEqual([...types], ['InvalidSignatureException', 'ThrottlingException']);
  assert.equal((await assume(a, issuer, account, 'nobody')).code, 'Throttling');
  await done(a, key, 'ListKeys');
  // The success ended the count.
  assert.equal((await call(a, wrong, 'ListKeys')).__type, 'InvalidSignatureException');
  const stranger = { id: 'KMSAAAAAAAAAAAAAAAAA', secret: key.secret };
  for (let n = 0; n < 60; n++) await call(a, stranger, 'ListKeys', { Limit: n + 1 });
  await done(a, key, 'ListKeys');
  assert.equal((await identityOf(a, key)).status, 200);
});

test('signatures fail as they like: who logs in with a token is not made to wait', async () => {
  const { a, key, apiKey, issuer, account } = await withSession();
  const wrong = { ...key, secret: 'x'.repeat(40) };
  for (let n = 0; n < 60; n++) await call(a, wrong, 'ListKeys', { Limit: n + 1 });
  const { status, text } = await assume(a, issuer, account, apiKey.keyid);
  assert.equal(status, 200, text);
});

test('temporary credentials outlive a rekey of their tenant, as the token does', async () => {
  const { a, key, apiKey, issuer, account } = await withSession();
  const { key: session } = await assume(a, issuer, account, apiKey.keyid);
  await done(a, session, 'ListKeys');
  const [seat] = a.tenants;
  assert.ok(seat);
  const { tenant, store } = seat.handle;
  const [older, newer] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(99)];
  await resealAccessKeys(
    store,
    tenantKeys(
      new Map([
        [1, older],
        [2, newer],
      ]),
    ),
    (length) => a.world.random(length),
  );
  Object.assign(tenant, { keys: tenantKeys(new Map([[2, newer]])) });
  await done(a, session, 'ListKeys');
  await done(a, key, 'ListKeys');
  const { key: next } = await assume(a, issuer, account, apiKey.keyid);
  await done(a, next, 'ListKeys');
});

test('a native token is no access key, and a session of an earlier program is asked to begin again', async () => {
  const { a, apiKey, issuer, account } = await withSession();
  const { key: session } = await assume(a, issuer, account, apiKey.keyid);
  const [seat] = a.tenants;
  await seat?.handle.store.transaction((tx) => {
    tx.workloadSessions.setDetails(hashSecret(session.token), {});
  });
  await refused(a, session, 'ExpiredTokenException', 'ListKeys');
});

test('who may not read learns neither that a key is there nor that it is not', async () => {
  const { a, key } = await around();
  const victim = await make(a, { name: 'victim', aliases: ['other/victim'] });
  const { KeyMetadata: made } = await done(a, key, 'CreateKey');
  await done(a, key, 'CreateAlias', { AliasName: 'alias/made', TargetKeyId: made.KeyId });
  const mine = await make(a, { name: 'mine' });
  const some = await accessKey(a, ...['encrypt', 'decrypt', 'read', 'config'].map((each) => `key.mine.${each}`));
  const { CiphertextBlob } = await done(a, key, 'Encrypt', { KeyId: 'alias/victim', Plaintext: plain });
  const there = ['alias/victim', 'alias/other/victim', 'alias/made', awsIdOf(victim), made.KeyId, made.Arn];
  const missing = ['alias/nokey', '01a22862-4699-4ab4-94ba-f01cd221e76c', 'f1a22862-4699-4ab4-94ba-f01cd221e76c'];
  const asked: [string, (KeyId: string) => AnyJson][] = [
    ['DescribeKey', (KeyId) => ({ KeyId })],
    ['Encrypt', (KeyId) => ({ KeyId, Plaintext: plain })],
    ['Decrypt', (KeyId) => ({ KeyId, CiphertextBlob })],
    ['ReEncrypt', (KeyId) => ({ CiphertextBlob, SourceKeyId: KeyId, DestinationKeyId: 'alias/mine' })],
    ['GetPublicKey', (KeyId) => ({ KeyId })],
    ['Sign', (KeyId) => ({ KeyId, Message: plain, SigningAlgorithm: 'ECDSA_SHA_256' })],
  ];
  for (const [operation, input] of asked) {
    const told = new Set<string>();
    for (const ref of [...there, ...missing]) {
      const { message } = await refused(a, some.key, 'AccessDeniedException', operation, input(ref));
      told.add(message);
      assert.doesNotMatch(message, /victim|mkey_|[0-9a-f]{8}-/, operation);
    }
    assert.equal(told.size, 1, [...told].join('\n'));
  }
  const moves = new Set<string>();
  for (const AliasName of ['alias/other/victim', 'alias/victim', 'alias/made', 'alias/nokey']) {
    const input = { AliasName, TargetKeyId: awsIdOf(mine) };
    moves.add((await refused(a, some.key, 'AccessDeniedException', 'UpdateAlias', input)).message);
  }
  assert.equal(moves.size, 1, [...moves].join('\n'));
  const { message } = await refused(a, some.key, 'AccessDeniedException', 'Decrypt', { CiphertextBlob });
  assert.match(message, /key\.NAME\.decrypt/);
});

test('ReEncrypt has the same words for every key, whichever of its keys the caller may use', async () => {
  const { a, key } = await around();
  await make(a, { name: 'mine' });
  await make(a, { name: 'victim', aliases: ['nick'] });
  await make(a, { name: 'signer', type: 'ed25519' });
  await make(a, { name: 'rsa', type: 'rsa-2048', uses: ['encrypt', 'decrypt'] });
  for (const [name, state] of [
    ['off', 'suspended'],
    ['leaked', 'compromised'],
  ]) {
    await make(a, { name });
    await ok(a.call('POST', `/managed-keys/${name}/state`, { state }));
  }
  const names = ['victim', 'nick', 'signer', 'rsa', 'off', 'leaked', 'nokey', 'nokey/2'].map((each) => `alias/${each}`);
  const [none, some] = [
    await accessKey(a, 'key.none.read'),
    await accessKey(a, 'key.mine.encrypt', 'key.mine.decrypt', 'key.none.read'),
  ];
  const blobOf = async (KeyId: string) => (await done(a, key, 'Encrypt', { KeyId, Plaintext: plain })).CiphertextBlob;
  const blobs = [await blobOf('alias/mine'), await blobOf('alias/victim'), base64('no ciphertext')];
  const inputs: ((KeyId: string) => AnyJson)[] = blobs.flatMap((CiphertextBlob) => [
    (KeyId) => ({ CiphertextBlob, DestinationKeyId: KeyId }),
    (KeyId) => ({ CiphertextBlob, DestinationKeyId: KeyId, DestinationEncryptionAlgorithm: 'RSAES_OAEP_SHA_256' }),
    (KeyId) => ({ CiphertextBlob, DestinationKeyId: KeyId, SourceKeyId: KeyId }),
    (KeyId) => ({ CiphertextBlob, DestinationKeyId: KeyId, GrantTokens: ['a'] }),
    (KeyId) => ({ CiphertextBlob, DestinationKeyId: 'alias/mine', SourceKeyId: KeyId }),
    (KeyId) => ({ CiphertextBlob, DestinationKeyId: 'alias/mine', SourceKeyId: KeyId, DryRun: true }),
    (KeyId) => ({ CiphertextBlob, DestinationKeyId: KeyId, SourceKeyId: 'alias/mine' }),
  ]);
  for (const caller of [none, some]) {
    for (const input of inputs) {
      const told = new Set<string>();
      for (const name of names) {
        const { message } = await refused(a, caller.key, 'AccessDeniedException', 'ReEncrypt', input(name));
        told.add(message);
        const [record] = await a.activity();
        assert.deepEqual([record?.validAction, record?.status], [false, 403]);
      }
      assert.equal(told.size, 1, `${JSON.stringify(input('X'))}: ${[...told].join('; ')}`);
    }
  }
});

test('what cannot be the name of a key here is recorded as not found, of no key', async () => {
  const { a } = await around();
  const victim = await make(a, { name: 'victim' });
  const some = await accessKey(a, 'key.mine.encrypt', 'key.mine.import', 'key.mine.read');
  const imported = await make(a, { name: 'mine', origin: 'imported' });
  const elsewhere = 'arn:aws:kms:eu-west-1:111122223333:key/01a22862-4699-4ab4-94ba-f01cd221e76c';
  for (const KeyId of [victim.id, elsewhere, 'arn:aws:s3:::x', 'victim']) {
    const { status } = await call(a, some.key, 'Encrypt', { KeyId, Plaintext: plain });
    const [record] = await a.activity();
    const told = [status, record?.action, record?.status, record?.ringname];
    assert.deepEqual(told, [400, 'key.encrypt', 400, ''], KeyId);
    assert.doesNotMatch(JSON.stringify(record), /mkey_|"victim"/);
  }
  await done(a, some.key, 'GetParametersForImport', {
    KeyId: awsIdOf(imported),
    WrappingAlgorithm: 'RSAES_OAEP_SHA_256',
    WrappingKeySpec: 'RSA_2048',
  });
  assert.ok(JSON.stringify((await a.activity())[0]).includes('"mine"'));
});

test('ReEncrypt and UpdateAlias tell nothing of a second key without its flag, and record that as denied', async () => {
  const { a, key } = await around();
  const target = await make(a, { name: 'mine' });
  await make(a, { name: 'victim', aliases: ['taken'] });
  await make(a, { name: 'signer', type: 'ed25519', aliases: ['signs'] });
  await make(a, { name: 'rsa', type: 'rsa-2048', uses: ['encrypt', 'decrypt'] });
  await make(a, { name: 'off' });
  await ok(a.call('POST', '/managed-keys/off/state', { state: 'suspended' }));
  const some = await accessKey(a, ...['encrypt', 'decrypt', 'config'].map((each) => `key.mine.${each}`));
  const own = await done(a, some.key, 'Encrypt', { KeyId: 'alias/mine', Plaintext: plain });
  const { CiphertextBlob } = own;
  for (const name of ['victim', 'signer', 'rsa', 'off']) {
    const source = { CiphertextBlob, SourceKeyId: `alias/${name}`, DestinationKeyId: 'alias/mine' };
    await refused(a, some.key, 'AccessDeniedException', 'ReEncrypt', source);
    const [record] = await a.activity();
    assert.deepEqual([record?.ringname, record?.validAction, record?.status], [name, false, 403], name);
    await refused(a, some.key, 'AccessDeniedException', 'ReEncrypt', {
      CiphertextBlob,
      DestinationKeyId: `alias/${name}`,
    });
    const [second] = await a.activity();
    assert.equal(second?.validAction, false, name);
    assert.ok(JSON.stringify(second).includes(`"${name}"`), JSON.stringify(second));
  }
  for (const [alias, name] of [
    ['taken', 'victim'],
    ['signs', 'signer'],
  ]) {
    const move = { AliasName: `alias/${alias}`, TargetKeyId: awsIdOf(target) };
    await refused(a, some.key, 'AccessDeniedException', 'UpdateAlias', move);
    const [record] = await a.activity();
    assert.equal(record?.validAction, false);
    assert.ok(JSON.stringify(record).includes(`"${name}"`), JSON.stringify(record));
    const native = { key: some.apiKey.key };
    assert.equal((await a.call('POST', '/managed-keys/mine/aliases', { alias }, native)).status, 403);
    const [natively] = await a.activity();
    assert.equal(natively?.validAction, false);
    assert.ok(JSON.stringify(natively).includes(`"${name}"`), JSON.stringify(natively));
  }
  const again = { CiphertextBlob, SourceKeyId: 'alias/mine', DestinationKeyId: 'alias/mine' };
  await done(a, some.key, 'ReEncrypt', again);
  await refused(a, key, 'InvalidKeyUsageException', 'ReEncrypt', { ...again, SourceKeyId: 'alias/signer' });
});

test('an API key that has ended, or is elsewhere, is told nothing by GetCallerIdentity, and each is recorded', async () => {
  const changes: AnyJson[] = [{ expiresAt: 1 }, { active: false }, { allowedAddresses: ['10.0.0.0/8'] }];
  for (const change of changes) {
    const { a, key, apiKey } = await around();
    assert.equal((await identityOf(a, key)).status, 200);
    const [good] = await a.activity();
    assert.deepEqual([good?.keyid, good?.status, good?.props.dialect], [apiKey.keyid, 200, 'aws']);
    const { status, body } = await a.call('PUT', '/auth/apikeyid', { apikeyid: apiKey.keyid, op: 'merge', ...change });
    assert.equal(status, 200, JSON.stringify(body));
    const { status: after, text } = await identityOf(a, key);
    assert.equal(after, 403, JSON.stringify(change));
    assert.match(text, /InvalidClientTokenId/);
    assert.doesNotMatch(text, /apik_|<Account>/);
    const [record] = await a.activity();
    assert.deepEqual([record?.keyid, record?.status, record?.validAction], [apiKey.keyid, 401, false]);
  }
});

test('who has temporary credentials is the role that was assumed, by that name in the records', async () => {
  const { a, apiKey, issuer, account } = await withSession();
  const assumed = await assume(a, issuer, account, apiKey.keyid);
  const [login] = await a.activity();
  assert.equal(login?.props.sessionName, 'pod-7');
  const arn = `arn:aws:sts::${account}:assumed-role/${apiKey.keyid}/pod-7`;
  for (const text of [assumed.text, (await identityOf(a, assumed.key)).text]) {
    assert.match(text, new RegExp(`<Arn>${arn}</Arn>`));
  }
  await done(a, assumed.key, 'ListKeys');
  const [record] = await a.activity();
  assert.deepEqual([record?.keyid, record?.props.sessionName], [apiKey.keyid, 'pod-7']);
  for (const name of ['Policy', 'PolicyArns.member.1.arn', 'PolicyArns.member.2.arn', 'PolicyArns']) {
    assert.equal((await assume(a, issuer, account, apiKey.keyid, { [name]: 'x' })).code, 'ValidationError', name);
  }
});

test('a refused request leaves a line in the log with the id that its client prints, and a record of the key', async () => {
  const { a, key, apiKey } = await around();
  const headers = { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': 'TrentService.ListKeys' };
  const stranger = { id: 'KMSAAAAAAAAAAAAAAAAA', secret: key.secret };
  const good = signed(a, key, headers, '{}');
  const late = signed({ world: { now: () => a.world.now() - 3_600_000 } }, key, headers, '{"Limit":3}');
  const cases: [string, { headers: Record<string, string>; body: string }, boolean][] = [
    ['access-key', signed(a, stranger, headers, '{}'), false],
    ['signature', signed(a, { ...key, secret: 'x'.repeat(40) }, headers, '{"Limit":1}'), true],
    ['region', signed(a, key, headers, '{"Limit":2}', { region: 'eu-west-1' }), true],
    ['clock', late, true],
    ['headers', signed(a, key, headers, '{"Limit":4}', { unsigned: ['x-amz-target'] }), true],
    ['missing', { headers: { host: 'kms.test', ...headers }, body: '{}' }, false],
    ['incomplete', { ...good, headers: { ...good.headers, authorization: 'AWS4-HMAC-SHA256 Credential=x' } }, false],
  ];
  for (const [check, sent, isOfKey] of cases) {
    const before = (await a.activity()).length;
    const answer = await post(a, sent);
    const id = answer.headers.get('x-amzn-requestid') ?? '';
    assert.notEqual(id, '');
    const line = JSON.parse(a.log.at(-1) ?? '{}');
    assert.deepEqual([line.action, line.requestId, line.status], [`aws.${check}`, id, answer.status], check);
    assert.equal(line.reason, `refused by ${check}`);
    const records = await a.activity();
    assert.equal(records.length, before + Number(isOfKey), check);
    if (!isOfKey) continue;
    assert.deepEqual(
      [records[0]?.keyid, records[0]?.validAction, records[0]?.props.refusedBy, records[0]?.props.requestId],
      [apiKey.keyid, false, check, id],
    );
  }
  const denied = await post(a, signed(a, (await accessKey(a, 'key.x.read')).key, headers, '{}'));
  const line = JSON.parse(a.log.at(-1) ?? '{}');
  assert.equal(line.requestId, denied.headers.get('x-amzn-requestid'));
});

test('a rehearsal says so in its record, and a refusal is recorded under its action', async () => {
  const { a, key } = await around();
  await make(a, { name: 'mine' });
  await refused(a, key, 'DryRunOperationException', 'Encrypt', { KeyId: 'alias/mine', Plaintext: plain, DryRun: true });
  const [record] = await a.activity();
  assert.deepEqual([record?.action, record?.validAction, record?.props.dryRun], ['key.encrypt', true, true]);
  await done(a, key, 'Encrypt', { KeyId: 'alias/mine', Plaintext: plain });
  assert.equal((await a.activity())[0]?.props.dryRun, undefined);
  await refused(a, key, 'InvalidCiphertextException', 'Decrypt', { CiphertextBlob: plain });
  assert.equal((await a.activity())[0]?.action, 'key.decrypt');
});

test('what is elsewhere is not found, whoever asks, and the message says where this is', async () => {
  const { a, key } = await around();
  const { KeyMetadata: made } = await done(a, key, 'CreateKey');
  const some = await accessKey(a, 'key.x.read');
  const elsewhere = made.Arn.replace('us-east-1', 'eu-central-1');
  const foreign = made.Arn.replace(made.AWSAccountId, '111122223333');
  for (const KeyId of [elsewhere, foreign]) {
    for (const [operation, input] of [
      ['DescribeKey', { KeyId }],
      ['CancelKeyDeletion', { KeyId }],
      ['Encrypt', { KeyId, Plaintext: plain }],
      ['UpdateAlias', { AliasName: 'alias/x', TargetKeyId: KeyId }],
    ] as const) {
      for (const each of [key, some.key]) {
        const { message } = await refused(a, each, 'NotFoundException', operation, input);
        assert.match(message, new RegExp(`this is account ${made.AWSAccountId} in region us-east-1`));
      }
    }
  }
});
