// The provider of OpenTofu and Terraform, called as they do it.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { dirname } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { test } from 'node:test';
import { unknown } from '../../src/cli/provider/values.ts';
import { message } from '../../src/client/protobuf.ts';
import { call, type Plain, pluginEnv, startTofu, type Tofu } from './opentofu.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const start = (d: ServedDesk, key?: string): Promise<Tofu> =>
  startTofu(d, { env: { ...d.network(key).env, KMS_SERVER: d.url } });

const pem = { type: 'pkcs8', format: 'pem' } as const;
const pair = () =>
  generateKeyPairSync('x25519', { privateKeyEncoding: pem, publicKeyEncoding: { type: 'spki', format: 'pem' } });

/** A resource that is found as it was made, and for which nothing is planned. */
async function settled(tofu: Tofu, type: string, config: Plain): Promise<Plain> {
  const state = await tofu.make(type, config);
  assert.deepEqual(await tofu.read(type, state), { state, problems: [] });
  assert.deepEqual(await tofu.plan(type, state, config), { state, replaced: [], problems: [] });
  return state;
}

test('an account: planned, made, found the same, changed, imported and removed', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const config = { name: 'billing', notes: 'nightly', props: { cost: { centre: 4711 }, tags: ['a', 1, null] } };
  const plan = await tofu.plan('kms_account', null, config);
  assert.deepEqual(plan, { state: { ...config, id: unknown }, replaced: [], problems: [] });
  const state = await settled(tofu, 'kms_account', config);
  assert.match(String(state.id), /^acct_/);
  assert.deepEqual(state, { ...config, id: state.id });
  const stored = await d.json('account show billing --json');
  assert.deepEqual(stored.props, { ...config.props, managedBy: 'opentofu' });

  // By hand.
  await d.json('account update billing --notes changed --json');
  const drifted = (await tofu.read('kms_account', state)).state ?? assert.fail();
  assert.deepEqual(drifted, { ...state, notes: 'changed' });
  assert.deepEqual(await tofu.make('kms_account', config, drifted), state);
  assert.equal((await d.json('account show billing --json')).notes, 'nightly');

  for (const id of ['billing', String(state.id)]) {
    const imported = await tofu.importOf('kms_account', id);
    assert.deepEqual(imported, { state: { id: state.id, name: 'billing', notes: null, props: null }, problems: [] });
    assert.deepEqual(await tofu.read('kms_account', imported.state ?? {}), { state, problems: [] });
  }
  assert.deepEqual(await tofu.data('kms_account', { name: 'billing' }), { state, problems: [] });

  assert.deepEqual(await tofu.plan('kms_account', state, null), { state: null, replaced: [], problems: [] });
  assert.deepEqual(await tofu.apply('kms_account', state, null, null), { state: null, problems: [] });
  assert.deepEqual(await tofu.read('kms_account', state), { state: null, problems: [] });
  assert.deepEqual(await tofu.apply('kms_account', state, null, null), { state: null, problems: [] });
  assert.equal((await tofu.importOf('kms_account', 'billing')).problems.length, 1);
  assert.equal((await tofu.data('kms_account', { name: 'billing' })).problems.length, 1);
  assert.equal(tofu.said(), '');
});

test('attributes that are not configured keep what the appliance has; those that are unknown stay unknown', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const fresh = await tofu.plan('kms_account', null, { name: unknown, notes: unknown });
  assert.deepEqual(fresh.state, { id: unknown, name: unknown, notes: unknown, props: unknown });
  const state = await settled(tofu, 'kms_account', { name: 'billing' });
  assert.deepEqual(state, { id: state.id, name: 'billing', notes: '', props: {} });
  const later = await tofu.plan('kms_account', state, { name: 'billing', notes: unknown });
  assert.deepEqual(later, { state: { ...state, notes: unknown }, replaced: [], problems: [] });
  const made = await tofu.apply('kms_account', state, later.state, { name: 'billing', notes: 'known' });
  assert.deepEqual(made, { state: { ...state, notes: 'known' }, problems: [] });
  const renamed = await tofu.plan('kms_account', state, { name: 'other' });
  assert.deepEqual(renamed.replaced, ['name']);
  assert.deepEqual((await tofu.plan('kms_account', state, { name: unknown })).replaced, ['name']);
});

test('keyrings: forms of keys that mean the same are kept, parts of a configuration too', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const { publicKey } = pair();
  const config = { name: 'Payroll', public_key: publicKey, config: { rotate_after: 7200 } };
  const state = await settled(tofu, 'kms_keyring', config);
  assert.deepEqual(
    { ...state, id: 'x', public_key: state.public_key === publicKey, config: (state.config as Plain).rotate_after },
    { id: 'x', name: 'Payroll', public_key: true, kem: 'x25519', props: {}, key_props: {}, config: 7200 },
  );
  const told = await d.json('keyring config payroll --json');
  assert.equal((told.config as Plain).rotateAfter, 7200);
  const next = { ...config, config: { rotate_after: 3600, offline_decrypt: true } };
  const changed = await tofu.make('kms_keyring', next, state);
  assert.deepEqual(await tofu.plan('kms_keyring', changed, next), { state: changed, replaced: [], problems: [] });
  const without = await tofu.plan('kms_keyring', null, { name: 'other' });
  assert.match(without.problems[0]?.message ?? '', /publicKey/);
});

test('managed keys: what cannot be changed makes another one, what can be does not', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const config = { name: 'unseal', aliases: ['b/two', 'a/one'], tags: { team: 'x' }, uses: ['encrypt', 'decrypt'] };
  const state = await settled(tofu, 'kms_managed_key', config);
  assert.equal(state.type, 'aes256-gcm');
  assert.deepEqual(state.tags, { team: 'x' });
  const changed = await tofu.make('kms_managed_key', { ...config, rotate_after: 86_400, aliases: ['b/two'] }, state);
  assert.deepEqual([changed.rotate_after, changed.aliases], [86_400, ['b/two']]);
  const another = await tofu.plan('kms_managed_key', changed, { ...config, type: 'aes128-gcm' });
  assert.deepEqual(another.replaced, ['type']);
  const back = await tofu.plan('kms_managed_key', changed, { ...config, exportable: true });
  assert.deepEqual(back.replaced, ['exportable']);
  assert.deepEqual((await tofu.apply('kms_managed_key', changed, null, null)).problems, []);
});
