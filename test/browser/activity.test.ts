// The activity log as people read it: in sentences, filtered by one object, and saved as files; with names chosen to do
// harm.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'keyring.list': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
const accountId: string = accounts[0].id;
await call('POST', '/ks/keyrings', { name: 'Payroll' });
await call('POST', '/ks/keyrings', { name: 'Other' });
/** HTML, a formula, and text that runs from right to left. */
const evil = '=<img src=x onerror=alert(1)>שלום @SUM';
const program = (
  await call('POST', '/auth/apikey', { accountId, name: evil, flags: { 'keyring.payroll.encrypt': true } })
).body;
for (let i = 0; i < 3; i++) await call('POST', '/ks/encrypt', { ringname: 'payroll' }, program.key);
await call('POST', '/ks/encrypt', { ringname: 'other' }, program.key);
await call('PUT', '/auth/apikeyid', {
  op: 'merge',
  apikeyid: program.keyid,
  name: 'x'.repeat(128),
  flags: { 'keyring.payroll.decrypt': true, ['own.'.repeat(50)]: true },
});
await call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: program.keyid, name: evil });
const reported = { action: `\u202E${evil}${'w'.repeat(200)}`, ringname: 'payroll' };
const object = { type: 'user', id: 'x', name: 'not true' };
const validated = await call('POST', '/auth/validate', {
  key: program.key,
  activity: { ...reported, props: { object } },
});
assert.equal(validated.status, 200);

async function saved(page: Page, name: string): Promise<string> {
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name, exact: true }).click();
  return readFile(await (await downloading).path(), 'utf8');
}

test('everything about an API key: what was done to it and with it, in sentences, and as files', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', `/console/apikeys/${program.keyid}`);
  await page.getByRole('link', { name: 'Everything about it' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: `API key ${evil}`, level: 1 }).waitFor();
  const entries = page.locator('[data-timeline] ol > li');
  await page.getByText('8 entries.').waitFor();
  const texts = (await entries.allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
  const told = (start: string): number => texts.filter((text) => text.includes(start)).length;
  // Whatever the key is called, it is not shown as a user.
  assert.equal(told(`API key ${evil} encrypted with keyring payroll 3 times`), 1);
  assert.equal(told(`${evil} tried to encrypt with keyring other denied`), 1);
  assert.equal(told(`root created API key ${evil}`), 1);
  assert.equal(told(`root changed API key`), 2);
  assert.equal(told('flags granted: keyring.payroll.decrypt'), 1);
  assert.equal(told(`${evil} did ${reported.action.slice(0, 80)}`), 1);
  assert.equal(told('not true'), 0);
  await page.getByText('2 more times').focus();
  await page.keyboard.press('Enter');
  assert.equal(await entries.filter({ hasText: '3 times' }).getByRole('listitem').count(), 2);
  await looksRight(page, 'activity-about');

  const lines = (await saved(page, 'JSON Lines')).trim().split('\n');
  assert.equal(lines.length, 8);
  assert.equal(JSON.parse(lines.at(-1) ?? '').action, 'apikey.create');
  const csv = await saved(page, 'CSV');
  assert.equal(csv.split('\r\n').length, 10);
  assert.ok(csv.includes(`,"'${evil}","${program.keyid}","keyring.encrypt","payroll"`));
  assert.doesNotMatch(csv, /(?:^|,)"[=+@-]/m);

  for (const [path, count, text] of [
    ['keyring/payroll', 5, 'created keyring Payroll'],
    [`account/${accountId}`, 0, 'created API key'],
    ['asym-keyring/payroll', 0, 'The log has no records about it.'],
    ['session/x', 0, 'There is no page at this address.'],
  ] as const) {
    await goTo(page, `/console/activity/${path}`);
    await page.getByText(text).first().waitFor();
    if (count > 0) await page.getByText(`${count} entries.`).waitFor();
  }
  assert.deepEqual(troubles, []);
});

test('searches are links, people are found by their names, and long ones are read page by page', async () => {
  for (let i = 0; i < 130; i++) await call('GET', `/auth/apikey/${program.keyid}`);
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/activity');
  const heights = await page
    .locator('[data-quick] :is(a, button)')
    .evaluateAll((chips) => chips.map((chip) => Math.round(chip.getBoundingClientRect().height)));
  assert.equal(new Set(heights).size, 1, `chips of one height: ${heights}`);
  await page.getByRole('button', { name: 'Reads too' }).click();
  await page.waitForURL(/reads=yes/);
  await page.getByText('100 entries, and there are more.').waitFor();
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByText(/^1[3-9]\d entries\.$/).waitFor();
  await looksRight(page, 'activity-timeline');
  await page.getByRole('link', { name: 'Denied', exact: true }).click();
  await page.getByText('1 entry.', { exact: true }).waitFor();
  assert.equal(await page.getByRole('link', { name: 'Denied', exact: true }).getAttribute('aria-current'), 'true');
  await page.getByText('More filters').click();
  await page.getByRole('combobox', { name: 'By' }).fill('ADA');
  await page.getByLabel('Verdict').selectOption('Granted or denied');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.waitForURL(/keyid=user_/);
  await page.getByText('User ada logged in').first().waitFor();
  assert.equal(await page.getByText('root ').count(), 0);
  await goTo(page, '/console/activity?action=system.seal');
  await page.getByText('Nothing in the log matches these filters.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'CSV' }).count(), 0, 'there is nothing to save');
  assert.deepEqual(troubles, []);
});

test('a record says that what was granted failed, and why a login was refused', async () => {
  assert.equal((await call('GET', '/auth/apikey/apik_00000000000000000000000000')).status, 404);
  await appliance.addUser('carol', password, { flags: {} });
  assert.equal(await appliance.login('carol', 'not-my-password'), 400);
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/about');
  const { id } = (await call('GET', '/auth/users/carol')).body;
  for (const [filters, texts] of [
    [{ action: 'apikey.read', valid: true }, ['granted, but failed', '404: not found']],
    [{ action: 'session.create', keyid: id, valid: false }, ['denied', '400: wrong password or passkey']],
  ] as const) {
    const { data } = (await call('POST', '/auth/search/activity', filters)).body;
    const record = data.find(({ status }: { status: number }) => status >= 400);
    await goTo(page, `/console/activity/${record.id}`);
    for (const text of texts) await page.getByText(text, { exact: true }).waitFor();
  }
  await looksRight(page, 'activity-record-refused');
  assert.deepEqual(troubles, []);
});

test('a page about something fails in words, and asks nothing that is forbidden', async () => {
  const { page } = await visitAs(appliance, 'bob', `/console/activity/apikey/${program.keyid}`);
  await page.getByRole('alert').filter({ hasText: 'activity.read' }).waitFor();
  await looksRight(page, 'activity-about-refused');
  const { id } = (await call('GET', '/auth/users/bob')).body;
  const { data } = (await call('POST', '/auth/search/activity', { keyid: id, valid: false })).body;
  assert.deepEqual(data, []);
});
