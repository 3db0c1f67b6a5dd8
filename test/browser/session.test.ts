// Logging in and out: the set-up link, a password and an API key, sessions that end, and what remains of them in the
// browser.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { type Answer, visit, watchAnswers } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';
import { fillSetUp, password, visitAs, withoutPolls } from './log-in.ts';

const appliance = await servedAppliance();

test('an API key is enough to begin with, and a wrong one is told at its field', async () => {
  const { page, troubles } = await visit(`${appliance.url}/console/users`);
  await page.getByText('kms user set-up-link').waitFor();
  await page.getByRole('button', { name: 'Use a password instead' }).click();
  await page.getByRole('button', { name: 'Use an API key instead' }).click();
  await page.getByLabel('API key', { exact: true }).fill('not a key – at all');
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('The service does not know this key').waitFor();
  await page.getByLabel('API key', { exact: true }).fill(appliance.rootKey.slice(0, -1));
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('The service does not know this key').waitFor();
  await page.getByLabel('API key', { exact: true }).fill(appliance.rootKey);
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('There are no users yet.').waitFor();
  await page.getByRole('link', { name: 'With an API key' }).waitFor();
  assert.ok(!(await page.content()).includes(appliance.rootKey));
  assert.deepEqual(troubles, []);
});

test('of two who open the set-up link, the second is told that it was used', async () => {
  const other = await servedAppliance();
  const { page, troubles } = await visit(other.setUpUrl);
  await fillSetUp(page, 'eve', 'Eve', 'Eavesdropper');
  await other.addUser('grace', password);
  await page.getByRole('button', { name: 'Create my user' }).click();
  await page.getByRole('heading', { name: 'This set-up link does not work' }).waitFor();
  assert.equal((await other.call('GET', '/auth/users/eve')).status, 404);
  assert.deepEqual(troubles, []);
});

test('the set-up link makes the first user, logs them in, and works once', async () => {
  const { page, troubles } = await visit(appliance.setUpUrl);
  await page.getByRole('heading', { name: 'Set up this service' }).waitFor();
  assert.equal(page.url(), `${appliance.url}/console/set-up`, 'the token is gone from the address');
  await fillSetUp(page, 'grace', 'Grace', 'Hopper');
  await page.getByLabel('E-mail address').fill('grace');
  await page.getByLabel('Password', { exact: true }).fill('weak');
  await page.getByRole('button', { name: 'Create my user' }).click();
  await page.getByText(/^Still missing: 8 characters/).waitFor();
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Create my user' }).click();
  await page.getByText('Expected an e-mail address.').waitFor();
  await page.getByLabel('E-mail address').fill('grace@example.org');
  await page.getByRole('button', { name: 'Create my user' }).click();
  await page.getByRole('link', { name: 'Grace Hopper' }).waitFor();
  assert.equal(page.url(), `${appliance.url}/console`);
  const { body: user } = await appliance.call('GET', '/auth/users/grace');
  assert.deepEqual(user.flags, { '*': true });
  const { body: log } = await appliance.call('POST', '/auth/search/activity', {
    keyid: user.id,
    action: 'user.create',
  });
  assert.equal(log.data.length, 1);

  await page.goto(appliance.setUpUrl);
  await page.getByRole('heading', { name: 'This service is set up already' }).waitFor();
  await page.goto(`${appliance.url}/console/set-up`);
  await page.getByRole('heading', { name: 'This service is set up already' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('a session that ends leads back to where one was, with the reason', async () => {
  await appliance.addUser('ada', password, { flags: { 'user.read': true } });
  const { page, troubles } = await visitAs(appliance, 'ada@example.org', '/console/users/ada');
  await withoutPolls(page);
  await page.getByRole('heading', { name: 'Ada Lovelace', level: 1 }).waitFor();
  await page.getByText('This is you: only somebody else can delete you.').waitFor();
  assert.equal(
    await page.getByRole('link', { name: /^Keyrings/ }).getAttribute('title'),
    'You would need a flag for keyring.list.',
  );

  // Deleting a user ends their sessions.
  await appliance.call('DELETE', '/auth/users/ada');
  await page.getByRole('link', { name: 'Users' }).first().click();
  await page.getByRole('main').getByText('Your session has ended.').waitFor();
  assert.equal(page.url(), `${appliance.url}/console/users`);
  await page.getByLabel('User name or e-mail address').fill('grace');
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  assert.deepEqual(troubles, []);
});

test('a reload, a second window and a pasted address keep the session, which no script can read', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/accounts');
  await page.getByRole('row').nth(1).waitFor();
  const asked = page.waitForRequest((request) => request.url().includes('/auth/accounts'));
  await page.reload();
  await page.getByRole('row').nth(1).waitFor();
  const request = await asked;
  assert.equal(await request.headerValue('authorization'), null);
  const [cookie, ...others] = await page.context().cookies();
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.expires, others], [true, 'Strict', -1, []]);
  const left = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state, location.href]),
  );
  assert.doesNotMatch(left, /kmsat_/);
  for (const secret of [cookie?.value ?? '?', password]) {
    assert.ok(!left.includes(secret) && !(await page.content()).includes(secret));
  }

  const second = await page.context().newPage();
  await second.goto(`${appliance.url}/console/users`);
  await second.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  await second.getByRole('link', { name: 'Grace Hopper' }).first().waitFor();
  // Reloads without waiting, as if the key were held down.
  for (let i = 0; i < 5; i++) await second.reload({ waitUntil: 'domcontentloaded' });
  await second.getByRole('heading', { name: 'Users', level: 1 }).waitFor();

  await second.getByRole('button', { name: 'Log out' }).click();
  await second.getByRole('main').getByText('You are logged out.').waitFor();
  await page.getByRole('main').getByText('You are logged out.').waitFor();
  assert.deepEqual([await page.context().cookies(), await page.evaluate(() => localStorage.length > 0)], [[], true]);
  const { body: log } = await appliance.call('POST', '/auth/search/activity', { action: 'session.end' });
  assert.equal(log.data.length, 1);
  // Logs in again, in both windows.
  await second.getByLabel('User name or e-mail address').fill('grace');
  await second.getByLabel('Password', { exact: true }).fill(password);
  await second.keyboard.press('Enter');
  await page.getByRole('row').filter({ hasText: 'admin' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('a secret that is shown once stays until it was saved, though the session ends meanwhile', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/new/keyring');
  await page.getByLabel('Name').fill('held');
  await page.getByRole('button', { name: 'Create the keyring' }).click();
  const key = page.getByRole('textbox', { name: 'Private key of held' });
  const value = await key.inputValue();
  const second = await page.context().newPage();
  await second.goto(`${appliance.url}/console/about`);
  await second.getByRole('button', { name: 'Log out' }).click();
  await second.getByRole('main').getByText('You are logged out.').waitFor();
  // The next request is refused.
  await page.evaluate(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 5 * 60_000;
  });
  await key.click();
  await page.getByRole('alert').filter({ hasText: 'Your session has ended. Finish and save' }).waitFor();
  assert.equal(await key.inputValue(), value);
  // Saved as in a browser without the file picker API.
  await page.evaluate(() => Object.defineProperty(window, 'showSaveFilePicker', { value: undefined }));
  await page.getByRole('button', { name: 'Save as a file' }).click();
  await page.getByLabel('I have saved the private key').check();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('main').getByText('Your session has ended. Log in again').waitFor();
  assert.deepEqual(troubles, []);
});

