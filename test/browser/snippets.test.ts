// Programs to start from, on the pages of keyrings and managed keys, and beside the secret of a new API key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await call('POST', '/ks/keyrings', { name: 'Payroll' });
await call('POST', '/managed-keys', { name: 'Release', type: 'ed25519' });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;

test('a ring’s page has programs with its name and the address, in the language that was chosen last', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/payroll');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const panel = page.getByRole('region', { name: 'Use it' });
  const code = panel.locator('pre');
  await code.filter({ hasText: `export KMS_SERVER=${appliance.url}\nkms encrypt --ring payroll ` }).waitFor();
  await panel.getByText('the variable KMS_API_KEY, and the private key in the file payroll.key.').waitFor();
  for (const [language, text] of [
    ['TypeScript', `createClient({ baseUrl: '${appliance.url}', apiKey: process.env.KMS_API_KEY })`],
    ['Python', '"/ks/encrypt", {"ringname": "payroll"}'],
    ['curl', `${appliance.url}/ks/encrypt > encrypt.json`],
  ] as const) {
    await panel.getByRole('radio', { name: language }).check();
    await code.filter({ hasText: text }).waitFor();
  }
  await looksRight(page, 'snippets-keyring');
  await panel.getByRole('button', { name: 'Copy the program for curl' }).click();
  await page.getByText('Copied the program.').first().waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, await code.textContent());
  assert.ok(copied.startsWith('# '));

  await goTo(page, '/console/managed-keys/release');
  await code.filter({ hasText: `${appliance.url}/managed-keys/release/sign` }).waitFor();
  await panel.getByText('The API key is in the variable KMS_API_KEY.').waitFor();
  await panel.getByRole('radio', { name: 'Python with hvac' }).check();
  await code.filter({ hasText: 'transit.sign_data(name="release"' }).waitFor();
  await panel.getByRole('radio', { name: 'kms' }).check();
  await code.filter({ hasText: 'kms key sign release message.txt' }).waitFor();
  await looksRight(page, 'snippets-transit');
  assert.deepEqual(troubles, []);
});

test('a new API key comes with a program that reads it from its file, and has no secret in it', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', `/console/new/apikey?account=${accounts[0].uid}`);
  await page.getByRole('button', { name: 'Encrypt only' }).click();
  await page.getByLabel('Name of the keyring').fill('payroll');
  await page.getByRole('button', { name: 'Create the key' }).click();
  await page.getByRole('heading', { name: 'The key has been created' }).waitFor();
  const secret = await page.getByRole('textbox', { name: 'Secret of the API key' }).inputValue();
  const panel = page.getByRole('region', { name: 'Use it' });
  await panel
    .getByText(
      /^The API key is in the file apik_\w{26}\.key\. No private key is needed: only its holder can open the file\.$/,
    )
    .waitFor();
  const text = (await panel.textContent()) ?? '';
  assert.match(text, /KMS_API_KEY_FILE=apik_\w{26}\.key\nkms encrypt --ring payroll --recipient -o /);
  assert.ok(!text.includes(secret) && secret.length > 20);
  await looksRight(page, 'snippets-apikey');
  assert.deepEqual(troubles, []);
});
