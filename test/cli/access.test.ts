// Commands for accounts, API keys, assets and activity, as typed; and the answers of all commands while the appliance
// is sealed.
import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { callsIn, grammar, leavesOf } from './grammar-tree.ts';
import { desk, typed } from './kms.ts';
import { servedDesk } from './served.ts';
import { serving } from './serving.ts';

interface Key {
  readonly key: string;
  readonly keyid: string;
  readonly active: boolean;
  readonly flags: Record<string, boolean>;
  readonly references: { readonly accountId: string };
}

test('accounts: create, list, show, update, delete', async () => {
  await using d = await servedDesk();
  const made = await d.json<{ id: string }>([
    'account',
    'create',
    'billing',
    '--notes',
    'the billing system',
    '--json',
  ]);
  assert.deepEqual(await d.json('account show billing --json'), made);
  assert.deepEqual(await d.json(`account show ${made.id} --json`), made);
  assert.equal(
    (await d.kms('account list')).stdout,
    `UID      NOTES               CREATED                   ID
billing  the billing system  2026-01-02T03:04:05.678Z  ${made.id}
admin                        2026-01-02T03:04:05.678Z  ${d.appliance.accountId}
`,
  );
  const narrow = await d.kms('account list', { tty: { stdout: true, columns: 60 } });
  for (const line of narrow.stdout.split('\n')) assert.ok(stripVTControlCharacters(line).length <= 60, line);
  assert.ok(narrow.stdout.startsWith('\x1b[1mUID'));
  assert.match((await d.kms('account list', { tty: { stdout: true }, env: { NO_COLOR: '1' } })).stdout, /^UID/);
  const small = await d.kms('account list', { tty: { stdout: true, columns: 28 }, env: { NO_COLOR: '1' } });
  assert.deepEqual(
    [small.stdout.split('\n')[0], small.stderr],
    ['UID      NOTES', 'kms: 2 columns hidden; --wide shows them\n'],
  );
  const wide = await d.kms('account list --wide', { tty: { stdout: true, columns: 28 }, env: { NO_COLOR: '1' } });
  assert.deepEqual([wide.stdout, wide.stderr], [(await d.kms('account list')).stdout, '']);
  assert.match(
    (await d.kms(['account', 'update', 'billing', '--uid', 'bills', '--props', '{"a":1}'])).stdout,
    /^uid {6}bills\n[\s\S]*props {4}\{"a":1\}\n/,
  );
  assert.deepEqual([(await d.kms('account update bills')).code, (await d.kms('account show billing')).code], [2, 1]);
  assert.equal((await d.kms('account delete bills --yes')).stdout, 'bills and its API keys are deleted\n');
  assert.equal((await d.kms('account show bills')).stderr, 'kms: there is no such account; check the name or id\n');
});

