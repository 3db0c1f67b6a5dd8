// `kms user` as typed: users, invites, reset links and second factors, and the options of `serve` for mail.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import { appCode } from '../support/authenticator.ts';
import { startSmtpServer, textOf } from '../support/smtp-server.ts';
import { desk, typed } from './kms.ts';
import { servedDesk } from './served.ts';
import { serving } from './serving.ts';

interface User {
  readonly id: string;
  readonly username: string;
  readonly displayName: string;
  readonly email: string;
  readonly flags: Record<string, boolean>;
}

const ada = '--email ada@x.example --first-name Ada --last-name Lovelace';

test('users: create, list, show, update, delete', async () => {
  await using d = await servedDesk();
  const made = await d.kms(`user create ada ${ada} --flag keyring.list --json`);
  assert.equal(made.stderr, 'kms: the password is shown this once\n');
  const { user, password }: { user: User; password: string } = JSON.parse(made.stdout);
  assert.deepEqual([user.displayName, user.flags], ['Ada Lovelace', { 'keyring.list': true }]);
  const login = await d.appliance.call('POST', '/auth/basic/login', { username: 'ada', password }, { key: null });
  assert.equal(login.status, 200);

  const { user: loggedIn } = login.body;
  assert.deepEqual(loggedIn, { ...user, lastLoginAt: loggedIn.lastLoginAt });
  assert.deepEqual(await d.json('user show ADA --json'), loggedIn);
  assert.deepEqual(await d.json('user show ada@x.example --by-email --json'), loggedIn);
  assert.equal(
    (await d.kms('user list')).stdout,
    `USERNAME  NAME          STATE   LAST LOGIN                EMAIL          FLAGS         ID
ada       Ada Lovelace  active  2026-01-02T03:04:05.678Z  ada@x.example  keyring.list  ${user.id}
`,
  );
  assert.deepEqual(
    (await d.json<User>('user update ada --email a@x.example --flag asset.read --flag asset.search --json')).flags,
    { 'asset.read': true, 'asset.search': true },
  );
  assert.deepEqual((await d.json<User>('user update ada --clear-flags --json')).flags, {});
  assert.equal((await d.json<User>('user show ada --json')).email, 'a@x.example');
  assert.deepEqual((await d.kms('user update ada')).code, 2);
  assert.deepEqual((await d.kms('user update ada --clear-flags --flag x')).code, 2);
  assert.match(
    (await d.kms('user delete ada')).stderr,
    /^kms: this deletes the user ada for good and ends the user's sessions, .*--yes/,
  );
  assert.equal((await d.kms(`user delete ${user.id} --id --yes`)).stdout, 'the user ada is deleted\n');
  assert.equal((await d.kms('user show ada')).stderr, 'kms: there is no such user; check the name or id\n');
});

