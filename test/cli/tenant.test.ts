// `kms tenant` as typed, with and without a running server.
import assert from 'node:assert/strict';
import test from 'node:test';
import { desk } from './kms.ts';
import { serving } from './serving.ts';

interface Made {
  readonly tenant: string;
  readonly accountId: string;
  readonly apiKey: { readonly key: string; readonly flags: unknown };
}

interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly hosts: readonly string[];
  readonly url: string;
  readonly limits: Readonly<Record<string, number>>;
}

test('tenants: create, list, show, update, limits, delete, restore', async () => {
  await using d = await desk();
  await d.json('init --json');
  const ran = await d.kms('tenant create Blue --host Blue.example --host b.example --json');
  assert.deepEqual(
    [ran.code, ran.stderr],
    [0, 'kms: the root API key is shown this once and may do everything in this tenant: keep it safe\n'],
  );
  const made: Made = JSON.parse(ran.stdout);
  assert.deepEqual(Object.keys(made), ['tenant', 'accountId', 'apiKey']);
  assert.deepEqual([made.tenant, made.apiKey.flags], ['blue', { '*': true }]);

  const { data } = await d.json<{ data: Tenant[] }>('tenant list --json');
  assert.deepEqual(
    data.map(({ name, hosts }) => [name, ...hosts]),
    [
      ['default', '*'],
      ['blue', 'blue.example', 'b.example'],
    ],
  );
  assert.match(
    (await d.kms('tenant list')).stdout,
    /^NAME +HOSTS +LIMITS +CREATED +ID\nblue +blue\.example b\.example .*\ndefault +\* {2}/,
  );
  assert.deepEqual(await d.json('tenant show BLUE --json'), data[1]);

  const limits = (rest: string) => d.json<Tenant>(`tenant limits blue --json ${rest}`).then((tenant) => tenant.limits);
  assert.deepEqual(
    await limits('--keyrings 1 --keys-per-ring 2 --users 3 --accounts 4 --apikeys 5 --assets 6 --asset-versions 7'),
    {
      keyrings: 1,
      keysPerRing: 2,
      users: 3,
      accounts: 4,
      apikeys: 5,
      assets: 6,
      assetVersions: 7,
    },
  );
  assert.deepEqual(await limits('--users none --assets none --apikeys none'), {
    keyrings: 1,
    keysPerRing: 2,
    accounts: 4,
    assetVersions: 7,
  });
  assert.equal(
    (await d.kms('tenant limits blue', { env: { KMS_USERS: '7' } })).stdout,
    'keyrings        1\nkeys-per-ring   2\nusers           none\naccounts        4\napikeys         none\nassets          none\nasset-versions  7\n',
  );
  assert.equal((await d.kms('keyring create r --tenant blue')).code, 0);
  const full = await d.kms('keyring create s --tenant blue');
  assert.deepEqual(
    [full.code, full.stderr],
    [1, 'kms: the limit of 1 keyrings is reached; ask the operator for more room\n'],
  );

  const updated = await d.json<Tenant>('tenant update blue --name green --host green.example --json');
  assert.deepEqual([updated.name, updated.hosts], ['green', ['green.example']]);
  const env = { KMS_HOST: 'else.example', KMS_NAME: 'else' };
  assert.equal((await d.kms('tenant update green', { env })).code, 2, 'what the environment says is not typed');

  const asked = await d.kms('tenant delete green');
  assert.deepEqual([asked.code, asked.stdout], [2, '']);
  assert.match(asked.stderr, /^kms: this deletes the tenant green: .*; add --yes to do it\n$/);
  assert.match(
    (await d.kms('tenant delete green --yes')).stdout,
    /^green is deleted; until .* `kms tenant restore tenant_\w+` restores it\n$/,
  );
  assert.equal((await d.kms('tenant show green')).stderr, 'kms: there is no such tenant; check the name or id\n');
  assert.equal((await d.json<{ data: Tenant[] }>('tenant list --json')).data.length, 1);
  assert.match(
    (await d.kms('tenant list --deleted')).stdout,
    /^NAME +DELETED +ID +HOSTS .*\ndefault .*\ngreen +\d{4}-\S+Z +tenant_\w{26} +green\.example .*Z\n$/,
  );
  const other = await d.kms('tenant create Green --host grün.example:8443');
  assert.match(other.stdout, /^hosts {9}xn--grn-ioa\.example$/m);
  assert.deepEqual(
    (await d.kms(`tenant restore ${updated.id}`)).stderr,
    'kms: name: another tenant has this name; restore it under another: --name NAME\n',
  );
  assert.equal((await d.kms('tenant delete green --yes')).code, 0);
  assert.equal((await d.kms(`tenant restore ${updated.id}`)).code, 0);
  assert.equal((await d.kms('keyring show r --tenant green')).code, 0);
});

