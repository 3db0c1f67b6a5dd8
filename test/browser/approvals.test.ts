// Approvals in the console: a rule is made from a preset, an act waits for the words of others, who give them with a
// passkey or a code, and it is done when it is tried again. Requests are denied and withdrawn, and glass is broken.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { appCode } from '../support/authenticator.ts';
import { type Visit, visit } from '../support/browser.ts';
import { type ServedAppliance, servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
/** Passkeys need a host name, not an IP address. */
const named: ServedAppliance = { ...appliance, url: appliance.url.replace('127.0.0.1', 'localhost') };
const { call } = appliance;

const factors = '/auth/user/second-factors';
const flags = { 'key.list': true, 'key.*.read': true, 'activity.read': true };
await appliance.addUser('grace', password, { flags: { '*': true }, firstName: 'Grace', lastName: 'Hopper' });
await appliance.addUser('ada', password, { flags });
await appliance.addUser('bob', password, { flags });
await appliance.addUser('dora', password, { flags });
await appliance.addUser('carol', password, { flags });
for (const name of ['payroll', 'ledger', 'mail', 'backup']) {
  const key = { name, type: 'aes256-gcm', uses: ['encrypt', 'decrypt'], deletionAllowed: true };
  assert.equal((await call('POST', '/managed-keys', key)).status, 200);
}

/** Adds an app with codes for somebody who has no second factor yet; returns its secret. */
async function addApp(username: string): Promise<string> {
  const { body: login } = await call('POST', '/auth/basic/login', { username, password });
  const begun = await call('POST', `${factors}/totp`, { currentPassword: password, name: 'app' }, login.accessToken);
  assert.equal(begun.status, 200, JSON.stringify(begun.body));
  const { id, secret } = begun.body;
  const code = appCode(secret, Date.now());
  assert.equal((await call('POST', `${factors}/totp/finish`, { id, code }, login.accessToken)).status, 200);
  return secret;
}

/** Adds an app with codes on the page of the account, whose session stays without a second factor; returns its secret. */
async function addAppHere(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Add an app' }).click();
  await page.getByLabel('Current password').fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
  const secret = await page.getByLabel('Secret', { exact: true }).inputValue();
  await page.getByLabel('Code that the app shows now').fill(appCode(secret, Date.now()));
  await page.getByRole('button', { name: 'Add the app' }).click();
  await page.getByRole('button', { name: 'I have saved them' }).click();
  return secret;
}

/** Plugs in a virtual authenticator that always consents, and adds a passkey of it. */
async function addPasskey(page: Page): Promise<void> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByLabel('What you call it').fill('my laptop');
  await page.getByLabel('Current password').fill(password);
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByRole('button', { name: 'I have saved them' }).click();
  await page.getByRole('rowheader', { name: 'my laptop' }).waitFor();
}

/** Logs in with a code, which is then fresh. The code when the app was added has been used: the next one is valid. */
async function visitWithCode(username: string, path: string, secret: string): Promise<Visit> {
  const visited = await visit(appliance.url + path);
  const { page } = visited;
  await page.locator('[name=username]:focus').waitFor();
  await page.getByLabel('User name or e-mail address').fill(username);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.keyboard.press('Enter');
  await page.getByLabel('Code of your second factor').fill(appCode(secret, Date.now() + 30_000));
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Log out' }).waitFor();
  return visited;
}

/** Tries to delete a managed key on its page, and leaves the dialog open. */
async function tryToDelete(page: Page, name: string): Promise<void> {
  await goTo(page, `/console/managed-keys/${name}`);
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await page.getByRole('button', { name: 'Delete the managed key' }).click();
}

const waits = /Nothing was done yet: this needs/;
const stateOf = async (name: string): Promise<string> => (await call('GET', `/managed-keys/${name}`)).body.key.state;
const rules = async () => (await call('GET', '/approvals/rules')).body.rules;

