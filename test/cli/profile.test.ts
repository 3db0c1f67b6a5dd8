// Profiles: what is stored and how, and which appliance a command uses when several are possible.
import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { type Desk, desk, type RunOptions, typed } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

/** A directory without an appliance. */
const elsewhere = async (d: Desk): Promise<string> => {
  await mkdir(d.path('elsewhere'), { recursive: true });
  return d.path('elsewhere');
};

async function added(d: ServedDesk, name = 'prod', server = d.url): Promise<void> {
  const { code, stderr } = await d.kms(['profile', 'add', name, '--server', server], { stdin: d.appliance.root.key });
  assert.equal(code, 0, stderr);
}

test('a profile keeps address and key in a file of its own, and nothing prints the key', async () => {
  await using d = await servedDesk();
  const key = d.appliance.root.key;
  const add = await d.kms(['profile', 'add', 'prod', '--server', `${d.url}/`], { stdin: `${key}\n` });
  assert.deepEqual([add.code, add.stderr], [0, 'kms: next: `kms --profile prod status`, or `kms profile use prod`\n']);
  const file = d.path('config', 'kms', 'profiles', 'prod.json');
  assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), { server: d.url, apiKey: key });
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal((await stat(d.path('config', 'kms', 'profiles'))).mode & 0o777, 0o700);
  const json = { name: 'prod', server: d.url, apiKey: true, ca: false, certificate: false, default: false, file };
  assert.deepEqual(await d.json('profile show prod --json'), json);
  assert.deepEqual(await d.json('profile list --json'), {
    data: [json],
    pagination: { limit: 1000, count: 1, hasMore: false },
  });
  const shown = await d.kms('profile show prod');
  assert.match(shown.stdout, /^API key {6}kept$/m);
  const list = await d.kms('profile list');
  for (const { stdout, stderr } of [add, shown, list]) assert.ok(!`${stdout}${stderr}`.includes(key));
  const cwd = await elsewhere(d);
  assert.equal((await d.kms('keyring list --profile prod --json', { cwd })).code, 0);
  assert.equal((await d.kms('keyring list --json', { cwd, env: { KMS_PROFILE: 'prod' } })).code, 0);
});

test('on a terminal the key is asked for without echo', async () => {
  await using d = await servedDesk();
  const key = d.appliance.root.key;
  const tty = { stdin: true, stdout: true, stderr: true };
  const add = await d.kms(['profile', 'add', 'prod', '--server', d.url], { stdin: typed(`${key}\n`), tty });
  assert.equal(add.code, 0, add.stderr);
  assert.match(add.stderr, /^API key \(nothing = none\): \n/);
  assert.ok(!`${add.stdout}${add.stderr}`.includes(key));
  assert.equal((await d.kms('keyring list --profile prod', { cwd: await elsewhere(d) })).code, 0);
});

test('the key may come from a file or the environment, or be left out', async () => {
  await using d = await servedDesk();
  const key = d.appliance.root.key;
  await writeFile(d.path('key'), `${key}\n`, { mode: 0o600 });
  assert.equal((await d.kms(['profile', 'add', 'file', '--server', d.url, '--api-key-file', 'key'])).code, 0);
  assert.equal((await d.kms(['profile', 'add', 'env', '--server', d.url], { env: { KMS_API_KEY: key } })).code, 0);
  const none = await d.kms(['profile', 'add', 'none', '--server', d.url]);
  assert.match(none.stderr, /^kms: no API key was given: KMS_API_KEY is looked at with each command\n/);
  const cwd = await elsewhere(d);
  for (const name of ['file', 'env']) assert.equal((await d.kms(`keyring list --profile ${name}`, { cwd })).code, 0);
  assert.equal((await d.kms('keyring list --profile none', { cwd })).code, 1);
  assert.equal((await d.kms('keyring list --profile none', { cwd, env: { KMS_API_KEY: key } })).code, 0);
});

