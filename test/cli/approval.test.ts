// `kms approval` as typed: rules, requests, decisions of users at the terminal and on stdin, and broken glass.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import test from 'node:test';
import type { ApprovalRequest, ApprovalRule, BrokenGlass } from '../../src/api/approvals.ts';
import { addPasskey, addTotp, type Person, person } from '../http/samples.ts';
import { Authenticator, appCode } from '../support/authenticator.ts';
import type { Ran } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

interface Approver extends Person {
  readonly name: string;
  readonly secret: string;
}

/** A user with an app that shows codes, whose next one is a new one. */
async function approver({ appliance }: ServedDesk, flags: Record<string, boolean> = {}): Promise<Approver> {
  const one = await person(appliance, flags);
  const { secret } = await addTotp(appliance, one);
  appliance.advance(60_000);
  return { ...one, secret, name: one.user.username };
}

/** A code that was not used before. */
function codeOf({ appliance }: ServedDesk, { secret }: Approver): string {
  appliance.advance(30_000);
  return appCode(secret, appliance.world.now());
}

function requestIn({ stderr, code }: Ran): string {
  assert.equal(code, 1, stderr);
  const [, id] = /kms approval show (appr_[0-9a-z]{26})`/.exec(stderr) ?? [];
  return id ?? assert.fail(stderr);
}

test('a rule: made of presets, listed, shown, changed and deleted', async () => {
  await using d = await servedDesk();
  const [ada, bob] = [(await person(d.appliance)).user, (await person(d.appliance)).user];
  const made = await d.kms([
    ...'approval rule create deletions --preset delete-keys --preset export-keys'.split(' '),
    ...`--action apikey.delete --approver ${ada.username}`.split(' '),
  ]);
  assert.equal(made.code, 0, made.stderr);
  assert.match(
    made.stdout,
    /^actions +keyring\.\*\.delete key\.\*\.delete key\.\*\.erase-material tang\.delete tenant\.delete key\.\*\.export apikey\.delete$/m,
  );
  assert.match(
    made.stderr,
    /^kms: warning: no approver can approve now, and it takes 1: each needs a second factor, and the rule must vouch for them \(kms approval rule update --vouch\)\n$/,
  );
  assert.match((await d.kms('approval rule list')).stdout, /^deletions +1 +\S+ +ask +once +keyring/m);
  const rule = await d.json<ApprovalRule>('approval rule show deletions --json');
  assert.deepEqual([rule.count, rule.mode, rule.window], [1, 'ask', 'once']);
  requestIn(await d.kms('approval rule update deletions --count 1'));
  const glass = 'approval break-glass --reason testing --json --';
  const changed = await d.json<ApprovalRule>(
    `${glass} approval rule update ${rule.id} --rename keys --count 2 --mode hold --window 2h --breaker ${ada.username} ` +
      `--approver ${ada.username} --approver ${bob.id} --object pay*`,
  );
  assert.deepEqual(
    [changed.name, changed.count, changed.mode, changed.window, changed.objects],
    ['keys', 2, 'hold', 7200, ['pay*']],
  );
  assert.match((await d.kms('approval rule show keys')).stdout, /^window +2h$/m);
  assert.match((await d.kms('approval rule presets')).stdout, /^make-administrators +Making an administrator/m);
  assert.match((await d.kms('approval rule delete keys')).stderr, /there is no terminal to ask at; add --yes/);
  assert.equal(
    (await d.kms(`${glass.replace('--json ', '')} approval rule delete keys --yes`)).stdout,
    'the rule keys is deleted\n',
  );
  assert.match((await d.kms('approval rule list')).stderr, /^kms: no rules/);
});

test('what waits for approval says which request waits, and is done once two users approved it', async () => {
  await using d = await servedDesk();
  const give = { 'approval.give': true };
  const [ada, bob] = [await approver(d, give), await approver(d, give)];
  await d.kms('keyring create payroll');
  await d.kms('approval rule create deletions --preset delete-keys --approver-flag approval.give --count 2');
  const refused = await d.kms(['keyring', 'delete', 'payroll', '--yes', '--reason', 'it leaked, für immer']);
  const id = requestIn(refused);
  assert.match(refused.stderr, /the approval of 2 others/);
  const seen = await d.json<ApprovalRequest>(`approval show ${id} --json`);
  assert.deepEqual([seen.reason, seen.state, seen.needed], ['it leaked, für immer', 'pending', 2]);
  assert.match(
    (await d.kms('approval list --state pending')).stdout,
    new RegExp(`^${id} +pending +0 of 2 +keyring\\.payroll\\.delete`, 'm'),
  );

  // On stdin: the password, then the code.
  const approved = await d.kms(`approval approve ${id} --user ${ada.name} --reason fine`, {
    stdin: `${ada.password}\n${codeOf(d, ada)}\n`,
  });
  assert.equal(approved.code, 0, approved.stderr);
  assert.match(approved.stdout, /^approvals +1 of 2$/m);
  assert.match(approved.stdout, /^decision +approved by \S+, .*, with a code: fine$/m);
  assert.equal(requestIn(await d.kms('keyring delete payroll --yes')), id);

  // At a terminal, without echo.
  const stdin = new PassThrough();
  const answers: Record<string, () => string> = {
    'user name: ': () => bob.name,
    'password: ': () => bob.password,
    'code from your app: ': () => codeOf(d, bob),
  };
  const typed = await d.kms(`approval approve ${id}`, {
    stdin,
    tty: { stdin: true, stderr: true },
    onStderr: (text) => {
      const answer = answers[text];
      if (answer) setImmediate(() => stdin.write(`${answer()}\n`));
    },
  });
  assert.equal(typed.code, 0, typed.stderr);
  assert.doesNotMatch(typed.stderr, new RegExp(bob.password.replace(/\W/g, '\\$&')));
  assert.match(typed.stdout, /^state +granted$/m);

  assert.equal((await d.kms('keyring delete payroll --yes')).code, 0);
  assert.equal((await d.json<ApprovalRequest>(`approval show ${id} --json`)).state, 'done');
  const sessions = await d.appliance.call('POST', '/auth/search/activity', { action: 'session.end' });
  assert.equal(sessions.body.data.length, 2, 'each login was ended');

  // The export proves it.
  assert.equal((await d.kms('activity export -o activity.jsonl', { cwd: d.dir })).code, 0);
  const verified = await d.kms('activity verify --file activity.jsonl', { cwd: d.dir });
  assert.equal(verified.code, 0, verified.stderr);
  assert.match(
    verified.stdout,
    new RegExp(`record \\d+: keyring\\.delete by local, approved as ${id}\\n  by ${ada.user.id} in record`),
  );
});

test('a moment that is counted from an age is the same in the next run', async () => {
  await using d = await servedDesk();
  const ada = await approver(d);
  for (const thing of ['account create shop', 'key create dated', 'key create other']) await d.kms(thing);
  await d.kms(['approval', 'rule', 'create', 'all', '--action', '*', '--approver', ada.name]);
  // Each approval sets the clock forward.
  d.appliance.advance(Date.now() - d.appliance.world.now() - 150_000);
  const runs: readonly (readonly [typed: string, others: readonly string[]])[] = [
    [
      'apikey create --account shop --name svc --expires 90d',
      ['apikey create --account shop --name svc --expires 91d'],
    ],
    ['key create NEW --deactivate-at 90d', ['key create NEW --deactivate-at 30d', 'key create x --deactivate-at 90d']],
    ['key config dated --deactivate-at 90d', ['key config other --deactivate-at 90d']],
    ['approval rule create NEW --preset export-keys --approver-flag approval.give --expires 30d', []],
    ['approval rule update all --expires 30d', []],
  ];
  const network = d.network();
  for (const [name, { args, env }] of [
    ['here', { args: [], env: {} }],
    ['there', network],
  ] as const) {
    for (const [typed, others] of runs) {
      const run = (line: string) => d.kms([...args, ...line.replace('NEW', name).split(' ')], { env });
      const id = requestIn(await run(typed));
      assert.equal(requestIn(await run(typed)), id, typed);
      for (const other of others) assert.notEqual(requestIn(await run(other)), id, other);
      const stdin = `${ada.password}\n${codeOf(d, ada)}\n`;
      const approved = await d.kms(`approval approve ${id} --user ${ada.name}`, { stdin });
      assert.equal(approved.code, 0, approved.stderr);
      const { code, stderr } = await run(typed);
      assert.equal(code, 0, `${typed}: ${stderr}`);
    }
  }
});

test('a denied or withdrawn request is over; a wrong code is refused', async () => {
  await using d = await servedDesk();
  const ada = await approver(d);
  await d.kms('keyring create payroll');
  await d.kms(`approval rule create deletions --preset delete-keys --approver ${ada.name}`);
  const first = requestIn(await d.kms('keyring delete payroll --yes'));
  await writeFile(d.path('ada.password'), `${ada.password}\n`, { mode: 0o600 });
  const login = ['--user', ada.name, '--password-file', d.path('ada.password')];
  const wrong = await d.kms(['approval', 'deny', first, ...login], { stdin: '000000\n' });
  assert.equal(wrong.code, 1);
  assert.equal((await d.json<ApprovalRequest>(`approval show ${first} --json`)).state, 'pending');
  const denied = await d.kms(['approval', 'deny', first, ...login], {
    stdin: codeOf(d, ada),
  });
  assert.match(denied.stdout, /^state +denied$/m);
  const second = requestIn(await d.kms('keyring delete payroll --yes'));
  assert.notEqual(second, first);
  assert.match((await d.kms(`approval withdraw ${second}`)).stdout, /^state +withdrawn$/m);
  assert.match(
    (await d.kms(['approval', 'approve', second, ...login])).stderr,
    /expected the code from your app as a line of stdin/,
  );
  assert.match((await d.kms(`approval approve ${second} --password-file x`)).stderr, /--user is missing/);
});

test('with an access token there is no login; a code is asked for once the second factor is not fresh', async () => {
  await using d = await servedDesk();
  const ada = await approver(d);
  await d.kms('keyring create payroll');
  await d.kms(`approval rule create deletions --preset delete-keys --approver ${ada.name}`);
  const id = requestIn(await d.kms('keyring delete payroll --yes'));
  const login = { username: ada.name, password: ada.password, code: codeOf(d, ada) };
  const { accessToken } = (await d.appliance.call('POST', '/auth/basic/login', login, { key: null })).body;
  d.appliance.advance(301_000);
  const { args, env } = d.network(accessToken);
  const approved = await d.kms(['approval', 'approve', id, ...args], { env, stdin: codeOf(d, ada) });
  assert.equal(approved.code, 0, approved.stderr);
  assert.match(approved.stdout, /^state +granted$/m);
});

test('a passkey works in the console alone, which is said with its address', async () => {
  await using d = await servedDesk();
  const ada = await person(d.appliance);
  await addPasskey(d.appliance, ada, new Authenticator());
  const refused = await d.kms(['approval', 'approve', 'appr_1', '--user', ada.user.username, ...d.network().args], {
    stdin: ada.password,
  });
  assert.deepEqual(
    [refused.code, refused.stderr],
    [
      1,
      `kms: passkeys do not work in a terminal, and you have no app for codes; do it in the console, ${d.url}/console/approvals/appr_1\n`,
    ],
  );
});

test('the glass is broken for one command on the machine, and is loud until another acknowledges it', async () => {
  await using d = await servedDesk();
  const ada = await person(d.appliance, { '*': true });
  await d.kms('keyring create payroll');
  await d.kms(`approval rule create deletions --preset delete-keys --approver ${ada.user.username}`);
  const broken = await d.kms([
    ...'approval break-glass --reason'.split(' '),
    'at night',
    '--',
    ...'kms keyring delete payroll --yes'.split(' '),
  ]);
  assert.equal(broken.code, 0, broken.stderr);
  const [glass] = (await d.json<{ broken: BrokenGlass[] }>('approval broken-glass --json')).broken;
  assert.deepEqual([glass?.reason, glass?.action, glass?.acknowledged], ['at night', 'keyring.payroll.delete', null]);
  assert.match(
    (await d.kms('approval broken-glass')).stdout,
    /keyring\.payroll\.delete +keyring payroll +NO +at night$/m,
  );
  assert.equal((await d.kms(`approval acknowledge ${glass?.id}`)).code, 1, 'not by who broke it');
  const { args, env } = d.network(ada.key);
  const acknowledged = await d.kms(['approval', 'acknowledge', String(glass?.id), ...args], { env });
  assert.match(acknowledged.stdout, /^glass_\S+ is acknowledged; it was broken by local: at night\n$/);

  for (const [args, said] of [
    [['--reason', 'x'], /expected a command after --, or --request ID/],
    [['--', 'key', 'list'], /--reason is missing/],
    [['--reason', 'x', '--server', 'https://kms.example', '--', 'key', 'list'], /on the machine of the appliance only/],
    [['--reason', 'x', '--', 'key', 'list', '--server', 'https://kms.example'], /not over the network/],
    [['--reason', 'x'.repeat(1025), '--', 'key', 'list'], /expected 1 to 1024 characters, got 1025/],
  ] as const) {
    const { code, stderr } = await d.kms(['approval', 'break-glass', ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, said);
  }
});
