// Lists of two hundred: searched, filtered and sorted within the address, left and found again as they were, changed in
// bulk; what asks first and what can be taken back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'user.read': true, 'keyring.list': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
const accountId: string = accounts[0].id;
const day = 86_400_000;
for (const name of ['payroll', 'ledger', 'old-ledger']) await call('POST', '/ks/keyrings', { name });
await call('POST', '/managed-keys', { name: 'Vault' });
const flags = { 'keyring.payroll.encrypt': true, 'keyring.payroll.decrypt': true, 'asset.read': true };
const keys: { keyid: string; key: string }[] = [];
for (let i = 0; i < 200; i++) {
  const expiresAt = i === 7 ? Date.now() + 5 * day : null;
  const { body } = await call('POST', '/auth/apikey', { accountId, name: `batch-${i}`, flags, expiresAt });
  keys.push(body);
}
const keyOf = (index: number) => keys[index] ?? assert.fail();
await call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyOf(9).keyid, active: false });

const rowsOf = (page: Page) => page.locator('tbody tr');
const isActive = async (index: number) => (await call('GET', `/auth/apikey/${keyOf(index).keyid}`)).body.active;

test('an API key among two hundred is found while one types, and Back shows the list as it was', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/apikeys');
  await page.getByText('100 of 201 entries.').waitFor();
  assert.match((await rowsOf(page).first().textContent()) ?? '', /batch-199/, 'the newest comes first');
  await page.getByRole('heading', { name: 'API keys', level: 1 }).click();
  await page.keyboard.press('/');
  const asked: string[] = [];
  page.on('request', (request) => {
    // Approvals are polled on every page.
    if (!/\/console\/static\/|\/approvals\//.test(request.url())) asked.push(request.url());
  });
  await page.keyboard.type('batch-137');
  await page.getByText('1 of 201 entries.').waitFor();
  assert.deepEqual(asked, [], 'nothing is asked for, so it takes no time');
  assert.equal(await page.getByLabel('Search by name, id, flag or owner').inputValue(), 'batch-137');
  await page.getByRole('link', { name: 'batch-137' }).click();
  await page.getByRole('heading', { name: 'batch-137', level: 1 }).waitFor();
  await page.goBack();
  await page.getByText('1 of 201 entries.').waitFor();
  assert.equal(new URL(page.url()).search, '?q=batch-137');

  for (const [typed, count] of [
    [keyOf(42).keyid, 1],
    [`${accounts[0].uid} batch-19`, 11],
    ['payroll.decrypt batch-13', 11],
  ] as const) {
    await page.getByLabel('Search by name, id, flag or owner').fill(typed);
    await page.getByText(`${count} of 201 entries.`).waitFor();
  }
  await page.getByLabel('Search by name, id, flag or owner').fill('no such key');
  await page.getByText('Nothing here matches “no such key”.').waitFor();
  await page.getByRole('button', { name: 'Show everything' }).click();
  await page.getByText('100 of 201 entries.').waitFor();

  await page.getByRole('button', { name: 'Disabled', exact: true }).click();
  await page.getByText('1 of 201 entries.').waitFor();
  await page.getByRole('button', { name: 'Disabled', exact: true }).click();
  await page.getByRole('button', { name: 'Expiring', exact: true }).click();
  await page.getByRole('link', { name: 'batch-7', exact: true }).waitFor();
  await page.getByText('1 of 201 entries.').waitFor();
  await page.reload();
  await page.getByText('1 of 201 entries.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Expiring' }).getAttribute('aria-pressed'), 'true');
  await page.getByRole('button', { name: 'Expiring' }).click();

  await page.getByRole('button', { name: 'Name', exact: true }).click();
  await page.locator('th[aria-sort=ascending]', { hasText: 'Name' }).waitFor();
  assert.match((await rowsOf(page).first().textContent()) ?? '', /batch-0/);
  await page.getByRole('button', { name: 'Name', exact: true }).click();
  await page.locator('th[aria-sort=descending]').waitFor();
  assert.match((await rowsOf(page).nth(1).textContent()) ?? '', /batch-199/);

  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText('200 of 201 entries.').waitFor();
  await page.getByRole('link', { name: 'batch-50', exact: true }).scrollIntoViewIfNeeded();
  const before = await page.evaluate(() => window.scrollY);
  assert.ok(before > 500);
  await page.getByRole('link', { name: 'batch-50', exact: true }).click();
  await page.getByRole('heading', { name: 'batch-50', level: 1 }).waitFor();
  await page.goBack();
  await page.waitForFunction((wanted) => Math.abs(window.scrollY - wanted) < 5, before);
  assert.deepEqual(troubles, []);
});

