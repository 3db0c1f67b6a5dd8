// An operator looks at the overview and the activity log, makes and changes API keys, and follows assets to their
// parents.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { consolePages } from '../../src/api/console-pages.ts';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'apikey.*': true, 'keyring.payroll.*': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
const accountId: string = accounts[0].id;
const uid: string = accounts[0].uid;

for (const name of ['payroll', 'ledger']) await call('POST', '/ks/keyrings', { name });
const config = { algos: { aes256: { maxEncryptCount: 10 } } };
await call('PUT', '/ks/config', { ringname: 'payroll', config });

async function apiKey(flags: object, props: object = {}): Promise<{ key: string; keyid: string }> {
  return (await call('POST', '/auth/apikey', { accountId, flags, props })).body;
}
const program = await apiKey({ 'keyring.payroll.encrypt': true });
async function encrypt(ringname: string, asset?: object): Promise<string> {
  const { status, body } = await call('POST', '/ks/encrypt', { ringname, ...(asset && { asset }) }, program.key);
  assert.equal(status, ringname === 'payroll' ? 200 : 403);
  return body.asset?.id;
}
// The chart counts by the hour of the clock: what follows is in the last bar until it has been looked at.
const hourLeft = 3_600_000 - (Date.now() % 3_600_000);
if (hourLeft < 60_000) await setTimeout(hourLeft);
const contract = await encrypt('payroll', { data: { name: 'Contract' } });
const gone = await encrypt('payroll', { data: {} });
const invoice = await encrypt('payroll', { data: { name: 'Invoice 17', case: 'A' }, parents: [contract, gone] });
for (const name of ['Receipt 1', 'Receipt 2']) await encrypt('payroll', { data: { name }, parents: [invoice] });
await call('DELETE', `/assets/${gone}`);
for (let i = 0; i < 3; i++) await encrypt('payroll');
for (let i = 0; i < 2; i++) await encrypt('ledger');

test('the overview tells how the service is used and how it is', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada');
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  const chart = page.getByRole('img', { name: /^Encrypts, decrypts and denials, last 24 hours/ });
  await chart.waitFor();
  await page.locator('[data-legend]', { hasText: 'Encrypts: 8Decrypts: 0Denials: 2' }).waitFor();
  const { width = 0 } = (await chart.boundingBox()) ?? {};
  await chart.hover({ position: { x: width - 20, y: 60 } });
  await page.locator('[data-tip]', { hasText: /:008 encrypts0 decrypts2 denials$/ }).waitFor();
  await page.getByText('The numbers as a table').click();
  await page
    .getByRole('row')
    .filter({ hasText: /80\s*2$/ })
    .waitFor();
  await page.getByText('8 of 10').waitFor();
  assert.equal(await page.getByRole('meter').count(), 1, 'keyrings that have longer to go are left out');
  await page.getByText('Unsealed and serving').waitFor();
  await page.getByText('None yet', { exact: true }).waitFor();
  await page.getByText('Healthy').waitFor();
  await page.getByText('The numbers as a table').click();
  // Simulates a browser without the file picker API.
  await page.evaluate(() => Object.defineProperty(window, 'showSaveFilePicker', { value: undefined }));
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download a backup' }).click();
  const backup = await downloading;
  assert.match(backup.suggestedFilename(), /^kms-\d{4}-\d\d-\d\d\.kms-backup$/);
  assert.equal((await readFile(await backup.path())).toString('latin1', 0, 8), 'KMS-BKUP');
  await page.getByText('Nobody can open it').waitFor();
  await looksRight(page, 'overview');
  await encrypt('payroll');
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByText('9 of 10').waitFor();
  await page.getByLabel('Last hour').check();
  await page.getByRole('img', { name: /last hour/ }).waitFor();
  await page.locator('[data-legend]', { hasText: 'Encrypts: 9' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('the overview names files of the activity logs that are missing or changed', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada');
  await page.getByText('Unsealed and serving').waitFor();
  const segments = [1, 2].map((n) => `tenants/2f6c1b0a9d8e7f34/activity-00000000000${n}.kms is missing`);
  await page.route('**/system/overview?*', async (route) => {
    const headers = { ...route.request().headers(), 'if-none-match': '"none"' };
    const answer = await (await route.fetch({ headers })).json();
    const readiness = { ...answer.readiness, activity: { faulty: 7, segments } };
    await route.fulfill({ json: { ...answer, readiness } });
  });
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByText('7 files of activity logs are missing or changed').waitFor();
  for (const segment of segments) await page.getByText(segment, { exact: true }).waitFor();
  await page.getByText('and 5 more', { exact: true }).waitFor();
  await looksRight(page, 'overview-faults');
  assert.deepEqual(troubles, []);
});

test('who may see little is told so, part by part', async () => {
  const { page, troubles } = await visitAs(appliance, 'bob');
  const refusals = page.getByText(/^You are not allowed to see/);
  await refusals.nth(2).waitFor();
  assert.equal(await refusals.count(), 3);
  await page.getByText('Unsealed and serving').waitFor();
  await looksRight(page, 'overview-refused');
  await page.route('**/system/overview?*', (route) => route.abort());
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByRole('button', { name: 'Try again' }).first().waitFor();
  assert.deepEqual(troubles, []);
});

test('a list is fetched again when somebody asks for it, and when they come back to the window', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/accounts');
  const entries = async (count: number) => {
    const { body } = await call('GET', '/auth/accounts');
    await page.getByText(body.data.length === 1 ? '1 entry.' : `${body.data.length} entries.`).waitFor();
    assert.equal(await page.getByRole('row').count(), body.data.length + 1);
    return call('POST', '/auth/accounts', { uid: `later-${count}` });
  };
  await entries(1);
  await page.getByRole('button', { name: 'Refresh the list' }).click();
  await entries(2);
  await page.evaluate(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 60_000;
    window.dispatchEvent(new Event('focus'));
  });
  await entries(3);
  assert.deepEqual(troubles, []);
});

