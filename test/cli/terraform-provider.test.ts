// The provider of OpenTofu and Terraform, called as they do it.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { unknown } from '../../src/cli/provider/values.ts';
import { message } from '../../src/client/protobuf.ts';
import { person } from '../http/samples.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { desk } from './kms.ts';
import { call, type Plain, pluginEnv, settled, startTofu, type Tofu } from './opentofu.ts';
import { type ServedDesk, servedDesk } from './served.ts';
import { serving } from './serving.ts';

const start = (d: ServedDesk, key?: string): Promise<Tofu> =>
  startTofu(d, { env: { ...d.network(key).env, KMS_SERVER: d.url } });

const pem = { type: 'pkcs8', format: 'pem' } as const;
const pair = () =>
  generateKeyPairSync('x25519', { privateKeyEncoding: pem, publicKeyEncoding: { type: 'spki', format: 'pem' } });

test('an account: planned, made, found the same, changed, imported and removed', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const odd = JSON.parse('{"__proto__": {"__proto__": 1}, "constructor": "x"}');
  const config = { name: 'billing', notes: 'nightly', props: { ...odd, tags: ['a', 1, null] } };
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
  const config = {
    name: 'unseal',
    aliases: ['b/two', 'a/one'],
    tags: { team: 'x' },
    uses: ['encrypt', 'decrypt'],
    deletion_allowed: true,
  };
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
  // Its aliases are free again, so that another can have them.
  const next = await settled(tofu, 'kms_managed_key', { ...config, type: 'aes128-gcm' });
  assert.deepEqual(next.aliases, config.aliases);
});

const trust = {
  kind: 'jwt',
  name: 'forge',
  issuer: 'https://forge.example.org',
  audience: ['kms'],
  subject: 'repo:acme/payroll:*',
  claims: '{"environment":"prod"}',
};

test('API keys: without a secret, with proofs, which are found and mended', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  await d.json('account create billing --json');
  await d.json('key create unseal --json');
  const config = {
    name: 'ci',
    account_id: 'billing',
    secret: false,
    flags: { 'key.unseal.encrypt': true },
    allowed_addresses: ['192.0.2.0/24', '127.0.0.1'],
    proofs: [trust],
  };
  const state = await settled(tofu, 'kms_apikey', config);
  assert.deepEqual([state.secrets, state.wrapped_secrets, state.active], [null, null, true]);
  const { proofs } = state as { proofs: readonly Plain[] };
  assert.equal(proofs[0]?.jwks_url, null);

  const [proof] = (await d.json<{ proofs: readonly Plain[] }>(`apikey proof list ${state.id} --json`)).proofs;
  await d.json(`apikey proof remove ${state.id} ${proof?.id} --yes --json`);
  const drifted = (await tofu.read('kms_apikey', state)).state ?? assert.fail();
  assert.deepEqual(drifted.proofs, []);
  assert.deepEqual((await tofu.make('kms_apikey', config, drifted)).proofs, state.proofs);

  const imported = (await tofu.importOf('kms_apikey', String(state.id))).state ?? assert.fail();
  const read = (await tofu.read('kms_apikey', imported)).state ?? assert.fail();
  assert.deepEqual(read.account_id, 'billing');
  const [known] = read.proofs as readonly Plain[];
  assert.deepEqual([known?.audience, known?.claims, known?.subject], [['kms'], trust.claims, trust.subject]);
  const wrong = await tofu.plan('kms_apikey', state, { ...config, allowed_addresses: ['nowhere'] });
  assert.deepEqual(wrong.replaced, []);
  assert.deepEqual(wrong.problems[0]?.path, ['allowed_addresses']);
});