test('selected API keys are disabled after a question, which can be taken back; failures are named', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/apikeys?q=batch-18');
  await page.getByText('11 of 201 entries.').waitFor();
  for (const name of ['batch-180', 'batch-181']) await page.getByLabel(`Select ${name}`).check();
  await page.getByText('2 API keys selected').waitFor();
  await page.getByRole('button', { name: 'Disable…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Disable 2 API keys?' });
  await dialog.getByText('None was ever used.').waitFor();
  assert.deepEqual(await dialog.getByRole('listitem').allTextContents(), ['batch-181', 'batch-180']);
  await looksRight(page, 'bulk-disable');
  assert.equal(await isActive(180), true, 'nothing before it is confirmed');
  await dialog.getByRole('button', { name: 'Disable', exact: true }).click();
  await page.getByText('Disabled 2 API keys.').waitFor();
  assert.deepEqual([await isActive(180), await isActive(181), await isActive(182)], [false, false, true]);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Undone.').waitFor();
  assert.deepEqual([await isActive(180), await isActive(181)], [true, true]);

  for (const name of ['batch-182', 'batch-183']) await page.getByLabel(`Select ${name}`).check();
  await page.getByRole('button', { name: 'Set expiry…' }).click();
  await page.getByLabel('Expires').fill('soon');
  await page.getByRole('button', { name: 'Set expiry', exact: true }).click();
  await page.getByText('Enter a date such as 2027-01-31').waitFor();
  await page.getByLabel('Expires').fill('10d');
  await call('DELETE', `/auth/apikey/${keyOf(183).key}`);
  await page.getByRole('button', { name: 'Set expiry', exact: true }).click();
  await page.getByRole('dialog', { name: '1 API key could not be changed' }).waitFor();
  await page.getByRole('listitem').filter({ hasText: 'batch-183: There is no such API key.' }).waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByLabel('Select batch-184').check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog', { name: 'Delete 1 API key?' }).getByText('This cannot be undone.').waitFor();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('Deleted 1 API key.').waitFor();
  assert.equal((await call('GET', `/auth/apikey/${keyOf(184).keyid}`)).status, 404);
  const { expiresAt } = (await call('GET', `/auth/apikey/${keyOf(182).keyid}`)).body;
  assert.ok(Math.abs(expiresAt - Date.now() - 10 * day) < 60_000);
  assert.deepEqual(troubles, []);
});

test('managed keys are not among the keyrings; deleted keyrings come back at once or later', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings');
  await page.getByText('3 entries.').waitFor();
  await page.getByLabel('Search by name or id').fill('ledger');
  await page.getByText('2 of 3 entries.').waitFor();
  await page.getByLabel('Select all that are shown').check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('Deleted 2 keyrings.').waitFor();
  assert.equal((await call('GET', '/ks/keyrings/ledger')).status, 404);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Undone.').waitFor();
  assert.equal((await call('GET', '/ks/keyrings/ledger')).status, 200);

  await page.getByRole('link', { name: 'old-ledger' }).click();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByText('1 active API key may use it').waitFor();
  await page.getByLabel('Type old-ledger to confirm').fill('old-ledger');
  await page.getByRole('button', { name: 'Delete the keyring' }).click();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('heading', { name: 'old-ledger', level: 1 }).waitFor();
  assert.equal((await call('GET', '/ks/keyrings/old-ledger')).status, 200);
  assert.deepEqual(troubles, []);
});

test('who is logged in is left out of what is done to users; the last one who may do everything is told', async () => {
  await appliance.addUser('carl', password, { flags: { 'user.read': true, 'user.delete': true, 'apikey.*': true } });
  const { page, troubles } = await visitAs(appliance, 'carl', '/console/users');
  await page.getByLabel('Select all that are shown').check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete 2 users?' });
  await dialog.getByText('1 user left out:').waitFor();
  await dialog.getByText('carl: This is you.').waitFor();
  await dialog.getByText('After that, no user may do everything.').waitFor();
  await looksRight(page, 'bulk-users');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByLabel('Select ada').uncheck();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog', { name: 'Delete 1 user?' }).getByText('carl: This is you.').waitFor();
  assert.equal(await page.getByText('no user may do everything').count(), 0, 'ada stays');
  assert.deepEqual(troubles, []);
});

