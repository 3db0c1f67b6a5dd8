// The command palette, by keyboard and pointer: it finds only what its user may see.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'keyring.payroll.encrypt': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
const evil = `<img src=x onerror=alert(1)> שלום ${'x'.repeat(90)}`;
const { keyid } = (await call('POST', '/auth/apikey', { accountId: accounts[0].id, name: evil, flags: {} })).body;
for (let i = 0; i < 130; i++) await call('POST', '/ks/keyrings', { name: `Ring-${i}` });

await call('POST', '/managed-keys', { name: 'Held', type: 'ed25519' });

test('by the keyboard: opened, narrowed, chosen, closed', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/activity');
  await page.keyboard.press('Control+k');
  const dialog = page.getByRole('dialog', { name: 'Go to' });
  const field = dialog.getByRole('combobox');
  await field.waitFor();
  assert.equal(await field.evaluate((element) => element === document.activeElement), true);
  await looksRight(page, 'palette');
  await page.keyboard.type('ring-129');
  await dialog.getByRole('option', { name: 'Ring-129 Keyring' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Ring-129', level: 1 }).waitFor();
  await dialog.waitFor({ state: 'detached' });

  await page.keyboard.press('Meta+K');
  await field.waitFor();
  await page.keyboard.type('ring-1');
  const selected = dialog.getByRole('option', { selected: true });
  await dialog.getByText('41 places').waitFor();
  assert.equal(await selected.textContent(), 'Ring-1 Keyring, custody client, X25519');
  await page.keyboard.press('ArrowUp');
  const last = await selected.getAttribute('id');
  assert.equal(await field.getAttribute('aria-activedescendant'), last);
  await page.keyboard.press('ArrowDown');
  assert.match((await selected.textContent()) ?? '', /^Ring-1 Keyring, /);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  assert.equal(new URL(page.url()).pathname, '/console/keyrings/ring-129');

  await page.keyboard.press('Control+k');
  await field.waitFor();
  await page.keyboard.type('held');
  await dialog.getByRole('option', { name: 'Held Managed key, custody server, ed25519' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Held', level: 1 }).waitFor();
  assert.equal(new URL(page.url()).pathname, '/console/managed-keys/held');
  await goTo(page, '/console/keyrings/ring-129');
  await page.getByRole('heading', { name: 'Ring-129', level: 1 }).waitFor();

  await page.keyboard.press('Control+k');
  await field.waitFor();
  await page.keyboard.type('no such thing');
  await dialog.getByText('Nothing that you may see has this name').waitFor();
  await page.keyboard.press('Enter');
  await looksRight(page, 'palette-nothing');
  await page.keyboard.press('Escape');

  // Another open dialog takes precedence.
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Control+k');
  assert.equal(await page.getByRole('dialog').count(), 1);
  await page.keyboard.press('Escape');
  assert.deepEqual(troubles, []);
});

test('with the pointer, on a phone, and names that nobody should have', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console', { width: 360 });
  await page.getByRole('button', { name: 'Go to…' }).click();
  await page.getByRole('combobox').fill('onerror');
  await page.getByRole('option').filter({ hasText: evil }).waitFor();
  await looksRight(page, 'palette-long');
  await page.getByRole('option').filter({ hasText: evil }).click();
  await page.waitForURL(new RegExp(keyid));
  await page.getByRole('heading', { name: evil, level: 1 }).waitFor();
  assert.deepEqual(troubles, []);
});

test('who may list nothing finds pages, and asks for nothing', async () => {
  const { page, troubles } = await visitAs(appliance, 'bob', '/console/me');
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.keyboard.press('Control+k');
  await page.getByRole('option', { name: 'Encrypt a file' }).waitFor();
  assert.equal(await page.getByRole('option', { name: 'Users' }).count(), 0);
  await page.keyboard.type('ring-1');
  await page.getByText('Nothing that you may see has this name').waitFor();
  // Every page looks at what waits for approval.
  assert.deepEqual(
    asked.filter((path) => !path.startsWith('/approvals/')),
    [],
  );
  await page.keyboard.press('Escape');
  await goTo(page, '/console/about');
  assert.deepEqual(troubles, []);
});
