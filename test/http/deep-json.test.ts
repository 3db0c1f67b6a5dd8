// JSON that nests deeper than code can recurse: refused or ignored in every protocol, never a failure of the server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsOf, fieldTable, type OperationName } from '../../src/dialects/aws/field-table.ts';
import { type AnyJson, testAppliance } from '../support/appliance.ts';
import { around, json, post, signed } from '../support/aws-client.ts';
import { v1 } from '../support/vault-client.ts';
import { sampled, urlOf } from './samples.ts';

const objects = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const lists = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const deep = [objects(2000), lists(6000)];

/** The body with its fields, and one more, each replaced. */
function* bodies(body: AnyJson): Generator<string> {
  for (const value of deep) {
    for (const name of [...Object.keys(body), 'other']) {
      const rest = Object.entries({ ...body, [name]: 0 }).map(([key, each]) =>
        key === name ? `"${key}":${value}` : `"${key}":${JSON.stringify(each)}`,
      );
      yield `{${rest.join(',')}}`;
    }
    yield value;
  }
}

test('endpoints refuse or ignore what nests too deep', async () => {
  const a = await testAppliance();
  for (const { endpoint, make } of sampled) {
    if (!endpoint.body) continue;
    const { key, body, ...sample } = await make(a);
    for (const raw of bodies(body ?? {})) {
      const given = { raw, ...(key !== undefined && { key }) };
      const { status, text } = await a.call(endpoint.method, urlOf(endpoint, sample), undefined, given);
      assert.ok(status < 500, `${endpoint.id}: ${status} ${text.slice(0, 100)} ${raw.slice(0, 100)}`);
    }
  }
});

test('operations of AWS KMS refuse what nests too deep, each with one record', async () => {
  const { a, key } = await around();
  for (const name of Object.keys(fieldTable) as OperationName[]) {
    const headers = { 'content-type': json, 'x-amz-target': `TrentService.${name}` };
    for (const body of bodies(Object.fromEntries(Object.keys(fieldsOf(name)).map((field) => [field, 'x'])))) {
      const before = (await a.activity()).length;
      const answer = await post(a, signed(a, key, headers, body));
      assert.deepEqual(
        [answer.status, answer.body.__type],
        [400, 'SerializationException'],
        `${name} ${body.slice(0, 80)}`,
      );
      assert.equal((await a.activity()).length, before + 1, name);
    }
  }
});

test("Vault's clients are refused what nests too deep, or it is ignored", async () => {
  const a = await testAppliance();
  await v1(a, 'PUT', 'transit/keys/mine');
  for (const [path, body] of [
    ['transit/encrypt/mine', { plaintext: 'aGk=', batch_input: [] }],
    ['transit/decrypt/mine', { ciphertext: 'vault:v1:AAAA', context: 'x' }],
    ['transit/keys/new', { type: 'aes256-gcm96', derived: false }],
    ['transit/keys/mine/config', { deletion_allowed: true }],
    ['transit/keys/new/import', { ciphertext: 'x', type: 'aes256-gcm96', uses: [] }],
    ['secret/data/app', { data: { a: 1 }, options: { cas: 0 } }],
    ['secret/metadata/app', { custom_metadata: { a: 'b' } }],
    ['sys/capabilities-self', { paths: ['x'] }],
    ['auth/approle/login', { role_id: 'x', secret_id: 'y' }],
    ['auth/jwt/login', { role: 'x', jwt: 'y' }],
    ['auth/token/renew-self', { increment: 1 }],
  ] as const) {
    for (const raw of bodies(body)) {
      const { status, text } = await v1(a, 'POST', path, undefined, { raw });
      assert.ok(status < 500, `${path}: ${status} ${text.slice(0, 100)} ${raw.slice(0, 100)}`);
    }
  }
});
