// Actions on several things of a list at once: it is looked up first what they mean and what is left out, one thing is
// spoken of as one, and what was done can be taken back even if not all was.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
for (const name of ['ada', 'bea']) await appliance.addUser(name, password, { flags: { '*': true } });
await appliance.addUser('joe', password, { flags: { 'keyring.list': true, 'keyring.*.*': true } });
for (const name of ['Payroll', 'Backups', 'Ledger', 'Old-ledger', 'Gone']) await call('POST', '/ks/keyrings', { name });
await call('DELETE', '/ks/keyrings/gone');
await call('POST', '/managed-keys', { name: 'Held', deletionAllowed: true });
const { id: accountId } = (await call('POST', '/auth/accounts', { uid: 'wages' })).body;
for (const n of [1, 2, 3, 4, 5]) {
  const flags = { 'keyring.payroll.encrypt': true };
  await call('POST', '/auth/apikey', { accountId, name: `payslips-${n}`, flags });
}
await call('POST', '/auth/apikey', { accountId, name: 'any', flags: { 'keyring.*.encrypt': true } });

async function isThere(name: string): Promise<boolean> {
  return (await call('GET', `/ks/keyrings/${name}`)).status === 200;
}

async function selected(page: Page, names: readonly string[], button: string): Promise<Locator> {
  for (const name of names) await page.getByLabel(`Select ${name}`, { exact: true }).check();
  await page.getByRole('button', { name: button }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: /^(Cancel|Close)$/ }).waitFor();
  return dialog;
}

test('keyrings that API keys name are left out of a deletion, before it is confirmed', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings');
  const dialog = await selected(page, ['Payroll', 'Backups'], 'Delete…');
  await page.getByRole('dialog', { name: 'Delete 1 keyring?' }).waitFor();
  assert.deepEqual(await dialog.locator('[data-names] li').allTextContents(), ['Backups']);
  await dialog.getByText('1 keyring left out:').waitFor();
  await dialog
    .getByText(
      /^Payroll: 5 active API keys name it \(payslips-1, payslips-2, payslips-3 and 2 more\)\. Disable them first/,
    )
    .waitFor();
  await dialog.getByText(/^\d active API keys may use it, and so may users with the flags\.$/).waitFor();
  await looksRight(page, 'bulk-keyrings-left-out');
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('Deleted 1 keyring.').waitFor();
  assert.deepEqual([await isThere('payroll'), await isThere('backups')], [true, false]);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Undone.').waitFor();
  assert.equal(await isThere('backups'), true);

  const hindered = await selected(page, ['Payroll'], 'Delete…');
  await hindered.getByText('Payroll: 5 active API keys name it').waitFor();
  assert.equal(await hindered.getByRole('button', { name: 'Delete', exact: true }).count(), 0);
  await hindered.getByRole('button', { name: 'Close' }).click();
  const rotated = await selected(page, ['Backups'], 'Rotate…');
  await rotated.getByText(/^\d active API keys may use them, and so may users with the flags\.$/).waitFor();
  assert.deepEqual(troubles, []);
});

test('what was done can be taken back, even if something else could not be done', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings');
  const dialog = await selected(page, ['Ledger', 'Old-ledger'], 'Delete…');
  await call('DELETE', '/ks/keyrings/old-ledger');
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  const failed = page.getByRole('dialog', { name: '1 keyring could not be changed' });
  await failed.getByText('Deleted 1 keyring.').waitFor();
  await failed.getByRole('button', { name: 'Close' }).click();
  assert.equal(await isThere('ledger'), false);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Undone.').waitFor();
  assert.equal(await isThere('ledger'), true);
  assert.deepEqual(troubles, []);
});

test('who may not see API keys is asked without them', async () => {
  const { page, troubles } = await visitAs(appliance, 'joe', '/console/keyrings');
  const dialog = await selected(page, ['Payroll'], 'Delete…');
  await page.getByRole('dialog', { name: 'Delete 1 keyring?' }).waitFor();
  assert.equal(await dialog.getByText('API key').count(), 0);
  assert.deepEqual(troubles, []);
});

test('one thing is spoken of as one, in every dialog', async () => {
  const { page, troubles } = await visitAs(appliance, 'bea', '/console/keyrings');
  const lists = [
    ['keyrings', 'Backups', undefined],
    ['keyrings', 'Gone', 'Deleted'],
    ['managed-keys', 'Held', undefined],
    ['apikeys', 'payslips-1', undefined],
    ['accounts', 'wages', undefined],
  ] as const;
  let asked = 0;
  for (const [list, name, chip] of lists) {
    await page.goto(`${appliance.url}/console/${list}`);
    if (chip !== undefined) await page.getByRole('button', { name: chip, exact: true }).click();
    await page.getByLabel(`Select ${name}`, { exact: true }).check();
    const buttons = page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: /…$/ });
    await buttons.first().waitFor();
    for (const button of await buttons.all()) {
      await button.click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Cancel' }).waitFor();
      await page.waitForFunction(() => document.querySelector('dialog [data-loading]') === null);
      const texts = await dialog.locator('p').allTextContents();
      // Programs and API keys that go with it are several.
      const plural = texts.filter(
        (text) => /\b(They|these|those)\b/.test(text) || /\b(restore|stops) them\b/.test(text),
      );
      assert.deepEqual(plural, [], `${list}: ${await button.textContent()}`);
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      asked++;
    }
  }
  assert.ok(asked >= 9, `${asked}`);
  assert.deepEqual(troubles, []);
});