for (const [what, args, stdin, stderr] of [
  ['no address', 'profile add p', '', /^kms: --server is missing/],
  ['no web address', 'profile add p --server kms.example', '', /^kms: --server: expected an address/],
  ['a name with a slash', 'profile add ../p --server https://kms.example', '', /cannot name a profile/],
  ['a key of several words', 'profile add p --server https://kms.example', 'a b', /stdin does not hold an API key/],
  [
    'authorities that are none',
    'profile add p --server https://kms.example --ca-file no',
    '',
    /has no certificate in it/,
  ],
  ['a name that is taken', 'profile add taken --server https://kms.example', '', /there is a profile taken already/],
  ['an unknown one', 'profile show takem', '', /^kms: there is no profile takem; did you mean taken\?\n$/],
  ['an unknown one to use', 'profile use x', '', /^kms: there is no profile x; see `kms profile list`/],
  ['an unknown one to remove', 'profile remove x --yes', '', /^kms: there is no profile x/],
  ['neither name nor --none', 'profile use', '', /expected the name of a profile or --none/],
  ['both name and --none', 'profile use taken --none', '', /expected the name of a profile or --none/],
  ['to remove without a terminal', 'profile remove taken', '', /there is no terminal to ask at; add --yes to do it\n$/],
  [
    'an unknown one in a command',
    'keyring list --profile takn',
    '',
    /^kms: there is no profile takn; did you mean taken\?/,
  ],
  ['two appliances', 'keyring list --profile taken --server https://kms.example', '', /--server and --profile exclude/],
  [
    'a local command',
    'tenant list --profile taken',
    '',
    /works on the machine of the appliance only, not with --profile/,
  ],
  ['init', 'init --profile taken', '', /^kms: --profile: an appliance is made where it is to run/],
  ['a tenant', 'keyring list --profile taken --tenant t', '', /--tenant is for the local appliance/],
] as const) {
  test(`refused: ${what}`, async () => {
    await using d = await desk();
    await d.kms('profile add taken --server http://127.0.0.1:9');
    await writeFile(d.path('no'), 'nothing');
    const ran = await d.kms(args, { stdin });
    assert.notEqual(ran.code, 0);
    assert.deepEqual([ran.stdout, ran.stderr.split('\n').length], ['', 2]);
    assert.match(ran.stderr, stderr);
    assert.deepEqual((await d.json<{ data: unknown[] }>('profile list --json')).data.length, 1);
  });
}

test('a profile that others can get at is refused', async () => {
  await using d = await servedDesk();
  await added(d);
  const directory = d.path('config', 'kms', 'profiles');
  for (const [path, mode, right] of [
    [d.path('config', 'kms', 'profiles', 'prod.json'), 0o640, 0o600],
    [d.path('config', 'kms', 'profiles', 'prod.json'), 0o604, 0o600],
    [directory, 0o770, 0o700],
  ] as const) {
    await chmod(path, mode);
    const { code, stdout, stderr } = await d.kms('keyring list --profile prod');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, new RegExp(`^kms: other users can get at ${path}, which holds a credential; run: chmod`));
    const list = await d.kms('profile list');
    assert.deepEqual([list.code, list.stdout], [0, '']);
    assert.match(list.stderr, /^kms: warning: other users can get at/);
    await chmod(path, right);
  }
  assert.equal((await d.kms('keyring list --profile prod')).code, 0);
});

/** Each case: the options given, and the appliance and key that the command then uses. */
const choices: readonly (readonly [
  what: string,
  args: string,
  env: Record<string, string>,
  cwd: string,
  uses: string,
])[] = [
  ['nothing: the default profile, whatever directory one is in', '', {}, 'here', 'default'],
  ['nothing and no data directory: the default profile', '', {}, 'elsewhere', 'default'],
  ['--data', '--data DATA', {}, 'elsewhere', 'here'],
  [
    '--data and all of the environment',
    '--data DATA',
    { KMS_SERVER: 'OTHER', KMS_PROFILE: 'far' },
    'elsewhere',
    'here',
  ],
  ['KMS_DATA that is there', '', { KMS_DATA: 'DATA' }, 'elsewhere', 'here'],
  ['--profile', '--profile far', {}, 'here', 'far'],
  [
    '--profile and all of the environment',
    '--profile far',
    { KMS_SERVER: 'OTHER', KMS_PROFILE: 'default' },
    'here',
    'far',
  ],
  ['--profile and a key for another server', '--profile far', { KMS_API_KEY: 'KEY' }, 'here', 'far'],
  ['--profile and a key that is typed', '--profile far --api-key-file KEYFILE', {}, 'here', 'far with the key'],
  ['KMS_PROFILE', '', { KMS_PROFILE: 'far' }, 'here', 'far'],
  ['KMS_PROFILE and a key', '', { KMS_PROFILE: 'far', KMS_API_KEY: 'KEY' }, 'here', 'far with the key'],
  ['the default profile and a key', '', { KMS_API_KEY: 'KEY' }, 'elsewhere', 'default with the key'],
  ['--server', '--server OTHER', { KMS_PROFILE: 'far', KMS_API_KEY: 'KEY' }, 'here', 'other with the key'],
  ['--server never gets the key of a profile', '--server OTHER', { KMS_PROFILE: 'far' }, 'here', 'other with nothing'],
  ['KMS_SERVER', '', { KMS_SERVER: 'OTHER', KMS_PROFILE: 'far', KMS_API_KEY: 'KEY' }, 'here', 'other with the key'],
];