test('API keys: create, show, update, revoke, list, validate', async () => {
  await using d = await servedDesk();
  await d.json('account create billing --json');
  await d.json('keyring create payroll --json');
  const made = await d.kms('apikey create --account billing --flag keyring.payroll.encrypt --flag asset.read --json');
  assert.equal(
    made.stderr,
    'kms: the key is shown this once, and the service keeps only a hash of it: give it to the program that needs it, in a ' +
      'file that only its user can read\n',
  );
  const key: Key = JSON.parse(made.stdout);
  assert.deepEqual(key.flags, { 'keyring.payroll.encrypt': true, 'asset.read': true });
  const { key: secret, ...safe } = key;
  assert.deepEqual(await d.json(`apikey show ${key.keyid} --json`), safe);

  const validate = (stdin: string) =>
    d.kms('apikey validate', { stdin }).then(({ code, stdout, stderr }) => [code, stdout, stderr]);
  assert.deepEqual(await validate(`${secret}\n`), [0, 'valid\n', '']);
  assert.deepEqual(await validate('kms_nonsense'), [
    1,
    '',
    'kms: the API key is not valid; it does not exist here, is inactive or has expired\n',
  ]);
  const asJson = await d.kms('apikey validate --json', { stdin: 'kms_nonsense' });
  assert.deepEqual([asJson.code, JSON.parse(asJson.stdout)], [1, { valid: false }]);
  assert.match(asJson.stderr, /^kms: the API key is not valid; [^\n]+\n$/);
  assert.deepEqual(await validate(''), [
    2,
    '',
    'kms: expected an API key on stdin, got nothing; see `kms apikey validate --help`\n',
  ]);
  const typed = await d.kms(['apikey', 'validate', secret]);
  assert.deepEqual([typed.code, typed.stdout], [2, '']);
  assert.ok(!typed.stderr.includes(secret), 'a secret in the wrong place is not repeated');

  const ids = async (line: string): Promise<string[]> =>
    (await d.json<{ data: Key[] }>(`${line} --json`)).data.map(({ keyid }) => keyid);
  assert.deepEqual(await ids('apikey list'), [d.appliance.root.keyid, key.keyid]);
  assert.deepEqual(await ids('apikey list --account billing'), [key.keyid]);
  assert.deepEqual(await ids(`apikey list --account ${key.references.accountId}`), [key.keyid]);
  assert.deepEqual(await ids('apikey list --ring payroll'), [key.keyid]);
  assert.deepEqual(await ids('apikey list --ring payroll --wildcard'), [d.appliance.root.keyid, key.keyid]);

  const update = (rest: string) => d.json<Key>(`apikey update ${key.keyid} --json ${rest}`);
  assert.deepEqual((await update('--flag asset.search')).flags, {
    'keyring.payroll.encrypt': true,
    'asset.read': true,
    'asset.search': true,
  });
  assert.deepEqual((await update('--op delete --flag asset.read')).flags, {
    'keyring.payroll.encrypt': true,
    'asset.search': true,
  });
  assert.deepEqual((await update('--op replace --flag asset.read')).flags, { 'asset.read': true });
  assert.equal((await update('--account admin')).references.accountId, d.appliance.accountId);

  assert.match((await d.kms(`apikey revoke ${key.keyid}`)).stdout, /is inactive/);
  assert.deepEqual((await validate(secret))[0], 1);
  const refused = await d.kms(['asset', 'show', 'x', ...d.network(secret).args], { env: { KMS_API_KEY: secret } });
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, /^kms: .*; check the API key in --api-key-file, KMS_API_KEY or the profile\n$/);
  assert.equal((await update('--active true')).active, true);
  assert.deepEqual((await validate(secret))[0], 0);
});

test('an API key is deleted for good, after the question that tells its last use', async () => {
  await using d = await servedDesk();
  const { keyid, key } = await d.json<Key>('apikey create --account admin --name nightly --flag asset.search --json');
  const isValid = async () => (await d.kms('apikey validate', { stdin: key })).code === 0;
  assert.ok(await isValid());
  const tty = { stdin: true, stdout: true, stderr: true };
  const kept = await d.kms(`apikey delete ${keyid}`, { tty, stdin: typed('n\n') });
  assert.equal(kept.code, 1);
  const asked = `^${keyid}, nightly: last used \\d{4}-\\d\\d-\\d\\d\nThis deletes the API key ${keyid} for good\\.`;
  assert.match(kept.stderr, new RegExp(asked));
  assert.equal((await d.kms(`apikey delete ${keyid} --yes`)).stdout, `${keyid} is deleted\n`);
  assert.equal(await isValid(), false);
  const gone = await d.kms(`apikey delete ${keyid} --yes`);
  assert.deepEqual([gone.code, gone.stdout], [1, '']);
});

test('on a terminal the key is asked for and not shown', async () => {
  await using d = await servedDesk();
  const tty = { stdin: true, stdout: true, stderr: true };
  const { key } = d.appliance.root;
  const asked = await d.kms('apikey validate', { tty, stdin: typed(`${key}\n`) });
  assert.deepEqual([asked.code, asked.stdout, asked.stderr], [0, 'valid\n', 'API key: \n']);
  const none = await d.kms('apikey validate', { tty, stdin: typed('') });
  assert.equal(none.code, 2);
});