test('whoever deletes a user is told first which API keys end with the user, and may hand them to another', async () => {
  await using d = await servedDesk();
  const tty = { stdin: true, stdout: true, stderr: true };
  const person = async (name: string): Promise<User> =>
    (await d.json<{ user: User }>(`user create ${name} --email ${name}@x.example --first-name A --last-name B --json`))
      .user;
  const [grace] = [await person('grace'), await person('ada')];
  const keyOf = async (name: string, owner: string): Promise<string> => {
    const { keyid } = await d.json<{ keyid: string }>([
      'apikey',
      'create',
      '--account',
      'admin',
      '--name',
      name,
      '--json',
    ]);
    await d.json(`apikey update ${keyid} --owner ${owner} --json`);
    return keyid;
  };
  const keys = async (name: string): Promise<readonly string[]> =>
    (await d.json<{ keys: string[] }>(`user show ${name} --json`)).keys;
  const isActive = async (keyid: string) => (await d.json<{ active: boolean }>(`apikey show ${keyid} --json`)).active;
  const question = (rest: string): string => `This deletes the user ada for good${rest}. Go on? [y/N] `;
  const ends = question(" and ends the user's sessions");
  const ask = (line: string, answer: string) => d.kms(line, { tty, stdin: typed(answer) });
  const no = 'kms: not confirmed; nothing was done\n';

  const none = await ask('user delete ada', 'n\n');
  assert.equal(none.stderr, `The user has no active API key.\n${ends}${no}`);
  const nightly = await keyOf('nightly', 'ada');
  const revoked = await keyOf('revoked', 'ada');
  await d.kms(`apikey revoke ${revoked}`);
  const id = `apik_…${nightly.slice(-6)}`;
  const rows = `NAME     ID            ACTIVE  FLAGS  LAST USED  EXPIRES\nnightly  ${id}  yes            never      never\n`;
  for (const line of ['user delete ada', `user delete ${(await d.json<User>('user show ada --json')).id} --id`]) {
    const { stderr } = await ask(line, 'n\n');
    assert.ok(
      stderr.startsWith(
        `These API keys are disabled with the user:\n${rows}${ends}`.replace(
          'the user ada',
          line.replace('user delete', 'the user').replace(' --id', ''),
        ),
      ),
      stderr,
    );
  }
  const handing = await ask('user delete ada --hand-keys-to grace', 'n\n');
  const deed = question(", ends the user's sessions and hands the user's API keys to grace");
  assert.equal(handing.stderr, `These API keys go to grace:\n${rows}${deed}${no}`);
  assert.doesNotMatch(handing.stderr, /only user/);
  assert.equal((await ask('user delete nobody', 'y\n')).stderr, 'kms: there is no such user; check the name or id\n');

  // Nothing is done if the heir can't be one.
  for (const [heir, code] of [
    ['nobody', 1],
    ['ADA', 2],
  ]) {
    assert.equal((await d.kms(`user delete ada --yes --hand-keys-to ${heir}`)).code, code);
    assert.deepEqual(await keys('ada'), [nightly, revoked]);
  }
  const done = await ask('user delete ada --hand-keys-to Grace', 'y\n');
  assert.deepEqual([done.code, done.stdout], [0, 'the user ada is deleted\n']);
  assert.deepEqual(await keys('grace'), [nightly], 'one that was revoked ends');
  assert.equal(await isActive(nightly), true);
  assert.equal((await d.kms(`user delete ${grace?.id} --id --yes`)).code, 0);
  assert.equal(await isActive(nightly), false);

  const boss = await d.json<{ user: User }>(`user create boss ${ada} --flag * --json`);
  await person('other');
  const last = 'boss is the only user who may do everything.';
  assert.ok((await ask('user delete boss', 'n\n')).stderr.includes(`\n${last}\nThis deletes `));
  assert.ok((await ask(`user delete ${boss.user.id} --id`, 'n\n')).stderr.includes(`\n${last}\n`));
  assert.doesNotMatch((await ask('user delete other', 'n\n')).stderr, /only user/);
  await d.kms('user update other --flag *');
  assert.doesNotMatch((await ask('user delete boss', 'n\n')).stderr, /only user/);
  for (const name of ['boss', 'other']) assert.equal((await d.kms(`user delete ${name} --yes`)).code, 0);

  // A long list is shortened.
  await person('many');
  for (let i = 0; i < 22; i++) await keyOf(`key ${i}`, 'many');
  const { stderr } = await ask('user delete many', 'n\n');
  assert.equal(stderr.match(/^key \d+ +apik_/gm)?.length, 20);
  assert.match(
    stderr,
    /\nand others\nmany is the only user: a new first one needs the link of `kms user set-up-link`\.\nThis deletes /,
  );
});

for (const [line, stderr] of [
  ['user create ada', 'kms: --email, --first-name and --last-name are missing; see `kms user create --help`\n'],
  [
    'user invite ada --email a@x.example',
    'kms: --first-name and --last-name are missing; see `kms user invite --help`\n',
  ],
  [
    'serve --access-ttl 1',
    'kms: --access-ttl: expected a duration such as 30s, 15m, 12h or 7d, got "1"; see `kms serve --help`\n',
  ],
  [
    'serve --reset-ttl 0s',
    'kms: --reset-ttl: expected a duration such as 30s, 15m, 12h or 7d, got "0s"; see `kms serve --help`\n',
  ],
  [
    'serve --invite-ttl 9999999d',
    'kms: --invite-ttl: expected a duration such as 30s, 15m, 12h or 7d, got "9999999d"; see `kms serve --help`\n',
  ],
  [
    'serve --session-max -1h',
    'kms: --session-max: expected a duration such as 30s, 15m, 12h or 7d, got "-1h"; see `kms serve --help`\n',
  ],
  ['serve --smtp-from a@x.example', 'kms: --smtp-from goes with --smtp-url; see `kms serve --help`\n'],
  [
    'serve --smtp-url smtp://x',
    'kms: --smtp-from is missing: the address that mail comes from; see `kms serve --help`\n',
  ],
  [
    'serve --smtp-url smtp://x --smtp-from nobody',
    'kms: --smtp-from: expected one address, such as kms@example.org; see `kms serve --help`\n',
  ],
] as const) {
  test(`wrong usage, and nothing made: ${line}`, async () => {
    await using d = await desk();
    const ran = await d.kms(line);
    assert.deepEqual([ran.code, ran.stdout, ran.stderr], [2, '', stderr]);
  });
}

