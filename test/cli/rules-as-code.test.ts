// Rules of approvals in configuration files: made last, compared by what they mean, changed only as they themselves ask.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import type { ApprovalRule } from '../../src/api/approvals.ts';
import { person } from '../http/samples.ts';
import { approver } from '../support/approvers.ts';
import { type ServedDesk, servedDesk } from './served.ts';

async function withApprovers(): Promise<{ d: ServedDesk; ada: string; bob: string; adaId: string }> {
  const d = await servedDesk();
  const [ada, bob] = [(await person(d.appliance, { 'approval.give': true })).user, (await person(d.appliance)).user];
  return { d, ada: ada.username, bob: bob.username, adaId: ada.id };
}

const rule = (ada: string, bob: string, more = '') => `kind: rule
name: deletions
actions: [key.*.delete, keyring.*.delete]
approvers: {users: [${ada}, ${bob}]}
count: 2
${more}`;

const write = (d: ServedDesk, name: string, text: string) => writeFile(d.path(name), text);

test('a rule is made after all that it would stop, and the same file again does nothing', async () => {
  const { d, ada, bob, adaId } = await withApprovers();
  await using _ = d;
  const account =
    'kind: account\nname: billing\n---\nkind: user\nname: eve\nemail: eve@example.org\nfirstName: Eve\nlastName: E\n';
  const all = `kind: rule\nname: all\nactions: [account.create, user.invite]\napprovers: {flag: Approval.Give}\nwindow: 3600\nbreakers: [eve]\n---\n${account}`;
  await write(d, 'f.yaml', `${rule(ada, bob)}---\n${all}`);
  const ran = await d.kms('apply -f f.yaml --secrets-out secrets');
  assert.equal(ran.code, 0, ran.stderr);
  const made = await d.json<ApprovalRule>('approval rule show deletions --json');
  assert.deepEqual([made.count, made.window, made.props], [2, 'once', { managedBy: 'kms-apply' }]);
  const { approvers, breakers } = await d.json<ApprovalRule>('approval rule show all --json');
  assert.deepEqual([approvers, breakers.map(({ name }) => name)], [{ flag: 'approval.give' }, ['eve']]);
  for (const same of [
    rule(ada, bob, 'selfApproval: false\nmode: ask\nobjects: ["*"]\n'),
    rule(bob.toUpperCase(), adaId),
    `${rule(ada, bob)}---\n${all}`,
  ]) {
    await write(d, 'g.yaml', same);
    const again = await d.kms('plan -f g.yaml');
    assert.deepEqual([again.code, again.stdout.startsWith('nothing to do')], [0, true], again.stdout + again.stderr);
  }
  const { stdout } = await d.kms('export --kind rule');
  await write(d, 'all.yaml', stdout);
  assert.equal((await d.kms('plan -f all.yaml')).code, 0, stdout);
  assert.doesNotMatch(stdout, /managedBy|mode|selfApproval/);
});

test('a change of a rule, and its removal, wait for the words that it asks for itself', async () => {
  const { d, ada, bob } = await withApprovers();
  await using _ = d;
  await write(d, 'f.yaml', rule(ada, bob));
  assert.equal((await d.kms('apply -f f.yaml')).code, 0);
  await write(d, 'f.yaml', rule(ada, bob).replace('count: 2', 'count: 1'));
  const refused = await d.kms('apply -f f.yaml');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /approval rule deletions: .*appr_[0-9a-z]{26}/);
  assert.equal((await d.json<ApprovalRule>('approval rule show deletions --json')).count, 2);
  await write(d, 'f.yaml', 'kind: account\nname: other\n');
  const removed = await d.kms('apply -f f.yaml --prune --yes');
  assert.equal(removed.code, 1);
  assert.match(removed.stderr, /appr_[0-9a-z]{26}/);
  const glass = await d.kms('approval break-glass --reason testing -- apply -f f.yaml --prune --yes');
  assert.equal(glass.code, 0, glass.stderr);
  assert.deepEqual((await d.json<{ rules: unknown[] }>('approval rule list --json')).rules, []);
});

test('what a rule cannot be is told with its place', async () => {
  const { d, ada, bob } = await withApprovers();
  await using _ = d;
  const wrong: readonly (readonly [string, RegExp])[] = [
    [rule(ada, 'nobody-here'), /f\.yaml:4:\d+: approvers\.users\.1: there is no user nobody-here/],
    [
      rule(ada, bob).replace('count: 2', 'count: 3'),
      /f\.yaml:5:\d+: count: 3 approvals are needed, and there are only 2/,
    ],
    ['kind: rule\nname: x\ncount: 1\n', /f\.yaml:2:\d+: name: a new rule needs actions and approvers/],
    [rule(ada, bob, 'expires: 1000\n'), /f\.yaml:6:\d+: expires: is past/],
    [rule(ada, bob, 'selfApproval: true\n'), /f\.yaml:6:\d+: selfApproval/],
    [rule(ada, bob, 'windows: once\n'), /f\.yaml:6:\d+: unknown field 'windows' of rule; did you mean window\?/],
    [rule(ada, bob, 'window: 10\n'), /f\.yaml:6:\d+: window/],
  ];
  for (const [text, expected] of wrong) {
    await write(d, 'f.yaml', text);
    const { code, stderr } = await d.kms('plan -f f.yaml');
    assert.equal(code, 1, text);
    assert.match(stderr, expected);
  }
});