test('flags that grant nothing take --any-flag; without it, what was probably meant is said', async () => {
  await using d = await servedDesk();
  const count = async (): Promise<number> => (await d.json<{ data: Key[] }>('apikey list --json')).data.length;
  const before = await count();
  const refused = (flag: string, meant: string): string =>
    `kms: --flag: "${flag}" grants nothing in this appliance${meant === '' ? '; for' : `; did you mean ${meant}? For`} a flag that a program of your own looks at, add --any-flag\n`;
  const ada = 'ada --email a@x.example --first-name A --last-name B';
  for (const [flag, meant] of [
    ['keyrings.list', 'keyring.list'],
    ['keyring.payroll.encrpyt', 'keyring.payroll.encrypt'],
    ['KeyRing.PayRoll.Encrpyt', 'keyring.payroll.encrypt'],
    ['keyrng.payroll.decrypt', 'keyring.payroll.decrypt'],
    ['keyring.a.b.c.raed', 'keyring.a.b.c.read'],
    ['keyring.*.rotat', 'keyring.*.rotate'],
    ['asym.mail.roate', 'asym.mail.rotate'],
    ['user.udpate', 'user.update'],
    ['users.read', 'user.read'],
    ['activity.reed', 'activity.read'],
    ['invoice.print', ''],
    ['keyring.payroll.print', ''],
    ['keyring.pay roll.encrypt', ''],
    ['x', ''],
  ] as const) {
    for (const line of [
      'apikey create --account admin',
      'apikey update apik_1',
      `user create ${ada}`,
      'user update ada',
    ]) {
      const { code, stdout, stderr } = await d.kms([...line.split(' '), '--flag', 'asset.read', '--flag', flag]);
      assert.deepEqual([code, stdout, stderr], [2, '', refused(flag, meant)], line);
    }
  }
  assert.equal(await count(), before);
  const any = await d.json<Key>('apikey create --account admin --flag invoice.print --any-flag --json');
  assert.deepEqual(any.flags, { 'invoice.print': true });
  assert.equal((await d.kms(`user create ${ada} --flag invoice.print --any-flag`)).code, 0);
  // Removing a flag needs no --any-flag.
  const taken = await d.json<Key>(`apikey update ${any.keyid} --op delete --flag invoice.print --json`);
  assert.deepEqual(taken.flags, {});
});

test('API keys with a name, an end and addresses', async () => {
  await using d = await servedDesk();
  interface Named extends Key {
    readonly name: string;
    readonly expiresAt: number | null;
    readonly allowedAddresses: readonly string[];
  }
  const made = await d.json<Named>([
    ...'apikey create --account admin --expires 90d --allow-address 192.0.2.7/24 --allow-address ::1 --json'.split(' '),
    ...['--name', 'nightly batch'],
  ]);
  assert.deepEqual([made.name, made.allowedAddresses], ['nightly batch', ['192.0.2.0/24', '::1']]);
  const inDays = ((made.expiresAt ?? 0) - Date.now()) / 86_400_000;
  assert.ok(inDays > 89.9 && inDays <= 90, `${inDays}`);
  const update = (...args: string[]) => d.json<Named>(['apikey', 'update', made.keyid, '--json', ...args]);
  assert.equal((await update('--expires', '2030-01-02')).expiresAt, Date.UTC(2030, 0, 2));
  assert.equal((await update('--expires', '1900000000000')).expiresAt, 1_900_000_000_000);
  assert.equal((await update('--name', 'other')).expiresAt, 1_900_000_000_000);
  assert.equal((await update('--expires', 'never', '--name', '')).expiresAt, null);
  assert.deepEqual((await update('--allow-address', '10.0.0.1/8')).allowedAddresses, ['10.0.0.0/8']);
  assert.deepEqual((await update('--any-address')).allowedAddresses, []);
  for (const [args, stderr] of [
    [
      '--expires soon',
      /--expires: expected milliseconds since 1970, a time such as [^ ]+, an age such as 90d, or never, got "soon"/,
    ],
    ['--expires -1d', /--expires: expected/],
    ['--allow-address 10.0.0.1 --any-address', /exclude each other/],
  ] as const) {
    const wrong = await d.kms(`apikey update ${made.keyid} ${args}`);
    assert.deepEqual([wrong.code, wrong.stdout], [2, '']);
    assert.match(wrong.stderr, stderr);
  }
  assert.match((await d.kms(`apikey update ${made.keyid} --allow-address home`)).stderr, /IPv4 or IPv6 address/);

  await update('--name', 'evening', '--expires', '2020-01-01', '--allow-address', '192.0.2.1');
  const shown = (await d.kms(`apikey show ${made.keyid}`)).stdout;
  assert.match(shown, /^name {10}evening\nactive {8}expired\nexpires {7}2020-01-01T00:00:00.000Z\n/m);
  assert.match(shown, /^allowed from {2}192\.0\.2\.1$/m);
  assert.match(shown, /^created by {4}local$/m);
  assert.match(shown, /^last used {5}never$/m);
  const list = (await d.kms('apikey list')).stdout.split('\n');
  assert.match(list[0] ?? '', /^NAME +ID +ACTIVE +FLAGS +LAST USED +EXPIRES +ACCOUNT +CREATED$/);
  assert.match(list[1] ?? '', /^root +apik_\S+ +yes +\* +never +never +acct_/);
  assert.match(list[2] ?? '', /^evening +apik_\S+ +expired +never +2020-01-01T00:00:00.000Z +acct_/);
});

