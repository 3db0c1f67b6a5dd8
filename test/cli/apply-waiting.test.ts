// Applies under rules of approvals, run again until nothing waits: each comes to its end, makes everything once, and
// names each request that waits.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import test from 'node:test';
import type { ApprovalRequest } from '../../src/api/approvals.ts';
import type { Proof } from '../../src/api/proofs.ts';
import { makeRule } from '../http/samples.ts';
import { type Approver, approver, ids, say } from '../support/approvers.ts';
import type { Ran } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const before = `kind: account
name: billing
---
kind: apikey
name: old
accountId: billing
secret: false
`;
const after = `${before.replace('secret: false\n', 'secret: true\nproofs: [{kind: aws, name: s3}]\nprops: {a: 1}\n')}---
kind: apikey
name: new
accountId: billing
flags: {asset.search: true}
proofs: [{kind: aws}, {kind: certificate, name: tls, issue: true}]
---
kind: user
name: ada
email: ada@example.org
firstName: Ada
lastName: Lovelace
flags: {asset.search: true}
---
kind: keyring
name: Payroll
publicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
config: {rotateAfter: 7200}
`;

async function ruled(actions: readonly string[], more: object = {}): Promise<{ d: ServedDesk; grace: Approver }> {
  const d = await servedDesk();
  await writeFile(d.path('f.yaml'), before);
  const made = await d.kms('apply -f f.yaml');
  assert.equal(made.code, 0, made.stderr);
  await writeFile(d.path('f.yaml'), after);
  const grace = await approver(d.appliance);
  await makeRule(d.appliance, { actions, objects: ['*'], approvers: { users: ids(grace) }, count: 1, ...more });
  return { d, grace };
}

async function open({ appliance }: ServedDesk, state = 'pending'): Promise<ApprovalRequest[]> {
  return (await appliance.call('GET', `/approvals/requests?state=${state}`)).body.requests;
}

/** Runs the command until it is through, and approves what waits in between. */
async function untilDone(d: ServedDesk, grace: Approver, line: string): Promise<Ran[]> {
  const runs: Ran[] = [];
  for (;;) {
    const ran = await d.kms(line);
    runs.push(ran);
    if (ran.code === 0) return runs;
    assert.equal(ran.code, 1, ran.stderr);
    const named = ran.stderr.match(/appr_[0-9a-z]{26}/g) ?? [];
    assert.notEqual(named.length, 0, ran.stdout + ran.stderr);
    if (ran.stdout !== '') assert.equal(new Set(named).size, named.length, ran.stderr);
    for (const id of new Set(named)) {
      assert.equal((await say(d.appliance, grace, id)).status, 200);
    }
    assert.ok(runs.length < 12, ran.stderr);
  }
}

/** Everything is live, was made once, and is opened by the secret in its file. */
async function mustBeWhole(d: ServedDesk): Promise<void> {
  const text = async (name: string) => readFile(d.path('secrets', name), 'utf8');
  for (const name of ['old', 'new']) {
    const { stdout } = await d.kms('apikey validate', { stdin: await text(`${name}.apikey`) });
    assert.equal(stdout, 'valid\n', name);
    const { proofs } = await d.json<{ proofs: Proof[] }>(['apikey', 'proof', 'list', name, '--json']);
    assert.ok(proofs.every(({ active }) => active));
    const [one, ...others] = proofs.filter(({ kind }) => kind === 'aws');
    assert.equal(others.length, 0);
    const file = name === 'old' ? 'old.s3.aws' : 'new.aws';
    assert.match(await text(file), new RegExp(`AWS_ACCESS_KEY_ID=${one?.accessKeyId}\n`));
  }
  const [token] = /(?<=token=)\S+/.exec(await text('ada.invite')) ?? [];
  const link = `/auth/user/invite-validate?token=${token}`;
  assert.equal((await d.appliance.call('GET', link, undefined, { key: null })).status, 200);
  const acts = (await d.appliance.activity()).filter(({ status }) => status === 200).map(({ action }) => action);
  assert.deepEqual(
    acts.filter((action) => /^(apikey|user)\.delete$|proof-remove/.test(action)),
    [],
  );
  assert.equal(acts.filter((action) => action === 'user.invite').length, 1);
}

const writes = [
  ['apikey.update'],
  ['user.update'],
  ['apikey.create', 'apikey.update', 'user.invite', 'user.update', 'keyring.create', 'keyring.*.config'],
] as const;

test('under rules on whatever it does, an apply that is run again comes to its end, each secret being the first', async () => {
  for (const actions of writes) {
    for (const window of ['once', 3600]) {
      const { d, grace } = await ruled(actions, { window });
      await using _ = d;
      await untilDone(d, grace, 'apply -f f.yaml --secrets-out secrets');
      await mustBeWhole(d);
      assert.equal((await d.kms('plan -f f.yaml --drift')).code, 0);
    }
  }
});

