// A keyring's life in the console, from the set-up link on: made with a private key that stays in the browser, used,
// rotated, configured, deleted by typing its name, restored.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { visit, watchAnswers } from '../support/browser.ts';
import { somePoint } from '../support/tang.ts';
import { servedAppliance } from './appliance.ts';
import { fillSetUp, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance({}, { tang: true });

test('from the set-up link on, a keyring is made, rotated, set up, deleted and brought back', async () => {
  const { page, troubles } = await visit(appliance.setUpUrl);
  await fillSetUp(page, 'ada', 'Ada', 'Lovelace');
  await page.getByRole('button', { name: 'Create my user' }).click();
  await page.getByRole('link', { name: 'Keyrings', exact: true }).click();
  // Playwright can't see the bodies of cloned requests.
  await page.evaluate(() => {
    const sent: string[] = [];
    const send = window.fetch;
    window.fetch = async (input, init) => {
      const request = new Request(input, init);
      sent.push(`${request.url} ${JSON.stringify([...request.headers])} ${await request.clone().text()}`);
      return send(request);
    };
    Object.assign(window, { sent });
  });
  const urls: string[] = [];
  page.on('request', (request) => urls.push(request.url()));
  await page.getByRole('link', { name: 'Create the first keyring' }).click();
  await page.getByRole('heading', { name: 'New keyring', level: 1 }).waitFor();
  await page.waitForFunction(() => document.activeElement?.tagName === 'H1');

  await page.getByRole('button', { name: 'Create the keyring' }).click();
  await page.getByText('This is required.').waitFor();
  await page.getByLabel('Name').fill('pay roll');
  await page.getByRole('button', { name: 'Create the keyring' }).click();
  await page.waitForFunction(() => document.activeElement?.getAttribute('aria-invalid') === 'true');
  await page.getByLabel('Name').fill('Payroll');
  await page.getByText('Properties', { exact: true }).click();
  await page.getByLabel('Properties of the keyring').fill('{"team": "pay"}');
  await page.getByRole('button', { name: 'Create the keyring' }).click();

  const dialog = page.getByRole('dialog', { name: 'Save the private key now' });
  await dialog.waitFor();
  const privateKey = await dialog.getByLabel('Private key of Payroll', { exact: true }).inputValue();
  assert.match(privateKey, /^-----BEGIN PRIVATE KEY-----\n[\s\S]+\n-----END PRIVATE KEY-----\n$/);
  const { appliance: id } = (await appliance.call('GET', '/readyz')).body;
  await dialog.getByText(`~/.config/kms/rings/${id}/payroll.key`).waitFor();
  for (let i = 0; i < 3; i++) await page.keyboard.press('Escape');
  await page.evaluate(() => history.back());
  await dialog.getByRole('checkbox').check();
  await dialog.getByRole('button', { name: 'Done' }).click();
  await dialog.getByText('Copy the key or save it as a file first.').waitFor();
  const downloading = page.waitForEvent('download');
  await dialog.getByRole('button', { name: 'Save as a file' }).click();
  const download = await downloading;
  assert.equal(download.suggestedFilename(), 'payroll.key');
  assert.equal(await readFile(await download.path(), 'utf8'), privateKey);
  await dialog.getByRole('button', { name: 'Done' }).click();

  await page.getByRole('heading', { name: 'Payroll', level: 1 }).waitFor();
  assert.equal(page.url(), `${appliance.url}/console/keyrings/payroll`);
  const made = await appliance.call('GET', '/ks/keyrings/payroll');
  assert.deepEqual(made.body.ring.props, { team: 'pay' });
  const der = privateKey.replace(/-----[A-Z ]+-----|\n/g, '');
  const raw = Buffer.from(der, 'base64').subarray(-32);
  const sent = [...urls, ...(await page.evaluate(() => (window as unknown as { sent: string[] }).sent))];
  for (const secret of [der, raw.toString('base64'), raw.toString('hex'), raw.toString('base64url')]) {
    assert.ok(!sent.join('\n').includes(secret), 'the private key crossed the network');
  }
  assert.ok(sent.some((each) => each.includes(made.body.ring.publicKey)));

  await page.getByRole('button', { name: 'Rotate…' }).click();
  await page.getByRole('dialog', { name: 'Rotate Payroll?' }).getByText('1 active API key may use it').waitFor();
  await page.getByRole('button', { name: 'Rotate the keyring' }).click();
  await page.getByRole('status').filter({ hasText: 'The new active key is' }).waitFor();
  await page.getByRole('row').nth(2).waitFor();
  const { body: rotated } = await appliance.call('GET', '/ks/keyrings/payroll');
  assert.notEqual(rotated.ring.activeKey, made.body.ring.activeKey);
  await page.getByRole('row').filter({ hasText: rotated.ring.activeKey }).getByText('active').waitFor();

  await page.getByRole('button', { name: 'Change settings' }).click();
  await page.getByLabel('Encrypts per key').fill('0');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('Enter a whole number of at least 1.').waitFor();
  await page.getByLabel('Encrypts per key').fill('1000');
  for (const wrong of ['59m', '90', 'soon']) {
    await page.getByLabel('Age at which a key is replaced').fill(wrong);
    await page.getByRole('button', { name: 'Save settings' }).click();
    await page.getByText('Enter an age of at least 1h, such as 12h or 90d.').waitFor();
  }
  await page.getByLabel('Age at which a key is replaced').fill(' 90d');
  await page.locator('[name=props]').fill('{"team": 12345678901234567890}');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('cannot be kept exactly').waitFor();
  await page.locator('[name=props]').fill('{"team": "people"}');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('1,000').waitFor();
  const { body } = await appliance.call('GET', '/ks/config?ringname=payroll');
  assert.deepEqual([body.config.algos.aes256.maxEncryptCount, body.config.props], [1000, { team: 'people' }]);
  assert.equal(body.config.rotateAfter, 90 * 86_400);
  await page.getByText('90d', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Change settings' }).click();
  assert.equal(await page.getByLabel('Age at which a key is replaced').inputValue(), '90d');
  await page.getByLabel('Age at which a key is replaced').fill('');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('no limit', { exact: true }).waitFor();
  assert.equal((await appliance.call('GET', '/ks/config?ringname=payroll')).body.config.rotateAfter, null);

  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByLabel('Type payroll to confirm').fill('payrol');
  await page.getByRole('button', { name: 'Delete the keyring' }).click();
  await page.getByText('Type payroll exactly as shown.').waitFor();
  assert.equal((await appliance.call('GET', '/ks/keyrings/payroll')).status, 200);
  await page.getByLabel('Type payroll to confirm').fill('payroll');
  await page.getByRole('button', { name: 'Delete the keyring' }).click();
  await page.getByText('There are no keyrings yet.').waitFor();
  assert.equal((await appliance.call('GET', '/ks/keyrings/payroll')).status, 404);

  await page.getByRole('button', { name: 'Restore it' }).click();
  await page.getByRole('heading', { name: 'Payroll', level: 1 }).waitFor();
  assert.equal((await appliance.call('GET', '/ks/keyrings/payroll')).body.ring.id, made.body.ring.id);
  assert.deepEqual(troubles, []);
});

test('deleted keyrings are listed, and brought back unless their name is taken', async () => {
  const names = ['old', 'older'];
  for (const name of names) await appliance.call('POST', '/ks/keyrings', { name });
  for (const name of names) await appliance.call('DELETE', `/ks/keyrings/${name}`);
  await appliance.call('POST', '/ks/keyrings', { name: 'older' });
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings');
  await page.getByRole('button', { name: 'Deleted', exact: true }).click();
  const bin = page.getByRole('table', { name: 'Deleted keyrings' });
  await bin.getByRole('row').nth(2).waitFor();
  await page.getByRole('button', { name: 'Restore older' }).click();
  await page.getByRole('alert').filter({ hasText: 'another keyring has this name' }).waitFor();
  await page.getByRole('button', { name: 'Restore old', exact: true }).click();
  await page.getByRole('heading', { name: 'old', level: 1 }).waitFor();
  assert.equal((await appliance.call('GET', '/ks/keyrings/old')).status, 200);
  const [left] = (await appliance.call('GET', '/ks/keyrings?deleted=true')).body.data;
  assert.equal(left.name, 'older');
  assert.deepEqual(troubles, []);
});

test('Tang key pairs: the first is made, the next advertised, an earlier one deleted by its thumbprint', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/tang');
  await page.getByText('There are no Tang key pairs yet.').waitFor();
  await page.getByRole('button', { name: 'Create the first pair' }).click();
  await page.getByRole('status').filter({ hasText: 'The first pair has been created.' }).waitFor();
  const pairs = async () => (await appliance.call('GET', '/tang/pairs')).body.pairs;
  const [first] = await pairs();
  const rows = page.getByRole('table', { name: 'Tang key pairs' }).getByRole('row');
  const rowOf = (thumbprint: string) => rows.filter({ hasText: thumbprint });
  await rowOf(first.thumbprint).getByText('advertised').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Delete…' }).count(), 0, 'none that is advertised');
  const recover = () =>
    fetch(`${appliance.tangUrl}/rec/${first.exchange}`, { method: 'POST', body: JSON.stringify(somePoint) });
  assert.equal((await recover()).status, 200);

  await page.getByRole('button', { name: 'Rotate…' }).click();
  await page.getByRole('button', { name: 'Rotate the key pair' }).click();
  await page.getByRole('status').filter({ hasText: 'The earlier pairs still unlock' }).waitFor();
  await rows.nth(2).waitFor();
  const [second] = await pairs();
  assert.notEqual(second.thumbprint, first.thumbprint);
  await rowOf(second.thumbprint).getByText('advertised').waitFor();
  await rowOf(second.thumbprint).getByText('never').waitFor();
  assert.equal(await rowOf(first.thumbprint).getByText('advertised').count(), 0);
  await rowOf(first.thumbprint).getByText('1', { exact: true }).waitFor();
  assert.equal((await recover()).status, 200);

  await rowOf(first.thumbprint).getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete this Tang key pair?' });
  await dialog.getByLabel(`Type ${first.thumbprint} to confirm`).fill(first.thumbprint.toLowerCase());
  await dialog.getByRole('button', { name: 'Delete the key pair' }).click();
  await dialog.getByText(`Type ${first.thumbprint} exactly as shown.`).waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await recover()).status, 200, 'nothing is deleted by what was not confirmed');
  await rowOf(first.thumbprint).getByRole('button', { name: 'Delete…' }).click();
  await dialog.getByLabel(`Type ${first.thumbprint} to confirm`).fill(first.thumbprint);
  // Another administrator deletes it meanwhile.
  assert.equal((await appliance.call('DELETE', `/tang/pairs/${first.thumbprint}`)).status, 200);
  await dialog.getByRole('button', { name: 'Delete the key pair' }).click();
  await dialog.getByText('there is no such Tang key pair').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await appliance.call('POST', '/tang/pairs');
  await page.getByRole('button', { name: 'Refresh the list' }).click();
  await rowOf(second.thumbprint).getByRole('button', { name: 'Delete…' }).click();
  await dialog.getByLabel(`Type ${second.thumbprint} to confirm`).fill(second.thumbprint);
  await dialog.getByRole('button', { name: 'Delete the key pair' }).click();
  await page.getByRole('status').filter({ hasText: 'The key pair has been deleted.' }).waitFor();
  await rowOf(second.thumbprint).waitFor({ state: 'detached' });
  assert.equal((await pairs()).length, 1);
  assert.equal((await recover()).status, 404);

  await page.getByRole('link', { name: 'activity', exact: true }).click();
  await page.getByRole('heading', { name: 'Activity', level: 1 }).waitFor();
  await page
    .getByText(/recover/)
    .first()
    .waitFor();
  assert.deepEqual(troubles, []);
});