test('a page of another port of the host is sent the cookie by the browser, and can do nothing with it', async () => {
  const { page } = await visitAs(appliance, 'grace', '/console');
  const asked = async (): Promise<number> =>
    (await appliance.call('POST', '/auth/search/activity', { action: 'account.read' })).body.data.length;
  const before = await asked();
  const sent: string[] = [];
  const other = createServer((request, response) => {
    sent.push(request.headers.cookie ?? '');
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>other</title>');
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  try {
    const key = await page.evaluate(
      () => Object.entries(localStorage).find(([name]) => /^kms-console/.test(name))?.[1],
    );
    const attacker = await page.context().newPage();
    // Cast: it listens on a port.
    await attacker.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    assert.match(sent[0] ?? '', /^kms-/, 'ports share cookies');
    const stolen = (sent[0] ?? '').split('=')[1] ?? '';
    assert.equal((await appliance.call('GET', '/auth/accounts', undefined, stolen)).status, 401);
    const tried = await attacker.evaluate(
      async ([url, header]) => {
        const ask = (init: RequestInit) => fetch(url as string, { credentials: 'include', ...init });
        const outcome = (init: RequestInit) =>
          ask(init).then(
            ({ status, type }) => `${type} ${status}`,
            () => 'blocked',
          );
        return [
          localStorage.length,
          await outcome({}),
          await outcome({ mode: 'no-cors' }),
          await outcome({ headers: { 'kms-console': header as string } }),
          await outcome({ mode: 'no-cors', headers: { 'kms-console': header as string } }),
        ];
      },
      [`${appliance.url}/auth/accounts`, key],
    );
    assert.deepEqual(tried, [0, 'blocked', 'blocked', 'blocked', 'blocked']);
    assert.equal(await asked(), before, 'nothing of it is in anybody’s name');
    await page.reload();
    await page.getByRole('button', { name: 'Log out' }).waitFor();
  } finally {
    other.close();
    other.closeAllConnections();
  }
});

test('a session in use is kept alive, also while requests are under way', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/accounts');
  await page.getByRole('row').nth(1).waitFor();
  // Moves the page's clock, by which it decides to refresh.
  await page.evaluate(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 5 * 60_000;
  });
  const refreshed = Promise.withResolvers<Answer>();
  await watchAnswers(page, '/auth/basic/refresh', refreshed.resolve);
  await page.getByRole('link', { name: 'Users' }).click();
  const [status, { accessToken }] = await refreshed.promise;
  assert.deepEqual([status, accessToken], [200, '']);
  await page.getByRole('row').nth(1).waitFor();
  await page.getByRole('link', { name: 'Accounts' }).click();
  await page.getByRole('row').filter({ hasText: 'admin' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('an appliance that was set back is told', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/accounts');
  await page.getByRole('row').nth(1).waitFor();
  // Once the page as it is has gone: an answer to a poll would put it right.
  await page.addInitScript(() => {
    for (const [name, value] of Object.entries(localStorage)) {
      localStorage.setItem(
        name,
        String(value).replace(/^((?:\w+\.){3})\d+/, (_, start) => `${start}99999`),
      );
    }
  });
  await page.reload();
  await page.getByRole('alert').filter({ hasText: 'older than when this browser last saw it' }).waitFor();
  assert.deepEqual(troubles, []);
});