test('a key that may do everything is told before it is disabled or deleted', async () => {
  // All other keys match too: the key root made them.
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/apikeys?q=root');
  await page.getByRole('link', { name: 'root', exact: true }).first().click();
  for (const [button, name] of [
    ['Disable…', 'Disable this API key?'],
    ['Delete…', 'Delete the API key root?'],
  ] as const) {
    await page.getByRole('button', { name: button }).click();
    const dialog = page.getByRole('dialog', { name });
    await dialog.getByText('It may do everything.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  }
  assert.deepEqual(troubles, []);
});

test('somebody who may not list anything is told so on every list', async () => {
  await appliance.addUser('dave', password, { flags: { 'asset.read': true } });
  const { page, troubles } = await visitAs(appliance, 'dave', '/console/apikeys?q=root');
  for (const [path, flag] of [
    ['apikeys?q=root', 'apikey.read'],
    ['keyrings', 'keyring.list'],
    ['managed-keys', 'key.list'],
    ['users', 'user.read'],
    ['accounts', 'account.read'],
    ['assets', 'asset.search'],
    ['activity', 'activity.read'],
    ['kmip', 'key.list'],
    ['tang', 'tang.read'],
  ] as const) {
    await page.goto(`${appliance.url}/console/${path}`);
    await page.getByText(`The permission flag ${flag} is missing.`).waitFor();
    assert.equal(await page.locator('[data-loading]').count(), 0, path);
  }
  assert.deepEqual(troubles, []);
});

test('deleting accounts tells which API keys go with them, and a user who nobody else is like', async () => {
  const { body: busy } = await call('POST', '/auth/accounts', { uid: 'busy' });
  const { body: idle } = await call('POST', '/auth/accounts', { uid: 'idle' });
  await call('POST', '/auth/apikey', { accountId: busy.id, name: 'mighty', flags: { '*': true } });
  await call('POST', '/auth/apikey', { accountId: busy.id, name: 'meek', flags: {} });
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/accounts');
  await page.getByLabel('Select busy').check();
  await page.getByLabel('Select idle').check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete 2 accounts?' });
  await dialog.getByText('2 API keys go with them, all of them active; none was ever used.').waitFor();
  await dialog.getByText('mighty may do everything.').waitFor();
  await looksRight(page, 'bulk-accounts');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByLabel('Select busy').uncheck();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog', { name: 'Delete 1 account?' }).getByText('No API keys go with it.').waitFor();
  await call('DELETE', `/auth/accounts/${busy.id}`);
  await call('DELETE', `/auth/accounts/${idle.id}`);

  const other = await visitAs(appliance, 'carl', '/console/users/ada');
  await other.page.getByRole('button', { name: 'Delete…' }).click();
  await other.page.getByText('ada is the only user who may do everything.').waitFor();
  await other.page.goto(`${appliance.url}/console/users/carl`);
  await other.page.getByText('This is you: only somebody else can delete you.').waitFor();
  assert.deepEqual([...troubles, ...other.troubles], []);
});

test('the palette rotates, disables and changes colours; ? shows the keys', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/about');
  await page.getByRole('heading', { name: 'About', level: 1 }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await looksRight(page, 'shortcuts');
  await page.keyboard.press('Escape');
  const choose = async (typed: string, name: string): Promise<void> => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: /page/ }).fill(typed);
    await page.getByRole('option', { name }).click();
  };
  await choose('dark', 'Theme: Dark');
  // The option is clicked before the page has its new colours.
  const paperIs = (colour: string) =>
    page.waitForFunction((wanted) => getComputedStyle(document.body).backgroundColor === wanted, colour);
  await paperIs('rgb(18, 23, 29)');
  await page.reload();
  await page.getByRole('heading', { name: 'About', level: 1 }).waitFor();
  await paperIs('rgb(18, 23, 29)');
  await choose('light', 'Theme: Light');
  await paperIs('rgb(246, 247, 249)');
  await choose('theme: sys', 'Theme: System');
  const { activeKey } = (await call('GET', '/ks/keyrings/payroll')).body.ring;
  await choose('rotate payroll', 'Rotate keyring payroll…');
  await page.getByText(/^1\d\d active API keys may use it/).waitFor();
  await page.getByRole('button', { name: 'Rotate the keyring' }).click();
  await page.getByRole('heading', { name: 'payroll', level: 1 }).waitFor();
  assert.notEqual((await call('GET', '/ks/keyrings/payroll')).body.ring.activeKey, activeKey);
  await choose('disable batch-55', 'Disable API key batch-55…');
  await page.getByRole('button', { name: 'Disable the key' }).click();
  await page.getByRole('heading', { name: 'batch-55', level: 1 }).waitFor();
  assert.equal(await isActive(55), false);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('The key is active again.').waitFor();
  assert.equal(await isActive(55), true);
  assert.deepEqual(troubles, []);
});