test('each key of a keyring says by whom and how often it was used, or since when it was not', async () => {
  await appliance.call('POST', '/ks/keyrings', { name: 'archive' });
  const { body: accounts } = await appliance.call('GET', '/auth/accounts');
  const flags = { 'keyring.archive.decrypt': true };
  const made = await appliance.call('POST', '/auth/apikey', { accountId: accounts.data[0].id, flags, name: 'Reader' });
  const { header, key } = (await appliance.call('POST', '/ks/encrypt', { ringname: 'archive' })).body;
  const next = await appliance.call('POST', '/ks/rotate', { ringname: 'archive' });
  for (let i = 0; i < 3; i++) await appliance.call('POST', '/ks/decrypt', { header }, made.body.key);
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/archive');
  const keys = page.getByRole('table', { name: 'Keys of archive' });
  const old = keys.getByRole('row').filter({ hasText: key.id });
  await old
    .getByText(/^Decrypted 3 times in the last 30 days, most recently on 20\d\d-\d\d-\d\d by API key Reader\.$/)
    .waitFor();
  await old.getByText(/^Encrypted once in the last 30 days, most recently on 20/).waitFor();
  await old.getByRole('link', { name: 'Reader' }).waitFor();
  const active = keys.getByRole('row').filter({ hasText: next.body.key.id });
  assert.deepEqual(
    await keys.locator('tbody th code').allTextContents(),
    [next.body.key.id, key.id],
    'the active key comes first',
  );
  await active.getByText(/^Nothing has been decrypted with this key since 20\d\d-\d\d-\d\d\.$/).waitFor();
  await active.getByText(/^Nothing has been encrypted with this key since 20/).waitFor();
  assert.deepEqual(troubles, []);
});

