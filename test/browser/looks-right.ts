// How a state of a page has to look: axe finds nothing, nothing runs out of the window, and a picture of it is kept in
// dist/screenshots.
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { type Look, screenshot, violations } from '../support/browser.ts';

/** Every colour and every width is in one of them. */
const looks: readonly Required<Pick<Look, 'scheme' | 'width'>>[] = [
  { scheme: 'light', width: 1200 },
  { scheme: 'dark', width: 360 },
];

export async function looksRight(
  page: Page,
  name: string,
  seen: readonly Required<Pick<Look, 'scheme' | 'width'>>[] = looks,
): Promise<void> {
  for (const { scheme, width } of seen) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual(await violations(page), [], `${name}, ${scheme}, ${width} px`);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `${name}: ${overflow} px run out of a window of ${width} px`);
    await screenshot(page, `${name}-${scheme}-${width}`);
  }
}
