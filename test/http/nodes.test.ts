// Requests in every protocol but AWS's, which has a file of its own, to a node whose data are old: another node made,
// changed or took away what they ask about. The answers are those of a node that knows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { byteString, enumeration, fieldOf, structure } from '../../src/dialects/kmip/ttlv.ts';
import type { AnyJson, Appliance } from '../support/appliance.ts';
import { base64 } from '../support/aws-client.ts';
import { KmipClient, materialIn, uid } from '../support/kmip-client.ts';
import { twoNodes } from '../support/nodes.ts';
import { v1 } from '../support/vault-client.ts';
import { sampled, urlOf } from './samples.ts';

const plain = base64('hello');
const message = Buffer.from('sixteen bytes ok');

test('every endpoint answers on a node that knows nothing of what it is about', async () => {
  const { a, b } = await twoNodes();
  for (const { endpoint, make } of sampled) {
    const { key, body, ...sample } = await make(a);
    b.advance(a.world.now() - b.world.now());
    const answer = await b.call(endpoint.method, urlOf(endpoint, sample), body, { ...(key !== undefined && { key }) });
    assert.ok(answer.status < 300, `${endpoint.id}: ${answer.status} ${answer.text.slice(0, 300)}`);
  }
});

async function ok(a: Appliance, method: string, path: string, body?: object): Promise<AnyJson> {
  const answer = await v1(a, method, path, body);
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.body?.data;
}

test("Vault's clients find at any node what another did, and what they encrypt opens at both", async () => {
  const { a, b, remember } = await twoNodes();
  await ok(a, 'PUT', 'transit/keys/first');
  const { ciphertext } = await ok(b, 'PUT', 'transit/encrypt/first', { plaintext: plain });
  for (const node of [a, b])
    assert.equal((await ok(node, 'PUT', 'transit/decrypt/first', { ciphertext })).plaintext, plain);
  await ok(a, 'PUT', 'transit/keys/first/rotate');
  const again = await ok(b, 'PUT', 'transit/rewrap/first', { ciphertext });
  assert.match(again.ciphertext, /^vault:v2:/);
  assert.equal((await ok(a, 'PUT', 'transit/decrypt/first', again)).plaintext, plain);
  await ok(a, 'PUT', 'transit/keys/signer', { type: 'ecdsa-p256' });
  const { signature } = await ok(b, 'PUT', 'transit/sign/signer', { input: plain });
  assert.equal((await ok(a, 'PUT', 'transit/verify/signer', { input: plain, signature })).valid, true);
  await remember();
  await ok(a, 'DELETE', 'transit/keys/first/soft-delete');
  assert.equal((await v1(b, 'PUT', 'transit/encrypt/first', { plaintext: plain })).status, 400);
  await ok(b, 'PUT', 'transit/keys/first/soft-delete-restore');
  await ok(a, 'PUT', 'transit/keys/first/config', { deletion_allowed: true });
  await ok(b, 'DELETE', 'transit/keys/first');
  assert.equal((await v1(a, 'PUT', 'transit/encrypt/first', { plaintext: plain })).status, 400);
  await ok(a, 'POST', 'secret/data/app', { data: { password: 'one' } });
  assert.equal((await ok(b, 'GET', 'secret/data/app')).data.password, 'one');
  // A secret is no key of the transit engine, known or not.
  assert.notEqual((await v1(b, 'PUT', 'transit/encrypt/app', { plaintext: plain })).status, 200);
  assert.notEqual((await v1(b, 'PUT', 'transit/keys/app/rotate')).status, 204);
});

test("Vault's tokens, new or ended, count at once at any node", async () => {
  const { a, b, remember } = await twoNodes();
  const key = await a.keyWith('key.*');
  const as = { token: key.key };
  await ok(a, 'PUT', 'transit/keys/mine');
  assert.equal((await v1(b, 'PUT', 'transit/encrypt/mine', { plaintext: plain }, as)).status, 200);
  assert.equal((await v1(b, 'GET', 'auth/token/lookup-self', undefined, as)).status, 200);
  const { text } = await v1(b, 'PUT', 'sys/capabilities-self', { paths: ['transit/encrypt/mine'] }, as);
  assert.match(text, /update/);
  await remember();
  assert.equal((await a.call('DELETE', `/auth/apikeyid/${key.keyid}`)).status, 200);
  assert.equal((await v1(b, 'PUT', 'transit/encrypt/mine', { plaintext: plain }, as)).status, 403);
  assert.equal((await v1(b, 'GET', 'auth/token/lookup-self', undefined, as)).status, 403);
});

test("KMIP's clients find at any node what another did, and what they encrypt opens at both", async () => {
  const { a, b, remember } = await twoNodes();
  const atA = await KmipClient.make(a, 'kmip.*', 'key.*');
  const atB = new KmipClient(b, atA.certificate);
  const id = await atA.aes();
  await atB.did('Activate', [uid(id)]);
  assert.equal(materialIn(await atB.did('Get', [uid(id)])).length, 32);
  const sealed = await atB.did('Encrypt', [uid(id), byteString(tags.data, message)]);
  const [data, iv] = [fieldOf(sealed, tags.data, 'bytes'), fieldOf(sealed, tags.ivCounterNonce, 'bytes')];
  assert.ok(data);
  const opened = await atA.did('Decrypt', [
    uid(id),
    byteString(tags.data, data),
    ...(iv ? [byteString(tags.ivCounterNonce, iv)] : []),
  ]);
  assert.equal(Buffer.from(fieldOf(opened, tags.data, 'bytes') ?? []).toString(), message.toString());
  await remember();
  const reason = structure(tags.revocationReason, enumeration(tags.revocationReasonCode, 1));
  await atA.did('Revoke', [uid(id), reason]);
  await atB.refused('Encrypt', [uid(id), byteString(tags.data, message)]);
  await atB.did('Destroy', [uid(id)]);
  await atA.refused('Encrypt', [uid(id), byteString(tags.data, message)]);
});

test('a client certificate that went to another tenant is taken there at once, by a new connection', async () => {
  const { a, b, remember } = await twoNodes({
    tenants: [
      { name: 'one', hosts: ['*'] },
      { name: 'two', hosts: ['two.test'] },
    ],
  });
  const atA = await KmipClient.make(a, 'kmip.*', 'key.*');
  const atB = new KmipClient(b, atA.certificate);
  await remember();
  await atB.aes();
  const own = await a.call('GET', `/auth/apikeys/${atA.keyid}/proofs`);
  const { id: proof } = own.body.proofs.find(({ kind }: AnyJson) => kind === 'certificate');
  assert.equal((await a.call('DELETE', `/auth/apikeys/${atA.keyid}/proofs/${proof}`)).status, 200);
  const as = { host: 'two.test', key: a.tenants[1]?.root.key ?? '' };
  const { accountId } = (await a.call('GET', '/auth/apikey', undefined, as)).body.data[0].references;
  const flags = { 'kmip.*': true, 'key.*': true };
  const { keyid } = (await a.call('POST', '/auth/apikey', { accountId, flags }, as)).body;
  const body = { kind: 'certificate', certificate: atA.certificate.pem };
  const added = await a.call('POST', `/auth/apikeys/${keyid}/proofs`, body, as);
  assert.equal(added.status, 200, added.text);
  // The open connection ends with its proof.
  await assert.rejects(atB.aes(), /the certificate proves no client/);
  const id = await new KmipClient(b, atA.certificate).aes();
  await new KmipClient(a, atA.certificate).did('Activate', [uid(id)]);
});