test('a keyring that an API key uses says so, and is not deleted', async () => {
  await appliance.call('POST', '/ks/keyrings', { name: 'ledger' });
  const { body } = await appliance.call('GET', '/auth/accounts');
  const flags = { 'keyring.ledger.encrypt': true };
  const key = await appliance.call('POST', '/auth/apikey', { accountId: body.data[0].id, flags });
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/ledger');
  const users = page.getByRole('table', { name: 'API keys that may use ledger' });
  await users.getByRole('row').filter({ hasText: key.body.keyid }).getByText('keyring.ledger.encrypt').waitFor();
  await users.getByRole('row').filter({ hasText: 'wildcard' }).waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete ledger?' });
  await dialog
    .getByText(
      `ledger cannot be deleted: 1 active API key names it (${key.body.keyid}). Disable it first, or revoke its flags`,
    )
    .waitFor();
  assert.equal(await dialog.getByRole('textbox').count(), 0, 'no name is asked for in vain');
  await looksRight(page, 'keyring-delete-hindered');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await appliance.call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: key.body.keyid, active: false });
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByLabel('Type ledger to confirm').waitFor();
  assert.deepEqual(troubles, []);
});

test('of many API keys that use a keyring the first are shown, and the others once they are asked for', async () => {
  await appliance.call('POST', '/ks/keyrings', { name: 'busy' });
  const { data } = (await appliance.call('GET', '/auth/accounts')).body;
  const flags = { 'keyring.busy.encrypt': true };
  for (let i = 0; i < 12; i++) {
    await appliance.call('POST', '/auth/apikey', { accountId: data[0].id, name: `busy-${i}`, flags });
  }
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/busy');
  const users = page.getByRole('table', { name: 'API keys that may use busy' });
  await page.getByText(/^10 of 1\d entries\.$/).waitFor();
  assert.equal(await users.locator('tbody tr').count(), 10);
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText(/^1\d entries\.$/).waitFor();
  assert.ok((await users.locator('tbody tr').count()) >= 12);
  assert.equal(await page.getByRole('button', { name: 'Show more' }).count(), 0);
  assert.deepEqual(troubles, []);
});

