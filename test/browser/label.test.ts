// The label of an appliance in the console: on the page to log in, in the header of every page, and in the title.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const text = `prod ${'W'.repeat(19)}`;

for (const colour of ['red', 'amber', 'green', 'blue', undefined] as const) {
  test(`a label is seen on every page: ${colour ?? 'no colour'}`, async () => {
    const appliance = await servedAppliance({}, { label: { text, ...(colour && { colour }) } });
    await appliance.addUser('ada', password, { flags: { '*': true } });
    const { page, troubles } = await visitAs(appliance, 'ada', '/console/about');
    const label = page.locator('header strong');
    assert.equal(await label.textContent(), text);
    assert.equal(await label.getAttribute('data-label'), colour ?? 'grey');
    await page.waitForFunction((title) => document.title === title, `About – ${text} – kms`);
    await looksRight(page, `label-${colour ?? 'grey'}`);
    await goTo(page, '/console/keyrings');
    await page.waitForFunction((title) => document.title === title, `Keyrings – ${text} – kms`);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in', level: 1 }).waitFor();
    assert.equal(await label.textContent(), text);
    for (const width of [360, 1200]) {
      await page.setViewportSize({ width, height: 800 });
      const { gap, drop } = await page.locator('header').evaluate((header) => {
        const [name, label] = [...header.children].map((child) => child.getBoundingClientRect());
        if (!name || !label) throw new Error('the header has a name and a label');
        return { gap: label.left - name.right, drop: Math.abs(label.top + label.bottom - name.top - name.bottom) / 2 };
      });
      assert.ok(gap >= 8 && drop < 1, `at ${width} px the label is ${gap} px beside the name and ${drop} px lower`);
    }
    await looksRight(page, 'label-login');
    assert.deepEqual(troubles, []);
  });
}

test('a tenant of another name than the first is seen once its overview was', async () => {
  const tenant = 'customers-of-the-north';
  const appliance = await servedAppliance();
  const hosts = ['127.0.0.1'];
  const { apiKey } = await appliance.local('POST', '/local/tenants', { name: tenant, hosts });
  const person = { username: 'ada', email: 'ada@example.org', firstName: 'Ada', lastName: 'L', flags: { '*': true } };
  const { body } = await appliance.call('POST', '/auth/users', person, apiKey.key);
  const { page, troubles } = await visitAs(appliance, 'ada', '/console', {}, body.password);
  await page.locator('header [data-tenant]').getByText(tenant).waitFor();
  await looksRight(page, 'tenant');
  await goTo(page, '/console/keyrings');
  await page.waitForFunction((title) => document.title === title, `Keyrings – ${tenant} – kms`);
  assert.deepEqual(troubles, []);
});
