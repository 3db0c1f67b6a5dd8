// Managed keys on nodes of one appliance: what is done to one on a node holds at once on the other, keys come in clear
// over the local socket alone, and a rekey leaves every type working with what was made before.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyType, keyTypeFacts, keyTypes } from '../../src/model/key-types.ts';
import * as aws from '../support/aws-client.ts';
import { type AnyJson, nodes, postgres, type Served } from './postgres-nodes.ts';

async function ok(answer: ReturnType<Served['ask']>): Promise<AnyJson> {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

async function refused(answer: ReturnType<Served['ask']>, status: number, message: RegExp): Promise<void> {
  const got = await answer;
  assert.equal(got.status, status, JSON.stringify(got.body));
  assert.match(got.body.message, message);
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const input = base64('hello');
const items = [{ plaintext: input }];

/** Something made with the key, and the check that it still fits. */
interface Made {
  readonly name: string;
  readonly what: 'decrypt' | 'verify' | 'derive' | 'export';
  readonly body: object;
  readonly answer: AnyJson;
}

/** Uses a new key of the type on `node`. */
async function made(node: Served, type: KeyType, uses?: readonly string[]): Promise<Made> {
  const name = `${type}-${uses?.[0] ?? 'usual'}`;
  const { key } = await ok(node.ask('POST', '/managed-keys', { name, type, exportable: type === 'secret', uses }));
  const path = `/managed-keys/${name}`;
  if (key.uses.includes('encrypt')) {
    const { items: sealed } = await ok(node.ask('POST', `${path}/encrypt`, { items }));
    return { name, what: 'decrypt', body: { items: [{ ciphertext: sealed[0].ciphertext }] }, answer: { items } };
  }
  if (key.uses.includes('sign')) {
    const { signature } = await ok(node.ask('POST', `${path}/sign`, { input }));
    return { name, what: 'verify', body: { input, signature }, answer: { valid: true } };
  }
  if (key.uses.includes('mac')) {
    const { mac } = await ok(node.ask('POST', `${path}/mac`, { input }));
    return { name, what: 'verify', body: { input, mac }, answer: { valid: true } };
  }
  const what = key.uses.includes('derive') ? 'derive' : 'export';
  const { publicKey } = key.versions[0];
  // With a shared secret, its own public key is as good as another's.
  const body = what === 'export' ? { plaintext: true } : publicKey ? { publicKey } : { context: input };
  return { name, what, body, answer: await ok(node.ask('POST', `${path}/${what}`, body)) };
}

const fits = async (node: Served, { name, what, body, answer }: Made): Promise<void> =>
  assert.deepEqual(await ok(node.ask('POST', `/managed-keys/${name}/${what}`, body)), answer, name);

if (!postgres) {
  test('managed keys of nodes on PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  test('a managed key made, rotated, disabled or used on one node is so on the other at once', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    for (let round = 0; round < 3; round++) {
      const path = `/managed-keys/k${round}`;
      await ok(a.ask('POST', '/managed-keys', { name: `k${round}`, deletionAllowed: true }));
      const first = await ok(b.ask('POST', `${path}/encrypt`, { items }));
      await ok(b.ask('POST', `${path}/rotate`, {}));
      const second = await ok(a.ask('POST', `${path}/encrypt`, { items }));
      const versions = [...first.items, ...second.items].map(({ keyVersion }) => keyVersion);
      assert.deepEqual(versions, [1, 2]);
      const sealed = { items: [{ ciphertext: first.items[0].ciphertext }] };
      assert.deepEqual(await ok(a.ask('POST', `${path}/decrypt`, sealed)), { items });
      await refused(a.ask('POST', `${path}/state`, { state: 'suspended' }), 400, /1 caller used the key/);
      await ok(a.ask('POST', `${path}/state`, { state: 'suspended', used: true }));
      await refused(b.ask('POST', `${path}/decrypt`, sealed), 400, /the key is suspended/);
      await ok(b.ask('POST', `${path}/state`, { state: 'active' }));
      assert.deepEqual(await ok(a.ask('POST', `${path}/decrypt`, sealed)), { items });
      for (const { ask } of [a, b]) {
        const { dependents } = await ok(ask('GET', `${path}/dependents`));
        const counts = dependents.map(({ version, operation, count }: AnyJson) => `${operation} ${version} ${count}`);
        assert.deepEqual(counts.sort(), ['decrypt 1 2', 'encrypt 1 1', 'encrypt 2 1']);
      }
      await ok(b.ask('POST', `${path}/aliases`, { alias: `other/${round}` }));
      assert.equal((await ok(a.ask('GET', `/managed-keys/other%2F${round}`))).key.name, `k${round}`);
      await ok(a.ask('DELETE', path, { used: true }));
      assert.notEqual((await b.ask('POST', `${path}/decrypt`, sealed)).status, 200);
    }
  });

  test("AWS's clients use at any node what another just made, and lose nothing", async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const { data } = await ok(a.ask('GET', '/auth/apikey'));
    const [{ keyid }] = data;
    const { accessKeyId: id, secretAccessKey: secret } = await ok(
      a.ask('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'aws' }),
    );
    const site = ({ serving }: Served) => ({ app: serving.appliance.app, world: { now: () => Date.now() } });
    const [first, second] = [site(a), site(b)];
    const key = { id, secret };
    for (let n = 0; n < 5; n++) {
      const { KeyId } = (await aws.done(first, key, 'CreateKey')).KeyMetadata;
      const alias = { AliasName: `alias/n${n}`, TargetKeyId: KeyId };
      const named = n % 2 === 0 ? KeyId : alias.AliasName;
      const [made, sealed] = await Promise.all([
        aws.done(first, key, 'CreateAlias', alias),
        aws.call(second, key, 'Encrypt', { KeyId: named, Plaintext: input }),
      ]);
      assert.equal(made.status, 200);
      await aws.refused(second, key, 'AlreadyExistsException', 'CreateAlias', alias);
      const { CiphertextBlob } =
        sealed.status === 200 ? sealed : await aws.done(second, key, 'Encrypt', { KeyId: named, Plaintext: input });
      for (const each of [first, second]) {
        assert.equal((await aws.done(each, key, 'Decrypt', { KeyId, CiphertextBlob })).Plaintext, input);
      }
    }
  });

  test('a key comes in clear over the local socket of any node, and over no network', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const plaintext = Buffer.alloc(32, 7).toString('base64');
    const body = { plaintext, type: 'aes256-gcm', exportable: true };
    await ok(a.local('POST', '/managed-keys/brought/import', body));
    assert.equal((await ok(b.ask('POST', '/managed-keys/brought/export', { plaintext: true }))).plaintext, plaintext);
    for (const { ask } of [a, b]) {
      await refused(ask('POST', '/managed-keys/other/import', body), 403, /in clear on the local socket alone/);
      await refused(ask('POST', '/managed-keys/brought/import', { plaintext }), 403, /on the local socket alone/);
    }
    assert.equal((await b.ask('GET', '/managed-keys/other')).status, 404);
    await ok(b.local('POST', '/managed-keys/brought/import', { plaintext, isNewVersion: true }));
    assert.equal((await ok(a.ask('GET', '/managed-keys/brought'))).key.latestVersion, 2);
  });

  test('a rekey on one node leaves keys of every type working on all, with what was made before', async () => {
    await using all = await nodes();
    const [a, b] = [await all.serve('first'), await all.serve('second')];
    const before: Made[] = [];
    for (const [n, type] of keyTypes.entries()) {
      for (const { usual } of keyTypeFacts[type].purposes) {
        before.push(await made(n % 2 === 0 ? a : b, type, type === 'secret' ? undefined : usual));
      }
    }
    await ok(a.ask('POST', '/secrets/db%2Fone', { value: { password: 'c0ffee' } }));
    const wrapping = await ok(a.ask('GET', '/managed-keys/wrapping-key'));
    for (const node of [b, a]) {
      await ok(node.local('POST', '/local/tenants/default/rekey', {}));
      for (const { ask } of [a, b]) {
        assert.deepEqual((await ok(ask('GET', '/secrets/db%2Fone'))).value, { password: 'c0ffee' });
        assert.equal((await ok(ask('GET', '/managed-keys/wrapping-key'))).publicKey, wrapping.publicKey);
      }
      for (const each of before) for (const served of [a, b]) await fits(served, each);
    }
    for (const { name } of before) {
      const { key } = await ok(b.ask('GET', `/managed-keys/${name}`));
      if (key.type.startsWith('rsa-')) continue;
      assert.equal((await ok(b.ask('POST', `/managed-keys/${name}/rotate`, {}))).key.latestVersion, 2);
    }
    for (const each of before) if (each.what !== 'export' && each.what !== 'derive') await fits(a, each);
  });
}