test('what is answered after somebody went elsewhere changes nothing there', async () => {
  await appliance.call('POST', '/ks/keyrings', { name: 'slow' });
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/slow');
  await page.getByRole('heading', { name: 'Used by' }).waitFor();
  const answer = Promise.withResolvers<void>();
  await page.route('**/ks/rotate', async (route) => {
    await answer.promise;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Rotate…' }).click();
  await page.getByRole('button', { name: 'Rotate the keyring' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'Users', exact: true }).click();
  await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  // The ring's page is notified and fetches once more.
  const again = Promise.withResolvers<number>();
  await watchAnswers(page, '/ks/keyrings/slow?*', ([status]) => again.resolve(status));
  answer.resolve();
  assert.equal(await again.promise, 200);
  // Long enough for a further request, which must not come.
  await page.waitForTimeout(700);
  assert.equal(await page.getByRole('heading', { name: 'Used by' }).count(), 0);
  assert.deepEqual(troubles, []);
});

test('a public key made elsewhere is enough, and one that is none is told at its field', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/new/keyring');
  await page.getByLabel('Name').fill('ledger');
  await page.getByLabel('I have made one elsewhere').check();
  await page.getByLabel('Public key', { exact: true }).fill('no key');
  await page.getByRole('button', { name: 'Create the keyring' }).click();
  await page.getByText('This is not a public key for a keyring.').waitFor();
  await page.getByLabel('Public key', { exact: true }).fill(Buffer.alloc(32, 9).toString('base64'));
  await page.getByRole('button', { name: 'Create the keyring' }).click();
  await page.waitForFunction(() => document.activeElement?.getAttribute('name') === 'name');
  assert.equal(await page.locator('[data-problem]:not(:empty)').textContent(), 'Another keyring has this name.');
  await page.getByLabel('Name').fill('elsewhere');
  await page.getByRole('button', { name: 'Create the keyring' }).click();
  await page.getByRole('heading', { name: 'elsewhere', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'Keyrings' }).first().click();
  await page.getByLabel('Search by name').fill('ELSE');
  await page.getByRole('row').filter({ hasText: 'elsewhere' }).waitFor();
  await page.getByRole('row').filter({ hasText: 'ledger' }).waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('row').count(), 2);
  assert.deepEqual(troubles, []);
});

