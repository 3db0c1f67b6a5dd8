// States of the pages for logged-out users, light and dark, wide and as narrow as a phone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const shortLived = await servedAppliance({ invite: 1 });
const mail = { host: '127.0.0.1', port: 9, tls: 'off', from: 'kms@example.org' } as const;
const mailing = await servedAppliance({}, { mail });
const strong = 'Correct-Horse-7';
await appliance.addUser('grace', strong);

interface State {
  readonly name: string;
  readonly url: () => string | Promise<string>;
  /** Steps from the page to the state. */
  readonly go?: (page: Page) => Promise<void>;
  readonly heading: string | RegExp;
  readonly withoutNetwork?: boolean;
}

const at = (path: string) => (): string => appliance.url + path;
const typed =
  (password: string) =>
  async (page: Page): Promise<void> => {
    await page.getByLabel('New password', { exact: true }).fill(password);
    await page.locator('button[type=submit]').click();
  };
const asked =
  (email: string) =>
  async (page: Page): Promise<void> => {
    await page.getByLabel('Your e-mail address').fill(email);
    await page.locator('button[type=submit]').click();
  };

let invited = 0;
const invite = (): Promise<string> => appliance.invite(`guest${++invited}`);
const longName = { firstName: 'Wolfeschlegelsteinhausenbergerdorff', lastName: 'Blaine-Featherstonehaugh' };

const states: readonly State[] = [
  { name: 'nothing-here', url: at('/console/nowhere/at/all'), heading: 'Page not found' },
  { name: 'invite', url: invite, heading: /^Welcome/ },
  { name: 'invite-weak', url: invite, go: typed('weak Pass'), heading: /^Welcome/ },
  {
    name: 'invite-long-name',
    url: () => appliance.invite('l'.repeat(60), longName),
    go: (page) => page.getByLabel('New password', { exact: true }).fill(strong),
    heading: /^Welcome/,
  },
  { name: 'invite-done', url: invite, go: typed(strong), heading: 'Your password is set' },
  { name: 'invite-expired', url: () => shortLived.invite('late'), heading: 'Your invitation has expired' },
  { name: 'invite-invalid', url: at('/console/invite?token=x'), heading: 'This invitation does not work' },
  { name: 'invite-missing', url: at('/console/invite'), heading: 'Open your invitation link' },
  {
    name: 'invite-unreachable',
    url: at('/console/invite?token=x'),
    heading: 'That did not work',
    withoutNetwork: true,
  },
  { name: 'reset', url: () => appliance.resetLink('grace'), heading: 'Choose a new password' },
  {
    name: 'reset-done',
    url: () => appliance.resetLink('grace'),
    go: typed(strong),
    heading: 'Your password has been changed',
  },
  {
    name: 'reset-refused',
    url: at('/console/reset?token=x'),
    go: typed(strong),
    heading: 'This link no longer works',
  },
  { name: 'reset-missing', url: at('/console/reset'), heading: 'Open the link that you were given' },
  { name: 'forgot', url: at('/console/forgot'), heading: 'Forgot your password?' },
  { name: 'forgot-wrong', url: at('/console/forgot'), go: asked('grace'), heading: 'Forgot your password?' },
  {
    name: 'forgot-unsent',
    url: at('/console/forgot'),
    go: asked('grace@example.org'),
    heading: 'Ask your administrator',
  },
  {
    name: 'forgot-sent',
    url: () => `${mailing.url}/console/forgot`,
    go: asked('grace@example.org'),
    heading: 'Check your mail',
  },
];

for (const { name, url, go, heading, withoutNetwork } of states) {
  test(`the state ${name} looks right`, async () => {
    const { page, troubles } = await visit('about:blank');
    if (withoutNetwork) await page.route('**/auth/**', (route) => route.abort());
    await page.goto(await url());
    await go?.(page);
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
    await looksRight(page, name);
    assert.deepEqual(troubles, []);
  });
}
