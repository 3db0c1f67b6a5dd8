// Clients that try again: what each makes up at a try must not make another act of it, in any dialect or at the machine.
import assert from 'node:assert/strict';
import { publicEncrypt } from 'node:crypto';
import { test } from 'node:test';
import type { LocalHandlers } from '../../src/http/appliance-port.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { approver, ids, say, waits } from '../support/approvers.ts';
import { type AccessKey, accessKey, call, done } from '../support/aws-client.ts';
import { v1 } from '../support/vault-client.ts';
import { wrapped as wrappedForAws } from './aws-samples.ts';
import { makeRule, makeTransit, ok } from './samples.ts';

interface Try {
  /** Makes the things that are there before the rule. */
  readonly prepare?: (a: Appliance, key: AccessKey) => Promise<AnyJson>;
  /** Tells whether it was done. */
  readonly go: (a: Appliance, key: AccessKey, there: AnyJson) => Promise<boolean>;
}

const aws = (name: string, input: (there: AnyJson) => AnyJson, made: AnyJson = {}): Try => ({
  prepare: async (a, key) => (await done(a, key, 'CreateKey', made)).KeyMetadata,
  go: async (a, key, there) => (await call(a, key, name, input(there))).__type === undefined,
});
const newKey = (input: AnyJson): Try => ({
  go: async (a, key) => (await call(a, key, 'CreateKey', input)).__type === undefined,
});
const vault = (path: string | ((there: AnyJson) => string), body: AnyJson, prepare?: Try['prepare']): Try => ({
  ...(prepare && { prepare }),
  go: async (a, _key, there) => (await v1(a, 'PUT', typeof path === 'string' ? path : path(there), body)).status < 300,
});

/** The key wrapped to the wrapping key, in another way each time. */
async function wrappedAnew(a: Appliance, key = new Uint8Array(32).fill(7)): Promise<string> {
  const { publicKey } = await ok(a.call('GET', '/managed-keys/wrapping-key'));
  return publicEncrypt({ key: publicKey, oaepHash: 'sha256' }, key).toString('base64');
}

const tries: Readonly<Record<string, Try>> = {
  'a secret at a new path': vault('secret/data/app/new', { data: { a: 'b' } }),
  'a secret at a known path': vault('secret/data/app/new', { data: { a: 'c' } }, (a) =>
    v1(a, 'PUT', 'secret/data/app/new', { data: { a: 'b' } }),
  ),
  'a transit key': vault('transit/keys/newkey', { type: 'aes256-gcm96' }),
  rotating: vault(
    ({ name }) => `transit/keys/${name}/rotate`,
    {},
    (a) => makeTransit(a),
  ),
  CreateKey: newKey({}),
  'CreateKey with fields': newKey({ Description: 'pay', KeySpec: 'RSA_2048', KeyUsage: 'SIGN_VERIFY' }),
  'an imported key': {
    go: async (a) => {
      const body = { wrapped: await wrappedAnew(a), type: 'aes256-gcm' };
      return (await a.call('POST', '/managed-keys/brought/import', body)).status === 200;
    },
  },
  'a new version of an imported key': {
    prepare: async (a) => {
      const body = { wrapped: await wrappedAnew(a), type: 'aes256-gcm' };
      return ok(a.call('POST', '/managed-keys/brought/import', body));
    },
    go: async (a) => {
      const body = { wrapped: await wrappedAnew(a, new Uint8Array(32).fill(8)), isNewVersion: true };
      return (await a.call('POST', '/managed-keys/brought/import', body)).status === 200;
    },
  },
  "an imported key in Vault's transit engine": {
    go: async (a) => {
      const { status } = await v1(a, 'PUT', 'transit/keys/brought/import', { ciphertext: await wrappedAnew(a) });
      return status === 204;
    },
  },
  ImportKeyMaterial: {
    prepare: async (a, key) => (await done(a, key, 'CreateKey', { Origin: 'EXTERNAL' })).KeyMetadata,
    go: async (a, key, external) => {
      const material = await wrappedForAws({ a, key, keys: { external } });
      return (await call(a, key, 'ImportKeyMaterial', material)).__type === undefined;
    },
  },
  CreateAlias: aws('CreateAlias', ({ KeyId }) => ({ AliasName: 'alias/x', TargetKeyId: KeyId })),
  ScheduleKeyDeletion: aws('ScheduleKeyDeletion', ({ KeyId }) => ({ KeyId })),
  GenerateDataKey: aws('GenerateDataKey', ({ KeyId }) => ({ KeyId, KeySpec: 'AES_256' })),
};

