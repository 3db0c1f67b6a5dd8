// The appliance as AWS KMS: signatures and what they must cover, operations, errors by the names that SDKs know, and
// credentials for a signed token.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { around, base64, call, formType, json, post, type Sent, signed } from '../support/aws-client.ts';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';

test('a key is made, named, encrypts under a context, and its blob opens without a key id', async () => {
  const { a, key, apiKey, proof } = await around();
  const { KeyMetadata: made } = await call(a, key, 'CreateKey', { Description: 'd' });
  assert.match(made.KeyId, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.equal(made.KeySpec, 'SYMMETRIC_DEFAULT');
  assert.equal((await call(a, key, 'CreateAlias', { AliasName: 'alias/app', TargetKeyId: made.KeyId })).status, 200);
  const input = { KeyId: 'alias/app', Plaintext: base64('hello'), EncryptionContext: { b: '2', a: '1' } };
  const { CiphertextBlob, KeyId } = await call(a, key, 'Encrypt', input);
  assert.equal(KeyId, made.Arn);
  const opened = await call(a, key, 'Decrypt', { CiphertextBlob, EncryptionContext: { a: '1', b: '2' } });
  assert.equal(opened.Plaintext, base64('hello'));
  for (const EncryptionContext of [{}, { a: '1' }, { a: '1', b: '2', c: '' }, { A: '1', b: '2' }]) {
    const refused = await call(a, key, 'Decrypt', { CiphertextBlob, EncryptionContext });
    assert.deepEqual([refused.status, refused.__type], [400, 'InvalidCiphertextException']);
  }
  const [record] = (await a.activity()).filter(({ action }) => action === 'key.encrypt');
  assert.equal(record?.keyid, apiKey.keyid);
  assert.deepEqual([record?.props.dialect, record?.props.proof], ['aws', proof.id]);
});

test('whatever is altered, unsigned or late is refused by the name that SDKs know', async () => {
  const { a, key } = await around();
  const headers = { 'content-type': json, 'x-amz-target': 'TrentService.ListKeys' };
  const good = signed(a, key, headers, '{}');
  assert.equal((await post(a, good)).status, 200);
  const altered: Readonly<Record<string, readonly [Sent, string]>> = {
    'another operation': [
      { ...good, headers: { ...good.headers, 'x-amz-target': 'TrentService.CreateKey' } },
      'InvalidSignatureException',
    ],
    'another body': [{ ...good, body: '{ }' }, 'InvalidSignatureException'],
    'an unsigned operation': [
      signed(a, key, headers, '{}', { unsigned: ['x-amz-target'] }),
      'InvalidSignatureException',
    ],
    'an unsigned host': [signed(a, key, headers, '{}', { unsigned: ['host'] }), 'InvalidSignatureException'],
    'another header of Amazon': [
      { ...good, headers: { ...good.headers, 'x-amz-meta': 'x' } },
      'InvalidSignatureException',
    ],
    'another region': [signed(a, key, headers, '{}', { region: 'eu-west-1' }), 'InvalidSignatureException'],
    'another service': [signed(a, key, headers, '{}', { service: 'sts' }), 'InvalidSignatureException'],
    'another secret': [signed(a, { ...key, secret: 'x'.repeat(40) }, headers, '{}'), 'InvalidSignatureException'],
    'an unknown key': [signed(a, { ...key, id: 'KMSAAAAAAAAAAAAAAAAA' }, headers, '{}'), 'UnrecognizedClientException'],
    'no signature': [{ headers: { ...headers, host: 'kms.test' }, body: '{}' }, 'MissingAuthenticationTokenException'],
    rubbish: [
      { headers: { ...headers, authorization: 'AWS4-HMAC-SHA256 x' }, body: '{}' },
      'IncompleteSignatureException',
    ],
  };
  for (const [what, [sent, type]] of Object.entries(altered)) {
    const { status, body } = await post(a, sent);
    assert.deepEqual([status, body.__type], [400, type], what);
  }
  a.advance(901_000);
  assert.equal((await post(a, good)).body.__type, 'InvalidSignatureException');
});

test('an access key that is disabled or removed is refused from the next request on', async () => {
  const { a, key, apiKey, proof } = await around();
  assert.equal((await call(a, key, 'ListKeys')).status, 200);
  const path = `/auth/apikeys/${apiKey.keyid}/proofs/${proof.id}`;
  await a.call('PATCH', path, { active: false });
  assert.equal((await call(a, key, 'ListKeys')).__type, 'UnrecognizedClientException');
  await a.call('PATCH', path, { active: true });
  assert.equal((await call(a, key, 'ListKeys')).status, 200);
  await a.call('DELETE', path);
  assert.equal((await call(a, key, 'ListKeys')).__type, 'UnrecognizedClientException');
});

test('flags decide, and what is not there is told as AWS does', async () => {
  const { a, key } = await around('key.list');
  assert.equal((await call(a, key, 'CreateKey')).__type, 'AccessDeniedException');
  const all = await around();
  const nowhere = { KeyId: '11111111-1111-1111-1111-111111111111' };
  assert.equal((await call(all.a, all.key, 'DescribeKey', nowhere)).__type, 'NotFoundException');
  assert.equal((await call(all.a, all.key, 'constructor')).__type, 'UnknownOperationException');
  assert.equal((await call(all.a, all.key, 'Encrypt', { KeyId: 3 })).__type, 'SerializationException');
  assert.equal((await call(all.a, all.key, 'Encrypt', nowhere)).__type, 'ValidationException');
});

test('keys sign and verify, and their states are those of AWS', async () => {
  const { a, key } = await around();
  const { KeyMetadata: made } = await call(a, key, 'CreateKey', { KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY' });
  const what = { KeyId: made.KeyId, Message: base64('m'), SigningAlgorithm: 'ECDSA_SHA_256' };
  const { Signature } = await call(a, key, 'Sign', what);
  assert.equal((await call(a, key, 'Verify', { ...what, Signature })).SignatureValid, true);
  const wrong = await call(a, key, 'Verify', { ...what, Message: base64('n'), Signature });
  assert.equal(wrong.__type, 'KMSInvalidSignatureException');
  assert.equal((await call(a, key, 'DisableKey', { KeyId: made.KeyId })).status, 200);
  assert.equal((await call(a, key, 'Sign', what)).__type, 'DisabledException');
  await call(a, key, 'EnableKey', { KeyId: made.KeyId });
  await call(a, key, 'ScheduleKeyDeletion', { KeyId: made.KeyId, PendingWindowInDays: 7 });
  const pending = await call(a, key, 'Sign', what);
  assert.equal(pending.__type, 'KMSInvalidStateException');
  assert.match(pending.message, /is pending deletion/);
  assert.equal((await call(a, key, 'DescribeKey', { KeyId: made.KeyId })).KeyMetadata.KeyState, 'PendingDeletion');
});

test('a signed token becomes temporary credentials, which end with their proof', async () => {
  const { a, key, apiKey } = await around();
  const issuer = await TokenIssuer.make(() => a.world.now());
  const trust = await trustIssuer(a, apiKey.keyid, issuer);
  const account = (await call(a, key, 'CreateKey')).KeyMetadata.AWSAccountId;
  const form = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: `arn:aws:iam::${account}:role/${apiKey.keyid}`,
    RoleSessionName: 'pod',
    WebIdentityToken: await issuer.token(),
  });
  const ask = (body: URLSearchParams) =>
    post(a, { headers: { host: 'kms.test', 'content-type': formType }, body: body.toString() });
  const assumed = async () => {
    const { status, text } = await ask(form);
    assert.equal(status, 200, text);
    const of = (name: string): string => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1] ?? '';
    return { id: of('AccessKeyId'), secret: of('SecretAccessKey'), token: of('SessionToken') };
  };
  const session = await assumed();
  assert.equal((await call(a, session, 'ListKeys')).Keys.length, 1);
  assert.equal((await call(a, { ...session, secret: key.secret }, 'ListKeys')).__type, 'InvalidSignatureException');
  assert.equal((await call(a, { ...session, id: key.id }, 'ListKeys')).__type, 'UnrecognizedClientException');
  form.set('WebIdentityToken', await issuer.token({ aud: 'x' }));
  assert.match((await ask(form)).text, /<Code>InvalidIdentityToken<\/Code>/);
  await a.call('PATCH', `/auth/apikeys/${apiKey.keyid}/proofs/${trust.id}`, { active: false });
  assert.equal((await call(a, session, 'ListKeys')).__type, 'UnrecognizedClientException');
  await a.call('PATCH', `/auth/apikeys/${apiKey.keyid}/proofs/${trust.id}`, { active: true });
  form.set('WebIdentityToken', await issuer.token());
  const again = await assumed();
  assert.equal((await call(a, again, 'ListKeys')).status, 200);
  a.advance(2 * 60 * 60 * 1000);
  assert.equal((await call(a, again, 'ListKeys')).__type, 'ExpiredTokenException');
});