test('a proof of an API key that another place made', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  await d.json('account create billing --json');
  const { keyid } = await d.json<{ keyid: string }>('apikey create --account billing --json');
  const config = { keyid, ...trust };
  const state = await settled(tofu, 'kms_apikey_proof', config);
  assert.deepEqual([state.active, state.claims, state.secrets], [true, trust.claims, null]);
  const off = await tofu.make('kms_apikey_proof', { ...config, active: false }, state);
  assert.deepEqual([off.id, off.active], [state.id, false]);
  const other = await tofu.plan('kms_apikey_proof', state, { ...config, subject: 'repo:acme/other:*' });
  assert.deepEqual(other.replaced, ['subject']);
  const imported = (await tofu.importOf('kms_apikey_proof', `${keyid}/${state.id}`)).state ?? assert.fail();
  const read = (await tofu.read('kms_apikey_proof', imported)).state ?? assert.fail();
  assert.deepEqual([read.issuer, read.subject, read.claims], [trust.issuer, trust.subject, trust.claims]);
  assert.equal((await tofu.importOf('kms_apikey_proof', keyid)).problems.length, 1);

  const access = { keyid, kind: 'aws', name: 'backup', keep_secrets: true };
  assert.match((await tofu.validate('kms_apikey_proof', { ...access, keep_secrets: null }))[0]?.message ?? '', /once/);
  const made = await settled(tofu, 'kms_apikey_proof', access);
  assert.match(String((made.secrets as Plain)['backup.aws']), /^AWS_ACCESS_KEY_ID=\S+\nAWS_SECRET_ACCESS_KEY=\S+$/);
  assert.deepEqual(
    (await tofu.validate('kms_apikey_proof', { ...config, days: 3 })).map(({ path }) => path),
    [['days']],
  );
  assert.deepEqual((await tofu.apply('kms_apikey_proof', state, null, null)).problems, []);
  assert.deepEqual((await tofu.read('kms_apikey_proof', state)).state, null);
  assert.deepEqual((await tofu.apply('kms_apikey_proof', state, null, null)).problems, []);
});

test('a proof whose certificate is renewed stays the same one, and one that has ended holds nothing up', async () => {
  await using d = await servedDesk();
  d.appliance.advance(Date.now() - d.appliance.world.now());
  await using tofu = await start(d);
  await tofu.make('kms_account', { name: 'billing' });
  const apikey = { name: 'batch', account_id: 'billing', secret: false };
  const { id: keyid } = await tofu.make('kms_apikey', apikey);
  const now = Date.now();
  const day = 86_400_000;
  const first = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + day });
  const { pem: renewed } = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + 9 * day, keys: first.keys });
  const { pem: other } = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + 9 * day });
  const { pem: ended } = await TestCertificate.authority(now - 9 * day, 'CN=ca', { notAfter: now - day });
  const config = { keyid, kind: 'certificate', name: 'ci', san: 'dns:a.example.org', ca: first.pem };
  const state = await settled(tofu, 'kms_apikey_proof', config);

  const plan = await tofu.plan('kms_apikey_proof', state, { ...config, ca: renewed });
  assert.deepEqual([plan.replaced, plan.problems], [[], []]);
  const after = await tofu.make('kms_apikey_proof', { ...config, ca: renewed }, state);
  assert.equal(after.id, state.id);
  const { proofs } = await d.json<{ proofs: readonly Plain[] }>(`apikey proof list ${keyid} --json`);
  assert.deepEqual(
    proofs.map(({ id, notAfter }) => [id, Date.parse(String(notAfter)) > now + 8 * day]),
    [[state.id, true]],
  );
  assert.deepEqual((await tofu.plan('kms_apikey_proof', after, { ...config, ca: other })).replaced, ['ca']);

  // A second resource for the same would renew the first, and take it along when it goes.
  const beside = { ...config, name: 'ci2', ca: renewed };
  const second = await tofu.apply(
    'kms_apikey_proof',
    null,
    (await tofu.plan('kms_apikey_proof', null, beside)).state,
    beside,
  );
  assert.match(second.problems[0]?.message ?? '', /has this proof already: import it as apik_\S+\/proof_/);
  assert.equal(second.state, null);

  const old = { ...config, ca: ended };
  assert.deepEqual(await tofu.validate('kms_apikey_proof', old), []);
  assert.match(JSON.stringify((await tofu.plan('kms_apikey_proof', null, old)).problems), /ca: ended at/);
  const kept = { ...after, ca: ended };
  assert.deepEqual((await tofu.plan('kms_apikey_proof', kept, old)).problems, []);
});