test('rules that a caller cannot see are no missing ones, in plans and exports', async () => {
  const { d, ada, bob } = await withApprovers();
  await using _ = d;
  await write(d, 'f.yaml', rule(ada, bob));
  assert.equal((await d.kms('apply -f f.yaml')).code, 0);
  await write(d, 'other.yaml', 'kind: account\nname: admin\n');
  const reading = ['account.read', 'apikey.read', 'key.list', 'keyring.list', 'user.read'];
  const as = async (...flags: string[]) => {
    const { args, env } = d.network((await d.appliance.keyWith(...reading, ...flags)).key);
    return (line: string) => d.kms([...args, ...line.split(' ')], { env });
  };
  const blind = await as();
  assert.match(
    (await blind('plan -f f.yaml')).stdout,
    /^\+ approval rule deletions\n(?: {4}.*\n)* {4}! may exist already: you cannot see it$/m,
  );
  for (const line of ['plan -f other.yaml --drift', 'plan -f other.yaml --prune']) {
    assert.match((await blind(line)).stdout, /^! nothing of approval rules is removed: the flag approval\.read is/m);
  }
  const all = await blind('export');
  assert.deepEqual([all.code, /kind: rule/.test(all.stdout)], [0, false]);
  assert.match(all.stderr, /^kms: approval rules are left out: the permission flag approval\.read is missing$/m);
  const asked = await blind('export --kind rule');
  assert.deepEqual([asked.code, asked.stdout], [1, '']);
  assert.match(asked.stderr, /the permission flag approval\.read is missing/);
  // It concerns somebody who may delete keys, and that one sees it, but perhaps no others.
  const concerned = await as('key.*.delete');
  const seen = await concerned('plan -f f.yaml');
  assert.deepEqual([seen.code, seen.stdout], [0, 'nothing to do: 1 object is as the files say\n']);
  assert.match((await concerned('plan -f other.yaml --drift')).stdout, /nothing of approval rules is removed/);
  for (const flag of ['approval.read', 'approval.rule']) {
    const reader = await as(flag);
    assert.equal((await reader('plan -f f.yaml')).code, 0);
    assert.match((await reader('plan -f other.yaml --drift')).stdout, /^- approval rule deletions$/m);
    assert.match((await reader('export --kind rule')).stdout, /^name: deletions$/m);
  }
});

test('a rule that the appliance would refuse is found by the plan', async () => {
  const { d, ada, bob } = await withApprovers();
  await using _ = d;
  const flag = (name: string) => rule(ada, bob).replace(/approvers: .*/, `approvers: {flag: ${name}}`);
  for (const [text, expected] of [
    [rule(ada, bob, 'objects: []\n'), /^kms: f\.yaml:6:\d+: objects: expected at least one$/m],
    [rule(ada, bob).replace(/actions: .*/, 'actions: []'), /^kms: f\.yaml:3:\d+: actions: expected at least one$/m],
    [
      flag('Approval.Gvie'),
      /^kms: f\.yaml:4:\d+: approvers\.flag: no user has the permission flag approval\.gvie; did you mean approval\.give\?$/m,
    ],
    [
      'kind: rule\nname: x\nactions: [key.*.delete]\napprovers: {users: []}\n',
      /approvers: 1 approval is needed, and there is no approver$/m,
    ],
    [
      `kind: rule\nname: x\nactions: [key.*.delete]\napprovers: {users: [${ada}]}\ncount: 2\n`,
      /count: 2 approvals are needed, and there is only 1 approver$/m,
    ],
  ] as const) {
    await write(d, 'f.yaml', text);
    const { code, stderr } = await d.kms('plan -f f.yaml');
    assert.equal(code, 1, text);
    assert.match(stderr, expected);
  }
  // Somebody has it, or will: as the appliance, the plan takes it then.
  const holder = `kind: user\nname: eve\nemail: e@example.org\nfirstName: E\nlastName: E\nflags: {approval.gvie: true}\n`;
  for (const text of [flag('billing-approver'), `${flag('approval.gvie')}---\n${holder}`]) {
    await write(d, 'f.yaml', text);
    const ran = await d.kms('apply -f f.yaml --any-flag --secrets-out secrets');
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal((await d.kms('apply -f f.yaml --any-flag')).code, 0);
    await d.kms('approval break-glass --reason testing -- approval rule delete deletions --yes');
  }
});

test('a rule that too few can satisfy is warned of once it is made, and so is each change that waits for it', async () => {
  await using d = await servedDesk();
  const [grace, { user }] = [await approver(d.appliance), await person(d.appliance)];
  const file = (who: string) => `kind: rule\nname: all\nactions: [account.create]\napprovers: {users: [${who}]}\n`;
  const warning = /^kms: warning: approval rule all: no approver can approve now, and it takes 1: each needs a second/m;
  await write(d, 'f.yaml', file(user.username));
  const made = await d.kms('apply -f f.yaml');
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stderr, warning);
  await write(d, 'g.yaml', 'kind: account\nname: one\n');
  const lack = /as appr_[0-9a-z]{26}; none of its approvers can approve this now .* can break the glass$/m;
  assert.match((await d.kms('apply -f g.yaml')).stderr, lack);
  await write(d, 'f.yaml', file(grace.user.username));
  assert.match((await d.kms('apply -f f.yaml')).stderr, lack);
  const glass = await d.kms('approval break-glass --reason testing -- apply -f f.yaml');
  assert.equal(glass.code, 0, glass.stderr);
  assert.doesNotMatch(glass.stderr, /warning/);
  assert.match((await d.kms('apply -f g.yaml')).stderr, /account one: waits for approval as appr_[0-9a-z]{26}$/m);
});
