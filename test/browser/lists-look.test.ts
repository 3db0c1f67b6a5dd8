// The lists at each width and in both schemes: a row is one line where there is room, and a card on a phone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('olga', password, { flags: { 'user.read': true, 'keyring.list': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
for (const name of ['payroll', 'customer-records-of-the-european-shops-26', 'a'.repeat(128)])
  await call('POST', '/ks/keyrings', { name });
await call('POST', '/ks/keyrings', { name: 'b'.repeat(128), offlineDecrypt: true });
await call('POST', '/managed-keys', { name: 'vault-unseal-europe', derived: true });
await call('POST', '/managed-keys', { name: 'webhooks-of-the-shop', type: 'hmac-sha256' });
await call('POST', '/managed-keys', { name: 'c'.repeat(128), type: 'hmac-sha256' });
for (const lastName of ['One', 'Two']) {
  const named = { firstName: 'Maximiliana', lastName: `Oberhauser-${lastName}`, flags: { 'user.read': true } };
  await appliance.addUser(`maximiliana.oberhauser-${lastName.toLowerCase()}`, password, named);
}
await call('POST', '/auth/apikey', {
  accountId: accounts[0].id,
  name: 'worker-40 nightly export of the invoices',
  flags: {},
});
const flags = { 'keyring.payroll.encrypt': true, 'keyring.payroll.decrypt': true, 'asset.read': true };
for (let i = 0; i < 12; i++) {
  const expiresAt = i % 2 === 1 ? Date.now() + 400 * 86_400_000 : null;
  const name = i === 7 ? 'a'.repeat(128) : `worker-${i} nightly batch`;
  await call('POST', '/auth/apikey', { accountId: accounts[0].id, name, flags, expiresAt });
}

const everyLook = (['light', 'dark'] as const).flatMap((scheme) =>
  [390, 820, 1280].map((width) => ({ scheme, width })),
);
test('lists look right at every width, and a row is one line where there is room', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings');
  for (const [name, path] of [
    ['keyrings', '/console/keyrings'],
    ['apikeys', '/console/apikeys'],
    ['users', '/console/users'],
    ['accounts', '/console/accounts'],
    ['transit', '/console/managed-keys'],
  ] as const) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(appliance.url + path);
    await page.getByText(/entr(y|ies)\.$/).waitFor();
    await looksRight(page, `lists-${name}`, everyLook);
    for (const width of [820, 900, 1100, 1280, 1500, 1920]) {
      await page.setViewportSize({ width, height: 800 });
      // A longer name goes on in a second line, and so does a flag where the menu leaves little room.
      const most = {
        th: width === 900 ? 20 : width < 1280 ? 26 : 36,
        '[data-chip]': width === 900 ? 12 : 26,
        '[data-title="User name"]': width < 1280 ? 18 : 26,
      };
      const high = await page.locator('tbody tr').evaluateAll(highRows, most);
      assert.deepEqual(high, [], `${name} at ${width} px`);
      const { wider, cut, silent } = await page.locator('[data-list]').evaluate(fits);
      assert.ok(wider <= 0, `${name} at ${width} px: the table is ${wider} px too wide`);
      assert.deepEqual(cut, [], `${name} at ${width} px`);
      assert.deepEqual(silent, [], `${name} at ${width} px: what is cut is in a title`);
      const tops = await page
        .locator('[data-finder] > :is(input, fieldset)')
        .evaluateAll((all) => all.map((each) => Math.round(each.getBoundingClientRect().top)));
      if (width >= 1280) assert.ok(Math.max(...tops) - Math.min(...tops) < 20, `${name}: filters in one row`);
      const hints = await page.locator('[data-finder] > input').evaluateAll(cutHints);
      assert.deepEqual(hints, [], `${name} at ${width} px: hints that are cut`);
    }
  }
  // Beside the longest name there is, the longest use is legible.
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${appliance.url}/console/managed-keys`);
  const mac = page.getByRole('row', { name: /webhooks/ }).getByText('Make MACs', { exact: true });
  const room = await mac.evaluate((tag) => {
    const cell = tag.closest('td > div > div') ?? tag;
    return cell.getBoundingClientRect().right - tag.getBoundingClientRect().right;
  });
  assert.ok(room >= 0, `Make MACs is cut by ${-room} px`);
  assert.deepEqual(troubles, []);
});

/** Rows of more than one line, though the texts that may go on in a second one have no more than so many characters. */
function highRows(rows: readonly Element[], most: Readonly<Record<string, number>>): string[] {
  const isShort = (row: Element) =>
    Object.entries(most).every(([selector, length]) =>
      [...row.querySelectorAll(selector)].every(({ textContent }) => (textContent ?? '').length <= length),
    );
  return rows
    .filter((row) => row.getBoundingClientRect().height >= 45 && isShort(row))
    .map(({ textContent }) => textContent ?? '');
}

/** How far a table exceeds its place, what of it is cut but texts of less interest, and what is cut without a title. */
function fits(list: Element) {
  const cells = [...list.querySelectorAll('thead th, :is(tbody th, tbody td) > div > div')].filter(
    (each) => each.scrollWidth > each.clientWidth,
  );
  const mayBeCut = ['Id', 'Notes', 'Wrapping', 'Uses', 'E-mail'];
  const table = list.querySelector('table');
  return {
    wider: table ? table.scrollWidth - list.clientWidth : 0,
    cut: cells
      .filter((each) => !mayBeCut.includes(each.closest('td')?.dataset.title ?? ''))
      .map((each) => each.textContent),
    silent: cells.filter((each) => each.querySelector('[title]') === null).map((each) => each.textContent),
  };
}

/** Hints of search boxes that do not fit, measured in a copy as text. */
function cutHints(inputs: readonly Element[]): string[] {
  return inputs
    .filter((input) => input instanceof HTMLInputElement)
    .filter((input) => {
      const { font, paddingLeft, paddingRight } = getComputedStyle(input);
      const pen = document.createElement('canvas').getContext('2d');
      if (pen) pen.font = font;
      // Browsers draw a mark for suggestions inside the box.
      const mark = input.list ? 20 : 0;
      const room = input.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight) - mark;
      return (pen?.measureText(input.placeholder).width ?? 0) > room;
    })
    .map(({ placeholder }) => placeholder);
}