test('of a key that may do nothing it is said', async () => {
  await using d = await servedDesk();
  const made = await d.kms('apikey create --account admin --json');
  const { keyid }: Key = JSON.parse(made.stdout);
  const [first] = made.stderr.split('\n');
  assert.equal(
    first,
    `kms: warning: the key has no permissions yet; give it some with \`kms apikey update ${keyid} --flag FLAG\``,
  );
});

test('an API key is handed to another user', async () => {
  await using d = await servedDesk();
  const { keyid } = await d.json<Key>('apikey create --account admin --json');
  await d.json('user create ada --email a@x.example --first-name A --last-name B --json');
  await d.json(`apikey update ${keyid} --owner ADA --json`);
  assert.deepEqual((await d.json<{ keys: string[] }>('user show ada --json')).keys, [keyid]);
  assert.equal((await d.kms(`apikey update ${keyid} --owner bob`)).code, 1);
});

test('several flags may come from the environment', async () => {
  await using d = await servedDesk();
  const key = await d.json<Key>('apikey create --json', {
    env: { KMS_ACCOUNT: 'admin', KMS_FLAG: 'asset.read, asset.search' },
  });
  assert.deepEqual(key.flags, { 'asset.read': true, 'asset.search': true });
});

test('an API key comes from a file or the environment, never from the command line', async () => {
  await using d = await servedDesk();
  const { args, env } = d.network();
  assert.equal((await d.kms(['keyring', 'list', ...args], { env })).code, 0);
  assert.equal((await d.kms(['keyring', 'list'], { env: { ...env, KMS_SERVER: d.url } })).code, 0);
  const none = await d.kms(['keyring', 'list', ...args]);
  assert.deepEqual([none.code, none.stdout], [1, '']);
  assert.equal(
    none.stderr,
    'kms: no API key was given; use --api-key-file FILE, KMS_API_KEY or a profile that has one, or --client-cert FILE\n',
  );
  for (const key of ['two words', 'kms_\u00e9']) {
    const odd = await d.kms(['keyring', 'list', ...args], { env: { KMS_API_KEY: key } });
    assert.deepEqual(
      [odd.code, odd.stderr],
      [
        1,
        'kms: KMS_API_KEY does not hold an API key: expected one word; an API key looks like kms_ and 49 letters and digits\n',
      ],
    );
  }
  const missing = await d.kms(['keyring', 'list', ...args, '--api-key-file', 'nope']);
  assert.deepEqual(
    [missing.code, missing.stderr],
    [1, `kms: cannot read the API key from ${d.path('nope')}: there is no such file or directory\n`],
  );
});

test('assets: search by each filter, show, delete', async () => {
  await using d = await servedDesk();
  const { ring } = await d.json<{ ring: { id: string } }>('keyring create r --json');
  const make = async (data: string, more: string[] = []): Promise<string> => {
    const args = ['encrypt', '--ring', 'r', '--asset-data', data, ...more, '-o', '/dev/null', '--json'];
    return (await d.json<{ asset: { id: string } }>(args, { stdin: '' })).asset.id;
  };
  const a = await make('{"kind":"a"}');
  const b = await make('{"kind":"b"}', ['--parent', a]);
  const found = async (args: string[]): Promise<string[]> =>
    (await d.json<{ data: { id: string }[] }>(['asset', 'search', '--json', ...args])).data.map(({ id }) => id);
  assert.deepEqual(await found([]), [b, a]);
  assert.deepEqual(await found(['--limit', '1']), [b]);
  assert.deepEqual(await found(['--all']), [b, a]);
  assert.deepEqual(await found(['--contains', '{"kind":"a"}']), [a]);
  assert.deepEqual(await found(['--parent', a]), [b]);
  assert.deepEqual(await found(['--ring-id', ring.id]), [b, a]);
  assert.deepEqual(await found(['--account', 'admin']), []);
  assert.deepEqual(await found(['--start', '2026-01-02T03:04:05.679Z']), []);
  assert.deepEqual(await found(['--end', '1767323045678']), [b, a]);
  assert.equal(
    (await d.kms(`asset show ${b}`)).stdout,
    `id       ${b}\ncreated  2026-01-02T03:04:05.678Z\nparents  ${a}\ndata     {"kind":"b"}\n`,
  );
  assert.equal((await d.kms(`asset delete ${b} --yes`)).stdout, `${b} is deleted\n`);
  assert.deepEqual(await found([]), [a]);
});

