// Problems come first on the overview, with a way to fix them; a backup is made with one click.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance({}, { backsUp: true });
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('eve', password, { flags: { 'system.metrics': true } });
await appliance.addUser('bob', password, { flags: { 'keyring.list': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
const accountId: string = accounts[0].id;
const long = `<script>alert(1)</script> ${'x'.repeat(100)}`;
const expiresAt = Date.now() + 3 * 86_400_000;
const ending = (await call('POST', '/auth/apikey', { accountId, name: long, expiresAt, flags: {} })).body;
await call('POST', '/auth/apikey', { accountId, name: 'over', expiresAt: Date.now() - 3_600_000, flags: {} });
await call('POST', '/ks/keyrings', { name: 'Payroll' });
await call('PUT', '/ks/config', { ringname: 'payroll', config: { rotateAfter: 3600 } });
for (let i = 0; i < 12; i++) await call('GET', '/auth/accounts', undefined, ending.key);

test('what needs attention leads to what mends it', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada');
  const attention = page.getByRole('region', { name: 'What needs attention' });
  await attention.getByText('There is no verified backup.').waitFor();
  assert.equal(await page.evaluate(() => window.scrollY), 0, 'the title is in sight');
  await attention.getByText(`API key ${long} expires in 2 days.`).waitFor();
  await attention.getByText('API key over expired 1 hour ago.').waitFor();
  await attention.getByText('12 requests were denied in the last hour').waitFor();
  assert.equal(await attention.getByRole('listitem').count(), 4);
  await looksRight(page, 'overview-attention');

  await attention.getByRole('link', { name: 'Back up now' }).focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'backups');
  const tile = page.getByRole('region', { name: 'Last verified backup' });
  await tile.getByText('The next one is made at').waitFor();
  await tile.getByText('the newest 7 scheduled ones are kept').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await tile.getByText(/^\d+ seconds? ago$/).waitFor();
  await attention.getByText('There is no verified backup.').waitFor({ state: 'detached' });
  await tile.getByRole('button', { name: 'Back up now' }).waitFor();
  await looksRight(page, 'overview-backed-up');

  await attention.getByRole('link', { name: 'See which' }).click();
  await page.getByText('12 entries.').waitFor();
  await goTo(page, '/console');
  await attention.getByRole('link', { name: 'Change its expiry' }).last().click();
  await page.getByRole('heading', { name: long, level: 1 }).waitFor();
  assert.deepEqual(troubles, []);
});

test('a keyring past its age is named, and so is a backup that failed', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/about');
  await page.route('**/system/overview?*', async (route) => {
    const answer = await (await route.fetch()).json();
    const lastFailure = { at: '2026-01-02T03:00:00.000Z', message: `/mnt/${'b'.repeat(200)}: the disk is full` };
    const rings = answer.keyrings.rings.map((ring: object) => ({ ...ring, rotateAfter: 1 }));
    const keyrings = { ...answer.keyrings, rings };
    await route.fulfill({ json: { ...answer, keyrings, backups: { ...answer.backups, lastFailure } } });
  });
  await goTo(page, '/console');
  const attention = page.getByRole('region', { name: 'What needs attention' });
  await attention.getByText(/^The last backup failed: .*: the disk is full\.$/).waitFor();
  await attention.getByText(/^Keyring Payroll has a key that should have been replaced/).waitFor();
  await looksRight(page, 'overview-failed');
  await attention.getByRole('link', { name: 'Rotate it' }).click();
  await page.getByRole('heading', { name: 'Payroll', level: 1 }).waitFor();
  assert.deepEqual(troubles, []);
});

test('who may see little is shown no more, and asks for no more', async () => {
  const bob = await visitAs(appliance, 'bob');
  await bob.page.getByText('Nothing, as far as is known and you are allowed to see.').waitFor();
  assert.equal(await bob.page.getByRole('button', { name: 'Back up now' }).count(), 0);
  const eve = await visitAs(appliance, 'eve');
  const button = eve.page.getByRole('button', { name: 'Back up now' });
  await button.waitFor();
  assert.equal(await button.getAttribute('title'), 'You would need the flag system.backup.');
  for (const name of ['bob', 'eve']) {
    const { id } = (await call('GET', `/auth/users/${name}`)).body;
    const { data } = (await call('POST', '/auth/search/activity', { keyid: id, valid: false })).body;
    assert.deepEqual(data, [], name);
  }
  assert.deepEqual([...bob.troubles, ...eve.troubles], []);
});
