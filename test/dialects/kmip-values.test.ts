// An object of KMIP has one value for as long as it lives: no other interface puts another in its place, or takes it away
// but by deleting the whole object.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { byteString, encodeItem, enumeration, fieldOf, structure, structureIn } from '../../src/dialects/kmip/ttlv.ts';
import type { Appliance } from '../support/appliance.ts';
import { around, call } from '../support/aws-client.ts';
import { idIn, KmipClient, template, uid } from '../support/kmip-client.ts';
import { v1 } from '../support/vault-client.ts';

/** One object of each type, made here or registered. */
async function objectsOf(c: KmipClient): Promise<Readonly<Record<string, string>>> {
  const curve = template(
    ['Cryptographic Usage Mask', 3],
    ['Cryptographic Algorithm', 6],
    ['Cryptographic Domain Parameters', structure(tags.attributeValue, enumeration(tags.recommendedCurve, 7))],
  );
  const pair = await c.did('Create Key Pair', [{ ...curve, tag: tags.commonTemplateAttribute }]);
  const block = structure(
    tags.keyBlock,
    enumeration(tags.keyFormatType, 2),
    structure(tags.keyValue, byteString(tags.keyMaterial, new TextEncoder().encode('written'))),
  );
  const secret = structure(tags.secretData, enumeration(tags.secretDataType, 1), block);
  const registered = [enumeration(tags.objectType, 7), template(['Cryptographic Usage Mask', 0]), secret];
  const opaque = structure(
    tags.opaqueObject,
    enumeration(tags.opaqueDataType, 0x8000_0001),
    byteString(tags.opaqueDataValue, new Uint8Array(4)),
  );
  return {
    'aes-256': await c.aes(['Activation Date', 1]),
    'aes-192': await c.aes(['Cryptographic Length', 192]),
    private: fieldOf(pair, tags.privateKeyUniqueIdentifier, 'text') ?? '',
    public: fieldOf(pair, tags.publicKeyUniqueIdentifier, 'text') ?? '',
    secret: idIn(await c.did('Register', registered)),
    opaque: idIn(await c.did('Register', [enumeration(tags.objectType, 8), template(), opaque])),
  };
}

async function objectIn(c: KmipClient, id: string): Promise<string> {
  return toHex(encodeItem(await c.did('Get', [uid(id)])));
}

/** Native requests that would give an object another value, or none. */
const changes = (id: string, name: string): readonly (readonly [string, string, object?])[] => [
  ['POST', `/managed-keys/${id}/rotate`],
  ['PUT', `/managed-keys/${id}/config`, { rotateAfter: 3600 }],
  ['POST', `/managed-keys/${id}/import`, { isNewVersion: true, wrapped: 'AAAA' }],
  ['POST', `/managed-keys/${id}/import`, { wrapped: 'AAAA' }],
  ['POST', `/managed-keys/${name}/import`, { publicKey: 'AAAA' }],
  ['POST', `/managed-keys/${id}/state`, { state: 'suspended', version: 1, used: true }],
];

async function isKept(a: Appliance, what: string, method: string, path: string, body?: object): Promise<void> {
  const { status, text } = await a.call(method, path, body);
  assert.equal(status, 400, `${what} ${method} ${path}: ${text}`);
  assert.match(text, /by Re-key/, `${what} ${method} ${path}`);
}

test('no native request gives an object another value, whatever its type', async () => {
  const { a } = await around();
  const c = await KmipClient.make(a, 'kmip.*');
  for (const [what, id] of Object.entries(await objectsOf(c))) {
    const before = await objectIn(c, id);
    const { name } = (await a.call('GET', `/managed-keys/${id}`)).body.key;
    for (const change of changes(id, name)) await isKept(a, what, ...change);
    const { body } = await a.call('GET', `/managed-keys/${id}`);
    assert.deepEqual([body.key.latestVersion, body.key.rotateAfter], [1, null]);
    assert.equal(await objectIn(c, id), before, what);
    const named = await a.call('PUT', `/managed-keys/${id}/config`, { rotateAfter: null, tags: { place: 'here' } });
    assert.equal(named.status, 200, named.text);
  }
});

test('secrets that a client registered are neither written, taken away nor erased by others', async () => {
  const { a } = await around();
  const c = await KmipClient.make(a, 'kmip.*');
  const { secret = '', opaque = '', 'aes-192': stored = '' } = await objectsOf(c);
  for (const id of [secret, opaque, stored]) {
    const before = await objectIn(c, id);
    const { name } = (await a.call('GET', `/managed-keys/${id}`)).body.key;
    await isKept(a, id, 'POST', `/secrets/${name}`, { value: { a: 1 } });
    for (const way of ['delete', 'destroy']) await isKept(a, id, 'POST', `/secrets/${name}/${way}`, { versions: [1] });
    if (id !== stored) await isKept(a, id, 'DELETE', `/managed-keys/${id}/material`);
    assert.equal(await objectIn(c, id), before);
  }
});

test('clients of Vault and AWS are refused as well, and a key of theirs with attributes of KMIP goes on', async () => {
  const { a, key } = await around();
  const c = await KmipClient.make(a, 'kmip.*', 'key.*');
  const { 'aes-256': id = '' } = await objectsOf(c);
  const before = await objectIn(c, id);
  const { name, aws } = (await a.call('GET', `/managed-keys/${id}`)).body.key;
  for (const [path, body] of [
    [`transit/keys/${name}/rotate`],
    [`transit/keys/${name}/config`, { auto_rotate_period: '24h' }],
  ] as const) {
    const { status, text } = await v1(a, 'POST', path, body ?? {});
    assert.ok(status >= 400 && status < 500 && /by Re-key/.test(text), `${path} ${status} ${text}`);
  }
  for (const operation of ['RotateKeyOnDemand', 'EnableKeyRotation']) {
    const answer = await call(a, key, operation, { KeyId: aws.keyId });
    assert.ok(answer.status === 400 && answer.__type, `${operation} ${JSON.stringify(answer)}`);
  }
  assert.equal(await objectIn(c, id), before);
  await a.call('POST', '/managed-keys', { name: 'native', type: 'aes256-gcm', exportable: true });
  const { body } = await a.call('GET', '/managed-keys/native');
  await c.did('Add Attribute', [uid(body.key.id), template(['x-a', 'b']).value[0] ?? assert.fail()]);
  assert.equal((await a.call('POST', '/managed-keys/native/rotate')).status, 200);
  assert.ok(structureIn(await c.did('Get', [uid(body.key.id)]), tags.symmetricKey));
});