test('the console asks for nothing that the flags of its user forbid', async () => {
  await appliance.addUser('eve', password, { flags: { 'keyring.list': true } });
  const { page } = await visitAs(appliance, 'eve');
  await page.getByText('You are not allowed to see who used what').waitFor();
  await page.getByText('You are not allowed to see the metrics').waitFor();
  for (const title of ['Asymmetric keyrings', 'Users']) {
    await page.getByRole('link', { name: `${title} not allowed` }).waitFor();
  }
  await page.getByRole('button', { name: 'Refresh' }).click();
  const places = Object.values(consolePages).filter(({ path }) => path.startsWith('/console/') && !path.includes('{'));
  const own = [
    '/console/keyrings/payroll',
    `/console/accounts/${accountId}`,
    `/console/assets/${gone}`,
    '/console/users/bob',
  ];
  for (const path of [...places.map(({ path }) => path), ...own]) {
    await goTo(page, path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    for (const each of await page.getByText('Loading').all()) await each.waitFor({ state: 'hidden' });
  }
  const { id } = (await call('GET', '/auth/users/eve')).body;
  const { data } = (await call('POST', '/auth/search/activity', { keyid: id })).body;
  const denied = data.filter(({ validAction }: { validAction: boolean }) => !validAction);
  assert.deepEqual(
    denied.map(({ action }: { action: string }) => action),
    [],
  );
  const actions = new Set(data.map(({ action }: { action: string }) => action));
  assert.ok(actions.has('keyring.list'), [...actions].join());
});

test('activity is searched, by an address that can be kept, and followed live', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/activity?valid=false');
  await page.getByText('2 entries.').waitFor();
  await page.getByLabel(/^Action/).fill('keyring.encrypt');
  await page.getByLabel(/^Keyring/).fill('Payroll');
  await page.getByLabel('Verdict').selectOption('Granted');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.waitForURL(/action=keyring.encrypt/);
  await page.getByText(/^[89] entries\.$/).waitFor();
  const entries = page.locator('[data-timeline] ol > li');
  assert.equal(await entries.filter({ hasText: 'encrypted with keyring payroll' }).count(), await entries.count());
  assert.equal(await entries.filter({ hasText: 'denied' }).count(), 0);
  await looksRight(page, 'activity');
  await page.goBack();
  await page.getByText('2 entries.').waitFor();
  assert.equal(await page.getByLabel(/^Keyring/).inputValue(), '');

  await page.getByText('More filters').click();
  await page.getByLabel('Properties').fill('[1]');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('This has to be an object').waitFor();
  await page.getByLabel('Properties').fill('{"no": "such"}');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('Nothing in the log matches these filters.').waitFor();
  await looksRight(page, 'activity-empty');

  await goTo(page, '/console/activity?start=yesterday');
  await page.getByRole('alert').filter({ hasText: 'Some filters in this address are not valid' }).waitFor();
  await page.getByRole('link', { name: 'Clear all filters' }).click();
  await page.getByRole('button', { name: 'Follow live' }).click();
  await page.getByText(/^Following\./).waitFor();
  const live = page.getByRole('region', { name: 'Live' });
  await encrypt('ledger');
  const denials = live.getByRole('listitem').filter({ hasText: 'denied' }).filter({ hasText: 'ledger' });
  await denials.nth(1).waitFor();
  await looksRight(page, 'activity-live');
  const ids = await live.locator('li a').evaluateAll((links) => links.map((link) => link.getAttribute('href')));
  const records = ids.filter((id) => id?.includes('/act_'));
  assert.equal(new Set(records).size, records.length, 'each record once');
  const readings = live.getByRole('listitem').filter({ hasText: /^.*ada read the activity log/s });
  assert.equal(await readings.count(), 0);
  await page.getByLabel('Include my own reading of this log').check();
  await page.waitForURL(/own=yes/);
  await readings.first().waitFor();
  await page.getByLabel('Include my own reading of this log').uncheck();

  const hide = (hidden: boolean): Promise<void> =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
  await hide(true);
  await page.getByText('Paused while this page is hidden.').waitFor();
  let asked = 0;
  page.on('request', (request) => {
    if (request.url().includes('/auth/search/activity')) asked += 1;
  });
  await encrypt('ledger');
  assert.equal(asked, 0);
  await hide(false);
  await denials.first().getByText('2 times', { exact: true }).waitFor();

  await denials.first().getByRole('link').first().click();
  await page.getByRole('heading', { name: 'Activity record', level: 1 }).waitFor();
  await page.getByText('403: not allowed, or a limit is reached').waitFor();
  await looksRight(page, 'activity-record');
  assert.deepEqual(troubles, []);
});

