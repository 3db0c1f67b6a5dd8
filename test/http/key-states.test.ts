// Every state of a managed key and of its version, with every use, through every dialect: what the table of states says
// is what happens, in each dialect's own words of refusal.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { awsIdOf } from '../../src/core/aws-names.ts';
import { type KeyState, keyStates, useProblem } from '../../src/model/key-states.ts';
import type { KeyType, KeyUse } from '../../src/model/key-types.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { type AccessKey, accessKey, base64, call } from '../support/aws-client.ts';

interface Asked {
  readonly path: string;
  readonly body: object;
}

interface AwsRef {
  readonly keyId: string;
  /** A ciphertext that AWS's clients keep. */
  readonly blob: string;
}

interface Work {
  readonly type: KeyType;
  readonly uses?: readonly KeyUse[];
  readonly exportable?: boolean;
  /** The native request; `made` is what the key made while it was active. */
  readonly native: (made: string) => Asked;
  /** The same in Vault's terms; absent where Vault has no such operation. */
  readonly vault?: (made: string) => Asked;
  /** The same in AWS's terms, with the operation as the path; absent where AWS KMS has none. */
  readonly aws?: (made: string, ref: AwsRef) => Asked;
  /** Makes what the request needs. */
  readonly before?: (a: Appliance, name: string) => Promise<string>;
}

const name = 'subject';
const none = async () => '';
const native = (operation: string, body: object): Asked => ({ path: `/managed-keys/${name}/${operation}`, body });
const vault = (path: string, body: object): Asked => ({ path: `/v1/transit/${path}`, body });
const aws = (operation: string, { keyId }: AwsRef, body: object): Asked => ({
  path: operation,
  body: { KeyId: keyId, ...body },
});
const bare = (text: string): string => text.replace(/^vault:v1:/, '');
const items = (item: object) => ({ items: [item] });

async function made(a: Appliance, operation: string, body: object, field: string): Promise<string> {
  const answer = await a.call('POST', `/managed-keys/${name}/${operation}`, body);
  assert.equal(answer.status, 200, answer.text);
  return answer.body[field] ?? answer.body.items[0][field];
}

/** The public key of the other side. */
const other = base64(
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'der', type: 'spki' }),
);

const works: Readonly<Record<KeyUse, Work>> = {
  encrypt: {
    type: 'aes256-gcm',
    native: () => native('encrypt', items({ plaintext: 'aGk=' })),
    vault: () => vault(`encrypt/${name}`, { plaintext: 'aGk=' }),
    aws: (_made, ref) => aws('Encrypt', ref, { Plaintext: 'aGk=' }),
  },
  decrypt: {
    type: 'aes256-gcm',
    before: (a) => made(a, 'encrypt', items({ plaintext: 'aGk=' }), 'ciphertext'),
    native: (ciphertext) => native('decrypt', items({ ciphertext })),
    vault: (ciphertext) => vault(`decrypt/${name}`, { ciphertext }),
    aws: (_made, ref) => aws('Decrypt', ref, { CiphertextBlob: ref.blob }),
  },
  sign: {
    type: 'ed25519',
    native: () => native('sign', { input: 'aGk=' }),
    vault: () => vault(`sign/${name}`, { input: 'aGk=' }),
    aws: (_made, ref) => aws('Sign', ref, { Message: 'aGk=', SigningAlgorithm: 'ED25519_SHA_512' }),
  },
  verify: {
    type: 'ed25519',
    before: (a) => made(a, 'sign', { input: 'aGk=' }, 'signature'),
    native: (signature) => native('verify', { input: 'aGk=', signature }),
    vault: (signature) => vault(`verify/${name}`, { input: 'aGk=', signature }),
    aws: (signature, ref) =>
      aws('Verify', ref, { Message: 'aGk=', SigningAlgorithm: 'ED25519_SHA_512', Signature: bare(signature) }),
  },
  mac: {
    type: 'hmac-sha256',
    native: () => native('mac', { input: 'aGk=' }),
    vault: () => vault(`hmac/${name}`, { input: 'aGk=' }),
    aws: (_made, ref) => aws('GenerateMac', ref, { Message: 'aGk=', MacAlgorithm: 'HMAC_SHA_256' }),
  },
  wrap: {
    type: 'aes256-gcm',
    uses: ['wrap', 'unwrap'],
    native: () => native('wrap', { plaintext: 'AAAAAAAAAAAAAAAAAAAAAA==' }),
  },
  unwrap: {
    type: 'aes256-gcm',
    uses: ['wrap', 'unwrap'],
    before: (a) => made(a, 'wrap', { plaintext: 'AAAAAAAAAAAAAAAAAAAAAA==' }, 'wrapped'),
    native: (wrapped) => native('unwrap', { wrapped }),
  },
  derive: {
    type: 'ecdsa-p256',
    uses: ['derive'],
    native: () => native('derive', { publicKey: other }),
    aws: (_made, ref) => aws('DeriveSharedSecret', ref, { KeyAgreementAlgorithm: 'ECDH', PublicKey: other }),
  },
  export: {
    type: 'aes256-gcm',
    exportable: true,
    native: () => native('export', { plaintext: true }),
  },
};

