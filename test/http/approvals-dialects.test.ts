// Approvals in every dialect: each refuses in its own words, a client that just tries again is served once the word is
// given, and no dialect is a way around a rule. And requests that are held.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { enumeration } from '../../src/dialects/kmip/ttlv.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { approver, ids, say, waits } from '../support/approvers.ts';
import { accessKey, base64, call, done } from '../support/aws-client.ts';
import { KmipClient, uid } from '../support/kmip-client.ts';
import { twoNodes } from '../support/nodes.ts';
import { v1 } from '../support/vault-client.ts';
import { makeRing, makeRule, makeTransit } from './samples.ts';

async function pending(a: Appliance): Promise<string[]> {
  const { requests } = (await a.call('GET', '/approvals/requests?state=pending')).body;
  return requests.map(({ id }: { id: string }) => id);
}

async function onlyPending(a: Appliance): Promise<string> {
  const [id = '', ...others] = await pending(a);
  assert.deepEqual([id !== '', others], [true, []]);
  return id;
}

test("Vault's client is refused, and served once it is approved", async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { name } = await makeTransit(a);
  const { ciphertext } = (await v1(a, 'PUT', `transit/encrypt/${name}`, { plaintext: base64('hi') })).body.data;
  await makeRule(a, { actions: ['key.*.decrypt', 'key.*.delete'], objects: [name], approvers: { users: ids(ada) } });
  const { key: token } = await a.keyWith('key.*');
  const decrypt = () => v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext }, { token });
  const { status, body } = await decrypt();
  const id = await onlyPending(a);
  assert.deepEqual([status, Object.keys(body), body.errors.length], [403, ['errors'], 1]);
  assert.ok(body.errors[0].includes(id));
  await say(a, ada, id);
  assert.equal((await decrypt()).body.data.plaintext, base64('hi'));
  assert.equal((await decrypt()).status, 403, 'once');
  await v1(a, 'PUT', `transit/keys/${name}/config`, { deletion_allowed: true });
  assert.equal((await v1(a, 'DELETE', `transit/keys/${name}`, undefined, { token })).status, 403);
});

test("AWS's client is denied access, and served once it is approved", async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { key } = await accessKey(a);
  const { KeyId } = (await done(a, key, 'CreateKey')).KeyMetadata;
  await makeRule(a, { actions: ['key.*.encrypt'], objects: ['*'], approvers: { users: ids(ada) }, window: 300 });
  const input = { KeyId, Plaintext: base64('hi') };
  assert.equal((await call(a, key, 'Encrypt', input)).__type, 'AccessDeniedException');
  await say(a, ada, await onlyPending(a));
  await done(a, key, 'Encrypt', input);
  await done(a, key, 'CreateAlias', { AliasName: 'alias/mine', TargetKeyId: KeyId });
  await done(a, key, 'Encrypt', { ...input, KeyId: 'alias/mine' });
});

test("KMIP's client gets Permission Denied, and is served once it is approved", async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const client = await KmipClient.make(a, 'kmip.*');
  const id = await client.aes();
  await makeRule(a, { actions: ['key.*.delete', 'key.*.export'], objects: ['*'], approvers: { users: ids(ada) } });
  assert.equal(await client.refused('Get', [uid(id)]), reasons.permissionDenied);
  const get = await onlyPending(a);
  assert.equal(await client.refused('Destroy', [uid(id)]), reasons.permissionDenied);
  const [destroy = ''] = (await pending(a)).filter((each) => each !== get);
  await say(a, ada, get);
  await client.did('Get', [uid(id)]);
  assert.equal(await client.refused('Get', [uid(id)]), reasons.permissionDenied, 'once');
  await say(a, ada, destroy);
  await client.did('Destroy', [uid(id)]);
  // A batch that is undone as a whole leaves the request all the same.
  const other = await client.aes();
  const undo = { header: [enumeration(tags.batchErrorContinuationOption, 3)] };
  const results = await client.batch(
    [
      { operation: 'Get Attributes', fields: [uid(other)] },
      { operation: 'Destroy', fields: [uid(other)] },
    ],
    undo,
  );
  assert.equal(results.at(-1)?.reason, reasons.permissionDenied);
  const asked = (await a.call('GET', '/approvals/requests?state=pending')).body.requests;
  assert.ok(
    asked.some(
      (each: { operation: string; object: { id: string } }) =>
        each.operation === 'kmip:Destroy' && each.object.id === other,
    ),
  );
});

test('a rule for the flags of KMIP covers its own objects', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await makeRule(a, { actions: ['kmip.destroy', 'kmip.create'], objects: ['*'], approvers: { users: ids(ada) } });
  const client = await KmipClient.make(a, 'kmip.*');
  await assert.rejects(client.aes());
  const id = await onlyPending(a);
  await say(a, ada, id);
  assert.ok(await client.aes());
});

test('a held request is done once the word is given, at another node too', async () => {
  const { a, b } = await twoNodes();
  const ada = await approver(a);
  const { name } = await makeRing(a);
  await makeRule(a, { objects: [name], approvers: { users: ids(ada) }, mode: 'hold' });
  const { key } = await a.keyWith('keyring.*.delete');
  const held = b.call('DELETE', `/ks/keyrings/${name}`, undefined, { key });
  let id: string | undefined;
  while (id === undefined) [id] = await pending(a);
  assert.equal((await say(a, ada, id)).status, 200);
  assert.equal((await held).status, 200);
});

test('a held KMIP operation is done once the word is given, and a denied one is refused', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const client = await KmipClient.make(a, 'kmip.*');
  const id = await client.aes();
  await makeRule(a, { actions: ['key.*.export'], objects: ['*'], approvers: { users: ids(ada) }, mode: 'hold' });
  for (const verdict of ['approve', 'deny']) {
    const held = client.ask('Get', [uid(id)]);
    let request: string | undefined;
    while (request === undefined) [request] = await pending(a);
    await say(a, ada, request, verdict);
    if (verdict === 'approve') assert.equal((await held).status, 0);
    else assert.deepEqual([(await held).reason, await pending(a)], [reasons.permissionDenied, []]);
  }
});

test('a request counted once is done once, however many nodes are asked at once', async () => {
  const { a, b } = await twoNodes();
  const ada = await approver(a);
  await makeRule(a, { actions: ['keyring.create'], objects: ['*'], approvers: { users: ids(ada) } });
  const { key } = await a.keyWith('keyring.create');
  const make = (at: Appliance) => at.call('POST', '/ks/keyrings', { name: 'pay' }, { key });
  await say(a, ada, waits(await make(a)));
  const answers = await Promise.all([make(a), make(b), make(a), make(b)]);
  assert.deepEqual(answers.filter(({ status }) => status === 200).length, 1);
});
