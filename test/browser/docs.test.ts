// The reference at /docs, light and dark, wide and as narrow as a phone: axe finds nothing, nothing runs out of the
// window, every link within it leads somewhere, nothing comes from elsewhere; pictures of it are kept in
// dist/screenshots.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { screenshot, violations, visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';

const appliance = await servedAppliance();
const url = `${appliance.url}/docs`;

/** Only of the window: the whole page would be longer than a picture can be. */
async function shown(page: Page, anchor: string): Promise<void> {
  await page.evaluate((id) => document.getElementById(id)?.scrollIntoView(), anchor);
}

test('it looks right', async () => {
  const { page, troubles } = await visit(url);
  await page.getByRole('heading', { name: 'The API of kms', level: 1 }).waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1200, 360]) {
      await page.setViewportSize({ width, height: 900 });
      assert.deepEqual(await violations(page), [], `${colorScheme}, ${width} px`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(overflow <= 0, `${overflow} px run out of a window of ${width} px`);
      for (const anchor of ['content', 'flags', 'encrypt', 'schema-KeyRing']) {
        await shown(page, anchor);
        await screenshot(page, `docs-${anchor}-${colorScheme}-${width}`, { fullPage: false });
      }
    }
  }
  assert.deepEqual(troubles, []);
});

test('it asks this appliance alone, and runs no script', async () => {
  const asked: string[] = [];
  const { page, troubles } = await visit('about:blank');
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(url);
  await page.waitForLoadState('networkidle');
  assert.ok(asked.length >= 2 && asked.every((each) => each.startsWith(appliance.url)), asked.join(' '));
  assert.equal(await page.locator('script, style, [style], [onclick]').count(), 0);
  assert.deepEqual(troubles, []);
});

test('every link within it leads somewhere, and no two places have one name', async () => {
  const { page } = await visit(url);
  const [links, ids] = await page.evaluate(() => [
    [...document.querySelectorAll('a')].map((link) => link.getAttribute('href') ?? ''),
    [...document.querySelectorAll('[id]')].map(({ id }) => id),
  ]);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(links.length > 150);
  const dead = links.filter((link) => link.startsWith('#') && !ids.includes(link.slice(1)));
  assert.deepEqual(dead, []);
  assert.deepEqual([...new Set(links.filter((link) => !link.startsWith('#')))], ['openapi.json']);
});

test('with the keyboard one gets past the contents to the text; on a phone the contents are a link away', async () => {
  const { page } = await visit(url);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'content');
  const toContents = page.getByRole('banner').getByRole('link', { name: 'Contents' });
  assert.equal(await toContents.isVisible(), false);
  await page.setViewportSize({ width: 360, height: 800 });
  await toContents.click();
  await page.getByRole('navigation', { name: 'Contents' }).getByRole('link', { name: 'Permission flags' }).click();
  await page.waitForURL(/#flags$/);
});
