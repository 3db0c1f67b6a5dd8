// A page that is read in parts while the store changes: the rows it includes, and that it fails if it rests on a write
// that was undone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAccount, deleteAccount, listAccounts, updateAccount } from '../../src/core/accounts.ts';
import { KmsError } from '../../src/errors.ts';
import type { Store } from '../../src/store/port.ts';
import { readPage, refusal, testTenant } from '../support/context.ts';
import { prng } from '../support/prng.ts';

async function tenantOf(count: number) {
  const tenant = await testTenant();
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    ids.push((await tenant.call(createAccount, { uid: `u${n}`, props: { version: 0 } })).id);
  }
  return { tenant, ids };
}

test('a page has each row as it stood at one moment, none twice, and every one that stood all the time', async () => {
  const generator = prng(5);
  const { tenant, ids } = await tenantOf(700);
  const standing = new Set(ids);
  const versions = new Map(ids.map((id) => [id, 0]));
  let last = ids.length;
  const change = async (): Promise<void> => {
    for (let n = 0; n < 20; n++) {
      const id = ids[generator.int(ids.length)] ?? '';
      if (!versions.has(id)) continue;
      const kind = generator.int(3);
      if (kind === 0) {
        await tenant.call(deleteAccount, { account: { id } });
        standing.delete(id);
        versions.delete(id);
      } else if (kind === 1) {
        const version = (versions.get(id) ?? 0) + 1;
        await tenant.call(updateAccount, { account: { id }, notes: `${version}`, props: { version } });
        versions.set(id, version);
      } else await tenant.call(createAccount, { uid: `u${last++}`, props: { version: 0 } });
    }
  };
  let looks = 0;
  const store: Store = {
    ...tenant.store,
    async transaction(fn) {
      looks++;
      const result = await tenant.store.transaction(fn);
      await change();
      return result;
    },
  };
  const { items, next } = readPage(await listAccounts({ store, world: tenant.world }, { page: { limit: 10_000 } }));
  assert.ok(looks > 5 && next === undefined);
  assert.ok(standing.size < ids.length - 20 && last > ids.length + 20);
  const found = items.map(({ id }) => id);
  assert.equal(new Set(found).size, found.length);
  assert.deepEqual(found, found.toSorted());
  for (const id of standing) assert.ok(found.includes(id), id);
  // Notes and props changed in the same transaction, whichever is read first.
  for (const { notes, props } of items) assert.equal(Number(notes || 0), props.version);
});

test('pages of any size have all rows once, and a next one where there is more', async () => {
  const { tenant, ids } = await tenantOf(400);
  for (const limit of [1, 127, 128, 129, 256, 399, 400, 401]) {
    const found: string[] = [];
    let after: number | undefined;
    do {
      const page = after === undefined ? { limit } : { limit, after };
      const { items, next } = await tenant.list(listAccounts, { page });
      assert.ok(items.length === limit || (items.length < limit && next === undefined));
      found.push(...items.map(({ id }) => id));
      after = next;
    } while (after !== undefined);
    assert.deepEqual(found, ids, `${limit} a page`);
  }
});

test('a page of which a failed write took a part back is no page', async () => {
  const { tenant } = await tenantOf(400);
  for (const failing of [0, 1, 3]) {
    let looks = 0;
    const store: Store = {
      ...tenant.store,
      async transaction(fn) {
        const isFailing = looks++ === failing;
        const result = await tenant.store.transaction(fn);
        if (isFailing) throw new KmsError('unavailable', 'a write failed');
        return result;
      },
    };
    await refusal('unavailable', listAccounts({ store, world: tenant.world }, { page: { limit: 1000 } }));
    assert.ok(looks >= 4, 'what is read goes on while the disk is waited for');
  }
});
