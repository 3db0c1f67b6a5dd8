// The first run: the overview of an empty appliance has a checklist, and nothing that says something only later.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });

async function recordsOf(username: string): Promise<string[]> {
  const { id } = (await call('GET', `/auth/users/${username}`)).body;
  const { data } = (await call('POST', '/auth/search/activity', { keyid: id })).body;
  return data.map(({ action }: { action: string }) => action);
}

test('the checklist leads through the first run, knows what is done, and goes when it is hidden', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada');
  const steps = page.getByRole('region', { name: 'First steps' });
  await steps.getByText('0 of 5 done').waitFor();
  const seen = (await recordsOf('ada')).filter((action) => action.startsWith('system.'));
  assert.deepEqual(seen, ['system.overview']);
  await page.getByText('Nothing was encrypted, decrypted or denied in this time.').waitFor();
  for (const later of ['Keyrings near their rotation', 'Log and snapshot', /^From /]) {
    assert.equal(await page.getByText(later).count(), 0, String(later));
  }
  await looksRight(page, 'first-run');

  await steps.getByRole('button', { name: 'Done: Keep the master key in a second place' }).click();
  await steps.getByText('1 of 5 done').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'H1');
  const kept = await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith('kms-first-')));
  const { appliance: id } = (await call('GET', '/readyz')).body;
  assert.deepEqual(kept, [`kms-first-steps ${id}`]);
  for (const [link, title] of [
    ['Create one: Create a keyring', 'New keyring'],
    ['Add one: Turn on a second factor', 'Your account'],
    ['Invite one: Invite a colleague', 'New user'],
  ] as const) {
    await steps.getByRole('link', { name: link }).click();
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    await goTo(page, '/console');
  }
  await call('POST', '/ks/keyrings', { name: 'Payroll' });
  await appliance.invite('bob', { flags: {} });
  await page.getByRole('button', { name: 'Refresh' }).click();
  await steps.getByText('3 of 5 done').waitFor();
  await page.getByText('Keyrings near their rotation').waitFor();
  await steps.getByRole('listitem').filter({ hasText: 'Create a keyring: done' }).waitFor();
  await looksRight(page, 'first-run-half');

  await page.reload();
  await steps.getByText('3 of 5 done').waitFor();
  await steps.getByRole('button', { name: 'Hide this list' }).click();
  await steps.waitFor({ state: 'detached' });
  await page.reload();
  await page.getByText('Keyrings near their rotation').waitFor();
  assert.equal(await steps.count(), 0);
  assert.deepEqual(troubles, []);
});
