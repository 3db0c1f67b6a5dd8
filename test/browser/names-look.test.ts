// Names in tables: none is broken inside a word, a long one leaves the others theirs, and all have the room of their column.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
const { id: accountId } = (await call('POST', '/auth/accounts', { uid: 'payments' })).body;
await call('POST', '/ks/keyrings', { name: 'payroll' });
const longName = 'payments-service-customer-record-field-encryption-key-eu-west-1';
await call('POST', '/managed-keys', { name: longName });
for (const name of ['web', 'jobs', 'orders']) await call('POST', '/managed-keys', { name });
const flags = { 'keyring.payroll.encrypt': true, 'keyring.payroll.decrypt': true };
for (const name of [longName, 'payslips', 'nightly-export', 'worker-7 of the shop']) {
  await call('POST', '/auth/apikey', { accountId, name, flags });
}

/** Words that are on two lines. */
function brokenWords(cells: readonly Element[]): string[] {
  const broken: string[] = [];
  for (const cell of cells) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const { 0: word, index } of (node.textContent ?? '').matchAll(/[^\s./_:@-]+/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        if (tops.size > 1) broken.push(word);
      }
    }
  }
  return broken;
}

test('no word is broken in the table of those who use a keyring', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/payroll');
  const table = page.getByRole('table', { name: 'API keys that may use payroll' });
  await table.getByRole('link', { name: 'payments', exact: true }).first().waitFor();
  for (const width of [390, 820, 900, 1000, 1280, 1366, 1500]) {
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual(await table.locator('th, td').evaluateAll(brokenWords), [], `${width} px`);
    const beyond = await table.evaluate((each) => each.scrollWidth - (each.parentElement?.clientWidth ?? 0));
    assert.ok(beyond <= 0, `${width} px: the table is ${beyond} px too wide`);
  }
  assert.deepEqual(troubles, []);
});

test('no id stands where a name is about to come', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/apikeys');
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/system/names', async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(`${appliance.url}/console/keyrings/payroll`);
  const table = page.getByRole('table', { name: 'API keys that may use payroll' });
  await table.getByText('payslips').waitFor();
  assert.equal(await table.getByText(accountId).count(), 0);
  release();
  await table.getByRole('link', { name: 'payments', exact: true }).first().waitFor();
  assert.deepEqual(troubles, []);
});

test('one long name does not give every row a second line', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/apikeys');
  await page.getByRole('link', { name: 'payslips' }).waitFor();
  for (const width of [820, 1280, 1500]) {
    await page.setViewportSize({ width, height: 800 });
    const high = await page
      .locator('tbody tr')
      .evaluateAll((rows) =>
        rows
          .filter((row) => row.getBoundingClientRect().height >= 45)
          .map((row) => row.querySelector('th')?.textContent),
      );
    assert.deepEqual(
      high.filter((name) => name !== longName),
      [],
      `${width} px`,
    );
    assert.deepEqual(await page.locator('tbody th').evaluateAll(brokenWords), [], `${width} px`);
  }
  assert.deepEqual(troubles, []);
});

test('a name takes the room of its column before it takes another line', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/managed-keys');
  for (const [path, name] of [
    ['/console/managed-keys', longName],
    ['/console/apikeys', longName],
  ] as const) {
    await page.goto(appliance.url + path);
    const link = page.getByRole('link', { name });
    await link.waitFor();
    for (const width of [900, 1100, 1280, 1500, 1920]) {
      await page.setViewportSize({ width, height: 800 });
      const room = await link.evaluate((each) => {
        const text = each.closest('th > div > div');
        const cell = each.closest('th');
        if (!text || !cell) return undefined;
        const { paddingLeft, paddingRight } = getComputedStyle(cell);
        const inner = cell.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
        return inner - text.clientWidth;
      });
      assert.ok(room !== undefined && room <= 1, `${path} at ${width} px: ${room} px are free beside it`);
    }
  }
  assert.deepEqual(troubles, []);
});
