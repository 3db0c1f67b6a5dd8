// Second factors in the console, with a virtual authenticator: apps that show codes, passkeys, recovery codes, and
// users who have to add one first.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CDPSession, Page } from 'playwright-core';
import { appCode } from '../support/authenticator.ts';
import { visit } from '../support/browser.ts';
import { type ServedAppliance, servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
/** Passkeys need a host name, not an IP address. */
const named: ServedAppliance = { ...appliance, url: appliance.url.replace('127.0.0.1', 'localhost') };

/** Plugs in a virtual authenticator that always consents and has always verified the user. */
async function authenticator(page: Page): Promise<{ cdp: CDPSession; authenticatorId: string }> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { cdp, authenticatorId };
}

async function fillLogin(page: Page, username: string): Promise<void> {
  await page.getByLabel('User name or e-mail address').fill(username);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
}

const isIn = (page: Page): Promise<void> => page.getByRole('button', { name: 'Log out' }).waitFor();

async function logOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByText('You are logged out.').first().waitFor();
}

test('somebody logs in with a passkey, loses it, and comes back by a recovery code', async () => {
  await appliance.addUser('ada', password);
  const { page, troubles } = await visitAs(named, 'ada', '/console/me');
  const { cdp, authenticatorId } = await authenticator(page);
  await page.getByText(/^None yet\./).waitFor();
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByLabel('What you call it').fill('my laptop');
  await page.getByLabel('Current password').fill('not-mine');
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByText('the current password or the code is wrong').waitFor();
  await page.getByLabel('Current password').fill(password);
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor();
  const codes = (await page.getByLabel('Recovery codes', { exact: true }).inputValue()).split('\n');
  assert.equal(codes.length, 10);
  await page.getByRole('button', { name: 'I have saved them' }).click();
  await page.getByRole('rowheader', { name: 'my laptop' }).waitFor();
  assert.equal(await appliance.login('ada', password), 400);
  assert.ok(!(await page.content()).includes(codes[0] ?? ''));

  await logOut(page);
  await fillLogin(page, 'ada');
  await page.getByRole('button', { name: 'Use your passkey' }).click();
  await isIn(page);
  await logOut(page);
  await page.getByRole('button', { name: 'Use a passkey alone' }).click();
  await isIn(page);
  await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor();
  await logOut(page);

  await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
  await fillLogin(page, 'ada');
  await page.getByLabel('Code of your second factor').fill('zzzz-zzzz-zzzz-zzzz');
  await page.keyboard.press('Enter');
  await page.getByText('This is wrong, or has been used already.').waitFor();
  await page.getByLabel('Code of your second factor').fill((codes[3] ?? '').toUpperCase());
  await page.keyboard.press('Enter');
  await isIn(page);
  await page.getByText('9 recovery codes are left').waitFor();
  await page.getByRole('button', { name: 'Remove my laptop' }).click();
  await page.getByLabel('Current password').fill(codes[4] ?? '');
  await page.getByRole('button', { name: 'Remove it' }).click();
  await page.getByText(/^None yet\./).waitFor();
  assert.equal(await appliance.login('ada', password), 200);
  assert.deepEqual(troubles, []);
});

test('what a page lacks for passkeys is said', async () => {
  await appliance.addUser('edith', password);
  const { page, troubles } = await visitAs(appliance, 'edith', '/console/about');
  await page.addInitScript(() => Object.defineProperty(window, 'isSecureContext', { value: false }));
  await page.goto(`${appliance.url}/console/me`);
  await page.getByText('Passkeys need HTTPS and a host name; this page has neither.').waitFor();
  assert.deepEqual(troubles, []);
});

test('somebody adds an app by its secret, logs in with a code, and makes new recovery codes', async () => {
  await appliance.addUser('grace', password);
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/me');
  await page.getByText('Passkeys need a host name, and the address of this page has none.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Add a passkey' }).count(), 0);
  await page.getByRole('button', { name: 'Add an app' }).click();
  await page.getByLabel('What you call it').fill('my phone');
  await page.getByLabel('Current password').fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('img', { name: 'The secret as a QR code' }).waitFor();
  const secret = await page.getByLabel('Secret', { exact: true }).inputValue();
  await page.getByLabel('Code that the app shows now').fill('12345');
  await page.getByRole('button', { name: 'Add the app' }).click();
  await page.getByText('Is not the one that the app shows now.').waitFor();
  await looksRight(page, 'second-factor-app');
  const shown = appCode(secret, Date.now());
  await page.getByLabel('Code that the app shows now').fill(`${shown.slice(0, 3)} ${shown.slice(3)}`);
  await page.getByRole('button', { name: 'Add the app' }).click();
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor();
  await looksRight(page, 'second-factor-codes');
  await page.getByRole('button', { name: 'I have saved them' }).click();
  await page.getByRole('button', { name: 'Remove my phone' }).waitFor();
  await looksRight(page, 'me-second-factors');
  await logOut(page);

  await fillLogin(page, 'grace');
  await page.getByLabel('Code of your second factor').waitFor();
  await looksRight(page, 'login-second-factor');
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByText('This is required.').waitFor();
  // A code works only once; the next one is already valid.
  await page.getByLabel('Code of your second factor').fill(appCode(secret, Date.now() + 30_000));
  await page.keyboard.press('Enter');
  await isIn(page);
  await page.getByRole('button', { name: 'Create new recovery codes…' }).click();
  await page.getByLabel('Current password').fill(password);
  await page.getByRole('button', { name: 'Create new codes' }).click();
  const codes = (await page.getByLabel('Recovery codes', { exact: true }).inputValue()).split('\n');
  await page.getByRole('button', { name: 'I have saved them' }).click();
  const body = { username: 'grace', password, code: codes[9] };
  assert.equal((await appliance.call('POST', '/auth/basic/login', body)).status, 200);
  assert.deepEqual(troubles, []);
});

test('who needs a second factor and has none adds one before anything else', async () => {
  await appliance.addUser('boss', password, { flags: { '*': true } });
  const policy = await appliance.local('PATCH', '/local/tenants/default', { secondFactorFor: ['*'] });
  assert.deepEqual(policy.secondFactorFor, ['*']);
  const { page, troubles } = await visit(`${named.url}/console/users`);
  await authenticator(page);
  await fillLogin(page, 'boss');
  await page.getByRole('heading', { name: 'One more step' }).waitFor();
  assert.equal(await page.getByRole('navigation').count(), 0);
  await page.getByRole('button', { name: 'Add a passkey' }).waitFor();
  await looksRight(page, 'enrolment');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByLabel('Current password').fill(password);
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByRole('button', { name: 'I have saved them' }).click();
  await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  await page.getByRole('row').filter({ hasText: 'grace' }).waitFor();
  assert.deepEqual(troubles, []);
});