test('activity: search by each filter, show', async () => {
  await using d = await servedDesk();
  const { key, keyid } = await d.appliance.keyWith('keyring.r.encrypt');
  await d.json('keyring create r --json');
  const { args, env } = d.network(key);
  assert.equal((await d.kms([...args, 'encrypt', '--ring', 'r', '-o', 'x'], { env, stdin: '' })).code, 0);
  assert.equal((await d.kms([...args, 'decrypt', 'x'], { env })).code, 1);
  interface Row {
    readonly id: string;
    readonly action: string;
    readonly validAction: boolean;
  }
  const found = async (line: string): Promise<Row[]> =>
    (await d.json<{ data: Row[] }>(`activity search --json ${line}`)).data;
  assert.deepEqual(
    (await found(`--keyid ${keyid}`)).map(({ action, validAction }) => [action, validAction]),
    [
      ['keyring.decrypt', false],
      ['keyring.encrypt', true],
    ],
  );
  assert.deepEqual(
    (await found('--valid false')).map(({ action }) => action),
    ['keyring.decrypt'],
  );
  assert.deepEqual((await found('--ring r --action keyring.encrypt --account admin')).length, 1);
  assert.equal((await found('--limit 2')).length, 2);
  const [denied] = await found('--valid false');
  assert.equal(
    (await d.kms(`activity show ${denied?.id}`)).stdout,
    `id       ${denied?.id}\ntime     2026-01-02T03:04:05.678Z\nby       ${keyid}\naction   keyring.decrypt\nring     r\nverdict  denied\nstatus   403\nprops    {}\n`,
  );
  assert.match(
    (await d.kms('activity search --limit 1')).stdout,
    /^TIME +VERDICT +ACTION +RING +BY +ABOUT +FROM +STATUS +ID\n/,
  );
});

test('activity: what was done, to what, from where', async () => {
  await using d = await servedDesk();
  const actions = async (line: string): Promise<string[]> =>
    (await d.json<{ data: { action: string }[] }>(`activity search --json ${line}`)).data.map(({ action }) => action);
  await d.kms('account create billing');
  const { keyid } = await d.json<{ keyid: string }>(
    'apikey create --account billing --flag keyring.*.decrypt --flag keyring.r.encrypt --json',
  );
  await d.appliance.call(
    'PUT',
    '/auth/apikeyid',
    { op: 'delete', apikeyid: keyid, flags: { 'keyring.*.decrypt': true } },
    {
      env: { remoteAddress: '203.0.113.7' },
    },
  );
  assert.deepEqual(await actions('--granted'), ['apikey.create']);
  assert.deepEqual(await actions('--granted keyring.pay.decrypt'), ['apikey.create']);
  assert.deepEqual(await actions('--granted user.read'), []);
  assert.deepEqual(await actions('--revoked --granted'), []);
  assert.deepEqual(await actions('--revoked'), ['apikey.update']);
  assert.deepEqual(await actions('--object billing'), ['account.create']);
  assert.deepEqual(await actions(`--object ${keyid}`), ['apikey.update', 'apikey.create']);
  assert.deepEqual(await actions('--address 203.0.113.0/24'), ['apikey.update']);
  assert.ok((await actions('--all')).includes('activity.read'));
  assert.deepEqual(
    (await actions('--exclude-action activity.read --exclude-keyid local')).filter((each) => each === 'activity.read'),
    [],
  );
  assert.match(
    (await d.kms('activity search --address x')).stderr,
    /^kms: --address: expected an IPv4 or IPv6 address/,
  );
  const [{ id } = assert.fail()] = (await d.json<{ data: { id: string }[] }>('activity search --revoked --json')).data;
  const shown = (await d.kms(`activity show ${id}`)).stdout;
  assert.match(shown, /^from +203\.0\.113\.7$/m);
  assert.match(shown, new RegExp(`^about +apikey ${keyid}$`, 'm'));
  assert.match(shown, /^changed +flags\nrevoked +keyring\.\*\.decrypt$/m);
});