test('a mail server’s password has no place on the command line, nor in an error', async () => {
  await using d = await desk();
  const typed = await d.kms('serve --smtp-url smtp://me:s3cret@mail.example --smtp-from kms@x.example');
  assert.equal(typed.code, 2);
  await writeFile(d.path('smtp'), 'imap://me:s3cret@mail.example\n', { mode: 0o600 });
  const wrong = await d.kms('serve --smtp-url-file smtp --smtp-from kms@x.example');
  assert.equal(wrong.code, 2);
  for (const { stdout, stderr } of [typed, wrong]) {
    assert.equal(stdout, '');
    assert.ok(!stderr.includes('s3cret'), stderr);
  }
});

test('without mail an invite and a reset link carry the whole way in', async () => {
  await using d = await desk();
  const server = await serving(d);
  const post = async (path: string, body: object): Promise<[number, Record<string, unknown>]> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return [response.status, (await response.json()) as Record<string, unknown>];
  };
  const early = await d.kms('user reset-link ada');
  assert.deepEqual([early.code, early.stderr], [1, 'kms: there is no such user; check the name or id\n']);
  const invited = await d.kms(`user invite ada ${ada}`);
  const [, invite = ''] = /^invite {2}(http\S+)\n$/.exec(invited.stdout) ?? [];
  assert.ok(invite.startsWith(`${server.url}/console/invite?token=`));
  const tokenOf = (url: string): string => new URL(url).searchParams.get('token') ?? '';
  const done = await post('/auth/user/invite-complete', { token: tokenOf(invite), password: 'Corr3ct horse' });
  assert.equal(done[0], 200);

  for (const line of ['user reset-link ada --json', 'user reset-link ada@x.example --by-email --json']) {
    const link = await d.json<{ username: string; resetUrl: string; expiresAt: string }>(line);
    assert.equal(link.username, 'ada');
    const password = `N3w horse ${line.length}`;
    const reset = await post('/auth/basic/reset-password-complete', { token: tokenOf(link.resetUrl), password });
    assert.deepEqual(reset, [200, {}]);
    assert.equal((await post('/auth/basic/login', { username: 'ada', password }))[0], 200);
  }
  await server.stop();
});

test('who lost their second factor gets in with the password again', async () => {
  await using d = await desk();
  const server = await serving(d);
  const { password } = await d.json<{ password: string }>(`user create ada ${ada} --json`);
  const post = async (path: string, body: object, key = ''): Promise<[number, Record<string, string>]> => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return [response.status, (await response.json()) as Record<string, string>];
  };
  const login = () => post('/auth/basic/login', { username: 'ada', password });
  const [, { accessToken = '' }] = await login();
  const [, begun] = await post('/auth/user/second-factors/totp', { currentPassword: password }, accessToken);
  const code = appCode(begun.secret ?? '', Date.now());
  const path = '/auth/user/second-factors/totp/finish';
  assert.equal((await post(path, { id: begun.id, code }, accessToken))[0], 200);
  assert.equal((await login())[0], 400);
  const reset = await d.kms('user reset-second-factor ada --yes');
  assert.deepEqual(
    [reset.code, reset.stdout, reset.stderr],
    [0, '1 second factor of ada removed; sessions have ended\n', ''],
  );
  assert.equal((await login())[0], 200);
  assert.deepEqual(await d.json('user reset-second-factor ada@x.example --by-email --yes --json'), {
    username: 'ada',
    removed: 0,
  });
  const { data } = await d.json<{ data: { keyid: string }[] }>(
    'activity search --action user.reset-second-factor --json',
  );
  assert.deepEqual(
    data.map(({ keyid }) => keyid),
    ['local', 'local'],
  );
  assert.deepEqual((await d.kms('user reset-second-factor nobody --yes')).code, 1);
  await server.stop();
});