test('the token service says who a caller is, and refuses in its own words', async () => {
  const { a, key, apiKey } = await around();
  const body = 'Action=GetCallerIdentity&Version=2011-06-15';
  const headers = { 'content-type': formType };
  const { status, text } = await post(a, signed(a, key, headers, body, { service: 'sts' }));
  assert.equal(status, 200, text);
  assert.match(text, new RegExp(`<Arn>arn:aws:iam::\\d{12}:user/${apiKey.keyid}</Arn>`));
  const code = async (sent: Sent) => /<Code>(\w+)<\/Code>/.exec((await post(a, sent)).text)?.[1];
  const stranger = { id: 'KMSAAAAAAAAAAAAAAAAA', secret: key.secret };
  assert.equal(await code(signed(a, stranger, headers, body, { service: 'sts' })), 'InvalidClientTokenId');
  assert.equal(await code(signed(a, key, headers, body)), 'SignatureDoesNotMatch');
  assert.equal(await code({ headers: { host: 'kms.test', ...headers }, body }), 'MissingAuthenticationToken');
  const other = { host: 'kms.test', ...headers };
  assert.equal(await code({ headers: other, body: 'Action=AssumeRole&Version=2011-06-15' }), 'InvalidAction');
  const role = 'Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleSessionName=pod&WebIdentityToken=x';
  const elsewhere = `${role}&RoleArn=${encodeURIComponent('arn:aws:iam::000000000001:role/x')}`;
  assert.equal(await code({ headers: other, body: elsewhere }), 'AccessDenied');
  assert.equal(await code({ headers: other, body: `${elsewhere}&Policy=x` }), 'ValidationError');
});
