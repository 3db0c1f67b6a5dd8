// An invite, as the invited person sees it: the link, the rules while typing, the password, and each way in which it
// fails.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, visit, watchAnswers } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';

const appliance = await servedAppliance();
const strong = 'Correct-Horse-7';

test('somebody completes an invite and logs in', async () => {
  const link = await appliance.invite('ada');
  const { page, troubles } = await visit(link);
  await page.getByRole('heading', { name: 'Welcome, Ada Lovelace' }).waitFor();
  assert.equal(await page.getByLabel('User name').inputValue(), 'ada');
  assert.equal(page.url(), `${appliance.url}/console/invite`, 'the token is gone from the address');
  await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
  assert.equal(await page.title(), 'Welcome, Ada Lovelace');

  const field = page.getByLabel('New password', { exact: true });
  const met = (): Promise<(string | null)[]> => page.locator('[data-met=yes]').allTextContents();
  assert.deepEqual(await met(), []);
  await field.pressSequentially('weak');
  await page.locator('[data-met=yes]').first().waitFor();
  assert.deepEqual(await met(), ['a lower-case letter (done)']);
  await page.getByRole('button', { name: 'Set password' }).click();
  await page
    .getByRole('alert')
    .filter({ hasText: /^Still missing: 8 characters, an upper-case letter/ })
    .waitFor();
  await page.waitForFunction(() => document.activeElement?.id === 'password');
  assert.equal(await field.getAttribute('aria-invalid'), 'true');
  assert.equal(await appliance.login('ada', 'weak'), 400);

  await field.fill(strong);
  await page.locator('[data-met=yes]').nth(4).waitFor();
  assert.equal((await met()).length, 5);
  assert.equal(await page.getByRole('alert').textContent(), '');
  await page.getByText('The password meets all rules.').waitFor({ state: 'attached' });
  await field.press('Enter');
  await page.getByRole('heading', { name: 'Your password is set' }).waitFor();
  await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
  assert.equal(await appliance.login('ada', strong), 200);
  assert.deepEqual(troubles, []);
});

test('the session that completion opens is not left behind, nor anything else', async () => {
  const link = await appliance.invite('brook');
  const { page } = await visit(link);
  const completed = Promise.withResolvers<Answer>();
  await watchAnswers(page, '/invite-complete', completed.resolve);
  const ended = page.waitForResponse((response) => response.url().endsWith('/auth/basic/logout'));
  await page.getByLabel('New password', { exact: true }).fill(strong);
  await page.getByRole('button', { name: 'Set password' }).click();
  const [, { accesstoken }] = await completed.promise;
  assert.equal((await ended).status(), 200);
  assert.equal(accesstoken, '', 'the token is in a cookie');
  assert.deepEqual(await page.context().cookies(), []);

  const token = new URL(link).searchParams.get('token') ?? '';
  const left = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state, location.href]),
  );
  const html = await page.content();
  for (const secret of [token, strong]) assert.ok(!left.includes(secret) && !html.includes(secret));
  await page.reload();
  await page.getByRole('heading', { name: 'Open your invitation link' }).waitFor();
});

test('the password can be shown, and is in no attribute of the page', async () => {
  const { page } = await visit(await appliance.invite('cleo'));
  const field = page.getByLabel('New password', { exact: true });
  await field.fill(strong);
  assert.equal(await field.getAttribute('type'), 'password');
  await page.getByRole('button', { name: 'Show password' }).click();
  assert.equal(await field.getAttribute('type'), 'text');
  assert.equal(await field.inputValue(), strong);
  assert.ok(!(await page.content()).includes(strong));
  await page.getByRole('button', { name: 'Hide password' }).click();
  assert.equal(await field.getAttribute('type'), 'password');
});

test('the keyboard alone is enough', async () => {
  const { page } = await visit(await appliance.invite('dora'));
  await page.getByRole('heading', { name: /Welcome/ }).waitFor();
  const stops: (string | undefined)[] = [];
  for (let i = 0; i < 4; i++) {
    await page.keyboard.press('Tab');
    stops.push(await page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent || ''));
    if (stops.at(-1) === 'password') await page.keyboard.type(strong);
  }
  assert.deepEqual(stops, ['username', 'password', 'Show', 'Set password']);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Your password is set' }).waitFor();
});

test('an invite that was used, replaced, cut off or made up says so', async () => {
  const used = await appliance.invite('edith');
  const first = await visit(used);
  await first.page.getByLabel('New password', { exact: true }).fill(strong);
  await first.page.getByRole('button', { name: 'Set password' }).click();
  await first.page.getByRole('heading', { name: 'Your password is set' }).waitFor();
  const replaced = await appliance.invite('frida');
  await appliance.invite('frida');
  const links = [used, replaced, used.slice(0, -1), `${appliance.url}/console/invite?token=x`];
  for (const link of links) {
    const { page, troubles } = await visit(link);
    await page.getByRole('heading', { name: 'This invitation does not work' }).waitFor();
    assert.equal(new URL(page.url()).search, '');
    assert.deepEqual(troubles, []);
  }
  const { page } = await visit(`${appliance.url}/console/invite`);
  await page.getByRole('heading', { name: 'Open your invitation link' }).waitFor();
});

test('an expired invite says what to do', async () => {
  const { invite } = await servedAppliance({ invite: 1 });
  const { page } = await visit(await invite('gerda'));
  await page.getByRole('heading', { name: 'Your invitation has expired' }).waitFor();
  await page.getByText('Ask the person who invited you').waitFor();
});

test('an invite that ends while the page is open says so when it is used', async () => {
  const link = await appliance.invite('hilda');
  const { page } = await visit(link);
  await page.getByLabel('New password', { exact: true }).fill(strong);
  await appliance.invite('hilda');
  await page.getByRole('button', { name: 'Set password' }).click();
  await page.getByRole('heading', { name: 'This invitation does not work' }).waitFor();
});

test('without a network the invite can be tried again, before and after typing', async () => {
  const link = await appliance.invite('irene');
  const { page, troubles } = await visit(`${appliance.url}/console`);
  await page.route('**/auth/**', (route) => route.abort());
  await page.goto(link);
  await page.getByText('The service cannot be reached.').waitFor();
  await page.unroute('**/auth/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  const field = page.getByLabel('New password', { exact: true });
  await field.fill(strong);
  await page.route('**/auth/**', (route) => route.abort());
  await page.getByRole('button', { name: 'Set password' }).click();
  await page.getByRole('alert').getByText('The service cannot be reached.').waitFor();
  assert.equal(await field.inputValue(), strong, 'what was typed stays');
  await page.unroute('**/auth/**');
  await page.getByRole('button', { name: 'Set password' }).click();
  await page.getByRole('heading', { name: 'Your password is set' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('a name is text, whatever is in it', async () => {
  const firstName = '<img src=x onerror=alert(1)>';
  const { page, troubles } = await visit(await appliance.invite('jane', { firstName }));
  await page.getByRole('heading', { name: `Welcome, ${firstName} Lovelace` }).waitFor();
  assert.equal(await page.locator('main img').count(), 0);
  assert.deepEqual(troubles, []);
});