test('secrets: refused without a place, encrypted to a keyring, in clear where the configuration says so', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const { publicKey, privateKey } = pair();
  await tofu.make('kms_keyring', { name: 'ops', public_key: publicKey });
  await tofu.make('kms_account', { name: 'billing' });
  const config = { name: 'batch', account_id: 'billing', flags: {} };
  const refused = await tofu.plan('kms_apikey', null, config);
  assert.match(refused.problems[0]?.message ?? '', /secret once/);
  const forced = await tofu.apply('kms_apikey', null, { ...config, id: unknown }, config);
  assert.equal(forced.problems.length, 1);
  assert.equal(forced.state, null);
  assert.equal((await d.json<{ data: readonly Plain[] }>('apikey list --json')).data.length, 1);

  const wrapped = await settled(tofu, 'kms_apikey', { ...config, secrets_to: 'ops' });
  assert.equal(wrapped.secrets, null);
  await writeFile(d.path('ops.key'), privateKey, { mode: 0o600 });
  const { apikey: file } = wrapped.wrapped_secrets as Plain;
  await writeFile(d.path('secret.kms'), Buffer.from(String(file), 'base64'));
  const opened = await d.kms(['decrypt', '--private-key', d.path('ops.key'), d.path('secret.kms')]);
  assert.match(opened.stdout, /^kms_[0-9A-Za-z]{49}\n$/);
  assert.equal(tofu.said().includes(opened.stdout.trim()), false);

  const user = { name: 'ada', email: 'ada@example.org', first_name: 'Ada', last_name: 'L', keep_secrets: true };
  const invited = await settled(tofu, 'kms_user', user);
  assert.match(String((invited.secrets as Plain).invite), /invite\?token=\S+$/);
  const renamed = { ...user, last_name: 'Lovelace' };
  const plan = await tofu.plan('kms_user', invited, renamed);
  assert.deepEqual(plan.state, { ...invited, last_name: 'Lovelace' });
  const changed = await tofu.make('kms_user', renamed, invited);
  assert.deepEqual(changed.secrets, invited.secrets);
});

test('a failed creation leaves nothing; a taken name is not taken over; an unfinished object is made again', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  await d.json('account create billing --json');
  const plan = await tofu.plan('kms_account', null, { name: 'billing' });
  const taken = await tofu.apply('kms_account', null, plan.state, { name: 'billing' });
  assert.equal(taken.state, null);
  assert.match(taken.problems[0]?.message ?? '', /billing already; import it/);

  const config = { name: 'batch', account_id: 'billing', secrets_to: 'no-such-ring' };
  const failed = await tofu.apply('kms_apikey', null, (await tofu.plan('kms_apikey', null, config)).state, config);
  assert.equal(failed.state, null);
  assert.match(failed.problems[0]?.message ?? '', /removed again/);
  assert.equal((await d.json<{ data: readonly Plain[] }>('apikey list --json')).data.length, 1);

  const { accountId } =
    (await d.json<{ data: readonly { references: { accountId: string } }[] }>('apikey list --json')).data[0]
      ?.references ?? assert.fail();
  assert.match(accountId, /^acct_/);
  const broken = await tofu.apply('kms_account', taken.state, null, { name: 'billing' });
  assert.deepEqual(broken, { state: null, problems: [] });
});

test('what is wrong is told with its attribute, also what the appliance refuses', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const problems = await tofu.validate('kms_managed_key', { name: 'x', type: 'des', rotate_after: 1, tags: unknown });
  assert.deepEqual(problems.map(({ path }) => path.join('.')).sort(), ['rotate_after', 'type']);
  const [unnamable] = await tofu.validate('kms_managed_key', { name: 'no name' });
  assert.deepEqual(unnamable?.path, ['name']);
  assert.deepEqual(await tofu.validate('kms_account', { name: unknown, notes: unknown }), []);
  assert.deepEqual(await tofu.validate('kms_account', { name: 'a', props: { deep: unknown } }), []);
  const user = { name: 'ada', email: 'ada@example.org', first_name: 'Ada', last_name: 'L', keep_secrets: true };
  await tofu.make('kms_user', user);
  const again = { ...user, name: 'other' };
  const refused = await tofu.apply('kms_user', null, (await tofu.plan('kms_user', null, again)).state, again);
  assert.deepEqual(refused.problems[0]?.path, ['email']);
});

test('the mark is the setting of the provider, and has the form of one', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const problems = await tofu.validate('kms_account', { name: 'a', props: { managedBy: 'me' } });
  assert.match(JSON.stringify(problems), /props\.managedBy: is the mark/);
  const config = { name: 'a' };
  for (const mark of ['', 'x (unfinished)']) {
    await tofu.configure({ managed_by: mark });
    const refused = await tofu.plan('kms_account', null, config);
    assert.match(JSON.stringify(refused.problems), /managed_by of the provider: expected a name/);
  }
});

test('an API key without the flags is refused by the appliance, and an appliance that is away is named', async () => {
  await using d = await servedDesk();
  await d.json('account create other --json');
  const weak = await d.json<{ key: string }>('apikey create --account other --flag account.read --json');
  await using tofu = await start(d, weak.key);
  const made = await tofu.apply('kms_account', null, { name: 'x', id: unknown }, { name: 'x' });
  assert.match(made.problems[0]?.message ?? '', /account\.create/);
  await using away = await startTofu(d, { env: { KMS_SERVER: 'http://127.0.0.1:9', KMS_API_KEY: weak.key } });
  assert.match((await away.read('kms_account', { id: 'a', name: 'x' })).problems[0]?.message ?? '', /127\.0\.0\.1:9/);
  await using unnamed = await startTofu(d);
  assert.match(
    (await unnamed.read('kms_account', { id: 'a', name: 'x' })).problems[0]?.message ?? '',
    /which appliance/,
  );
});