test('a rule is made from a preset, and says that too few could approve', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/approvals');
  await page.getByText('Nothing waits for your approval.').waitFor();
  await page.getByRole('link', { name: 'Rules', exact: true }).click();
  await page.getByText('No rule concerns you').waitFor();
  await page.getByRole('link', { name: 'New rule' }).click();
  await page.getByRole('button', { name: 'Make the rule' }).click();
  await page.getByText('This is required.').first().waitFor();
  await page.getByRole('button', { name: 'Deleting a keyring, a managed key or a tenant' }).click();
  await page.getByText('Needs approval: delete every keyring').waitFor();
  await page.getByLabel('These users').check();
  await page.getByRole('button', { name: 'Make the rule' }).click();
  await page.getByText('Add at least one user.').waitFor();
  const approver = page.getByLabel('Users who approve: user name');
  for (const name of ['ada', 'bob', 'dora', 'eve']) {
    await approver.fill(name);
    await page.keyboard.press('Enter');
  }
  await page.getByLabel('Name', { exact: true }).fill('Deleting keys');
  await page.getByLabel('How many of them must approve').fill('2');
  await page.getByLabel('Users who may break the glass: user name').fill('carol');
  await page.keyboard.press('Enter');
  await looksRight(page, 'approval-rule-new');
  await page.getByRole('button', { name: 'Make the rule' }).click();
  await page.getByRole('alert').filter({ hasText: 'eve' }).waitFor();
  await page.getByRole('button', { name: 'Remove eve' }).click();
  await page.getByRole('button', { name: 'Make the rule' }).click();
  await page.getByRole('heading', { name: 'Deleting keys', level: 1 }).waitFor();
  await page.getByText('but only 0 approvers could approve now').waitFor();
  await looksRight(page, 'approval-rule');
  const [rule] = await rules();
  assert.deepEqual([rule.count, rule.window, rule.mode, rule.objects], [2, 'once', 'ask', ['*']]);
  assert.deepEqual(rule.actions.toSorted(), [
    'key.*.delete',
    'key.*.erase-material',
    'keyring.*.delete',
    'tang.delete',
    'tenant.delete',
  ]);
  assert.deepEqual(troubles, []);
});

