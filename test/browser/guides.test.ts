// The guides in the browser: reached from the console without its being left, searched and read without scripts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { screenshot, violations, visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';

const appliance = await servedAppliance();
await appliance.addUser('ada', password, { flags: { '*': true } });

test('the guides look right, light and dark, wide and narrow', async () => {
  const { page, troubles } = await visit('about:blank');
  for (const path of ['', '/guide-operator', '/cli', '/kubernetes', '?q=recovery+kit']) {
    await page.goto(`${appliance.url}/docs/guides${path}`);
    assert.equal(await page.locator('script, style, [style], [onclick]').count(), 0);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 900 });
        assert.deepEqual(await violations(page), [], `${path} ${colorScheme}, ${width} px`);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${path}: ${overflow} px run out of a window of ${width} px`);
        const name = path.replace(/\W+/g, '-');
        await screenshot(page, `guides${name}-${colorScheme}-${width}`, { fullPage: false });
      }
    }
  }
  assert.deepEqual(troubles, []);
});

test('a search leads to the section', async () => {
  const { page, troubles } = await visit(`${appliance.url}/docs/guides`);
  await page.getByRole('searchbox', { name: 'Search the guides' }).fill('recovery kit');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: /^\d+ sections with “recovery kit”$/ }).waitFor();
  await page.getByRole('main').getByRole('link', { name: 'The recovery kit', exact: true }).click();
  await page.getByRole('heading', { name: 'Who holds the master key', level: 1 }).waitFor();
  assert.equal(new URL(page.url()).hash, '#the-recovery-kit');
  await page.getByRole('link', { name: 'Console' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('the console links to them from About, from its help and from the palette, and stays open', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/about');
  const opened = async (open: () => Promise<void>): Promise<void> => {
    const coming = page.context().waitForEvent('page');
    await open();
    const guides = await coming;
    await guides.getByRole('heading', { name: 'Guides', level: 1 }).waitFor();
    assert.equal(guides.url(), `${appliance.url}/docs/guides`);
    await guides.close();
  };
  await opened(() => page.getByRole('link', { name: 'Guides (in a new tab)' }).click());
  await opened(async () => {
    await page.keyboard.press('?');
    await page.getByRole('link', { name: 'guides (in a new tab)', exact: true }).click();
  });
  await page.keyboard.press('Escape');
  await opened(async () => {
    await page.keyboard.press('Control+k');
    await page.keyboard.type('guides');
    await page.keyboard.press('Enter');
  });
  await page.getByRole('heading', { name: 'About', level: 1 }).waitFor();
  assert.deepEqual(troubles, []);
});
