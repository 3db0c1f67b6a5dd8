// Uses of keys are as durable as their requests: no crash, restart or checkpoint loses an acknowledged one or adds one.
// They take bounded space however long a key is used, and are deleted with their ring.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { purgeExpired } from '../../src/core/keyrings.ts';
import { createEmbedded } from '../../src/store/file-journal.ts';
import type { Store, Tables } from '../../src/store/port.ts';
import { Session } from '../../src/store/session.ts';
import type { Page, Sql } from '../../src/store/sql.ts';
import { openState } from '../../src/store/state.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import type { KeyUseKind } from '../../src/store/tables/key-uses.ts';
import { migrate, tenantMigrations } from '../../src/store/tables/migrations.ts';
import type { RingKey } from '../../src/store/tables/ring-keys.ts';
import { openEmbedded } from '../support/embedded-store.ts';
import { type Prng, prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';
import { testStoreKeys } from '../support/store-keys.ts';
import { sqlWasm } from '../support/wasm.ts';
import { activityInput } from './contract.ts';

const dir = 'tenants/a';
const keys = testStoreKeys();
const day = 24 * 60 * 60 * 1000;
const now = Date.UTC(2026, 0, 2, 12);

const settings = (files: SimFiles, generator: Prng) => ({
  files,
  dir,
  keys,
  wasm: sqlWasm,
  random: (length: number) => generator.bytes(length),
  now: () => now,
  later: () => {},
  limits: { checkpointBytes: 20_000 },
});

function open(files: SimFiles, generator: Prng): Promise<Store<Tables>> {
  return openEmbedded({ ...settings(files, generator), migrations: tenantMigrations, tables: tenantTables });
}

async function newStore(generator: Prng) {
  const files = new SimFiles({ prng: generator });
  await createEmbedded({ files, dir, keys, random: (length) => generator.bytes(length), at: now });
  return { files, store: await open(files, generator) };
}

function addKeys({ rings, ringKeys }: Tables, ...ids: string[]): void {
  const made = { algorithm: 'aes256', kem: 'x25519', props: {}, createdAt: now } as const;
  const ring = { service: 'ks', name: 'r', displayName: 'r', publicKey: '', keyProps: {} } as const;
  rings.insert({ id: 'ring_1', ...ring, ...made, activeKey: 'key_1', maxEncryptCount: 9, updatedAt: now });
  for (const id of ids) ringKeys.insert({ id, ringId: 'ring_1', pair: 0, wrapped: '', iv: '', ...made });
}

const addRing = (store: Store<Tables>, ...ids: string[]) => store.transaction((tx) => addKeys(tx, ...ids));

const use = (store: Store<Tables>, keyId: string, kind: KeyUseKind, at: number, by = 'apik_1') =>
  store.transaction((tx) => {
    tx.keyUses.count(kind, keyId, { at, by });
    tx.record(activityInput(`act_${at}`));
  });

const usageOf = (store: Store<Tables>, at = now) =>
  store.transaction(({ ringKeys, keyUses }) => {
    const { items } = ringKeys.list('ring_1', { limit: 100 }, (key) => key);
    return keyUses.ofKeys(items, at);
  });

/** The two tables in a hold, as a backup notes them for a restore to check. */
async function rowsOf(store: Store<Tables>) {
  const hold = await store.hold(true);
  hold?.release();
  return [hold?.tables.key_uses, hold?.tables.key_days];
}

test('what is answered is counted after any crash, and what is not at most once', async () => {
  const base = prng(1);
  const made = await newStore(base);
  await addRing(made.store, 'key_1', 'key_2');
  await made.store.close();
  let crashed = 0;
  for (let crashAt = 1; crashAt < 120; crashAt++) {
    const generator = prng(crashAt);
    const disk = made.files.disk.afterCrash(prng(0));
    const files = new SimFiles({ prng: generator, disk, crashAt });
    const answered = { encrypt: 0, decrypt: 0 };
    const asked = { encrypt: 0, decrypt: 0 };
    let last = 0;
    try {
      const store = await open(files, generator);
      for (let i = 1; i <= 30; i++) {
        const kind = i % 3 === 0 ? 'decrypt' : 'encrypt';
        asked[kind]++;
        await use(store, 'key_1', kind, now + i, `apik_${i}`);
        answered[kind]++;
        last = i;
        if (i % 10 === 0) await store.checkpoint();
      }
      await store.close();
    } catch {
      assert.ok(files.crashed);
      crashed++;
    }
    const store = await open(files.restart({ prng: generator }), generator);
    const found = await usageOf(store);
    const [today] = found.get('key_1')?.days ?? [];
    for (const kind of ['encrypt', 'decrypt'] as const) {
      const counted = today?.[`${kind}s`] ?? 0;
      assert.ok(counted >= answered[kind] && counted <= asked[kind], `${crashAt}: ${counted} ${kind}s`);
    }
    const { lastEncrypt, lastDecrypt } = found.get('key_1') ?? {};
    const latest = Math.max(lastEncrypt?.at ?? now, lastDecrypt?.at ?? now) - now;
    assert.ok(latest === last || latest === last + 1, `${crashAt}: the last was ${last}, not ${latest}`);
    for (const each of [lastEncrypt, lastDecrypt]) if (each) assert.equal(each.by, `apik_${each.at - now}`);
    assert.deepEqual(found.get('key_2')?.days, []);
    await store.close();
  }
  assert.ok(crashed > 100, `${crashed} crashes`);
});

test('a key that is used for three years takes a hundred and two rows, and a backup finds as many as it noted', async () => {
  const generator = prng(2);
  const { files, store } = await newStore(generator);
  await addRing(store, 'key_1', 'key_2');
  await use(store, 'key_2', 'decrypt', now);
  await store.transaction(({ keyUses }) => {
    for (let i = 0; i < 1000; i++) {
      for (const kind of ['encrypt', 'decrypt'] as const) {
        for (let who = 0; who < 30; who++) {
          keyUses.count(kind, 'key_1', { at: now + i * day, by: `apik_${who}` });
        }
      }
    }
  });
  const told = await usageOf(store, now + 999 * day);
  assert.deepEqual(await rowsOf(store), [3, 101]);
  assert.deepEqual(await usageOf(store, now + 999 * day), told, 'whether they stand beside the tables or in them');
  await store.close();
  for (const restart of ['from the log', 'from a snapshot']) {
    const again = await open(files, generator);
    assert.deepEqual(await usageOf(again, now + 999 * day), told, restart);
    assert.deepEqual(await rowsOf(again), [3, 101]);
    await again.checkpoint();
    await again.close();
  }
  const { lastEncrypt, lastDecrypt, days = [] } = told.get('key_1') ?? {};
  assert.deepEqual([lastEncrypt, lastDecrypt], Array(2).fill({ at: now + 999 * day, by: 'apik_29' }));
  assert.equal(days.length, 100);
  for (const each of days) assert.deepEqual([each.encrypts, each.decrypts], [30, 30]);
  assert.deepEqual(told.get('key_2')?.lastDecrypt, { at: now, by: 'apik_1' });
});

test('what stands beside the tables stays little, however many keys are used on however many days', async () => {
  const state = await openState(sqlWasm);
  const texts = new Set<string>();
  const watched = (sql: Sql) => {
    const count: Sql['count'] = (text, ...rest) => {
      texts.add(text);
      return sql.count(text, ...rest);
    };
    return tenantTables({ ...sql, count });
  };
  const staging = { stage: () => '', stagedCount: 0, discardStaged: () => {}, commitStaged: () => {} };
  const session = new Session(state, watched, staging);
  migrate(state, session, tenantMigrations);
  const ids = Array.from({ length: 300 }, (_, i) => `key_${i}`);
  await session.run((tx) => addKeys(tx, ...ids));
  // 60,000 pairs of a key and a day.
  for (let i = 0; i < 100; i++) {
    for (let from = 0; from < ids.length; from += 100) {
      session.run(({ keyUses }) => {
        for (const id of ids.slice(from, from + 100)) {
          keyUses.count('encrypt', id, { at: now + i * day, by: 'apik_1' });
          keyUses.count('decrypt', id, { at: now + i * day, by: 'apik_2' });
        }
      });
    }
  }
  for (const text of texts) {
    const beside = state.statement(text).counts?.size ?? 0;
    assert.ok(beside > 0 && beside < 17_000, `${beside} of ${text}`);
  }
  session.run(({ ringKeys, keyUses }) => {
    let looked = 0;
    for (let after: number | undefined = 0; after !== undefined; ) {
      const part: Page<RingKey> = ringKeys.list('ring_1', { limit: 1000, after }, (key) => key);
      const usages = keyUses.ofKeys(part.items, now + 99 * day);
      looked += usages.size;
      for (const { days } of usages.values()) {
        assert.equal(days.length, 100);
        for (const { encrypts, decrypts } of days) assert.deepEqual([encrypts, decrypts], [1, 1]);
      }
      after = part.next;
    }
    assert.equal(looked, 300);
  });
  state.close();
});

test('uses of a key are known since it was made', async () => {
  const { store } = await newStore(prng(5));
  await addRing(store, 'key_1');
  assert.equal((await usageOf(store)).get('key_1')?.since, now);
  await store.close();
});

test('a ring that is erased takes its uses with it, also those that are counted in the same moment', async () => {
  const generator = prng(6);
  const { files, store } = await newStore(generator);
  const ids = Array.from({ length: 250 }, (_, i) => `key_${i}`);
  await addRing(store, ...ids);
  await store.transaction(({ keyUses }) => {
    for (const id of ids) for (let i = 0; i < 3; i++) keyUses.count('decrypt', id, { at: now + i * day, by: 'a' });
  });
  assert.deepEqual(await rowsOf(store), [250, 750]);
  await store.transaction(({ rings }) => rings.markDeleted('ring_1', now));
  const uses = ids.map((id) => use(store, id, 'encrypt', now + day));
  assert.equal(await purgeExpired(store, now + 40 * day), 1);
  await Promise.all(uses);
  await use(store, 'key_7', 'encrypt', now + day);
  assert.deepEqual(await rowsOf(store), [0, 0]);
  await store.close();
  const again = await open(files, generator);
  assert.deepEqual(await rowsOf(again), [0, 0]);
  await again.close();
});