async function ask(a: Appliance, { path, body }: Asked): Promise<{ status: number; text: string }> {
  if (!path.startsWith('/v1/')) {
    const { status, text, body: got } = await a.call('POST', path, body);
    const problem: unknown = got.items?.[0]?.error;
    return typeof problem === 'string' ? { status: 400, text: problem } : { status, text };
  }
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const { outcome } = await a.app.handle({
    surface: 'vault',
    remoteAddress: '192.0.2.1',
    headers: { host: 'kms.test', 'x-vault-token': a.root.key },
    method: 'POST',
    path,
    search: '',
    body: { read: async () => bytes },
  });
  return { status: outcome.status, text: JSON.stringify(outcome.body) + String(outcome.content ?? '') };
}

/** Puts key and version into these states, past all moves. */
async function put(a: Appliance, states: { readonly key: KeyState; readonly version: KeyState }): Promise<void> {
  const store = a.tenants[0]?.handle.store ?? assert.fail();
  await store.transaction(({ managedKeys, keyVersions }) => {
    const key = managedKeys.byName(name) ?? managedKeys.deletedByName(name) ?? assert.fail();
    const isDeleted = states.key === 'pending-deletion';
    managedKeys.setState(key.id, {
      state: states.key,
      formerState: 'active',
      deletedAt: isDeleted ? a.world.now() : undefined,
      destroyAt: isDeleted ? a.world.now() + 1e9 : undefined,
      updatedAt: a.world.now(),
    });
    const version = keyVersions.get(key.id, 1) ?? assert.fail();
    keyVersions.setState(version.id, { state: states.version, formerState: undefined, deletedAt: undefined });
  });
}

async function awsRef(a: Appliance, access: AccessKey, key: AnyJson, use: KeyUse): Promise<AwsRef> {
  const keyId = awsIdOf({ id: key.id, name: key.name });
  if (use !== 'decrypt') return { keyId, blob: '' };
  return { keyId, blob: (await call(a, access, 'Encrypt', { KeyId: keyId, Plaintext: 'aGk=' })).CiphertextBlob };
}

/** The key's own state is told; a version that does nothing makes the ciphertext one that does not open. */
function awsRefusal(key: KeyState, use: KeyUse): RegExp {
  if (key === 'suspended') return /^DisabledException$/;
  const works =
    key === 'active' || (['decrypt', 'verify'].includes(use) && ['deactivated', 'compromised'].includes(key));
  return works && use === 'decrypt' ? /^InvalidCiphertextException$/ : /^KMSInvalidStateException$/;
}

const refusals =
  /\bis (?:not active yet|suspended|deactivated|compromised|pending deletion|destroyed)|no version of the key/;

for (const [use, work] of Object.entries(works) as [KeyUse, Work][]) {
  test(`${use}: what each state of key and version allows, natively, through Vault and as AWS KMS`, async () => {
    const a = await testAppliance();
    const { type, uses, exportable, before = none } = work;
    const created = await a.call('POST', '/managed-keys', {
      name,
      type,
      ...(uses && { uses }),
      ...(exportable && { exportable }),
    });
    assert.equal(created.status, 200, created.text);
    const given = await before(a, name);
    const { key: access } = await accessKey(a);
    const ref = await awsRef(a, access, created.body.key, use);
    let allowed = 0;
    for (const key of keyStates) {
      for (const version of keyStates) {
        await put(a, { key, version });
        const problem = useProblem(use, { key, version });
        if (problem === undefined) allowed++;
        for (const request of [work.native(given), work.vault?.(given)]) {
          if (!request) continue;
          const got: { status: number; text: string } = await ask(a, request);
          const where = `${request.path}: key ${key}, version ${version}: ${got.text}`;
          if (problem === undefined) assert.equal(got.status, 200, where);
          else {
            assert.equal(got.status, 400, where);
            // Vault keeps no key that was deleted: its clients look for these words.
            const isGone = request.path.startsWith('/v1/') && (key === 'pending-deletion' || key === 'destroyed');
            assert.match(got.text, isGone ? /\bkey not found"/ : refusals, where);
          }
        }
        if (!work.aws) continue;
        const { path, body } = work.aws(given, ref);
        const answer = await call(a, access, path, body);
        const where = `${path}: key ${key}, version ${version}: ${JSON.stringify(answer)}`;
        if (problem === undefined) assert.equal(answer.status, 200, where);
        else assert.match(answer.__type, awsRefusal(key, use), where);
      }
    }
    assert.ok(allowed > 0 && allowed < keyStates.length ** 2);
  });
}

test('what an inactive key still decrypts or verifies is told with a warning', async () => {
  const a = await testAppliance();
  await a.call('POST', '/managed-keys', { name });
  const ciphertext = await made(a, 'encrypt', items({ plaintext: 'aGk=' }), 'ciphertext');
  const asked = vault(`decrypt/${name}`, { ciphertext });
  assert.match((await ask(a, asked)).text, /"warnings":null/);
  await put(a, { key: 'active', version: 'compromised' });
  assert.match((await ask(a, asked)).text, /"warnings":\["this version of the key is compromised:/);
});

test('records of what came through a dialect say so', async () => {
  const a = await testAppliance();
  await a.call('POST', '/managed-keys', { name });
  await ask(a, vault(`encrypt/${name}`, { plaintext: 'aGk=' }));
  const [record] = await a.activity();
  const props: AnyJson = record?.props;
  assert.deepEqual([record?.action, props.dialect, props.keyVersion], ['key.encrypt', 'vault', 1]);
  const { body } = await a.call('GET', `/managed-keys/${name}/dependents`);
  assert.deepEqual([body.dependents[0].dialect, body.dependents[0].operation], ['vault', 'encrypt']);
});
