// The appliance as AWS KMS: signatures made by a signer of the test's own, what they must cover, operations, errors by
// the names that SDKs know, and credentials for a signed token.
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { test } from 'node:test';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';

interface AccessKey {
  readonly id: string;
  readonly secret: string;
  readonly token?: string;
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

interface Sent {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** A request as SDKs sign it. `unsigned` names headers to leave out of the signature. */
function signed(a: Appliance, key: AccessKey, headers: Record<string, string>, body: string, unsigned = ''): Sent {
  const date = new Date(a.world.now()).toISOString().replace(/[-:]|\.\d+/g, '');
  const all: Record<string, string> = {
    host: 'kms.test',
    'x-amz-date': date,
    ...(key.token !== undefined && { 'x-amz-security-token': key.token }),
    ...headers,
  };
  const names = Object.keys(all)
    .filter((name) => name !== unsigned)
    .sort();
  const lines = names.map((name) => `${name}:${all[name]}`);
  const canonical = ['POST', '/', '', ...lines, '', names.join(';'), hash(body)].join('\n');
  const day = date.slice(0, 8);
  const scope = `${day}/eu-west-1/kms/aws4_request`;
  const signing = [day, 'eu-west-1', 'kms', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${key.secret}`);
  const signature = hmac(signing, ['AWS4-HMAC-SHA256', date, scope, hash(canonical)].join('\n')).toString('hex');
  const { host: _, ...sent } = all;
  const authorization = `AWS4-HMAC-SHA256 Credential=${key.id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  return { headers: { ...sent, authorization }, body };
}

async function post(a: Appliance, { headers, body }: Sent) {
  const request = new Request('http://kms.test/', { method: 'POST', headers: { ...headers, host: 'kms.test' }, body });
  const answer = await a.app.fetch(request, { surface: 'aws' });
  const text = await answer.text();
  const told: AnyJson = text.startsWith('{') ? JSON.parse(text) : {};
  return { status: answer.status, text, body: told };
}

const json = 'application/x-amz-json-1.1';

/** Calls an operation and returns its answer; `status` and `__type` of a refusal. */
async function call(a: Appliance, key: AccessKey, operation: string, input: AnyJson = {}): Promise<AnyJson> {
  const headers = { 'content-type': json, 'x-amz-target': `TrentService.${operation}` };
  const { status, body } = await post(a, signed(a, key, headers, JSON.stringify(input)));
  return { status, ...body };
}

async function around(...flags: string[]) {
  const a = await testAppliance();
  const apiKey = await a.keyWith(...(flags.length > 0 ? flags : ['key.*']));
  const { body } = await a.call('POST', `/auth/apikeys/${apiKey.keyid}/proofs`, { kind: 'aws' });
  return { a, apiKey, proof: body, key: { id: body.accessKeyId, secret: body.secretAccessKey } };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

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
    'an unsigned operation': [signed(a, key, headers, '{}', 'x-amz-target'), 'InvalidSignatureException'],
    'an unsigned host': [signed(a, key, headers, '{}', 'host'), 'InvalidSignatureException'],
    'another header of Amazon': [
      { ...good, headers: { ...good.headers, 'x-amz-meta': 'x' } },
      'InvalidSignatureException',
    ],
    'another secret': [signed(a, { ...key, secret: 'x'.repeat(40) }, headers, '{}'), 'InvalidSignatureException'],
    'an unknown key': [signed(a, { ...key, id: 'KMSAAAAAAAAAAAAAAAAA' }, headers, '{}'), 'UnrecognizedClientException'],
    'no signature': [{ headers, body: '{}' }, 'MissingAuthenticationTokenException'],
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
    post(a, { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: body.toString() });
  const { status, text } = await ask(form);
  assert.equal(status, 200, text);
  const of = (name: string): string => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1] ?? '';
  const session = { id: of('AccessKeyId'), secret: of('SecretAccessKey'), token: of('SessionToken') };
  assert.equal((await call(a, session, 'ListKeys')).Keys.length, 1);
  assert.equal((await call(a, { ...session, secret: key.secret }, 'ListKeys')).__type, 'InvalidSignatureException');
  assert.equal((await call(a, { ...session, id: key.id }, 'ListKeys')).__type, 'UnrecognizedClientException');
  form.set('WebIdentityToken', await issuer.token({ aud: 'x' }));
  assert.match((await ask(form)).text, /<Code>InvalidIdentityToken<\/Code>/);
  await a.call('PATCH', `/auth/apikeys/${apiKey.keyid}/proofs/${trust.id}`, { active: false });
  assert.equal((await call(a, session, 'ListKeys')).__type, 'UnrecognizedClientException');
});