test('serve takes lifetimes and a mail server', async () => {
  await using d = await desk();
  const smtp = await startSmtpServer();
  const env = { KMS_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`, KMS_SMTP_FROM: 'kms@x.example' };
  const server = await serving(d, ['--invite-ttl', '2d', '--reset-ttl', '15m'], env);
  await d.json(`user invite ada ${ada} --json`);
  const [mail] = await smtp.mails(1);
  assert.ok(mail);
  assert.deepEqual([mail.from, mail.to], ['kms@x.example', ['ada@x.example']]);
  const [, until = ''] = /until (\S+ \S+) UTC/.exec(textOf(mail)) ?? [];
  const left = Date.parse(`${until.replace(' ', 'T')}:00Z`) - Date.now();
  assert.ok(left > 1.9 * 86_400_000 && left <= 2 * 86_400_000, until);
  await server.stop();
  await smtp.close();
});

test('what nobody has served yet has no address, though it may have a host', async () => {
  await using d = await desk();
  await d.kms('init --host kms.example');
  const { stdout, stderr } = await d.kms('user set-up-link');
  assert.match(stdout, /http:\/\/kms\.local\/console/);
  assert.match(stderr, /not been served yet/);
});

test('who makes users of whom none may do everything is told, since the set-up link ended', async () => {
  await using d = await desk();
  await d.json('init --json');
  const create = (name: string, more = '') =>
    d.kms(`user create ${name} --email ${name}@x.example --first-name A --last-name B${more}`, {
      tty: { stderr: true },
    });
  const warning =
    'kms: warning: no user may do everything, and the set-up link works no longer; ' +
    "`kms user update NAME --flag '*'` lets this one\n";
  const said = 'kms: the password is shown this once\n';
  assert.equal((await create('olga')).stderr, said + warning.replace('NAME', 'olga'));
  const invited = 'user invite ruth --email ruth@x.example --first-name A --last-name B';
  assert.ok((await d.kms(invited, { tty: { stderr: true } })).stderr.endsWith(warning.replace('NAME', 'ruth')));
  assert.equal(
    (await d.kms(invited.replaceAll('ruth', 'ada'))).stderr.includes('warning'),
    false,
    'programs list nobody',
  );
  assert.equal((await create('grace', ' --flag *')).stderr, said);
  assert.equal((await create('emmy', ' --flag keyring.list')).stderr, said);
});

test('after init there is a way to the first user, until there is one', async () => {
  await using d = await desk();
  await d.kms('init');
  const early = await d.kms('user set-up-link');
  assert.match(early.stdout, /http:\/\/kms\.local\//);
  assert.match(
    early.stderr,
    /not been served yet: put the address that it will have in place of http:\/\/kms\.local\n/,
  );
  const first = await serving(d);
  const { url } = await d.json<{ url: string }>('user set-up-link --json');
  assert.ok(url.startsWith(`${first.url}/console/set-up?token=kmssu_`));
  const token = new URL(url).searchParams.get('token');
  const person = { username: 'ada', email: 'ada@x.example', firstName: 'Ada', lastName: 'Lovelace' };
  const made = await fetch(`${first.url}/auth/user/set-up-complete`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...person, token, password: 'Corr3ct horse' }),
  });
  assert.equal(made.status, 200);
  const late = await d.kms('user set-up-link');
  assert.deepEqual([late.code, late.stdout], [1, '']);
  assert.equal(
    late.stderr,
    'kms: there is a user already, who can invite others if their permissions allow it; ' +
      "to give one all permissions: `kms user update NAME --flag '*'`\n",
  );
  const hint = /there is no user yet: `kms user set-up-link`/;
  const shown = (await first.stop()).stderr;
  assert.match(shown, hint);
  assert.doesNotMatch(shown, /kmssu_/);
  assert.equal((await (await serving(d, ['--log-level', 'info'])).stop()).stderr.includes('set-up'), false);
});