test('a saved plan, too', async () => {
  const { d, grace } = await ruled([
    'apikey.create',
    'apikey.update',
    'user.invite',
    'user.update',
    'keyring.*.config',
  ]);
  await using _ = d;
  await d.kms('plan -f f.yaml --out p.plan');
  await untilDone(d, grace, 'apply p.plan --secrets-out secrets');
  await mustBeWhole(d);
});

test('what waits holds up only what needs it, and is listed once each', async () => {
  const { d } = await ruled(['account.create', 'user.invite', 'key.*.delete']);
  await using _ = d;
  await writeFile(
    d.path('f.yaml'),
    'kind: managed-key\nname: gone\ndeletionAllowed: true\n---\nkind: account\nname: unused\n',
  );
  const pruned = await d.kms('approval break-glass --reason testing -- apply -f f.yaml --managed-by team');
  assert.equal(pruned.code, 0, pruned.stderr);
  const key = 'kind: apikey\nsecret: false\naccountId';
  await writeFile(
    d.path('f.yaml'),
    `kind: account\nname: waits\n---\n${key}: waits\nname: within\n---\n${key}: billing\nname: beside\n---\n` +
      'kind: user\nname: ada\nemail: a@example.org\nfirstName: A\nlastName: L\n---\nkind: rule\nname: last\n' +
      'actions: [apikey.create]\napprovers: {flag: approval.give}\n',
  );
  const line = 'apply -f f.yaml --managed-by team --prune --yes --used --secrets-out secrets';
  const ran = await d.kms(line);
  assert.equal(ran.code, 1);
  const waits = (what: string) => new RegExp(`^kms: ${what}: waits for approval as appr_[0-9a-z]{26}$`, 'm');
  for (const what of ['account waits', 'user ada', 'managed key gone']) assert.match(ran.stderr, waits(what));
  assert.match(ran.stdout, /^made API key beside$/m);
  assert.doesNotMatch(ran.stdout, /^made API key within|^made approval rule|^removed account/m);
  assert.match(
    ran.stderr,
    /^kms: 1 of 7 changes are done, 3 wait for approval, 3 come after that; run it again once they are approved/m,
  );
  const { code, stdout } = await d.kms(`${line} --json`);
  const { waiting, failed, done } = JSON.parse(stdout);
  assert.deepEqual([code, failed, done], [1, [], []]);
  const pending = (await open(d)).map(({ id }) => id).sort();
  assert.deepEqual(waiting.flatMap((each: { requests: string[] }) => each.requests).sort(), pending);
  assert.equal(pending.length, 3, 'asked again, they are the same');
});

test('looking that needs approval is no empty appliance: the plan names the requests, and is made once they are approved', async () => {
  const { d, grace } = await ruled(['user.*', 'apikey.*'], { window: 3600 });
  await using _ = d;
  for (const line of ['plan -f f.yaml', 'export --kind account --kind apikey']) {
    const ran = await d.kms(line);
    assert.equal(ran.code, 1, ran.stdout + ran.stderr);
    assert.match(ran.stderr, /requests? appr_[0-9a-z]{26}/);
    assert.equal(ran.stdout, '');
  }
  await untilDone(d, grace, 'apply -f f.yaml --secrets-out secrets');
  assert.equal((await d.kms('plan -f f.yaml')).code, 0);
});

test('a denied request is asked for with a new key, whose secret is the one that counts', async () => {
  const { d, grace } = await ruled(['apikey.update']);
  await using _ = d;
  await writeFile(d.path('f.yaml'), 'kind: apikey\nname: new\naccountId: billing\n');
  const line = 'apply -f f.yaml --secrets-out secrets --yes';
  assert.equal((await d.kms(line)).code, 1);
  const [first] = await open(d);
  assert.equal((await say(d.appliance, grace, first?.id ?? '', 'deny')).status, 200);
  assert.match((await d.kms('plan -f f.yaml')).stdout, /! an earlier run was cut off: it is made again/);
  assert.equal((await d.kms(line)).code, 1);
  assert.match((await d.kms('plan -f f.yaml')).stdout, /an earlier run has kept its secret, and waited for approval/);
  // A change of the file since is asked for with the key as it then is.
  await writeFile(d.path('f.yaml'), 'kind: apikey\nname: new\naccountId: billing\nexpiresAt: 1999999999999\n');
  await untilDone(d, grace, line);
  const { stdout } = await d.kms('apikey validate', { stdin: await readFile(d.path('secrets', 'new.apikey')) });
  assert.equal(stdout, 'valid\n');
});
