// The provider of OpenTofu and Terraform, called as they do it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unknown } from '../../src/cli/provider/values.ts';
import { pluginEnv, startTofu } from './opentofu.ts';
import { servedDesk } from './served.ts';

test('an account: planned, made, found the same, changed, imported and removed', async () => {
  await using d = await servedDesk();
  const { env } = d.network();
  await using tofu = await startTofu(d, { env: { ...env, KMS_SERVER: d.url } });
  const config = { name: 'billing', notes: 'nightly', props: { cost: { centre: 4711 }, tags: ['a', 1, null] } };
  const plan = await tofu.plan('kms_account', null, config);
  assert.deepEqual(plan, { state: { ...config, id: unknown }, replaced: [], problems: [] });
  const state = await tofu.make('kms_account', config);
  assert.match(String(state.id), /^acct_/);
  assert.deepEqual(state, { ...config, id: state.id });
  assert.deepEqual(await tofu.read('kms_account', state), { state, problems: [] });
  assert.deepEqual(await tofu.plan('kms_account', state, config), { state, replaced: [], problems: [] });
  assert.equal(tofu.said(), '');
});