/** Commands that ask no appliance, work on a sealed one, or wait until it answers. */
const askNone = [
  ...[
    'init',
    'serve',
    'status',
    'doctor',
    'upgrade',
    'tls',
    'inspect',
    'kubernetes-plugin',
    'tofu-provider',
    'schema',
    'restore',
    'move',
    'drill',
  ],
  ...['standby', 'unseal', 'seal', 'backup verify', 'age-plugin', 'profile', 'completion', 'man', 'help', 'licenses'],
  'version',
];

/** The error if an example's file, directory or command is missing, which is noticed before the appliance is asked. */
const isOfExample = /^kms: (?:cannot read (?!the private key)|cannot write |the command )[^\n]*there is no such /;

test('every command for an appliance ends with exit code 4 where that is sealed, and prints nothing', async () => {
  await using d = await desk();
  const env = { KMS_PASSPHRASE: 'correct horse battery staple' };
  const { apiKey } = await d.json<{ apiKey: { key: string } }>('init --custodian passphrase --json', { env });
  const server = await serving(d, [], env);
  await using _ = { [Symbol.asyncDispose]: async () => void (await server.stop()) };
  for (const ring of ['payroll', 'state']) assert.equal((await d.kms(`keyring create ${ring}`)).code, 0);
  await writeFile(d.path('report.pdf'), 'x');
  await writeFile(d.path('key.txt'), apiKey.key, { mode: 0o600 });
  assert.equal((await d.kms('encrypt --ring payroll -o report.pdf.kms report.pdf')).code, 0);
  assert.equal((await d.kms('seal')).code, 0);
  // Files that the examples write and that must not exist yet.
  const written = { encrypt: { 'report.pdf.kms': 'new.kms' }, decrypt: { 'report.pdf': 'new.pdf' } };
  const inputs: Readonly<Record<string, string>> = { 'tofu-key': 'null', 'secret put': '{"password":"x"}' };
  let asked = 0;
  for (const leaf of leavesOf(grammar())) {
    const name = leaf.fullName().split(' ').slice(1).join(' ');
    if (askNone.some((each) => name === each || name.startsWith(`${each} `))) continue;
    const places: Readonly<Record<string, string>> = Object(Object(written)[name]);
    for (const example of leaf.examples) {
      const [words = []] = callsIn(example);
      // Skips examples for another server, with a wait, or with input that a shell provides.
      if (words.includes('--server') || words.includes('--watch')) continue;
      // It ends a choice of this user's, which no appliance knows of.
      if (name === 'tenant use' && words.includes('--none')) continue;
      if (name === 'decrypt' && !words.includes('report.pdf.kms')) continue;
      const args = words.map((word) => places[word] ?? word);
      if (leaf.options.some(({ long }) => long === '--yes')) args.push('--yes');
      // Over the network a client retries for a while.
      const isShort = ['encrypt', 'decrypt', 'keyring create', 'keyring show', 'age recipient'].includes(name);
      for (const way of isShort ? [[], ['--server', server.url, '--api-key-file', 'key.txt']] : [[]]) {
        const line = [...args, ...way];
        const stdin = inputs[name] ?? apiKey.key;
        const ran = await d.kms(line, { stdin });
        const said = name === 'tofu-key' ? /^\{"magic":"OpenTofu-External-Key-Provider","version":1\}\n$/ : /^$/;
        if (isOfExample.test(ran.stderr)) continue;
        assert.equal(ran.code, 4, `${line.join(' ')}: ${ran.stderr}`);
        assert.match(ran.stdout, said, line.join(' '));
        assert.match(ran.stderr, /^kms: [^\n]*\bsealed\b[^\n]*; [^\n]*unseal[^\n]*\n$/, line.join(' '));
        asked++;
      }
    }
  }
  assert.ok(asked >= 80, String(asked));
});

