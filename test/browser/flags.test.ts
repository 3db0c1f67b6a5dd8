// A user makes a key with flags from a preset, by keyboard, and reads what they amount to.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'apikey.*': true, 'keyring.payroll.*': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
const long = 'a'.repeat(128);

test('a preset fills the editor, and the sentence follows what is ticked', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', `/console/new/apikey?account=${accounts[0].uid}`);
  const sentence = page.locator('[data-abilities]');
  await sentence.getByText('No permissions chosen yet.').waitFor();
  await page.getByRole('button', { name: 'Encrypt only' }).focus();
  await page.keyboard.press('Enter');
  await sentence.getByText('You still have to name a keyring below.').waitFor();
  await page.getByLabel('Name of the keyring').fill(long);
  await sentence.getByText(`can encrypt with the keyring ${long}. Nothing else.`).waitFor();
  await looksRight(page, 'flags-preset');
  await page.getByRole('button', { name: /^Service: / }).focus();
  await page.keyboard.press('Space');
  await sentence.getByText(`can encrypt and decrypt with the keyring ${long}. Nothing else.`).waitFor();
  await page.getByLabel(`keyring.${long}.rotate`).check();
  await sentence.getByText(`; rotate the keyring ${long}. Nothing else.`).waitFor();
  await page.getByRole('button', { name: 'Auditor' }).click();
  await sentence.getByText('read every keyring, now and later').waitFor();
  assert.equal(await page.getByLabel('activity.read').isChecked(), true);
  await looksRight(page, 'flags-auditor');

  await page.getByRole('button', { name: 'Decrypt only' }).click();
  await page.getByLabel('Name of the keyring').fill('payroll');
  await page.getByRole('button', { name: 'Create the key' }).click();
  await page.getByRole('button', { name: 'I have it' }).click();
  await page.getByText('can decrypt with the keyring payroll. Nothing else.').waitFor();
  const { body } = await call('GET', `/auth/apikey/${new URL(page.url()).pathname.split('/').at(-1)}`);
  assert.deepEqual(body.flags, { 'keyring.payroll.decrypt': true });
  await goTo(page, '/console/users/bob');
  await page.getByText('do everything with the keyring payroll and API keys. Nothing else. They can grant').waitFor();
  assert.deepEqual(troubles, []);
});

test('a key for a keyring that does not exist is warned about while it is made, and once it is', async () => {
  await call('POST', '/ks/keyrings', { name: 'payroll' });
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/new/apikey');
  const account = page.getByLabel('Account', { exact: true });
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>('[name=accountId]')?.value === 'admin');
  assert.equal(await account.inputValue(), accounts[0].uid, 'the only account is filled in');
  await page.getByRole('button', { name: 'Encrypt only' }).click();
  await page.getByLabel('Name of the keyring').fill('payrol');
  const warning = page.getByText(
    'There is no keyring called payrol yet: these flags count once there is one. Did you mean payroll?',
  );
  await warning.waitFor();
  await page.getByLabel('Name of the keyring').fill('payroll');
  await warning.waitFor({ state: 'detached' });
  await page.getByLabel('Name of the keyring').fill('payrol');
  await page.getByRole('button', { name: 'Create the key' }).click();
  await page.getByRole('heading', { name: 'The key has been created' }).waitFor();
  await warning.waitFor();
  await looksRight(page, 'flags-no-keyring');
  await page.getByRole('button', { name: 'I have it' }).click();
  await goTo(page, '/console/new/user');
  await page.getByRole('button', { name: 'Encrypt only' }).click();
  await page.getByLabel('Name of the keyring').fill('payrol');
  await warning.waitFor();
  await page.getByRole('button', { name: 'Remove this keyring' }).click();
  await page.getByText('No permissions chosen yet.').waitFor();
  assert.deepEqual(troubles, []);
});

test('a key with a name is deleted by its name, or by its id', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/about');
  for (const isByName of [true, false]) {
    const name = `nightly ${isByName}`;
    const { keyid } = (await call('POST', '/auth/apikey', { accountId: accounts[0].id, name, flags: {} })).body;
    await goTo(page, `/console/apikeys/${keyid}`);
    await page.getByRole('button', { name: 'Delete…' }).click();
    const dialog = page.getByRole('dialog', { name: `Delete the API key ${name}?` });
    await dialog.getByText('It was never used.').waitFor();
    await dialog.getByLabel(`Type ${name} to confirm`).fill(isByName ? name : keyid);
    await dialog.getByRole('button', { name: 'Delete the key' }).click();
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
    assert.equal((await call('GET', `/auth/apikey/${keyid}`)).status, 404);
  }
  assert.deepEqual(troubles, []);
});

test('a preset with flags that somebody lacks says so', async () => {
  const { page, troubles } = await visitAs(appliance, 'bob', '/console/new/apikey');
  const auditor = page.getByRole('button', { name: 'Auditor' });
  assert.equal(await auditor.getAttribute('title'), 'You would need the flag keyring.list.');
  await auditor.focus();
  await page.keyboard.press('Enter');
  await page.getByText('No permissions chosen yet.').waitFor();
  await page.getByRole('button', { name: 'Encrypt only' }).click();
  await page.getByLabel('Name of the keyring').fill('payroll');
  await page.getByText('can encrypt with the keyring payroll. Nothing else.').waitFor();
  await looksRight(page, 'flags-limited');
  assert.deepEqual(troubles, []);
});
