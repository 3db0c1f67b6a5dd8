// States of the pages for keyrings, users and accounts, and of the login pages.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const empty = await servedAppliance();
const appliance = await servedAppliance();
await appliance.addUser('grace', password, { flags: { '*': true }, firstName: 'Grace', lastName: 'Hopper' });
await appliance.addUser('reader', password, { flags: { 'user.read': true, 'keyring.list': true } });
const { call } = appliance;
const props = { team: 'finance', tags: ['pay', 'secret'], owner: { name: 'Ada', since: 2021 } };
for (const name of ['payroll', 'Ledger-2026', 'a'.repeat(128)]) await call('POST', '/ks/keyrings', { name, props });
for (let i = 0; i < 3; i++) await call('POST', '/ks/rotate', { ringname: 'payroll' });
const notes = 'Contract until the end of the year. '.repeat(40);
const { body: account } = await call('POST', '/auth/accounts', { uid: 'customer-7', notes, props });
const flags = { 'keyring.payroll.encrypt': true, 'keyring.payroll.decrypt': true, 'asset.read': true };
const { body: key } = await call('POST', '/auth/apikey', { accountId: account.id, flags });
const long = { name: 'x'.repeat(128), allowedAddresses: Array.from({ length: 100 }, (_, i) => `2001:db8:${i}::/48`) };
const { body: longKey } = await call('POST', '/auth/apikey', { accountId: account.id, expiresAt: 1, ...long });
await call('POST', '/auth/validate', {
  key: key.key,
  activity: { action: 'own.action.'.repeat(20), ringname: 'a'.repeat(128) },
});
const { body: nameless } = await call('POST', '/ks/encrypt', { ringname: 'payroll', asset: { data: { pages: 2 } } });
const made = await call('POST', '/ks/keyrings', { name: 'old' });
await call('DELETE', '/ks/keyrings/old');
for (const [name, type] of [
  ['Unseal', 'aes256-gcm'],
  ['derived', 'chacha20-poly1305'],
  ['s'.repeat(128), 'ecdsa-p256'],
  ['gone', 'ed25519'],
]) {
  await call('POST', '/managed-keys', { name, type, derived: name === 'derived' });
  for (let i = 0; i < 2; i++) await call('POST', `/managed-keys/${name}/rotate`, {});
  await call('PUT', `/managed-keys/${name}/config`, { deletionAllowed: true, rotateAfter: 7_776_000 });
}
const gone = await call('DELETE', '/managed-keys/gone');
for (let i = 0; i < 3; i++) await call('POST', '/tang/pairs');
await appliance.invite('ada', { flags: { 'keyring.*.read': true, 'own.thing': true, 'user.read': false }, props });

interface State {
  readonly name: string;
  readonly path: string;
  /** Steps from the page to the state. */
  readonly go?: (page: Page) => Promise<void>;
  /** Text that must be visible before the check. */
  readonly text: string | RegExp;
}

const pressed =
  (name: string) =>
  (page: Page): Promise<void> =>
    page.getByRole('button', { name, exact: true }).click();

