// Visual checks of a page's state: axe finds nothing, nothing overflows the window or a dialog, and a screenshot is kept in
// dist/screenshots.
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { type Look, screenshot, violations } from '../support/browser.ts';

/** Between them they cover every colour and every width. */
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
    const cut = await page.evaluate(() =>
      [...document.querySelectorAll('dialog[open]')].map((dialog) => dialog.scrollWidth - dialog.clientWidth),
    );
    assert.ok(Math.max(0, ...cut) <= 0, `${name}: ${cut} px run out of a dialog in a window of ${width} px`);
    assert.ok(overflow <= 0, `${name}: ${overflow} px run out of a window of ${width} px`);
    await screenshot(page, `${name}-${scheme}-${width}`);
  }
}