test('an API key is made with flags, its secret shown once, changed, checked, disabled and deleted', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/apikeys');
  await page.getByRole('link', { name: 'New API key' }).click();
  await page.getByLabel('Account', { exact: true }).fill(uid);
  await page.getByLabel('Name (optional)').fill('Nightly <b>batch</b>');
  await page.getByLabel('Allowed addresses').fill('192.0.2.7/24, 127.0.0.1\nhome');
  await page.getByLabel('Expires').fill('soon');
  await page.locator('summary', { hasText: /^Keyrings/ }).click();
  await page.getByRole('button', { name: 'Grant operations on a keyring' }).first().click();
  await page.getByLabel(/keyring\.<ringname>\.encrypt/).check();
  await page.getByRole('button', { name: 'Create the key' }).click();
  await page.getByText('Flags: Type the keyring’s name, or choose all keyrings.').waitFor();
  await page.getByLabel('Name of the keyring').fill('Payroll');
  await page.locator('summary', { hasText: /^Other flags/ }).click();
  await page.getByRole('button', { name: 'Add a flag by name' }).click();
  const flag = page.getByRole('group', { name: 'Flag by name, 1' }).getByLabel('Name', { exact: true });
  await flag.fill('keyring.payroll.encrpyt');
  await page.getByText('Did you mean keyring.payroll.encrypt?').waitFor();
  await flag.fill('shop.refund');
  await page.getByText('Did you mean').waitFor({ state: 'detached' });
  await page.getByText('Not one of this service’s flags').waitFor();
  await page.getByRole('button', { name: 'Create the key' }).click();
  await page.getByText('Enter a date such as 2027-01-31').waitFor();
  await page.getByLabel('Expires').fill('2099-12-31 08:00');
  await page.getByRole('button', { name: 'Create the key' }).click();
  await page.getByText('“home” is neither an IPv4 or IPv6 address').waitFor();
  await looksRight(page, 'new-apikey');
  await page.getByLabel('Allowed addresses').fill('192.0.2.7/24, 127.0.0.1');
  await page.getByRole('button', { name: 'Create the key' }).click();

  const field = page.getByLabel('Secret of the API key', { exact: true });
  await field.waitFor();
  const secret = await field.inputValue();
  assert.match(secret, /^kms_[0-9A-Za-z]{49}$/);
  await looksRight(page, 'apikey-secret');
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save as a file' }).click();
  assert.equal(await readFile(await (await downloading).path(), 'utf8'), secret);
  await page.getByRole('button', { name: 'I have it' }).click();
  await page.getByText('not one of this service’s flags').waitFor();
  const keyid = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  // The key's own state: each of its proofs has one too, in a row.
  const state = page.locator('dl');
  const read = async () => (await call('GET', `/auth/apikey/${keyid}`)).body;
  assert.deepEqual((await read()).flags, { 'shop.refund': true, 'keyring.payroll.encrypt': true });
  assert.ok(!(await page.content()).includes(secret));
  const { name, expiresAt, allowedAddresses } = await read();
  assert.deepEqual(
    [name, expiresAt, allowedAddresses],
    ['Nightly <b>batch</b>', Date.UTC(2099, 11, 31, 8), ['192.0.2.0/24', '127.0.0.1']],
  );
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  await page.getByText('2099-12-31 08:00:00').waitFor();
  await page.getByTitle('2099-12-31 08:00:00 UTC').waitFor();
  await page.getByText('192.0.2.0/24, 127.0.0.1').waitFor();
  await page.getByRole('main').getByRole('link', { name: 'ada', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Change name, expiry and addresses' }).click();
  assert.equal(await page.getByLabel('Expires').inputValue(), '2099-12-31 08:00 UTC');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The key is saved.').first().waitFor();
  assert.deepEqual((await read()).expiresAt, expiresAt);
  await page.getByRole('button', { name: 'Change name, expiry and addresses' }).click();
  await page.getByLabel('Expires').fill('2020-01-01');
  await page.getByLabel('Allowed addresses').fill('');
  await looksRight(page, 'apikey-edit');
  await page.getByRole('button', { name: 'Save' }).click();
  await state.getByText('expired', { exact: true }).waitFor();
  await page.getByText('anywhere', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Change name, expiry and addresses' }).click();
  await page.getByLabel('Expires').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await state.getByText('active', { exact: true }).waitFor();
  const { expiresAt: end, allowedAddresses: from } = await read();
  assert.deepEqual([end, from], [null, []]);

  await page.getByRole('button', { name: 'Change…' }).click();
  await page.getByLabel('Add or change some').check();
  await page.getByLabel('Properties').fill('{"team": "pay", "size": 3}');
  await page.getByRole('button', { name: 'Show what will change' }).click();
  const dialog = page.getByRole('dialog', { name: 'What will change' });
  await dialog.getByText('Flags stay as they are.').waitFor();
  await looksRight(page, 'apikey-change');
  await dialog.getByRole('button', { name: 'Change the key' }).click();
  await page.getByText('"team": "pay"').waitFor();
  await page.getByRole('button', { name: 'Change…' }).click();
  await page.getByLabel('Remove some').check();
  await page.getByLabel('shop.refund').check();
  await page.getByLabel('size').check();
  await page.getByRole('button', { name: 'Show what will change' }).click();
  await dialog.getByRole('button', { name: 'Change the key' }).click();
  await page.getByText('The key has been changed.').first().waitFor();
  // The previous change showed the same message.
  await page.getByText('"size": 3').waitFor({ state: 'hidden' });
  assert.deepEqual(
    [(await read()).flags, (await read()).props],
    [{ 'keyring.payroll.encrypt': true }, { team: 'pay' }],
  );
  await looksRight(page, 'apikey');

  await page.getByRole('button', { name: 'Disable…' }).click();
  await page.getByRole('dialog').getByText('It was never used.').waitFor();
  await page.getByRole('button', { name: 'Disable the key' }).click();
  await state.getByText('disabled', { exact: true }).waitFor();
  await goTo(page, '/console/apikeys?ring=payroll');
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'Nightly <b>batch</b>' }) });
  await row.getByText('disabled', { exact: true }).waitFor();
  await row.getByRole('link', { name: uid }).waitFor();
  await row.getByRole('link', { name: 'ada', exact: true }).waitFor();
  const made = page.getByRole('row').filter({ hasText: program.keyid });
  await made.getByRole('link', { name: 'root', exact: true }).waitFor();
  await page.getByLabel('Secret of the API key').fill(secret);
  await page.getByRole('button', { name: 'Check' }).click();
  await page
    .getByText(/^Not valid:/)
    .first()
    .waitFor();
  await looksRight(page, 'apikeys');
  await goTo(page, `/console/apikeys/${keyid}`);
  await page.getByRole('button', { name: 'Activate' }).click();
  await state.getByText('active', { exact: true }).waitFor();

  await page.getByRole('button', { name: 'Delete…' }).click();
  const asking = page.getByRole('dialog', { name: `Delete the API key ${name}?` });
  await asking.getByText('It was never used.').waitFor();
  await page.getByLabel(`Type ${name} to confirm`).fill(program.keyid);
  await page.getByRole('button', { name: 'Delete the key' }).click();
  await page.getByText(`Type ${name} exactly as shown.`).waitFor();
  assert.equal((await call('GET', `/auth/apikey/${keyid}`)).status, 200);
  await looksRight(page, 'apikey-delete');
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await page.getByRole('button', { name: 'Delete the key' }).click();
  await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
  assert.equal((await call('GET', `/auth/apikey/${keyid}`)).status, 404);
  assert.deepEqual(troubles, []);
});