const states: readonly State[] = [
  { name: 'keyrings', path: '/console/keyrings', text: '3 entries' },
  {
    name: 'keyrings-deleted',
    path: `/console/keyrings?deleted=${made.body.ring.id}&name=old`,
    text: 'You can restore it for 30 days',
  },
  { name: 'new-keyring', path: '/console/new/keyring', text: 'Make it in this browser' },
  {
    name: 'new-keyring-wrong',
    path: '/console/new/keyring',
    go: async (page) => {
      await page.getByLabel('I have made one elsewhere').check();
      await page.getByText('Properties', { exact: true }).click();
      await pressed('Create the keyring')(page);
    },
    text: 'This is required.',
  },
  { name: 'keyring', path: '/console/keyrings/payroll', text: '2 entries' },
  { name: 'keyring-long', path: `/console/keyrings/${'a'.repeat(128)}`, text: '1 entry' },
  {
    name: 'keyring-settings',
    path: '/console/keyrings/payroll',
    go: pressed('Change settings'),
    text: 'Save settings',
  },
  {
    name: 'keyring-delete',
    path: '/console/keyrings/ledger-2026',
    go: pressed('Delete…'),
    text: 'Type ledger-2026 to confirm',
  },
  { name: 'keyring-unknown', path: '/console/keyrings/nowhere', text: 'Try again' },
  { name: 'asym', path: '/console/asym', text: 'New asymmetric keyring' },
  { name: 'managed-keys', path: `/console/managed-keys?deleted=${gone.body.id}&name=gone`, text: '3 entries' },
  {
    name: 'managed-keys-bin',
    path: '/console/managed-keys',
    go: pressed('Deleted'),
    text: '1 entry.',
  },
  { name: 'managed-key', path: '/console/managed-keys/unseal', text: 'primary' },
  {
    name: 'managed-key-settings',
    path: '/console/managed-keys/unseal',
    go: pressed('Change settings'),
    text: 'Save settings',
  },
  { name: 'managed-key-delete', path: '/console/managed-keys/unseal', go: pressed('Delete…'), text: 'to confirm' },
  { name: 'managed-key-signer', path: `/console/managed-keys/${'s'.repeat(128)}`, text: 'BEGIN PUBLIC KEY' },
  { name: 'tang', path: '/console/tang', text: '3 entries' },
  {
    name: 'tang-delete',
    path: '/console/tang',
    go: (page) => page.getByRole('button', { name: 'Delete…' }).first().click(),
    text: 'to confirm',
  },
  { name: 'users', path: '/console/users', text: '3 entries' },
  { name: 'new-user', path: '/console/new/user', text: 'By an invitation' },
  { name: 'user', path: '/console/users/ada', text: 'API keys of this user' },
  { name: 'user-change', path: '/console/users/ada', go: pressed('Change'), text: 'Save' },
  { name: 'user-flags', path: '/console/users/ada', go: pressed('Change permissions'), text: 'Save permissions' },
  { name: 'user-invite', path: '/console/users/ada', go: pressed('Invite again…'), text: 'This makes a new link' },
  {
    name: 'user-link',
    path: '/console/users/ada',
    go: async (page) => {
      await pressed('Invite again…')(page);
      await pressed('Invite again')(page);
    },
    text: 'Give it to',
  },
  { name: 'apikeys-long', path: '/console/apikeys', text: '3 entries' },
  { name: 'apikey-long', path: `/console/apikeys/${longKey.keyid}`, text: 'expired' },
  {
    name: 'keyrings-bin',
    path: '/console/keyrings',
    go: pressed('Deleted'),
    text: '1 entry.',
  },
  { name: 'accounts', path: '/console/accounts', text: '2 entries' },
  { name: 'asset-nameless', path: `/console/assets/${nameless.asset.id}`, text: 'Parents and children' },
  { name: 'activity-long', path: '/console/activity', text: 'own.action' },
  { name: 'new-account', path: '/console/new/account', text: 'Create the account' },
  { name: 'account', path: `/console/accounts/${account.id}`, text: '2 entries' },
  { name: 'account-delete', path: `/console/accounts/${account.id}`, go: pressed('Delete…'), text: 'to confirm' },
  {
    name: 'new-keyring-key',
    path: '/console/new/keyring',
    go: async (page) => {
      await page.getByLabel('Name').fill('Fresh');
      await pressed('Create the keyring')(page);
      await pressed('Copy: Private key of Fresh')(page);
    },
    text: 'I have saved the private key',
  },
];

const grace = await visitAs(appliance, 'grace', '/console/accounts');
const missing: string[] = [];
grace.page.on('response', (response) => {
  if (response.url().includes('/static/') && !response.ok()) missing.push(response.url());
});

for (const { name, path, go, text } of states) {
  test(`the state ${name} looks right`, async () => {
    const { page, troubles } = grace;
    // Visits another page first, so that the page mounts again.
    await goTo(page, '/console/nothing');
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    await goTo(page, path);
    await go?.(page);
    await page.getByText(text).first().waitFor();
    await page.locator(':root:not(:has([data-loading]))').waitFor();
    await looksRight(page, name);
    await page.keyboard.press('Escape');
    assert.deepEqual(troubles, []);
    assert.deepEqual(missing, [], 'the files of the page are found from each address');
  });
}