test('an asym keyring is made, rotated and read by name', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/asym');
  await page.getByLabel('Name', { exact: true }).fill('Devices');
  await page.getByRole('button', { name: 'Create the keyring' }).click();
  const dialog = page.getByRole('dialog');
  const pem = await dialog.getByLabel('Private key of Devices', { exact: true }).inputValue();
  assert.match(pem, /^-----BEGIN PRIVATE KEY-----\n/);
  const downloading = page.waitForEvent('download');
  await dialog.getByRole('button', { name: 'Save as a file' }).click();
  assert.equal((await downloading).suggestedFilename(), 'devices.key');
  await dialog.getByRole('checkbox').check();
  await dialog.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('status').filter({ hasText: 'The asymmetric keyring Devices has been created.' }).waitFor();
  const rotate = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Rotate' }) });
  await rotate.getByLabel('Name of the keyring').fill('nowhere');
  await rotate.getByRole('button', { name: 'Rotate' }).click();
  await rotate.getByRole('alert').filter({ hasText: 'there is no such' }).waitFor();
  await rotate.getByLabel('Name of the keyring').fill('devices');
  await rotate.getByRole('button', { name: 'Rotate' }).click();
  const id = (await rotate.getByText(/^key_/).first().textContent()) ?? '';
  const read = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Read a key' }) });
  await read.getByLabel('Name of the keyring').fill('devices');
  await read.getByLabel('Id of the key').fill(id);
  await read.getByRole('button', { name: 'Read the key' }).click();
  await read.getByText(id, { exact: true }).waitFor();
  await read.getByText('AES256').waitFor();
  assert.deepEqual(troubles, []);
});