test('an act waits for two words, one by a passkey and one by a code, and is then done once', async () => {
  const bob = await visitAs(appliance, 'bob', '/console/me');
  const secret = await addAppHere(bob.page);
  const ada = await visitAs(named, 'ada', '/console/me');
  await addPasskey(ada.page);
  await goTo(ada.page, '/console/approvals');
  await ada.page.getByText('Nothing waits for your approval.').waitFor();

  const grace = await visitAs(appliance, 'grace', '/console/approvals');
  await tryToDelete(grace.page, 'payroll');
  const told = grace.page.getByRole('dialog').getByRole('alert').filter({ hasText: waits });
  await told.waitFor();
  await looksRight(grace.page, 'approval-refused');
  await told.getByRole('link', { name: 'See the request' }).click();
  const title = 'Delete the managed key payroll';
  await grace.page.getByRole('heading', { name: title, level: 1 }).waitFor();
  await grace.page.getByText('It takes 2 more approvals. Then you can do it once.').waitFor();
  assert.equal(await grace.page.getByRole('button', { name: 'Approve…' }).count(), 0, 'nobody approves their own');

  // The list follows by itself, and so does the menu.
  await ada.page.getByRole('link', { name: title }).click();
  await ada.page.getByRole('heading', { name: title, level: 1 }).waitFor();
  await ada.page.getByRole('region', { name: 'State' }).getByText('0 of 2').first().waitFor();
  await ada.page.getByText('Nobody used it in the last 30 days.').waitFor();
  await looksRight(ada.page, 'approval-request');
  await ada.page.getByRole('button', { name: 'Approve…' }).click();
  await ada.page.getByLabel('Why').fill('as agreed <b>');
  await looksRight(ada.page, 'approval-approve');
  await ada.page.getByRole('button', { name: 'Approve', exact: true }).click();
  await ada.page.getByText('a passkey that signed it').waitFor();
  await ada.page.getByText('You cannot approve it yourself: you have decided already.').waitFor();
  await grace.page.getByText('as agreed <b>').waitFor();

  await bob.page.getByRole('link', { name: 'Approvals 1 waiting for you' }).click();
  await bob.page.getByRole('link', { name: title }).click();
  await bob.page.getByRole('button', { name: 'Approve…' }).click();
  await bob.page.getByLabel('Code of your second factor').fill('12345');
  await bob.page.getByRole('button', { name: 'Approve', exact: true }).click();
  await bob.page.getByText('The code or the passkey is wrong, or was used before.').waitFor();
  await looksRight(bob.page, 'approval-wrong-code');
  await bob.page.getByLabel('Code of your second factor').fill(appCode(secret, Date.now() + 30_000));
  await bob.page.getByRole('button', { name: 'Approve', exact: true }).click();
  await bob.page.getByText('The requester can do it now, once.').waitFor();

  // The requester's page follows by itself.
  await grace.page.getByText('Do the same again now: it can be done once.').waitFor();
  await looksRight(grace.page, 'approval-granted');
  assert.equal(await stateOf('payroll'), 'active');
  await tryToDelete(grace.page, 'payroll');
  await grace.page.getByRole('heading', { name: 'Managed keys', level: 1 }).waitFor();
  const requests = (await call('GET', '/approvals/requests')).body.requests;
  assert.deepEqual(
    requests.map(({ state, uses }: { state: string; uses: number }) => [state, uses]),
    [['done', 1]],
  );

  // Anybody can read later who approved what, in words.
  await goTo(grace.page, '/console/activity');
  const log = grace.page.getByRole('region', { name: 'Activity, newest first' });
  const line = (text: string) => log.getByRole('listitem').filter({ hasText: text }).first();
  await line('deleted managed key payroll').getByText('approved by ada and bob').waitFor();
  await line('User ada approved request').getByText('signed with a passkey').waitFor();
  await line('User grace asked for approval by the request').waitFor();
  await line('tried to delete managed key payroll').getByText('waits for approval').waitFor();
  await looksRight(grace.page, 'approval-activity');
  await line('deleted managed key payroll').getByRole('link').first().click();
  await grace.page.getByRole('heading', { name: 'Approval', exact: true }).waitFor();
  await grace.page.getByText('for the first time').waitFor();
  await looksRight(grace.page, 'approval-record');

  // A passkey signs a denial as such.
  await tryToDelete(grace.page, 'ledger');
  await grace.page.getByRole('link', { name: 'See the request' }).click();
  await goTo(ada.page, '/console/approvals');
  await ada.page.getByRole('link', { name: 'Delete the managed key ledger' }).click();
  await ada.page.getByRole('button', { name: 'Deny…' }).click();
  await ada.page.getByText('Your passkey signs your decision on exactly this request').waitFor();
  await ada.page.getByRole('button', { name: 'Deny', exact: true }).click();
  await ada.page.getByText('It will not be done.').waitFor();
  await ada.page.getByText('a passkey that signed it').waitFor();
  assert.deepEqual([...ada.troubles, ...bob.troubles, ...grace.troubles], []);
});

test('a request is denied with a reason, and another is withdrawn', async () => {
  const grace = await visitAs(appliance, 'grace', '/console/approvals');
  await tryToDelete(grace.page, 'mail');
  await grace.page.getByRole('link', { name: 'See the request' }).click();
  await grace.page.getByRole('heading', { name: 'Delete the managed key mail', level: 1 }).waitFor();
  await grace.page.getByRole('button', { name: 'Withdraw it…' }).click();
  await looksRight(grace.page, 'approval-withdraw');
  await grace.page.getByRole('button', { name: 'Withdraw it', exact: true }).click();
  await grace.page.getByText('It was withdrawn.').waitFor();
  await tryToDelete(grace.page, 'mail');
  await grace.page.getByRole('link', { name: 'See the request' }).click();
  await grace.page.getByText('It takes 2 more approvals.').waitFor();

  const without = await visitAs(appliance, 'dora', '/console/approvals');
  await without.page.getByRole('link', { name: 'Delete the managed key mail' }).click();
  await without.page.getByRole('button', { name: 'Approve…' }).click();
  await without.page.getByText('This takes a second factor, and you have none yet.').waitFor();
  await without.page.getByRole('link', { name: 'Add one' }).click();
  await without.page.getByRole('heading', { name: 'Second factors' }).waitFor();

  const dora = await visitWithCode('dora', '/console/approvals', await addApp('dora'));
  await dora.page.getByRole('link', { name: 'Delete the managed key mail' }).click();
  await dora.page.getByRole('button', { name: 'Deny…' }).click();
  await dora.page.getByLabel('Why').fill('it is still in use');
  assert.equal(await dora.page.getByLabel('With the one just used').isChecked(), true);
  await dora.page.getByRole('button', { name: 'Deny', exact: true }).click();
  await dora.page.getByText('It will not be done.').waitFor();
  await grace.page.getByText('Doing the same again makes a new request.').waitFor();
  await grace.page.getByText('it is still in use').waitFor();
  await looksRight(grace.page, 'approval-denied');
  await goTo(grace.page, '/console/approvals?show=mine');
  const ofMail = grace.page.getByRole('row').filter({ hasText: 'Delete the managed key mail' });
  await ofMail.nth(1).waitFor();
  assert.deepEqual(await ofMail.locator('[data-tag]').allTextContents(), ['denied', 'withdrawn']);
  await looksRight(grace.page, 'approval-list');
  assert.equal(await stateOf('mail'), 'active');
  assert.deepEqual([...grace.troubles, ...dora.troubles, ...without.troubles], []);
});