test('which appliance a command is for', async (t) => {
  await using d = await servedDesk();
  const { createServer } = await import('node:http');
  const asked: string[] = [];
  const servers = ['default', 'far', 'other'].map((name) => {
    const server = createServer((request, response) => {
      const key = request.headers.authorization?.replace('Bearer ', '');
      asked.push(key === `own-${name}` ? name : `${name} with ${key === undefined ? 'nothing' : key}`);
      response.setHeader('content-type', 'application/json');
      response.end('{"data":[],"pagination":{"limit":1,"count":0,"hasMore":false}}');
    });
    return { name, server };
  });
  const urls: Record<string, string> = {};
  for (const { name, server } of servers) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    assert.ok(typeof address === 'object' && address);
    urls[name] = `http://127.0.0.1:${address.port}`;
    if (name === 'other') continue;
    await d.kms(['profile', 'add', name, '--server', urls[name]], { stdin: `own-${name}` });
  }
  await writeFile(d.path('key'), 'the-key', { mode: 0o600 });
  assert.equal((await d.kms('profile use default')).code, 0);
  const fill = (text: string): string =>
    text
      .replace('KEYFILE', d.path('key'))
      .replace('KEY', 'the-key')
      .replace('DATA', d.path('kms-data'))
      .replace('OTHER', urls.other ?? '');
  for (const [what, args, env, where, uses] of choices) {
    await t.test(what, async () => {
      asked.length = 0;
      const cwd = where === 'here' ? d.dir : await elsewhere(d);
      const options: RunOptions = {
        cwd,
        env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)])),
      };
      const typedWords = args === '' ? [] : args.split(' ').map(fill);
      const { code, stderr } = await d.kms(['keyring', 'list', '--json', ...typedWords], options);
      assert.equal(code, 0, stderr);
      assert.deepEqual(asked, uses === 'here' ? [] : [uses.replace('the key', 'the-key')]);
    });
  }
  for (const { server } of servers) {
    server.closeAllConnections();
    server.close();
  }
});

test('a default profile never leads a command astray that is for this machine', async () => {
  await using d = await servedDesk();
  await added(d);
  const used = await d.kms('profile use prod');
  assert.deepEqual([used.code, used.stdout], [0, `prod (${d.url}) is used when no appliance is named\n`]);
  const cwd = await elsewhere(d);
  assert.equal((await d.kms('keyring list', { cwd })).code, 0);
  assert.equal((await d.kms('tenant list', { cwd })).code, 3);
  assert.equal((await d.kms('keyring list --data nowhere', { cwd })).code, 3);
  const removed = await d.kms('profile remove prod --yes');
  assert.equal(removed.stdout, 'prod is removed; no profile is used by default any more\n');
  assert.equal((await d.kms('keyring list', { cwd })).code, 3);
  assert.equal((await d.kms('profile use --none')).code, 0);
});

test('a profile has authorities of its own, and a server that they do not know is not trusted', async () => {
  await using d = await desk();
  assert.equal((await d.kms('tls self-signed --host kms.example')).code, 0);
  assert.equal((await d.kms('profile add lab --server https://kms.example --ca-file cert.pem')).code, 0);
  const kept = JSON.parse(await readFile(d.path('config', 'kms', 'profiles', 'lab.json'), 'utf8'));
  assert.equal(kept.ca, await readFile(d.path('cert.pem'), 'utf8'));
  assert.match((await d.kms('profile show lab')).stdout, /^authorities {2}its own$/m);
});