test('a tenant that is used by default, for this data directory and where none is named', async () => {
  await using d = await desk();
  await d.json('init --json');
  assert.match((await d.kms('tenant show')).stdout, /^name +default$[\s\S]*^AWS account +\d{12}$/m);
  await d.json('tenant create blue --host blue.example --json');
  assert.equal((await d.kms('tenant show')).stderr, 'kms: name a tenant, one of: default, blue\n');
  assert.match((await d.kms('tenant show --tenant blue')).stdout, /^name +blue$/m);
  const several = await d.kms('keyring list');
  assert.equal(several.code, 2, several.stderr);
  assert.match(several.stderr, /name a tenant with --tenant/);
  const used = await d.kms('tenant use BLUE');
  assert.match(used.stdout, /^blue is used when no tenant is named, for .*\n$/, used.stderr);
  assert.match((await d.kms('tenant show')).stdout, /^name +blue$/m);
  assert.equal((await d.kms('keyring create r')).code, 0);
  assert.equal((await d.kms('keyring show r --tenant blue')).code, 0);
  assert.equal((await d.kms('keyring show r --tenant default')).code, 1, 'the typed one comes first');
  assert.equal((await d.kms('keyring show r', { env: { KMS_TENANT: 'default' } })).code, 1, 'so does the environment');
  assert.equal((await d.kms('keyring show r')).code, 0);
  for (const line of ['tenant use', 'tenant use blue --none', 'tenant use blue --tenant blue']) {
    assert.equal((await d.kms(line)).code, 2, line);
  }
  assert.match((await d.kms('tenant use blu')).stderr, /no such tenant/);
  // A deleted one is refused by name, and another can be chosen.
  assert.equal((await d.kms('tenant delete blue --yes')).code, 0);
  assert.equal((await d.kms('keyring list')).code, 1);
  assert.equal((await d.kms('tenant use default')).code, 0);
  assert.equal((await d.kms('keyring list')).code, 0);
  assert.equal((await d.kms('tenant use --none')).stdout, 'no tenant is used by default\n');
  assert.equal((await d.kms('keyring list')).code, 0);
});

for (const [line, code, stderr] of [
  ['tenant create blue', 2, 'kms: --host is missing; see `kms tenant create --help`\n'],
  ['tenant create blue --host *', 1, 'kms: hosts: the tenant default lists * already\n'],
  ...['tenant create System --host a.example', 'tenant update default --name system'].map(
    (line) => [line, 1, "kms: name: expected another: system is the appliance's own store\n"] as const,
  ),
  ['tenant create default --host a.example', 1, 'kms: there is already a tenant default\n'],
  [
    'tenant create blue --host http://a.example',
    1,
    'kms: hosts: expected host names such as kms.example.org, or * for all others, got "http://a.example"\n',
  ],
  [
    'tenant limits default --users many',
    2,
    'kms: --users: expected a whole number or none, got "many"; see `kms tenant limits --help`\n',
  ],
  ['tenant limits .. --users 1', 1, 'kms: there is no such tenant; check the name or id\n'],
  ['tenant update default', 2, 'kms: nothing to change; give --name, --host, --second-factor-for or --custody\n'],
  [
    'tenant delete default --yes',
    1,
    'kms: the tenant default cannot be deleted: its flags system.* concern the whole appliance\n',
  ],
  [
    'tenant restore default',
    1,
    'kms: there is no deleted tenant default to restore; see `kms tenant list --deleted`\n',
  ],
  [
    'tenant list --server https://kms.example',
    2,
    'kms: this works on the machine of the appliance only, not with --server; see `kms tenant list --help`\n',
  ],
] as const) {
  test(`refused: ${line}`, async () => {
    await using d = await desk();
    await d.json('init --json');
    const ran = await d.kms(line);
    assert.deepEqual([ran.code, ran.stdout, ran.stderr], [code, '', stderr]);
    assert.equal((await d.json<{ data: Tenant[] }>('tenant list --json')).data.length, 1);
  });
}

test('a running server takes a new tenant at once, through the socket', async () => {
  await using d = await desk();
  const server = await serving(d);
  const { port } = new URL(server.url);
  const { apiKey } = await d.json<Made>('tenant create blue --host localhost --json');
  const args = ['--server', `http://localhost:${port}`, '--json'];
  const env = { KMS_API_KEY: apiKey.key };
  assert.deepEqual((await d.json<{ data: unknown[] }>(['keyring', 'list', ...args], { env })).data, []);
  const elsewhere = await d.kms(['keyring', 'list', '--server', server.url], { env });
  assert.deepEqual([elsewhere.code, elsewhere.stdout], [1, '']);
  const person = '--email ada@x.example --first-name Ada --last-name Lovelace --json';
  const { loginUrl } = await d.json<{ loginUrl: string }>(`user invite ada --tenant blue ${person}`);
  assert.ok(loginUrl.startsWith(`http://localhost:${port}/console/invite?token=`), loginUrl);
  await d.kms('tenant delete blue --yes');
  assert.equal((await d.kms(['keyring', 'list', ...args], { env })).code, 1);
  await server.stop();
});

test('whose logins need a second factor is said by permission flags', async () => {
  await using d = await desk();
  await d.json('init --json');
  const policy = async (rest: string) => {
    const { secondFactorFor } = await d.json<{ secondFactorFor: string[] }>(`tenant ${rest} --json`);
    return secondFactorFor;
  };
  assert.deepEqual(await policy('show default'), []);
  assert.deepEqual(
    await policy('update default --second-factor-for User.Update --second-factor-for keyring.*.delete'),
    ['user.update', 'keyring.*.delete'],
  );
  assert.match((await d.kms('tenant show default')).stdout, /^second factor +for user\.update keyring\.\*\.delete$/m);
  assert.deepEqual(await policy('update default --host kms.example'), ['user.update', 'keyring.*.delete']);
  const refused = await d.kms('tenant update default --second-factor-for user.updat');
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, /^kms: secondFactorFor: expected permission flags, got "user.updat"/);
  const mixed = await d.kms('tenant update default --second-factor-for none --second-factor-for user.update');
  assert.deepEqual(
    [mixed.code, mixed.stderr.split('\n')[0]],
    [2, 'kms: --second-factor-for: none cannot be combined with flags'],
  );
  assert.deepEqual(await policy('update default --second-factor-for none'), []);
  assert.doesNotMatch((await d.kms('tenant show default')).stdout, /second factor/);
});
