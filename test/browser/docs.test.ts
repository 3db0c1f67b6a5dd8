// The reference at /docs, light and dark, wide and as narrow as a phone: axe finds nothing, nothing overflows the
// window, every link leads somewhere, nothing is loaded from other origins; it has a search, and sends requests with
// the rights of the console's session. Screenshots are kept in dist/screenshots.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { screenshot, violations, visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';

const appliance = await servedAppliance();
const url = `${appliance.url}/docs`;
const document = await (await fetch(`${appliance.url}/openapi.json`)).json();
const names = [
  'guide',
  ...document.tags.map(({ name }: { name: string }) => name.toLowerCase().replaceAll(' ', '-')),
  'schemas-a-m',
  'schemas-n-z',
];

test('the pages look right', async () => {
  const { page, troubles } = await visit(url);
  for (const name of ['', '/encryption', '/guide', '/schemas-a-m', '/schemas-n-z']) {
    await page.goto(url + name);
    await page.getByRole('searchbox', { name: 'Search' }).waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1280, 768, 360]) {
        await page.setViewportSize({ width, height: 900 });
        assert.deepEqual(await violations(page), [], `${name} ${colorScheme}, ${width} px`);
        const overflow = await page.evaluate(() => globalThis.document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${name}: ${overflow} px run out of a window of ${width} px`);
        await screenshot(page, `docs${name.replace('/', '-')}-${colorScheme}-${width}`, { fullPage: false });
      }
    }
  }
  assert.deepEqual(troubles, []);
});

test('they ask this appliance alone, and nothing in them is inline', async () => {
  const asked: string[] = [];
  const { page, troubles } = await visit('about:blank');
  page.on('request', (request) => asked.push(request.url()));
  for (const name of names) {
    await page.goto(`${url}/${name}`);
    await page.waitForLoadState('networkidle');
    assert.equal(await page.locator('script:not([src]), style, [style], [onclick]').count(), 0);
    assert.equal(await page.getByRole('link', { name: 'Console' }).getAttribute('href'), '../console');
  }
  assert.ok(asked.length >= 2 && asked.every((each) => each.startsWith(appliance.url)), asked.join(' '));
  assert.deepEqual(troubles, []);
});

/** The addresses of all links of a page, and its anchors. */
async function linksAndIds(page: Page, address: string): Promise<[string[], string[]]> {
  await page.goto(address);
  return page.evaluate(() => [
    [...globalThis.document.querySelectorAll('a')].map((link) => link.href),
    [...globalThis.document.querySelectorAll('[id]')].map(({ id }) => id),
  ]);
}

test('every link leads somewhere, no two places of a page have one name, and no page is long', async () => {
  const { page } = await visit('about:blank');
  const addresses = [url, ...names.map((name) => `${url}/${name}`)];
  const anchors = new Set([
    `${appliance.url}/console`,
    `${appliance.url}/openapi.json`,
    `${appliance.url}/docs/guides`,
  ]);
  const links = new Set<string>();
  for (const address of addresses) {
    const [of, ids] = await linksAndIds(page, address);
    assert.equal(new Set(ids).size, ids.length, address);
    anchors.add(address);
    for (const id of ids) anchors.add(`${address}#${id}`);
    for (const link of of) links.add(link);
    const height = await page.evaluate(() => globalThis.document.documentElement.scrollHeight);
    assert.ok(height < 40_000, `${address}: ${height} px`);
  }
  assert.ok(links.size > 150);
  assert.deepEqual(
    [...links].filter((link) => !anchors.has(link)),
    [],
  );
});

test('a link of the time when all was one page leads on to the place, and without a script to a link there', async () => {
  const { page } = await visit('about:blank');
  for (const [anchor, place] of [
    ['encrypt', 'encryption#encrypt'],
    ['flags', 'guide#flags'],
    ['schema-KeyRing', 'schemas-a-m#schema-KeyRing'],
    ['tag-api-keys', 'api-keys'],
  ]) {
    await page.goto('about:blank');
    await page.goto(`${url}#${anchor}`);
    await page.waitForURL(`${url}/${place}`);
  }
  const plain = await (await fetch(url)).text();
  assert.match(plain, /<li id="encrypt">[^\n]*href="docs\/encryption#encrypt"/);
});