test('who may break the glass says why, and every page warns of it until somebody acknowledges it', async () => {
  const grace = await visitAs(appliance, 'grace', '/console/approvals');
  await tryToDelete(grace.page, 'backup');
  await grace.page.getByRole('link', { name: 'See the request' }).click();
  const title = 'Delete the managed key backup';
  await grace.page.getByRole('heading', { name: title, level: 1 }).waitFor();

  const carol = await visitWithCode('carol', '/console/approvals?show=all', await addApp('carol'));
  await carol.page.getByRole('link', { name: title }).click();
  await carol.page.getByRole('heading', { name: title, level: 1 }).waitFor();
  assert.equal(await carol.page.getByRole('button', { name: 'Approve…' }).count(), 0, 'she is no approver');
  await carol.page.getByRole('button', { name: 'Break the glass…' }).click();
  await carol.page.getByRole('button', { name: 'Break the glass', exact: true }).click();
  await carol.page.getByText('This is required.').waitFor();
  await carol.page.getByLabel('Why it cannot wait').fill('the key leaks');
  await looksRight(carol.page, 'approval-break-glass');
  await carol.page.getByRole('button', { name: 'Break the glass', exact: true }).click();
  await carol.page.getByText('glass broken', { exact: true }).waitFor();

  const banner = grace.page.getByRole('alert').filter({ hasText: 'The glass was broken.' });
  await goTo(grace.page, '/console/about');
  await banner.getByText('the key leaks').waitFor();
  await looksRight(grace.page, 'approval-banner');
  await tryToDelete(grace.page, 'backup');
  await grace.page.getByRole('heading', { name: 'Managed keys', level: 1 }).waitFor();
  assert.equal(await stateOf('backup'), 'pending-deletion');

  await banner.getByRole('link', { name: 'See and acknowledge it' }).click();
  await grace.page.getByRole('heading', { name: 'Broken glass', level: 1 }).waitFor();
  await looksRight(grace.page, 'approval-glass');
  await grace.page.getByRole('button', { name: 'Acknowledge…' }).click();
  await grace.page.getByRole('button', { name: 'Acknowledge it', exact: true }).click();
  await grace.page.getByText('by user grace').waitFor();
  await banner.waitFor({ state: 'detached' });
  assert.deepEqual([...grace.troubles, ...carol.troubles], []);
});

test('a rule protects itself: who would loosen it waits for what it asks', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/approval-rules');
  await page.getByRole('link', { name: 'Deleting keys' }).click();
  await page.getByRole('button', { name: 'Change', exact: true }).click();
  await page.getByLabel('How many of them must approve').fill('1');
  await page.getByRole('button', { name: 'Save the rule' }).click();
  await page.getByRole('alert').filter({ hasText: waits }).getByRole('link', { name: 'See the request' }).click();
  await page.getByRole('heading', { name: 'Change the approval rule Deleting keys', level: 1 }).waitFor();
  const change = page.getByRole('row').filter({ hasText: 'count' });
  assert.deepEqual(await change.getByRole('cell').allTextContents(), ['2', '1']);
  await looksRight(page, 'approval-of-rule');
  await goTo(page, '/console/approval-rules');
  await page.getByRole('link', { name: 'Deleting keys' }).click();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete the rule' }).click();
  await page.getByRole('alert').filter({ hasText: waits }).waitFor();
  assert.equal((await rules())[0].count, 2);
  assert.deepEqual(troubles, []);
});
