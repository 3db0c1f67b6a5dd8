// Rekeys of a tenant and of the appliance, under load: no request fails, everything that clients hold stays valid, and
// no file is left under an old key.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { addressSet } from '../../src/model/addresses.ts';
import { somePoint } from '../support/tang.ts';
import { type Place, place } from './tenant-appliance.ts';

const ok = async (answer: Promise<{ status: number; body: Record<string, unknown> }>) => {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};

function tenantDirOf(p: Place): string {
  const [dir = ''] = readdirSync(join(p.data, 'tenants'));
  return dir;
}

/** The key epochs that the files of the only tenant name. */
function epochsOnDisk(p: Place): number[] {
  const dir = join(p.data, 'tenants', tenantDirOf(p));
  const epochs = readdirSync(dir)
    .filter((name) => name.endsWith('.kms'))
    .map((name) => readFileSync(join(dir, name)).readUInt16BE(name.startsWith('activity') ? 10 : 12));
  return [...new Set(epochs)].sort();
}

async function epochsOf(p: Place) {
  const { seal } = await openSealFile(p.data, undefined);
  return seal.epochsOf(tenantDirOf(p)).map(({ epoch, retired }) => `${epoch}${retired ? ' retired' : ''}`);
}

/** Sends requests until told to stop; returns the statuses that were not 200. */
function load(p: Place, key: string): { stop(): Promise<{ sent: number; failed: number[] }> } {
  let going = true;
  let sent = 0;
  const failed: number[] = [];
  const client = async (): Promise<void> => {
    while (going) {
      const { status } = await p.at('kms.example', 'POST', '/ks/encrypt', key, { ringname: 'r' });
      sent++;
      if (status !== 200) failed.push(status);
    }
  };
  const clients = Promise.all(Array.from({ length: 8 }, client));
  return {
    async stop() {
      going = false;
      await clients;
      return { sent, failed };
    },
  };
}

test('rekey under load: what clients hold stays good, and no file is under the old key', async () => {
  await using p = await place();
  const { key } = p.made.apiKey;
  for (const name of ['r', 's']) await ok(p.local('POST', '/ks/keyrings', { name }));
  const before = await ok(p.local('POST', '/ks/encrypt', { ringname: 'r', asset: { data: { a: 1 } } }));
  const { body: page } = await p.local('GET', '/ks/keyrings?limit=1');
  const { body: head } = await p.local('GET', '/auth/activity/head');
  const traffic = load(p, key);
  for (let n = 0; n < 3; n++) {
    const result = await ok(p.local('POST', '/local/tenants/default/rekey', {}));
    assert.deepEqual(result, { tenant: 'default', epoch: n + 2, complete: true });
    assert.deepEqual(epochsOnDisk(p), [n + 2]);
    await ok(p.local('POST', '/local/master/rotate', {}));
  }
  const { sent, failed } = await traffic.stop();
  assert.deepEqual(failed, []);
  assert.ok(sent > 20, `${sent} requests`);
  assert.deepEqual(await epochsOf(p), ['1 retired', '2 retired', '3 retired', '4']);

  for (const round of ['open', 'reopened']) {
    const old = await ok(p.local('POST', '/ks/decrypt', { header: before.header }));
    assert.deepEqual((old.asset as { valid: boolean }).valid, true, round);
    await ok(p.local('GET', `/ks/hash/${before.hash}`));
    await ok(p.local('GET', `/ks/keyrings?limit=1&cursor=${page.pagination.nextCursor}`));
    const verdict = await ok(p.local('POST', '/local/activity/verify', { since: head }));
    assert.equal(verdict.valid, true);
    const fresh = await ok(p.local('POST', '/ks/encrypt', { ringname: 'r', asset: { data: {} } }));
    await ok(p.local('POST', '/ks/decrypt', { header: fresh.header }));
    assert.deepEqual(epochsOnDisk(p), [4]);
    await p.reopen();
  }
  const { body } = await p.local('POST', '/auth/search/activity', { action: 'system.tenant' });
  assert.equal(body.data.length, 3);
  assert.equal((await p.local('POST', '/local/tenants/nobody/rekey', {})).status, 404);
});

test('rings whose keys the appliance holds stay readable when the old tenant key is retired', async () => {
  await using p = await place();
  await ok(p.local('POST', '/managed-keys', { name: 't' }));
  await ok(p.local('POST', '/managed-keys/t/rotate'));
  const items = [{ plaintext: 'aGVsbG8=' }];
  const { items: made } = await ok(p.local('POST', '/managed-keys/t/encrypt', { items }));
  await ok(p.local('POST', '/local/tenants/default/rekey', {}));
  assert.deepEqual(await epochsOf(p), ['1 retired', '2']);
  const opened = async () => (await ok(p.local('POST', '/managed-keys/t/decrypt', { items: made }))).items;
  assert.deepEqual(await opened(), items);
  await p.reopen();
  assert.deepEqual(await opened(), items);
});

test('what was bound to a Tang key pair is recovered when the old tenant key is retired', async () => {
  await using p = await place();
  const { pair } = (await p.local('POST', '/tang/pairs')).body;
  await ok(p.local('POST', '/tang/pairs'));
  const recover = async () => {
    const url = `http://kms.local/rec/${pair.exchange}`;
    const request = new Request(url, { method: 'POST', body: JSON.stringify(somePoint) });
    const answer = await p.appliance.app.fetch(request, {
      surface: 'tang',
      tangClients: addressSet(['::1']),
      remoteAddress: '::1',
    });
    assert.equal(answer.status, 200);
    return answer.json();
  };
  const before = await recover();
  await ok(p.local('POST', '/local/tenants/default/rekey', {}));
  assert.deepEqual(await epochsOf(p), ['1 retired', '2']);
  assert.deepEqual(await recover(), before);
  await p.reopen();
  assert.deepEqual(await recover(), before);
});