test('the ways in look right', async () => {
  const { page, troubles } = await visit(`${empty.url}/console`);
  await page.getByText('There are no users yet.').waitFor();
  await looksRight(page, 'login-new');
  await pressed('Use a password instead')(page);
  await looksRight(page, 'login');
  await pressed('Log in')(page);
  await page.getByText('This is required.').first().waitFor();
  await looksRight(page, 'login-missing');
  await pressed('Use an API key instead')(page);
  await looksRight(page, 'login-key');
  await page.getByLabel('API key', { exact: true }).fill(empty.rootKey);
  await pressed('Use this key')(page);
  await page.getByRole('button', { name: 'Log out' }).waitFor();
  await goTo(page, '/console/users');
  await page.getByText('There are no users yet.').waitFor();
  await looksRight(page, 'users-empty');
  await goTo(page, '/console/keyrings');
  await page.getByText('There are no keyrings yet.').waitFor();
  await looksRight(page, 'keyrings-empty');
  await goTo(page, '/console/tang');
  await page.getByText('There are no Tang key pairs yet.').waitFor();
  await looksRight(page, 'tang-empty');
  await pressed('Log out')(page);
  await page.getByRole('main').getByText('You are logged out.').waitFor();
  await looksRight(page, 'login-again');
  await page.goto(empty.setUpUrl);
  await page.getByRole('heading', { name: 'Set up this service' }).waitFor();
  await page.getByLabel('Password', { exact: true }).fill('weak pass');
  await looksRight(page, 'set-up');
  await page.goto(`${empty.url}/console/set-up`);
  await page.getByRole('heading', { name: 'Open the link that the service showed' }).waitFor();
  await looksRight(page, 'set-up-missing');
  await page.goto(appliance.setUpUrl);
  await page.getByRole('heading', { name: 'This service is set up already' }).waitFor();
  await looksRight(page, 'set-up-used');
  assert.deepEqual(troubles, []);
});

test('what is not allowed, the menu and a failure look right', async () => {
  const { page, troubles } = await visitAs(appliance, 'reader', '/console/users/grace', { width: 360 });
  await page.getByText('API keys of this user').waitFor();
  await pressed('Menu')(page);
  await page.getByRole('navigation').waitFor();
  await looksRight(page, 'menu');
  // The menu covers the page, down to its last entry.
  await pressed('Menu')(page);
  await goTo(page, '/console/accounts');
  await page.getByRole('alert').filter({ hasText: 'account.read' }).waitFor();
  await looksRight(page, 'accounts-refused');
  await page.route('**/ks/keyrings*', (route) => route.abort());
  await goTo(page, '/console/keyrings');
  await page.getByText('The service cannot be reached.').waitFor();
  await looksRight(page, 'keyrings-unreachable');
  await page.unroute('**/ks/keyrings*');
  await pressed('Try again')(page);
  await page.getByText('entries').waitFor();
  assert.deepEqual(troubles, []);
});

test('on a phone flags are chips without commas, the rest on demand, and a date is as wide as it is', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/apikeys');
  await page.setViewportSize({ width: 390, height: 800 });
  const summary = page.locator('[data-flag-summary]', { hasText: 'keyring.payroll.encrypt' });
  await summary.waitFor();
  assert.deepEqual(await summary.locator('[data-chip]').allTextContents(), ['keyring.payroll.encrypt']);
  await summary.getByRole('button', { name: '+2 more flags' }).click();
  await summary.getByText('asset.read').waitFor();
  assert.doesNotMatch((await summary.textContent()) ?? '', /,/);
  const rights = await summary
    .locator('[data-chip]')
    .evaluateAll((each) => each.map((chip) => chip.getBoundingClientRect().right));
  assert.equal(rights.length, 3, 'the rest on demand');
  assert.ok(
    rights.every((right) => right <= 390),
    'within the window',
  );
  const widths = await page.locator('td time').evaluateAll((times) =>
    times.map((each) => {
      const range = document.createRange();
      range.selectNodeContents(each);
      return each.getBoundingClientRect().width - range.getBoundingClientRect().width;
    }),
  );
  assert.ok(widths.length > 0 && widths.every((more) => Math.abs(more) < 1), widths.join(' '));
  assert.deepEqual(troubles, []);
});
