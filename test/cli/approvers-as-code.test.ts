// Removals of users whom an approval rule needs: without them its own change could not be approved either.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import { makeRule, person } from '../http/samples.ts';
import { type Approver, approver, ids, say } from '../support/approvers.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const none = '[]\n';
const ruleFile = (who: string) =>
  `kind: rule\nname: deletions\nactions: [account.delete]\napprovers: {users: [${who}]}\n`;

const write = (d: ServedDesk, text: string) => writeFile(d.path('f.yaml'), text);

/** Gives users the mark. */
async function mark(d: ServedDesk, ...people: readonly { readonly user: { readonly username: string } }[]) {
  for (const { user } of people) {
    const set = ['user', 'update', user.username, '--props', '{"managedBy":"kms-apply"}'];
    assert.equal((await d.kms(set)).code, 0);
  }
}

async function deskWith(count: number, number: number) {
  const d = await servedDesk();
  const people: Approver[] = [];
  for (let made = 0; made < number; made++) people.push(await approver(d.appliance));
  await makeRule(d.appliance, {
    actions: ['account.delete'],
    objects: ['*'],
    approvers: { users: ids(...people) },
    count,
  });
  return { d, people, names: people.map(({ user }) => user.username) };
}

const approve = async (d: ServedDesk, who: Approver, text: string): Promise<void> => {
  const requests = new Set(text.match(/appr_[0-9a-z]{26}/g) ?? []);
  assert.notEqual(requests.size, 0, text);
  for (const id of requests) assert.equal((await say(d.appliance, who, id)).status, 200);
};

test('a plan removes approvers only as far as their rules can spare them', async () => {
  for (const { count, number, leaving, isKept } of [
    { count: 1, number: 1, leaving: 1, isKept: true },
    { count: 1, number: 2, leaving: 1, isKept: false },
    { count: 1, number: 2, leaving: 2, isKept: true },
    { count: 2, number: 3, leaving: 1, isKept: false },
    { count: 2, number: 3, leaving: 2, isKept: true },
  ]) {
    const { d, people, names } = await deskWith(count, number);
    await using _ = d;
    await mark(d, ...people.slice(0, leaving));
    await write(d, none);
    const ran = await d.kms('apply -f f.yaml --prune --yes');
    assert.equal(ran.code, 0, ran.stderr);
    const told = /^! user \S+ stays: the approval rule \S+ would have too few approvers without it$/gm;
    assert.equal(ran.stdout.match(told)?.length ?? 0, isKept ? leaving : 0, ran.stdout);
    const { data: users } = await d.json<{ data: { username: string }[] }>('user list --json');
    const left = users.filter(({ username }) => names.includes(username)).length;
    assert.equal(left, isKept ? number : number - leaving);
  }
});

test('one whose address a new user gets would go before the rule is changed: it is told before anything is done', async () => {
  await using d = await servedDesk();
  const user = (name: string) =>
    `kind: user\nname: ${name}\nemail: pat@example.org\nfirstName: P\nlastName: T\n---\n${ruleFile(name)}`;
  await write(d, user('older'));
  assert.equal((await d.kms('apply -f f.yaml --secrets-out secrets')).code, 0);
  await write(d, user('newer'));
  const { code, stderr } = await d.kms('apply -f f.yaml --prune --yes --secrets-out secrets');
  assert.equal(code, 1);
  assert.match(
    stderr,
    /f\.yaml:3:1: email: the user older has this address, and stays: the approval rule deletions would have too few/,
  );
});

test('an approver goes once the rule has others, and waits as long as that change waits', async () => {
  await using d = await servedDesk();
  const [grace, { user }] = [await approver(d.appliance), await person(d.appliance)];
  await write(d, ruleFile(grace.user.username));
  assert.equal((await d.kms('apply -f f.yaml')).code, 0);
  await mark(d, grace);
  await write(d, ruleFile(user.username));
  const waiting = await d.kms('apply -f f.yaml --prune --yes');
  assert.equal(waiting.code, 1);
  assert.match(waiting.stderr, /deletions: waits for approval.*\n.*1 waits for approval, 1 comes after that/);
  assert.doesNotMatch(waiting.stderr, /failed/);
  await approve(d, grace, waiting.stderr);
  const done = await d.kms('apply -f f.yaml --prune --yes');
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /changed approval rule deletions\nremoved user/);
});

test('an approver goes along with the rule', async () => {
  await using d = await servedDesk();
  const grace = await approver(d.appliance);
  await write(d, ruleFile(grace.user.username));
  assert.equal((await d.kms('apply -f f.yaml')).code, 0);
  await mark(d, grace);
  await write(d, none);
  const waiting = await d.kms('apply -f f.yaml --prune --yes');
  assert.match(waiting.stderr, /deletions: waits for approval.*\n.*1 comes after that/);
  await approve(d, grace, waiting.stderr);
  const done = await d.kms('apply -f f.yaml --prune --yes');
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /removed approval rule deletions\nremoved user/);
});

test('a rule that has ended keeps nobody', async () => {
  await using d = await servedDesk();
  const ada = await approver(d.appliance);
  // Ended by the clock of the command.
  const expires = d.appliance.world.now() + 60_000;
  await makeRule(d.appliance, { actions: ['account.delete'], objects: ['*'], approvers: { users: ids(ada) }, expires });
  await mark(d, ada);
  await write(d, none);
  const ran = await d.kms('apply -f f.yaml --prune --yes');
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, new RegExp(`^removed user ${ada.user.username}$`, 'm'));
});
