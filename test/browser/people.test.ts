// Users and accounts in the console: added, changed, deleted; actions that the user may not take are disabled, with the
// reason.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
await appliance.addUser('grace', password, { flags: { '*': true }, firstName: 'Grace', lastName: 'Hopper' });

test('somebody is invited, invited again, changed, and deleted', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/users');
  await page.getByRole('link', { name: 'Invite a user' }).click();
  await page.getByLabel('First name').fill('Alan');
  await page.getByLabel('Last name').fill('Turing');
  await page.getByLabel('E-mail address').fill('alan@example.org');
  await page.getByLabel('User name').fill('grace');
  await page.getByRole('button', { name: 'Invite' }).click();
  await page.locator('[data-problem]:not(:empty)').waitFor();
  await page.getByLabel('User name').fill('alan');
  await page.getByText('Users: none').click();
  await page.getByLabel('user.read').check();
  await page.getByRole('button', { name: 'Invite' }).click();
  await page.getByRole('heading', { name: 'The user is invited' }).waitFor();
  const link = await page.getByLabel('Link of the invitation', { exact: true }).inputValue();
  assert.ok(link.startsWith(`${appliance.url}/console/invite?token=kmsin_`));
  assert.deepEqual((await appliance.call('GET', '/auth/users/alan')).body.flags, { 'user.read': true });

  await page.getByRole('link', { name: 'Go to the user' }).click();
  await page.getByRole('heading', { name: 'Alan Turing', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Invite again…' }).click();
  await page.getByRole('button', { name: 'Invite again', exact: true }).click();
  const again = await page.getByLabel('Link of the invitation', { exact: true }).inputValue();
  const token = new URL(again).searchParams.get('token');
  assert.notEqual(again, link);
  await page.getByRole('button', { name: 'Close' }).click();
  assert.equal((await appliance.call('POST', '/auth/user/invite-complete', { token, password })).status, 200);
  await page.getByRole('button', { name: 'Invite again…' }).click();
  await page.getByRole('button', { name: 'Invite again', exact: true }).click();
  await page.getByRole('heading', { name: 'This user has a password already' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  await page.getByRole('button', { name: 'Change', exact: true }).click();
  await page.getByLabel('Last name').fill('Mathison Turing');
  await page.locator('[name=props]').fill('{"desk": 7');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('This is not JSON').waitFor();
  await page.locator('[name=props]').fill('{"desk": 7}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Mathison Turing').waitFor();
  assert.deepEqual((await appliance.call('GET', '/auth/users/alan')).body.props, { desk: 7 });

  await page.getByRole('button', { name: 'Change permissions' }).click();
  await page.getByLabel('user.read').uncheck();
  await page.getByRole('button', { name: 'Save permissions' }).click();
  await page.getByText('None: this user can log in').waitFor();
  assert.deepEqual((await appliance.call('GET', '/auth/users/alan')).body.flags, {});

  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete the user' }).click();
  await page.getByText('This is required.').waitFor();
  await page.getByLabel('Type alan to confirm').fill('alan');
  await page.getByRole('button', { name: 'Delete the user' }).click();
  await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  await page.getByRole('row').nth(1).waitFor();
  assert.equal(await page.getByRole('row').count(), 2);
  assert.equal((await appliance.call('GET', '/auth/users/alan')).status, 404);
  assert.deepEqual(troubles, []);
});

test('whoever deletes a user sees which API keys end, and may hand them to somebody else', async () => {
  const { call } = appliance;
  for (const name of ['mary', 'heir']) await appliance.addUser(name, password, { firstName: name, lastName: 'X' });
  const [mary, heir] = [(await call('GET', '/auth/users/mary')).body, (await call('GET', '/auth/users/heir')).body];
  const accountId = (await call('GET', '/auth/accounts')).body.data[0].id;
  const keyOf = async (name: string, active = true): Promise<string> => {
    const { keyid } = (await call('POST', '/auth/apikey', { accountId, name })).body;
    await call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, owner: mary.id, active });
    return keyid;
  };
  const kept = await keyOf('mail');
  const disabled = await keyOf('old mail', false);
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/users/mary');
  const table = page.getByRole('table', { name: 'API keys of this user' });
  await table.getByRole('row').filter({ hasText: 'old mail' }).getByText('disabled').waitFor();
  await table.getByRole('link', { name: 'mail', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete mary X?' });
  await dialog.getByText('These API keys are disabled with the user:').waitFor();
  assert.deepEqual(await dialog.getByRole('listitem').allTextContents(), ['mail, last used: never']);
  await looksRight(page, 'user-delete-keys');
  await dialog.getByLabel('Hand them to').selectOption('heir X (heir)');
  await dialog.getByText('These API keys are handed on:').waitFor();
  await page.getByLabel('Type mary to confirm').fill('mary');
  await page.getByRole('button', { name: 'Delete the user' }).click();
  await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  assert.equal((await call('GET', '/auth/users/mary')).status, 404);
  assert.deepEqual((await call('GET', '/auth/users/heir')).body.keys, [kept]);
  assert.equal((await call('GET', `/auth/apikey/${kept}`)).body.active, true);
  assert.equal((await call('GET', `/auth/apikey/${disabled}`)).body.active, false);

  // Without an heir the keys are disabled.
  await page.getByRole('link', { name: 'heir X' }).click();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByText('These API keys are disabled with the user:').waitFor();
  await page.getByLabel('Type heir to confirm').fill('heir');
  await page.getByRole('button', { name: 'Delete the user' }).click();
  await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  assert.equal((await call('GET', `/auth/apikey/${kept}`)).body.active, false);
  assert.equal(heir.keys.length, 0);
  assert.deepEqual(troubles, []);
});

test('somebody gets a password that was made for them', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/new/user');
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Last name').fill('Lovelace');
  await page.getByLabel('E-mail address').fill('ada@example.org');
  await page.getByLabel('User name').fill('ada');
  await page.getByLabel('With a generated password').check();
  await page.getByRole('button', { name: 'Create the user' }).click();
  const made = await page.getByLabel('Password', { exact: true }).inputValue();
  assert.equal(await appliance.login('ada', made), 200);
  assert.deepEqual(troubles, []);
});

test('what one may not do is off, with the reason', async () => {
  await appliance.addUser('reader', password, { flags: { 'user.read': true, 'keyring.list': true } });
  const { page, troubles } = await visitAs(appliance, 'reader', '/console/users/grace');
  const remove = page.getByRole('button', { name: 'Delete…' });
  await remove.waitFor();
  assert.deepEqual(
    [await remove.getAttribute('aria-disabled'), await remove.getAttribute('title')],
    ['true', 'You would need the flag user.delete.'],
  );
  await remove.click({ force: true });
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.getByRole('link', { name: /^Accounts/ }).click();
  await page.getByRole('alert').filter({ hasText: 'the permission flag account.read is missing' }).waitFor();
  await page.getByRole('link', { name: 'Keyrings', exact: true }).click();
  await page.getByText('There are no keyrings yet.').waitFor();
  assert.deepEqual(troubles, []);
});

test('an account is made, changed and deleted', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/accounts');
  await page.getByRole('row').getByRole('link', { name: 'admin' }).click();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const note = page
    .getByRole('dialog')
    .getByText(/^\d+ API keys? (go|goes) with it, (which is active|(all|\d+) of them active); the last use was/);
  assert.match((await note.textContent()) ?? '', /may do everything\.$/, 'the root key is among them');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.goBack();
  await page.getByRole('link', { name: 'New account' }).click();
  await page.getByLabel('UID').fill('admin');
  await page.getByRole('button', { name: 'Create the account' }).click();
  await page.locator('[data-problem]:not(:empty)').waitFor();
  await page.getByLabel('UID').fill('customer/7 <b>');
  await page.getByLabel('Notes').fill('On the phone');
  // However fast it is submitted again, it is sent once: a second answer would find no form to report to.
  await page.evaluate(() => {
    const form = document.querySelector<HTMLFormElement>('main form');
    for (let i = 0; i < 3; i++) form?.requestSubmit();
  });
  await page.getByRole('heading', { name: 'customer/7 <b>', level: 1 }).waitFor();
  await page.getByText('This account has no API keys.').waitFor();
  await page.getByRole('button', { name: 'Change', exact: true }).click();
  await page.getByLabel('Notes').fill('By mail');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('By mail').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByLabel('Type customer/7 <b> to confirm').fill('customer/7 <b>');
  await page.getByRole('button', { name: 'Delete the account' }).click();
  await page.getByRole('heading', { name: 'Accounts', level: 1 }).waitFor();
  await page.getByRole('row').filter({ hasText: 'admin' }).waitFor();
  assert.equal((await appliance.call('GET', '/auth/accounts')).body.data.length, 1);
  assert.deepEqual(troubles, []);
});
