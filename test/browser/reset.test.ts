// A forgotten password: asking for a link, and choosing a new password with it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';

const appliance = await servedAppliance();
const old = 'Old-Password-1';
const strong = 'Correct-Horse-7';

test('somebody resets a password; the old one and its sessions end', async () => {
  await appliance.addUser('ada', old);
  const { body } = await appliance.call('POST', '/auth/basic/login', { username: 'ada', password: old });
  const link = await appliance.resetLink('ada');
  const { page, troubles } = await visit(link);
  await page.getByRole('heading', { name: 'Choose a new password' }).waitFor();
  assert.equal(page.url(), `${appliance.url}/console/reset`);
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('Type a password first.').waitFor();
  await page.getByLabel('New password', { exact: true }).fill(strong);
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByRole('heading', { name: 'Your password has been changed' }).waitFor();
  assert.deepEqual([await appliance.login('ada', old), await appliance.login('ada', strong)], [400, 200]);
  assert.equal((await appliance.call('GET', '/auth/basic/refresh', undefined, body.accessToken)).status, 401);
  assert.deepEqual(troubles, []);

  const again = await visit(link);
  await again.page.getByLabel('New password', { exact: true }).fill(old);
  await again.page.getByRole('button', { name: 'Change password' }).click();
  await again.page.getByRole('heading', { name: 'This link no longer works' }).waitFor();
  assert.equal(await appliance.login('ada', strong), 200);
  await again.page.getByRole('link', { name: 'Ask for a new link' }).click();
  await again.page.getByRole('heading', { name: 'Forgot your password?' }).waitFor();
});

test('a link past its time does not work', async () => {
  const { addUser, resetLink, login } = await servedAppliance({ reset: 1 });
  await addUser('brook', old);
  const { page } = await visit(await resetLink('brook'));
  await page.getByLabel('New password', { exact: true }).fill(strong);
  await page.getByLabel('New password', { exact: true }).press('Enter');
  await page.getByRole('heading', { name: 'This link no longer works' }).waitFor();
  assert.equal(await login('brook', old), 200);
});

test('without its token the page asks for the link', async () => {
  const { page } = await visit(`${appliance.url}/console/reset`);
  await page.getByRole('heading', { name: 'Open the link that you were given' }).waitFor();
});

test('asking for a link answers the same for everybody: who can help, where no mail goes out', async () => {
  for (const email of ['ada@example.org', 'nobody@example.org']) {
    const { page, troubles } = await visit(`${appliance.url}/console`);
    await page.getByRole('link', { name: 'Forgot your password?' }).click();
    await page.getByRole('button', { name: 'Send me a link' }).click();
    await page.getByText('Type your e-mail address first.').waitFor();
    await page.getByLabel('Your e-mail address').fill('ada');
    await page.keyboard.press('Enter');
    await page.getByText('Type a complete e-mail address').waitFor();
    await page.getByLabel('Your e-mail address').fill(email);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Ask your administrator' }).waitFor();
    await page.getByText('kms user reset-link').waitFor();
    assert.equal(await page.getByText(email).count(), 0);
    assert.equal(await page.getByText('on its way').count(), 0);
    assert.deepEqual(troubles, []);
  }
});

test('where mail goes out, everybody is told to look for it', async () => {
  const { url } = await servedAppliance(
    {},
    { mail: { host: '127.0.0.1', port: 9, tls: 'off', from: 'kms@example.org' } },
  );
  for (const email of ['ada@example.org', 'nobody@example.org']) {
    const { page, troubles } = await visit(`${url}/console/forgot`);
    await page.getByLabel('Your e-mail address').fill(email);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Check your mail' }).waitFor();
    await page.getByText(email).waitFor();
    assert.deepEqual(troubles, []);
  }
});

test('without a network asking can be tried again', async () => {
  const { page } = await visit(`${appliance.url}/console/forgot`);
  await page.route('**/auth/**', (route) => route.abort());
  await page.getByLabel('Your e-mail address').fill('ada@example.org');
  await page.getByRole('button', { name: 'Send me a link' }).click();
  await page.getByText('The service cannot be reached.').waitFor();
  await page.unroute('**/auth/**');
  await page.getByRole('button', { name: 'Send me a link' }).click();
  await page.getByRole('heading', { name: 'Ask your administrator' }).waitFor();
});
