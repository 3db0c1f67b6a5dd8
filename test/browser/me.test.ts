// The user's own account in the console: the password, the sessions.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const next = 'Other-Horse-8';

async function sessionsOf(key: string): Promise<number> {
  const { status, body } = await appliance.call('GET', '/auth/user/sessions', undefined, key);
  return status === 200 ? body.sessions.length : 0;
}

async function logIn(username: string): Promise<string> {
  return (await appliance.call('POST', '/auth/basic/login', { username, password })).body.accessToken;
}

test('somebody ends a session, then all others, and changes their password', async () => {
  await appliance.addUser('ada', password);
  // The invite's own session is one of them.
  const [first, second] = [await logIn('ada'), await logIn('ada')];
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings');
  await page.getByRole('link', { name: 'Ada Lovelace' }).click();
  await page.getByRole('heading', { name: 'Your account', level: 1 }).waitFor();
  await page.getByText('You are here').waitFor();
  const rows = page.getByRole('row').filter({ hasText: '127.0.0.1' });
  assert.equal(await rows.count(), 4);
  for (const time of await rows.locator('time').allTextContents()) assert.match(time, /^\d{4}-\d\d-\d\d \d\d:\d\d$/);
  await looksRight(page, 'me');
  await rows
    .nth(1)
    .getByRole('button', { name: /^End the session of/ })
    .click();
  await page.getByText('The session has ended.').waitFor();
  await rows.nth(3).waitFor({ state: 'detached' });
  assert.deepEqual([await sessionsOf(first), await sessionsOf(second)], [0, 3]);
  await page.getByRole('button', { name: 'End all others' }).click();
  await page.getByText('All other sessions have ended.').waitFor();
  await page.getByRole('button', { name: 'End all others' }).waitFor({ state: 'detached' });
  assert.equal(await rows.count(), 1);
  assert.equal(await sessionsOf(second), 0);

  const third = await logIn('ada');
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByRole('button', { name: 'Save password' }).click();
  await page.getByText('This is required.').first().waitFor();
  await page.getByLabel('Current password').fill('not-mine');
  await page.getByLabel('New password').fill('short');
  await page.getByRole('button', { name: 'Save password' }).click();
  await page.getByText('Still missing').first().waitFor();
  await page.getByLabel('New password').fill(next);
  await page.getByRole('button', { name: 'Save password' }).click();
  await page.getByText('This is not your password.').waitFor();
  await looksRight(page, 'me-password');
  await page.getByLabel('Current password').fill(password);
  await page.getByRole('button', { name: 'Save password' }).click();
  await page.getByText('The password is changed.').waitFor();
  assert.deepEqual([await appliance.login('ada', password), await appliance.login('ada', next)], [400, 200]);
  assert.equal(await sessionsOf(third), 0);
  await rows.nth(1).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Menu' }).click();
  await page.getByRole('link', { name: 'About' }).click();
  await page.getByRole('heading', { name: 'About', level: 1 }).waitFor();
  const left = await page.content();
  for (const secret of [password, next]) assert.ok(!left.includes(secret));
  assert.deepEqual(troubles, []);
});

test('with an API key the page says that there is nothing', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/me', {}, next);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('button', { name: 'Use an API key instead' }).click();
  await page.getByLabel('API key').fill(appliance.rootKey);
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('You logged in with an API key, which has neither').waitFor();
  assert.deepEqual(troubles, []);
});

test('the menu of an API key tells which pages it may not see, and why', async () => {
  const { data: accounts } = (await appliance.call('GET', '/auth/accounts')).body;
  const flags = { 'keyring.list': true, 'user.read': false };
  const { key } = (await appliance.call('POST', '/auth/apikey', { accountId: accounts[0].id, flags })).body;
  const { page, troubles } = await visit(`${appliance.url}/console`, { width: 1200 });
  await page.getByRole('button', { name: 'Use an API key instead' }).click();
  const wrong = key.endsWith('x') ? 'y' : 'x';
  await page.getByLabel('API key').fill(key.slice(0, -1) + wrong);
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('The service does not know this key, or it is disabled.').waitFor();
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Use this key' }).click();
  const menu = page.getByRole('navigation');
  const users = menu.getByRole('link', { name: 'Users not allowed' });
  await users.waitFor();
  assert.equal(await users.getAttribute('title'), 'You would need a flag for user.read.');
  assert.equal(await menu.getByRole('link', { name: 'Keyrings', exact: true }).getAttribute('title'), null);
  await users.click();
  await page.getByText('The permission flag user.read is missing.').waitFor();
  await looksRight(page, 'menu-of-a-key');
  assert.deepEqual(troubles, []);
});