test('rules of approvals: a window is a word or a number, users are sets of names', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const { username } = (await person(d.appliance, { 'approval.give': true })).user;
  const config = {
    name: 'deletions',
    actions: ['key.*.delete'],
    approvers: { users: [username], flag: null },
    approvals_needed: 1,
  };
  for (const window of ['once', 3600]) await settled(tofu, 'kms_rule', { ...config, name: `r${window}`, window });
  const held = {
    name: 'held',
    actions: ['key.*.export', 'apikey.create'],
    approvers: { flag: 'approval.give', users: null },
    mode: 'ask',
  };
  const state = await settled(tofu, 'kms_rule', held);
  assert.equal(state.window, 'once');
  assert.equal(state.approvals_needed, 1);
  const { username: second } = (await person(d.appliance, { 'approval.give': true })).user;
  const pair = { ...config, name: 'pair', approvers: { users: [username, second], flag: null }, approvals_needed: 2 };
  await settled(tofu, 'kms_rule', pair);
  assert.equal((await d.json('approval rule show pair --json')).count, 2);
  assert.deepEqual((await tofu.validate('kms_rule', { ...pair, approvals_needed: 0 }))[0]?.path, ['approvals_needed']);
  const { problems } = await tofu.apply('kms_rule', state, null, null);
  assert.match(JSON.stringify(problems), /appr_[0-9a-z]{26}/);
});

test('what brings a secret is made in one request: a rule for changes holds up none of it', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const { username } = (await person(d.appliance, { 'approval.give': true })).user;
  await tofu.make('kms_account', { name: 'billing' });
  const actions = ['apikey.update', 'user.update'];
  await tofu.make('kms_rule', { name: 'changes', actions, approvers: { users: [username], flag: null } });
  await settled(tofu, 'kms_apikey', { name: 'batch', account_id: 'billing', keep_secrets: true });
  const names = { first_name: 'Ada', last_name: 'Lovelace' };
  await settled(tofu, 'kms_user', { name: 'ada', email: 'ada@example.org', ...names, keep_secrets: true });
});

test('the appliance of this machine, with limits of tenants; settings of the provider', async () => {
  await using d = await desk();
  const { apiKey } = await d.json<{ apiKey: { key: string } }>('init --json');
  const server = await serving(d);
  await using _stopped = { [Symbol.asyncDispose]: async () => void (await server.stop()) };
  await using tofu = await startTofu(d, { env: { KMS_DATA: d.path('kms-data') } });
  assert.deepEqual(await tofu.configure({ managed_by: 'infra' }), []);
  const state = await settled(tofu, 'kms_tenant_limits', { name: 'default', keyrings: 7 });
  assert.deepEqual([state.keyrings, state.users], [7, null]);
  const lifted = await settled(tofu, 'kms_tenant_limits', { name: 'default', keyrings: -1, users: -1 });
  assert.equal((await tofu.data('kms_tenant_limits', { name: 'default' })).state?.keyrings, null);
  assert.deepEqual((await tofu.make('kms_tenant_limits', { name: 'default', keyrings: 7 }, lifted)).keyrings, 7);
  const unknownTenant = await tofu.plan('kms_tenant_limits', null, { name: 'other', keyrings: 1 });
  const made = await tofu.apply('kms_tenant_limits', null, unknownTenant.state, { name: 'other', keyrings: 1 });
  assert.match(made.problems[0]?.message ?? '', /no limits of the tenant other/);
  assert.deepEqual((await tofu.apply('kms_tenant_limits', state, null, null)).problems, []);
  await tofu.make('kms_account', { name: 'billing' });
  const { props } = await d.json<{ props: Plain }>('account show billing --json');
  assert.deepEqual(props, { managedBy: 'infra' });

  await using other = await startTofu(d);
  await writeFile(d.path('key'), apiKey.key, { mode: 0o600 });
  assert.deepEqual(await other.configure({ server: server.url, api_key_file: d.path('key') }), []);
  assert.equal((await other.data('kms_account', { name: 'billing' })).state?.name, 'billing');
  const limited = await other.plan('kms_tenant_limits', null, { name: 'default', keyrings: 1 });
  assert.match(limited.problems[0]?.message ?? '', /administrator at the machine/);
});

