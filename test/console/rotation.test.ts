// How close rings are to rotation, computed from real answers of an appliance.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../../src/client/client.ts';
import { nearRotation, rotationsOf, shareOf } from '../../src/console/overview/counts.ts';
import { idTime } from '../../src/console/text.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';

async function rotations(a: Appliance, apiKey: string) {
  const { keyrings } = await clientOf(a, apiKey).getOverview();
  return rotationsOf(keyrings ?? assert.fail());
}

function clientOf({ app }: Appliance, apiKey: string) {
  return createClient({ baseUrl: 'http://kms.test', apiKey, fetch: async (request) => app.fetch(request, {}) });
}

test('encrypts of the active key alone count, and the nearest ring comes first', async () => {
  const appliance = await testAppliance();
  const { call, root } = appliance;
  for (const [name, maxEncryptCount] of [
    ['Far', 100],
    ['near', 4],
    ['endless', undefined],
  ] as const) {
    await call('POST', '/ks/keyrings', { name });
    if (maxEncryptCount)
      await call('PUT', '/ks/config', { ringname: name, config: { algos: { aes256: { maxEncryptCount } } } });
  }
  const encrypt = async (ringname: string, times: number) => {
    for (let i = 0; i < times; i++) assert.equal((await call('POST', '/ks/encrypt', { ringname })).status, 200);
  };
  await encrypt('far', 5);
  appliance.advance(1000);
  await call('POST', '/ks/rotate', { ringname: 'far' });
  await encrypt('far', 2);
  await encrypt('near', 3);
  await encrypt('endless', 1);
  assert.equal((await call('POST', '/ks/encrypt', { ringname: 'near', asset: { assetId: 'asset_none' } })).status, 404);

  const { rings, isCut } = await rotations(appliance, root.key);
  assert.equal(isCut, false);
  assert.deepEqual(
    rings.map(({ ring, most, served }) => [ring, most, served]),
    [
      ['near', 4, 3],
      ['Far', 100, 2],
      ['endless', 2 ** 32, 1],
    ],
  );
  assert.deepEqual(rings.map(shareOf), [0.75, 0.02, 2 ** -32]);
  const near = (now: number, rotateAfter?: number) =>
    nearRotation(
      rings.map((ring) => ({ ...ring, since: 0, rotateAfter: ring.ring === 'Far' ? rotateAfter : undefined })),
      now,
    ).map(({ ring }) => ring);
  assert.deepEqual(near(0), ['near'], 'not those that were hardly used');
  assert.deepEqual(near(49_000, 100), ['near']);
  assert.deepEqual(near(60_000, 100), ['near', 'Far'], 'nor those that are young');
  assert.deepEqual(near(90_000, 100), ['Far', 'near']);
});

test('rings that may not be read are left out, the others need no activity', async () => {
  const appliance = await testAppliance();
  for (const name of ['open', 'closed']) await appliance.call('POST', '/ks/keyrings', { name });
  const config = { algos: { aes256: { maxEncryptCount: 5 } } };
  await appliance.call('PUT', '/ks/config', { ringname: 'open', config });
  const { key } = await appliance.keyWith('keyring.list', 'keyring.open.read');
  const { rings } = await rotations(appliance, key);
  assert.deepEqual(
    rings.map(({ ring, served }) => [ring, served]),
    [['open', 0]],
  );
});

test('the time of an id', () => {
  // The example in the ULID specification.
  assert.equal(idTime('key_01arz3ndektsv4rrffq69g5fav'), 1_469_922_850_259);
  for (const id of ['', 'key_', 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'key_81arz3ndektsv4rrffq69g5fav']) {
    assert.equal(idTime(id), undefined, id);
  }
});
