// The frame around the pages: what is always there, what comes and goes, and the time zone shown.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Locator } from 'playwright-core';
import { visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';

const appliance = await servedAppliance();
await appliance.addUser('grace', password, { flags: { '*': true }, firstName: 'Grace', lastName: 'Hopper' });
await appliance.addUser('ada', password);
for (let i = 0; i < 30; i++) await appliance.call('POST', '/ks/keyrings', { name: `ring-${i}` });

async function boxOf(locator: Locator) {
  const box = await locator.boundingBox();
  assert.ok(box);
  return box;
}

test('whoever comes to log in can type at once', async () => {
  const { page, troubles } = await visit(`${appliance.url}/console`);
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await page.keyboard.type('grace');
  await page.keyboard.press('Tab');
  await page.keyboard.type(password);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  assert.deepEqual(troubles, []);
});

test('header and sidebar stay while the page is scrolled, and dialogs are in the middle', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/keyrings', { width: 1440 });
  await page.getByText('30 entries').waitFor();
  const parts = [page.getByRole('banner'), page.getByRole('navigation', { name: 'Console' })];
  const boxes = () => Promise.all(parts.map(boxOf));
  /** Once they stand still: what they show may come after the list, and a window's new size takes a moment. */
  const settled = async <T>(look: () => Promise<T>): Promise<T> => {
    for (let last = await look(); ; ) {
      await page.waitForTimeout(200);
      const now = await look();
      if (isDeepStrictEqual(now, last)) return now;
      last = now;
    }
  };
  const before = await settled(boxes);
  await page.mouse.wheel(0, 600);
  await page.waitForFunction(() => window.scrollY > 300);
  assert.deepEqual(await settled(boxes), before);
  for (const [width, height] of [
    [1440, 800],
    [820, 900],
    [390, 844],
  ] as const) {
    await page.setViewportSize({ width, height });
    for (const path of ['/console/keyrings/ring-1', '/console/users/ada']) {
      await goTo(page, path);
      await page.getByRole('button', { name: 'Delete…' }).click();
      // Another dialog stands there until it is known whether something is in the way.
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).waitFor();
      const { x, y, width: wide, height: high } = await settled(() => boxOf(page.getByRole('dialog')));
      assert.ok(Math.abs(x + wide / 2 - width / 2) <= 8, `${path}, ${width} px: ${x} + ${wide} / 2`);
      assert.ok(Math.abs(y + high / 2 - height / 2) <= 1, `${path}, ${width} px: ${y} + ${high} / 2`);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
  }
  assert.deepEqual(troubles, []);
});

test('on a phone the header is one row, and the menu opens and closes by the keyboard', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/about', { width: 390 });
  const header = await boxOf(page.getByRole('banner'));
  assert.ok(header.height <= 64, `${header.height} px`);
  const menu = page.getByRole('button', { name: 'Menu' });
  await menu.focus();
  await page.keyboard.press('Enter');
  const keyrings = page.getByRole('navigation').getByRole('link', { name: 'Keyrings', exact: true });
  await keyrings.waitFor();
  assert.equal(await menu.getAttribute('aria-expanded'), 'true');
  await page.keyboard.press('Escape');
  await keyrings.waitFor({ state: 'hidden' });
  await menu.click();
  await keyrings.click();
  await page.getByRole('heading', { name: 'Keyrings', level: 1 }).waitFor();
  assert.equal(await menu.getAttribute('aria-expanded'), 'false');
  assert.deepEqual(troubles, []);
});

test('a toast ends with its page; one that is said on the way is said where that leads', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/keyrings/ring-1', { width: 1440 });
  await page.getByRole('button', { name: 'Copy the public key' }).click();
  const toasts = page.locator('[data-toasts] p');
  await toasts.waitFor();
  await page.getByRole('link', { name: 'Users', exact: true }).click();
  await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  assert.equal(await toasts.count(), 0);
  await goTo(page, '/console/keyrings/ring-2');
  await page.getByRole('button', { name: 'Change settings' }).click();
  await page.getByRole('button', { name: 'Save settings' }).click();
  await toasts.waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
  assert.equal(await toasts.count(), 0);
  await goTo(page, '/console/new/account');
  await page.getByLabel('UID').fill('customer-7');
  await page.getByRole('button', { name: 'Create the account' }).click();
  await page.getByRole('heading', { name: 'customer-7', level: 1 }).waitFor();
  await toasts.waitFor();
  assert.deepEqual(troubles, []);
});

test('times are those of whoever reads them, and UTC for whoever points at them', async () => {
  const { page, troubles } = await visitAs(appliance, 'grace', '/console/keyrings/ring-1', {
    zone: 'Asia/Kolkata',
    width: 1440,
  });
  await page
    .getByText('Times are in the time zone Asia/Calcutta')
    .or(page.getByText('Times are in the time zone Asia/Kolkata'))
    .waitFor();
  const { ring } = (await appliance.call('GET', '/ks/keyrings/ring-1')).body;
  const utc = ring.createdAt.slice(0, 19).replace('T', ' ');
  const local = new Date(Date.parse(ring.createdAt) + 330 * 60_000).toISOString().slice(0, 19).replace('T', ' ');
  const shown = page.getByTitle(`${utc} UTC`).first();
  assert.equal(await shown.textContent(), local);
  assert.equal(await shown.getAttribute('datetime'), ring.createdAt);
  assert.deepEqual(troubles, []);
});
