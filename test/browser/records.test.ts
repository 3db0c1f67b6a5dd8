// The console's own records in the activity log: one for a page that is opened, and no more while it stays open.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { Page, Request } from 'playwright-core';
import { consolePages } from '../../src/api/console-pages.ts';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs, withoutPolls } from './log-in.ts';

const appliance = await servedAppliance();
const { call } = appliance;
for (const name of ['ada', 'eve', 'joe', 'kim']) await appliance.addUser(name, password, { flags: { '*': true } });
await call('POST', '/ks/keyrings', { name: 'Payroll' });
await call('POST', '/managed-keys', { name: 'Held', type: 'ed25519' });

async function recordsOf(username: string): Promise<string[]> {
  const { id } = (await call('GET', `/auth/users/${username}`)).body;
  const { data } = (await call('POST', '/auth/search/activity', { keyid: id })).body;
  return data.map(({ action }: { action: string }) => action);
}

const { id: accountId } = (await call('POST', '/auth/accounts', { uid: 'wages' })).body;
const { keyid } = (await call('POST', '/auth/apikey', { accountId, name: 'nightly', flags: { '*': true } })).body;
await call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, owner: await idOf('eve') });
const { asset } = (await call('POST', '/ks/encrypt', { ringname: 'payroll', asset: { data: {} } })).body;
const [{ id: recordId }] = (await call('POST', '/auth/search/activity', { limit: 1 })).body.data;
const rule = { name: 'rotating', actions: ['key.held.rotate'], approvers: { flag: 'approval.give' } };
const { id: ruleId } = (await call('POST', '/approvals/rules', rule)).body;
const { approval } = (await call('POST', '/managed-keys/held/rotate', {})).body;

async function idOf(username: string): Promise<string> {
  return (await call('GET', `/auth/users/${username}`)).body.id;
}

/** Parameters in the addresses of the pages about one thing. */
const parameters: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  keyring: { name: 'payroll' },
  managedKey: { name: 'held' },
  apikey: { id: keyid },
  user: { username: 'eve' },
  account: { id: accountId },
  asset: { id: asset.id },
  approval: { id: approval.id },
  approvalRule: { id: ruleId },
  activityAbout: { kind: 'keyring', id: 'payroll' },
  activityRecord: { id: recordId },
};

/** Every page with its address. */
const visited = Object.entries(consolePages).map(([name, { path }]) => {
  const address = path.replaceAll(/[{](\w+)[}]/g, (whole, parameter) => parameters[name]?.[parameter] ?? whole);
  assert.doesNotMatch(address, /[{]/, `the page ${name} needs parameters`);
  return [name, address] as const;
});

/** Returns a function that waits until every request of the page is answered and half a second brought no new one. */
function watchRequests(page: Page): () => Promise<void> {
  const unanswered = new Set<Request>();
  let last = performance.now();
  const ended = (request: Request) => {
    unanswered.delete(request);
    last = performance.now();
  };
  page.on('request', (request) => unanswered.add(request));
  // An endless stream counts as answered once it begins: its record was written before.
  page.on('response', (response) => ended(response.request()));
  page.on('requestfailed', ended);
  return async () => {
    // Two frames: the page is shown, and has sent what it sends then.
    await page.evaluate(() => new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown))));
    const start = performance.now();
    last = start;
    while (unanswered.size > 0 || performance.now() - last < 500) {
      const urls = [...unanswered].map((request) => request.url());
      assert.ok(performance.now() - start < 30_000, `the page does not come to rest: ${urls.join(' ')}`);
      await setTimeout(20);
    }
  };
}

test('a visit to a page writes at most one record', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada');
  const settled = watchRequests(page);
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await page.getByText('None: every active key is').waitFor();
  await settled();
  const first = (await recordsOf('ada')).filter((action) => !/^(session\.create|user\.invited)$/.test(action));
  assert.deepEqual(first, ['system.overview']);
  const tooMany: string[] = [];
  for (const [name, path] of visited) {
    const before = (await recordsOf('ada')).length;
    await goTo(page, path);
    await settled();
    const after = await recordsOf('ada');
    const written = after.slice(0, after.length - before);
    // Two searches of the log: for what was done to the thing, and for what was done with it.
    if (written.length > 1) tooMany.push(`${name}: ${written.join(', ')}`);
  }
  assert.deepEqual(tooMany, []);
  const before = (await recordsOf('ada')).length;
  await page.keyboard.press('Control+k');
  await page.keyboard.type('payroll');
  await page.getByRole('option', { name: /^Payroll Keyring/ }).waitFor();
  assert.ok((await recordsOf('ada')).length - before <= 1, 'the palette');
  assert.deepEqual(troubles, []);
});

test('a page that is loaded afresh keeps its session without a record of that', async () => {
  const { page } = await visitAs(appliance, 'kim');
  await page.getByText('None: every active key is').waitFor();
  for (const path of ['/console', '/console/keyrings', '/console/me']) {
    const before = (await recordsOf('kim')).length;
    const settled = watchRequests(page);
    await page.goto(appliance.url + path);
    await page.getByRole('button', { name: 'Log out' }).waitFor();
    await settled();
    const after = await recordsOf('kim');
    const written = after.slice(0, after.length - before);
    assert.ok(written.length <= 1, `${path}: ${written.join(', ')}`);
  }
});

test('an overview that stays open for an hour writes at most two records', async () => {
  const { page } = await visitAs(appliance, 'eve', '/console/about');
  await page.clock.install();
  const before = (await recordsOf('eve')).length;
  await goTo(page, '/console');
  await page.getByText('None: every active key is').waitFor();
  for (let minute = 0; minute < 60; minute++) {
    // The overview is polled, and so is what waits for approval: the first of them tells.
    const polled = page.waitForResponse(/\/system\/overview|\/approvals\//);
    await page.clock.runFor(60_000);
    assert.ok([200, 304].includes((await polled).status()));
  }
  const after = await recordsOf('eve');
  const written = after.slice(0, after.length - before);
  assert.ok(written.length <= 2, written.join(', '));
  assert.ok(written.includes('system.overview'));
});

test('a session that was ended elsewhere is noticed at the next poll', async () => {
  const { page } = await visitAs(appliance, 'joe', '/console/about');
  await withoutPolls(page);
  await page.clock.install();
  await goTo(page, '/console');
  await page.getByText('None: every active key is').waitFor();
  await call('PATCH', '/auth/users/joe', { state: 'disabled' });
  await call('DELETE', '/auth/users/joe');
  const polled = page.waitForResponse(/\/system\/overview/);
  await page.clock.runFor(60_000);
  assert.equal((await polled).status(), 401);
  await page.getByText('Your session has ended.').first().waitFor();
});