test('a sealed server is exit code 4, one that answers that it cannot write is 1', async () => {
  await using d = await servedDesk({
    sealed: () => true,
    ready: () => ({ ok: false, reason: 'the appliance is sealed' }),
  });
  assert.equal((await d.kms('keyring list')).code, 4);
  const { args, env } = d.network();
  assert.equal((await d.kms(['keyring', 'list', ...args], { env })).code, 4);
  assert.equal((await d.kms(['status', ...args])).code, 4);
  await using other = await servedDesk({ ready: () => ({ ok: false, reason: 'the disk is full' }) });
  const full = await other.kms(['status', ...other.network().args]);
  assert.deepEqual([full.code, full.stdout, full.stderr], [1, '', 'kms: the disk is full\n']);
});

test('several tenants: a local command names one', async () => {
  const tenants = [
    { name: 'default', hosts: ['*'] },
    { name: 'blue', hosts: ['blue.example'] },
  ];
  await using d = await servedDesk({ tenants });
  const { code, stderr } = await d.kms('keyring list');
  assert.deepEqual(
    [code, stderr],
    [
      2,
      'kms: name a tenant with --tenant, one of: default, blue; ' +
        '`kms tenant use NAME` makes one the default for later commands\n',
    ],
  );
  assert.equal((await d.kms('keyring create r --tenant blue')).code, 0);
  assert.equal((await d.json<{ data: unknown[] }>('keyring list --tenant default --json')).data.length, 0);
  assert.equal(
    (await d.json<{ data: unknown[] }>('keyring list --json', { env: { KMS_TENANT: 'blue' } })).data.length,
    1,
  );
});

test('the secret of a new API key can go into a file that only its user can read', async () => {
  await using d = await desk();
  await d.kms('init');
  const { code, stdout, stderr } = await d.kms('apikey create --account admin --flag keyring.list --secret-out a.key');
  assert.equal(code, 0, stderr);
  const secret = await readFile(d.path('a.key'), 'utf8');
  assert.match(secret, /^kms_\w{49}\n$/);
  assert.ok(!stdout.includes(secret.trim()) && !stderr.includes(secret.trim()));
  assert.equal(stderr, `kms: the key is in ${d.path('a.key')}, and nowhere else\n`);
  assert.equal((await stat(d.path('a.key'))).mode & 0o777, 0o600);
  assert.equal((await d.kms('apikey validate', { stdin: secret })).code, 0);

  const before = (await d.json<{ data: unknown[] }>('apikey list --json')).data.length;
  const again = await d.kms('apikey create --account admin --secret-out a.key');
  assert.deepEqual([again.code, again.stdout], [1, '']);
  assert.match(again.stderr, /exists already/);
  const nowhere = await d.kms('apikey create --account nobody --secret-out b.key');
  assert.equal(nowhere.code, 1);
  await assert.rejects(stat(d.path('b.key')));
  assert.equal((await d.json<{ data: unknown[] }>('apikey list --json')).data.length, before);
  const answer = await d.json<object>('apikey create --account admin --secret-out c.key --json');
  assert.deepEqual(
    Object.keys(answer).sort(),
    [
      ...['active', 'allowedAddresses', 'createdAt', 'createdBy', 'expiresAt', 'flags', 'keyid', 'lastUsedAt', 'name'],
      ...['props', 'references', 'updatedAt'],
    ],
    'all of the answer but the secret',
  );
});

test('at a terminal a flag on a keyring or managed key that is not there is warned about', async () => {
  await using d = await desk();
  for (const line of ['init', 'keyring create payroll', 'key create unseal']) assert.equal((await d.kms(line)).code, 0);
  const tty = { stderr: true };
  const made = await d.kms(
    'apikey create --account admin --flag keyring.payrol.encrypt --flag key.unsael.encrypt --flag key.*.decrypt ' +
      '--flag keyring.payroll.decrypt --flag keyring.faraway.read',
    { tty },
  );
  assert.equal(made.code, 0);
  const yet = 'yet: its flags count once there is one';
  assert.deepEqual(made.stderr.match(/^kms: warning: .*/gm), [
    `kms: warning: there is no keyring payrol ${yet}; did you mean payroll?`,
    `kms: warning: there is no managed key unsael ${yet}; did you mean unseal?`,
    `kms: warning: there is no keyring faraway ${yet}`,
  ]);
  const user = await d.kms('user create ada --email a@x.example --first-name A --last-name B --flag key.unsael.read', {
    tty,
  });
  assert.match(user.stderr, /there is no managed key unsael yet/);
  assert.doesNotMatch((await d.kms('apikey create --account admin --flag key.unsael.read')).stderr, /warning/);
});