test('what somebody may not grant cannot be chosen, and says why', async () => {
  const { keyid } = await apiKey({ 'keyring.payroll.read': true, 'user.read': true });
  const { page, troubles } = await visitAs(appliance, 'bob', `/console/apikeys/${keyid}`);
  await page.getByText('which you do not have: the service will not let you change it').waitFor();
  await page.getByRole('button', { name: 'Change…' }).click();
  await page.locator('summary', { hasText: /^Users/ }).waitFor();
  const mine = page.getByLabel(/^keyring\.payroll\.rotate/);
  assert.equal(await mine.isDisabled(), false);
  for (const flag of [/^\* /, /^user\.read/, /^keyring\.create/]) {
    const box = page.getByLabel(flag);
    assert.equal(await box.isDisabled(), true, String(flag));
    const why = await box.getAttribute('aria-describedby');
    assert.equal(await page.locator(`[id="${why}"]`).textContent(), 'You do not have this flag yourself.');
  }
  await looksRight(page, 'apikey-limited');
  await page.getByRole('button', { name: 'Disable…' }).click();
  await page.getByRole('dialog').getByText('It was never used.').waitFor();
  await page.getByRole('button', { name: 'Disable the key' }).click();
  await page.getByRole('alert').filter({ hasText: 'user.read, which the caller lacks' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('assets are searched, followed to their parents and children, and deleted by their id', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/assets?data=%7B%22case%22%3A%22A%22%7D');
  await page.getByText('1 entry.').waitFor();
  await page.getByRole('link', { name: 'Clear all filters' }).click();
  await page.getByText('4 entries.').waitFor();
  await looksRight(page, 'assets');
  await page.getByRole('link', { name: 'Invoice 17' }).click();
  const graph = page.getByRole('region', { name: 'Graph of parents and children' });
  await graph.getByRole('link', { name: /^Contract, / }).waitFor();
  await graph.locator('text', { hasText: 'deleted or not readable' }).waitFor();
  await page.getByRole('button', { name: 'Show its children' }).click();
  await graph.getByRole('link', { name: /^Receipt 2, .*one parent/ }).waitFor();
  await looksRight(page, 'asset');
  await page.getByLabel('Continue from').selectOption({ index: 1 });
  await graph.getByRole('link', { name: /^Receipt 1, / }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Receipt 1', level: 1 }).waitFor();

  const receipt = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByLabel(`Type ${receipt} to confirm`).fill('receipt');
  await page.getByRole('button', { name: 'Delete the asset' }).click();
  await page.getByText(`Type ${receipt} exactly as shown.`).waitFor();
  await page.getByLabel(`Type ${receipt} to confirm`).fill(receipt);
  await page.getByRole('button', { name: 'Delete the asset' }).click();
  await page.getByText('3 entries.').waitFor();
  assert.equal((await call('GET', `/assets/${receipt}`)).status, 404);
  await goTo(page, `/console/assets/${receipt}`);
  await page.getByText('There is no such asset.').waitFor();
  await looksRight(page, 'asset-gone');
  assert.deepEqual(troubles, []);
});
