// A sealed service in a browser: each page accepts a secret that opens it, and the existing session continues.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
await appliance.addUser('grace', password, { flags: { '*': true } });

test('a sealed service asks for what opens it, on whatever page one is', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/accounts');
  await appliance.local('POST', '/local/seal', {});
  await page.getByRole('link', { name: 'Keyrings', exact: true }).click();
  await page.getByText('an administrator has to unseal it').waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'The service is sealed' }).waitFor();
  const field = page.getByLabel('Content of the key file');
  assert.equal(await field.evaluate((element) => element === document.activeElement), true);
  await looksRight(page, 'unseal');
  await page.keyboard.press('Enter');
  await page.getByText('This is required.').waitFor();
  await field.fill('kms-master-key-1 wrong');
  await page.keyboard.press('Enter');
  await page
    .getByRole('main')
    .getByText(/^The key/)
    .or(page.getByText(/wrong key/i))
    .first()
    .waitFor();
  await looksRight(page, 'unseal-wrong');

  const key = (await readFile(appliance.keyFile, 'utf8')).trim();
  // Other windows notice at once that it is open.
  const { page: other } = await visit(`${appliance.url}/console/users`);
  await other.getByRole('heading', { name: 'The service is sealed' }).waitFor();
  await field.fill(key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Keyrings', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
  const left = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state]));
  assert.ok(!left.includes(key) && !(await page.content()).includes(key));
  await other.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('shares add up, from whoever gives them, and what is wrong with one is told at the field', async () => {
  await appliance.local('POST', '/local/seal', {});
  const { page, troubles } = await visit('about:blank');
  const status = { sealed: true, kinds: ['shares', 'exec'], threshold: 3, progress: 1 };
  const sent: unknown[] = [];
  await page.route('**/system/seal-status', (route) => route.fulfill({ json: status }));
  await page.route('**/system/unseal', (route) => {
    sent.push(route.request().postDataJSON());
    if (sent.length === 1)
      return route.fulfill({ status: 400, json: { message: 'that share does not belong to this appliance' } });
    return route.fulfill({ json: { ...status, progress: 2 } });
  });
  await page.goto(`${appliance.url}/console`);
  await page.getByText('1 share is given, 2 more are needed.').waitFor();
  await page.getByText('until somebody enters what opens it: shares.').waitFor();
  await page.getByLabel('Share').fill('kms-share-1-wrong');
  await page.keyboard.press('Enter');
  await page.getByText('That share does not belong to this appliance.').waitFor();
  await page.getByLabel('Share').fill('kms-share-1-right');
  await page.keyboard.press('Enter');
  await page.getByText('2 shares are given, 1 more is needed.').first().waitFor();
  const field = page.getByLabel('Share');
  assert.deepEqual(
    [await field.inputValue(), await field.evaluate((element) => element === document.activeElement)],
    ['', true],
  );
  assert.deepEqual(sent, [{ share: 'kms-share-1-wrong' }, { share: 'kms-share-1-right' }]);
  assert.deepEqual(troubles, []);
});