test('the search finds places by what they say, with the keyboard alone', async () => {
  const { page, troubles } = await visit(`${url}/users`);
  await page.getByRole('searchbox', { name: 'Search' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('rotate keyring');
  await page.getByRole('status').filter({ hasText: 'places' }).waitFor();
  const first = page.locator('#found a').first();
  assert.match((await first.textContent()) ?? '', /new active key|rotate/i);
  await screenshot(page, 'docs-search', { fullPage: false });
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('Escape');
  await first.waitFor({ state: 'detached' });
  await page.keyboard.type('/ks/decrypt');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${url}/encryption#decrypt`);
  // A search for an error's text finds the endpoint that returns it.
  await page.keyboard.press('/');
  await page.keyboard.type('uid another account');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/accounts#createAccount$/);
  await page.keyboard.press('/');
  await page.keyboard.type('zzzz');
  await page.getByRole('status').filter({ hasText: '0 places' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('a request is tried with the rights of the session in the console, and of nobody else', async () => {
  await appliance.addUser('ada', password, { flags: { 'keyring.list': true, 'account.create': true } });
  const { page: stranger } = await visit(`${url}/keyrings#listKeyrings`);
  const tried = (page: Page, id: string) => page.locator(`article[aria-labelledby="${id}"] details.try`);
  const open = async (page: Page, id: string) => {
    await tried(page, id).locator('summary').click();
    return tried(page, id).getByRole('button', { name: 'Send' });
  };
  await (await open(stranger, 'listKeyrings')).click();
  await tried(stranger, 'listKeyrings').getByText('You are not logged in').waitFor();

  const { page, troubles } = await visitAs(appliance, 'ada');
  await page.goto(`${url}/keyrings`);
  await (await open(page, 'listKeyrings')).click();
  await tried(page, 'listKeyrings').getByText('200').waitFor();
  await tried(page, 'listKeyrings').getByText('"hasMore": false').waitFor();
  assert.deepEqual(await violations(page), []);
  await screenshot(page, 'docs-try', { fullPage: false });
  await (await open(page, 'createKeyring')).click();
  await tried(page, 'createKeyring').getByText('the permission flag keyring.create is missing').waitFor();

  await page.goto(`${url}/keyrings`);
  await open(page, 'deleteKeyring');
  await tried(page, 'deleteKeyring').getByRole('textbox').fill('pay/roll');
  page.once('dialog', (dialog) => dialog.dismiss());
  await tried(page, 'deleteKeyring').getByRole('button', { name: 'Send' }).click();
  assert.equal(await tried(page, 'deleteKeyring').locator('pre').count(), 0);
  page.once('dialog', (dialog) => dialog.accept());
  await tried(page, 'deleteKeyring').getByRole('button', { name: 'Send' }).click();
  await tried(page, 'deleteKeyring')
    .getByText(/keyring.*delete is missing/)
    .waitFor();

  await page.goto(`${url}/accounts`);
  await (await open(page, 'createAccount')).click();
  await tried(page, 'createAccount').getByText('"uid": "billing"').nth(1).waitFor();
  assert.deepEqual(troubles, []);
});

test('with the keyboard one gets past the contents to the text; on a phone the contents are a link away', async () => {
  const { page } = await visit(`${url}/guide`);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => globalThis.document.activeElement?.id), 'content');
  const toContents = page.getByRole('banner').getByRole('link', { name: 'Contents' });
  assert.equal(await toContents.isVisible(), false);
  await page.setViewportSize({ width: 360, height: 800 });
  await toContents.click();
  await page.getByRole('navigation', { name: 'Contents' }).getByRole('link', { name: 'Permission flags' }).click();
  await page.waitForURL(/#flags$/);
});