test('states of OpenTofu are read, with what later versions may add or lack', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const props = { value: { a: [1, null] }, type: ['object', { a: ['tuple', ['number', 'dynamic']] }] };
  const json = JSON.stringify({ id: 'acct_1', name: 'x', notes: null, props, gone: 1 });
  const state = { id: 'acct_1', name: 'x', notes: null, props: { a: [1, null] } };
  assert.deepEqual(await tofu.upgrade('kms_account', json), { state, problems: [] });
  assert.equal((await tofu.upgrade('kms_account', '{')).problems.length, 1);
  assert.equal((await tofu.upgrade('kms_account', '{"name": [1]}')).problems.length, 1);
});

test('the handshake: a private socket, a certificate, and nothing but the line on stdout', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const [core, protocol, network, path = '', kind, der = ''] = tofu.handshake;
  assert.deepEqual([core, protocol, network, kind], ['1', '6', 'unix', 'grpc']);
  assert.match(der, /^[A-Za-z0-9+/]{300,}$/);
  assert.equal((await stat(dirname(path))).mode & 0o777, 0o700);
  assert.equal((await stat(path)).mode & 0o777, 0o600);

  const health = await tofu.call('/grpc.health.v1.Health/Check', message({ 1: 'plugin' }));
  assert.equal(health.number(1), 1);
  await assert.rejects(tofu.call('/grpc.health.v1.Health/Check', message({ 1: 'other' })), /^Error: 5: /);
  await assert.rejects(tofu.call('/tfplugin6.Provider/CallFunction'), /^Error: 12: /);
  for (const name of ['GetMetadata', 'GetFunctions', 'StopProvider', 'GetResourceIdentitySchemas']) {
    await tofu.call(`/tfplugin6.Provider/${name}`);
  }
  const metadata = await tofu.call('/tfplugin6.Provider/GetMetadata');
  assert.deepEqual([metadata.all(3).length, metadata.all(4).length], [7, 8]);

  // Streams stay open until the end.
  const stdio = tofu.session.request({ ':method': 'POST', ':path': '/plugin.GRPCStdio/StreamStdio' });
  stdio.end();
  await once(stdio, 'response');
  const closed = once(stdio, 'close');
  await tofu.call('/plugin.GRPCController/Shutdown');
  await closed;
  const { code, stdout, stderr } = await tofu.ended;
  assert.deepEqual([code, stdout.split('\n').length], [0, 2]);
  assert.equal(stderr, 'kms: no such service here; check the name or id\nkms: no such call here\n');
  await assert.rejects(stat(dirname(path)));
});

test('only the client with the announced certificate is served; without certificates there is no TLS', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const [, , , path = ''] = tofu.handshake;
  const stranger = connect('https://localhost', {
    createConnection: () => connectTls({ path, rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
  });
  await assert.rejects(call(stranger, '/tfplugin6.Provider/GetMetadata', message({})));
  const open = connect('http://localhost', { createConnection: () => connectSocket(path) });
  await assert.rejects(call(open, '/tfplugin6.Provider/GetMetadata', message({})));
  for (const session of [stranger, open]) session.destroy();

  await using plain = await startTofu(d, { env: { PLUGIN_CLIENT_CERT: '' } });
  assert.equal(plain.handshake[5], '');
  assert.equal((await plain.call('/tfplugin6.Provider/GetMetadata')).all(4).length, 8);
});

test('started by a person, or by a program of another protocol, it says what it is', async () => {
  await using d = await servedDesk();
  for (const [env, code] of [
    [{}, 2],
    [{ ...pluginEnv, PLUGIN_PROTOCOL_VERSIONS: '4,5' }, 1],
  ] as const) {
    const ran = await d.kms('__terraform-provider', { env });
    assert.deepEqual([ran.code, ran.stdout], [code, '']);
  }
});

test('malformed messages are refused, and the next one is answered', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  for (const request of [
    Uint8Array.of(0xff),
    message({ 1: 'no_such_type' }),
    message({ 1: 'kms_account', 2: message({ 1: Uint8Array.of(0xc1) }) }),
    message({ 1: 'kms_account', 2: message({ 1: Uint8Array.of(0x93, 1, 2, 3) }) }),
    message({ 1: 'kms_account', 2: Uint8Array.of(0x80) }),
  ]) {
    const answer = await tofu.call('/tfplugin6.Provider/ReadResource', request);
    assert.equal(answer.all(2).length, 1);
  }
  assert.equal(tofu.said(), '');
  assert.equal((await tofu.call('/tfplugin6.Provider/GetMetadata')).all(4).length, 8);
});
