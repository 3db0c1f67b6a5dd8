// The lists at each width and in both schemes: a row is one line where there is room, and a card on a phone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'user.read': true, 'keyring.list': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
for (const name of ['payroll', 'ledger', 'a'.repeat(128)]) await call('POST', '/ks/keyrings', { name });
await call('POST', '/managed-keys', { name: 'Vault' });
const flags = { 'keyring.payroll.encrypt': true, 'keyring.payroll.decrypt': true, 'asset.read': true };
for (let i = 0; i < 12; i++) {
  const expiresAt = i === 7 ? Date.now() + 5 * 86_400_000 : null;
  await call('POST', '/auth/apikey', { accountId: accounts[0].id, name: `batch-${i}`, flags, expiresAt });
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
    for (const width of [820, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      const heights = await page
        .locator('tbody tr')
        .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
      assert.ok(Math.max(...heights) < 45, `${name} at ${width} px: ${Math.max(...heights)}`);
      const tops = await page
        .locator('[data-finder] > :is(input, fieldset)')
        .evaluateAll((all) => all.map((each) => Math.round(each.getBoundingClientRect().top)));
      if (width === 1280) assert.ok(Math.max(...tops) - Math.min(...tops) < 20, `${name}: filters in one row`);
    }
  }
  assert.deepEqual(troubles, []);
});