for (const [name, { prepare, go }] of Object.entries(tries)) {
  test(`what is approved is done at the next try: ${name}`, async () => {
    const a = await testAppliance();
    const ada = await approver(a);
    const { key } = await accessKey(a);
    const there = await prepare?.(a, key);
    await makeRule(a, { actions: ['key.*', 'keyring.*'], objects: ['*'], approvers: { users: ids(ada) } });
    // A client of two acts asks twice.
    for (let asked = 0; !(await go(a, key, there)); asked++) {
      const { requests } = (await a.call('GET', '/approvals/requests?state=pending')).body;
      assert.deepEqual([requests.length, asked < 2], [1, true], JSON.stringify(requests));
      await say(a, ada, requests[0].id);
    }
  });
}

test('another key to import is another request, and none is shown', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  await makeRule(a, { actions: ['key.*'], objects: ['*'], approvers: { users: ids(ada) } });
  const send = async (byte: number) => {
    const wrapped = await wrappedAnew(a, new Uint8Array(32).fill(byte));
    return a.call('POST', '/managed-keys/brought/import', { wrapped, type: 'aes256-gcm' });
  };
  const id = waits(await send(7));
  assert.equal(waits(await send(7)), id);
  assert.notEqual(waits(await send(8)), id);
  const { shown } = (await a.call('GET', `/approvals/requests/${id}`)).body;
  assert.deepEqual(Object.keys(shown.body.wrapped), ['hidden']);
});

test('each key of AWS is asked for on its own', async () => {
  const a = await testAppliance();
  const ada = await approver(a);
  const { key } = await accessKey(a);
  await makeRule(a, { actions: ['key.create'], objects: ['*'], approvers: { users: ids(ada) } });
  const pending = async () => (await a.call('GET', '/approvals/requests?state=pending')).body.requests;
  await call(a, key, 'CreateKey', { Description: 'one' });
  await call(a, key, 'CreateKey', { Description: 'two' });
  await call(a, key, 'CreateKey', { Description: 'one' });
  const both = await pending();
  assert.equal(both.length, 2);
  for (const { id } of both) await say(a, ada, id);
  const { KeyId } = (await done(a, key, 'CreateKey', { Description: 'one' })).KeyMetadata;
  assert.ok(both.some(({ shown }: AnyJson) => shown.body.name === KeyId));
  assert.equal((await call(a, key, 'CreateKey', { Description: 'one' })).__type, 'AccessDeniedException');
  await done(a, key, 'CreateKey', { Description: 'two' });
});

test('a new custodian counts by its kind and lasting parameters, not by the keys of that try', async () => {
  const called: string[] = [];
  const local = { key: null, env: { local: true } };
  const addCustodian = async () => void called.push('added');
  // Cast: what it answers is not looked at.
  const a = await testAppliance({ local: { addCustodian } as unknown as LocalHandlers });
  const ada = await approver(a);
  await makeRule(a, { actions: ['system.master'], objects: ['*'], approvers: { users: ids(ada) } });
  let tried = 0;
  const add = (kind: string, params: object) => {
    const [publicKey, master, proof] = [++tried, 'master', tried].map(String);
    return a.call('POST', '/local/master/custodians', { kind, params, publicKey, master, proof }, local);
  };
  const kinds: readonly [string, () => object][] = [
    ['recovery-kit', () => ({ made: `at ${tried}` })],
    ['passphrase', () => ({ kdf: 'argon2id', m: 8, t: 1, p: 1, salt: `salt ${tried}` })],
    ['shares', () => ({ set: `${tried}`, threshold: 2, count: 3 })],
  ];
  for (const [kind, params] of kinds) {
    const id = waits(await add(kind, params()));
    assert.equal(waits(await add(kind, params())), id);
    await say(a, ada, id);
    const { shown } = (await a.call('GET', `/approvals/requests/${id}`)).body;
    assert.deepEqual(Object.keys(shown.body).sort(), ['kind', 'params']);
    if (kind === 'shares') waits(await add(kind, { ...params(), threshold: 1 }));
    assert.equal((await add(kind, params())).status, 200);
    waits(await add(kind, params()));
  }
  assert.equal(called.length, kinds.length);
});
