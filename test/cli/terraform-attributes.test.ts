// Attributes of the provider's resources: their names, values for what the API has null for, and flags.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { configurationSchema } from '../../src/api/configuration.ts';
import { isJsonObject } from '../../src/model/json.ts';
import { person } from '../http/samples.ts';
import { type Plain, settled, startTofu, type Tofu } from './opentofu.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const start = (d: ServedDesk): Promise<Tofu> => startTofu(d, { env: { ...d.network().env, KMS_SERVER: d.url } });

test('-1 takes away what the API has null for; null leaves it', async () => {
  await using d = await servedDesk();
  await d.json('account create billing --json');
  const { username } = (await person(d.appliance, { 'approval.give': true })).user;
  const { publicKey: der } = generateKeyPairSync('x25519');
  const publicKey = der.export({ type: 'spki', format: 'pem' });
  const later = Date.now() + 86_400_000;
  await using tofu = await start(d);
  const rule = { name: 'r', actions: ['key.*.delete'], approvers: { users: [username], flag: null } };
  const cases: readonly (readonly [type: string, config: Plain, field: string, value: unknown, none: unknown])[] = [
    ['kms_apikey', { name: 'a', account_id: 'billing', keep_secrets: true }, 'expires_at', later, -1],
    ['kms_managed_key', { name: 'm' }, 'rotate_after', 7200, -1],
    ['kms_managed_key', { name: 'n' }, 'deactivate_at', later, -1],
    ['kms_managed_key', { name: 'o' }, 'activate_at', later, -1],
    ['kms_keyring', { name: 'k', public_key: publicKey }, 'config', { rotate_after: 7200 }, { rotate_after: -1 }],
  ];
  const shown = (state: Plain | null, field: string) =>
    field === 'config' ? Object(state?.config).rotate_after : state?.[field];
  for (const [type, config, field, value, none] of cases) {
    const set = await settled(tofu, type, { ...config, [field]: value });
    // Not named.
    assert.deepEqual((await tofu.plan(type, set, config)).state, set, field);
    const lifted = await tofu.make(type, { ...config, [field]: none }, set);
    assert.deepEqual(await tofu.read(type, lifted), { state: lifted, problems: [] });
    assert.equal(shown(lifted, field), -1, type);
    const { state } = await tofu.data(type, { name: config.name });
    assert.equal(shown(state, field), null, type);
    await settled(tofu, type, { ...config, name: `${config.name}2`, [field]: none });
  }
  await settled(tofu, 'kms_rule', { ...rule, expires: -1 });
});

test('flags that grant nothing are refused, unless the provider takes any', async () => {
  await using d = await servedDesk();
  await d.json('account create billing --json');
  await using tofu = await start(d);
  const config = {
    name: 'a',
    account_id: 'billing',
    secret: false,
    flags: { 'kering.x.encrypt': true, 'my.own': true },
  };
  const { problems } = await tofu.plan('kms_apikey', null, config);
  assert.deepEqual(
    problems.map(({ message }) => message),
    [
      'flags.kering.x.encrypt: grants nothing here; did you mean keyring.x.encrypt?',
      'flags.my.own: grants nothing here; any_flag of the provider accepts it for a program of your own',
    ],
  );
  assert.deepEqual(problems[0]?.path, ['flags']);
  assert.deepEqual(await tofu.configure({ any_flag: true }), []);
  const state = await settled(tofu, 'kms_apikey', config);
  // A flag that it has already is no mistake.
  assert.deepEqual(await tofu.configure({}), []);
  assert.deepEqual((await tofu.plan('kms_apikey', state, { ...config, active: false })).problems, []);
});

test('no attribute has a name that the language keeps for itself, or cannot write', async () => {
  // OpenTofu and Terraform read these before the provider sees a block.
  const common = ['count', 'depends_on', 'for_each', 'lifecycle', 'provider', 'connection', 'provisioner', 'providers'];
  const ofProvider = [
    'alias',
    'version',
    'source',
    'count',
    'depends_on',
    'for_each',
    'lifecycle',
    'locals',
    'ephemeral',
  ];
  await using d = await servedDesk();
  await using tofu = await start(d);
  const { provider, resources, dataSources } = tofu.types;
  const blocks = [
    ...[resources, dataSources].flatMap((types) =>
      Object.entries(types).map(([name, type]) => [name, type, common] as const),
    ),
    ['provider', provider, ofProvider] as const,
  ];
  assert.ok(blocks.length > 15);
  for (const [block, [, attributes], taken] of blocks) {
    for (const name of Object.keys(Object(attributes))) {
      assert.match(name, /^[a-z][a-z0-9_]*$/, block);
      assert.ok(!taken.includes(name), `${name} of ${block} is the language's own`);
    }
  }
});

test('the guide names types, attributes and settings that there are', async () => {
  const page = readFileSync(new URL('../../docs/guide-opentofu.md', import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/```hcl\n(.*?)```/gs)].map(([, text = '']) => text).join('');
  const named = [...blocks.matchAll(/^(resource|provider) "(\w+)"[^{]*\{\n(.*?)^\}/gms)];
  assert.ok(named.length >= 6);
  await using d = await servedDesk();
  await using tofu = await start(d);
  for (const [, kind, type = '', body = ''] of named) {
    const attributes = [...body.matchAll(/^ {2}(\w+) +=/gm)].map(([, name = '']) => name);
    assert.ok(attributes.length > 0);
    const known = kind === 'provider' ? tofu.types.provider : tofu.types.resources[type];
    assert.ok(Array.isArray(known), `${type} of the guide`);
    for (const name of attributes) assert.ok(Object.hasOwn(Object(known[1]), name), `${name} of ${type}`);
  }
});

test('whatever the API may have null for is a number, so that -1 is free', () => {
  let count = 0;
  const look = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const { anyOf } = Object(schema);
    if (Array.isArray(anyOf) && anyOf.some((choice) => isJsonObject(choice) && choice.type === 'null')) {
      const others = anyOf.filter((choice) => choice.type !== 'null').map((choice) => choice.type);
      assert.deepEqual(others, ['integer'], path);
      count++;
    }
    for (const [name, value] of Object.entries(schema)) look(value, `${path}.${name}`);
  };
  look(configurationSchema(), '');
  assert.ok(count > 10);
});
