// `kms tenant oidc …` as typed.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { desk } from './kms.ts';

const secret = 'the secret that the provider gave';

test('a provider is set, shown, replaced and removed; its secret is never shown', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('tenant create blue --host blue.example --json');
  await writeFile(join(d.dir, 'secret'), `${secret}\n`, { mode: 0o600 });
  const common = '--issuer https://login.example.org --client-id kms --client-secret-file secret';
  const several = await d.kms(`tenant oidc set ${common}`);
  assert.equal(several.code, 2);
  assert.match(several.stderr, /name a tenant with --tenant/);
  const named = `tenant oidc set ${common} --name Login --create-users --flags-claim groups`;
  for (const [flag, question] of [
    ['x.y', ''],
    ['user.raed', '; did you mean user.read?'],
  ]) {
    const { code, stdout, stderr } = await d.kms(`${named} --claim-flags a=user.read,${flag} blue`);
    const said = `kms: --claim-flags: "${flag}" grants nothing in this appliance${question === '' ? '; for' : `${question} For`} a flag that a program of your own looks at, add --any-flag\n`;
    assert.deepEqual([code, stdout, stderr], [2, '', said]);
  }
  assert.equal((await d.kms('tenant oidc show blue')).code, 1, 'nothing was set');
  const ran = await d.kms(`${named} --claim-flags a=b=user.read,x.y --any-flag blue`);
  assert.deepEqual([ran.code, ran.stderr], [0, '']);
  assert.match(ran.stdout, /^issuer +https:\/\/login\.example\.org\nname +Login\n/);
  const shown = await d.json<Record<string, unknown>>('tenant oidc show blue --json');
  const { changedAt, ...rest } = shown;
  assert.match(String(changedAt), /^20\d\d-/);
  assert.deepEqual(rest, {
    issuer: 'https://login.example.org',
    clientId: 'kms',
    name: 'Login',
    scope: 'openid email profile',
    userClaim: 'email',
    createUsers: true,
    trustEmail: false,
    flagsClaim: 'groups',
    claimFlags: { 'a=b': ['user.read', 'x.y'] },
    hasCa: false,
  });
  assert.deepEqual(await d.json('tenant oidc show --tenant blue --json'), shown);
  assert.equal((await d.kms('tenant oidc show default')).code, 1, 'each tenant has its own');

  const root = `tenant oidc set ${common} --flags-claim groups --claim-flags root=* blue`;
  const refused = await d.kms(root);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /--allow-root/);
  assert.equal((await d.kms(`${root} --allow-root`)).code, 0);
  for (const wrong of ['a', '=user.read', 'a=', 'a=user.read,']) {
    assert.equal((await d.kms(`tenant oidc set ${common} --flags-claim groups --claim-flags ${wrong} blue`)).code, 2);
  }
  const removed = await d.kms('tenant oidc remove blue --yes');
  assert.deepEqual([removed.code, removed.stdout], [0, 'nobody can log in with login.example.org any more\n']);
  const gone = await d.kms('tenant oidc show blue');
  assert.deepEqual([gone.code, gone.stdout], [1, '']);
  assert.equal((await d.kms('tenant oidc unlink ada --tenant blue')).code, 1);
  const activity = await d.kms('activity search --tenant blue --all --json');
  assert.match(activity.stdout, /oidc-set/);
  for (const { stdout, stderr } of [ran, refused, removed, activity]) {
    assert.ok(!`${stdout}${stderr}`.includes(secret));
  }
});
