// A console window with a logged-in user.
import type { Page } from 'playwright-core';
import { type Look, type Visit, visit } from '../support/browser.ts';
import type { ServedAppliance } from './appliance.ts';

export const password = 'Correct-Horse-7';

/** Opens `path` as an existing user with this name and password. */
export async function visitAs(
  { url }: ServedAppliance,
  username: string,
  path = '/console',
  look: Look = {},
  typed = password,
): Promise<Visit> {
  const visited = await visit(url + path, look);
  const { page } = visited;
  // The page focuses this field once it is rendered, and would redirect typing at that moment.
  await page.locator('[name=username]:focus').waitFor();
  await page.getByLabel('User name or e-mail address').fill(username);
  await page.getByLabel('Password', { exact: true }).fill(typed);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page
    .getByRole('button', { name: 'Log out' })
    .waitFor()
    .catch(async (error: unknown) => {
      const shown = await page.locator('body').textContent();
      throw new Error(`${username} was not logged in; the page says: ${shown}`, { cause: error });
    });
  return visited;
}

/** Fills in the set-up page without submitting it. */
export async function fillSetUp(page: Page, username: string, firstName: string, lastName: string): Promise<void> {
  await page.getByLabel('First name').fill(firstName);
  await page.getByLabel('Last name').fill(lastName);
  await page.getByLabel('E-mail address').fill(`${username}@example.org`);
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('Password', { exact: true }).fill(password);
}

/** Loads the page again without the polls about approvals, which come by themselves and may be the first to be refused. */
export async function withoutPolls(page: Page): Promise<void> {
  await page.route('**/approvals/**', () => {});
  await page.reload();
}

/** Goes to another page, as a link there would. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate((href) => {
    history.pushState(null, '', href);
    window.dispatchEvent(new PopStateEvent('popstate'));
  }, path);
}
