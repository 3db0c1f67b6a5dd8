// Messages about bad input: the field first, what was expected, what came, never the value.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testAppliance } from '../support/appliance.ts';

const config = (count: unknown) => ({ ringname: 'x', config: { algos: { aes256: { maxEncryptCount: count } } } });
const count = 'config.algos.aes256.maxEncryptCount';

const table: readonly (readonly [method: string, path: string, body: unknown, message: string])[] = [
  ['POST', '/ks/encrypt', {}, 'ringname: is required'],
  ['POST', '/ks/encrypt', { ringname: '' }, 'ringname: must not be empty'],
  ['POST', '/ks/encrypt', { ringname: 5 }, 'ringname: expected a string, got a number'],
  ['POST', '/ks/encrypt', { ringname: null }, 'ringname: expected a string, got null'],
  ['POST', '/ks/encrypt', [], 'body: expected an object, got an array'],
  ['POST', '/ks/encrypt', 'x', 'body: expected an object, got a string'],
  [
    'POST',
    '/ks/encrypt',
    { ringname: 'x', asset: { parents: ['a', 1] } },
    'asset.parents.1: expected a string, got a number',
  ],
  ['POST', '/ks/keyrings', { name: 'x', algo: 'AES256' }, "algo: must be 'aes256'"],
  ['POST', '/ks/keyrings', { name: 'x', kem: 'X25519' }, "kem: must be 'x25519' or 'mlkem768-x25519'"],
  ['POST', '/asym/keyrings', { name: 'x', kem: 'xwing' }, "kem: must be 'x25519' or 'mlkem768-x25519'"],
  [
    'PUT',
    '/ks/config',
    { ringname: 'x', config: { publicKey: 5 } },
    'config.publicKey: expected a string, got a number',
  ],
  ['PUT', '/ks/config', { ringname: 'x', config: { replaces: 5 } }, 'config.replaces: expected a string, got a number'],
  ['POST', '/ks/keyrings', { name: 'x', props: [] }, 'props: expected an object'],
  ['PUT', '/ks/config', config(0), `${count}: must be at least 1`],
  ['PUT', '/ks/config', config(1.5), `${count}: must be an integer`],
  ['PUT', '/ks/config', config('9'), `${count}: expected a number, got a string`],
  ['PUT', '/auth/apikeyid', { apikeyid: 'x', op: 'add' }, "op: must be 'delete' or 'merge' or 'replace'"],
  ['GET', '/ks/config', undefined, 'ringname: is required'],
  ['GET', '/ks/keyrings?limit=x', undefined, 'limit: must be an integer of at least 1'],
];

for (const [method, path, body, message] of table) {
  test(`${method} ${path} ${JSON.stringify(body)}: ${message}`, async () => {
    const a = await testAppliance();
    const answer = await a.call(method, path, body);
    assert.equal(answer.status, 400);
    assert.equal(answer.body.message, message);
    const [field = '', problem] = message.split(': ');
    assert.deepEqual(answer.body.errors, { [field]: problem });
  });
}

test('every wrong field is told of, the first one in the message', async () => {
  const a = await testAppliance();
  const { body } = await a.call('PUT', '/auth/apikeyid', { op: 7, active: 'yes', flags: { x: 'no' } });
  assert.deepEqual(Object.keys(body.errors).sort(), ['active', 'apikeyid', 'flags', 'op']);
});
