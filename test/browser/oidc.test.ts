// Logging in with an identity provider, as people do it: the button, the provider's page, and back to where they were.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visit } from '../support/browser.ts';
import { clientId, clientSecret, testProvider } from '../support/oidc-provider.ts';
import { servedAppliance } from './appliance.ts';

const appliance = await servedAppliance();
const people = { ada: { email: 'ada@example.org', email_verified: true, name: 'Ada Lovelace', groups: ['all'] } };

test('the button leads to the provider, and the provider back to the page that was asked for', async () => {
  const { page: before } = await visit(`${appliance.url}/console`);
  await before.getByRole('button', { name: 'Use this key' }).waitFor();
  assert.equal(await before.getByRole('button', { name: /^Sign in with/ }).count(), 0, 'no provider, no button');

  await using p = await testProvider({ redirectUris: [`${appliance.url}/console/oidc`], people });
  await appliance.local('PUT', '/local/oidc', {
    issuer: p.issuer,
    clientId,
    clientSecret,
    name: 'Example Login',
    createUsers: true,
    flagsClaim: 'groups',
    claimFlags: { all: ['user.read'] },
  });
  const { page, troubles } = await visit(`${appliance.url}/console/users`);
  await page.setExtraHTTPHeaders({ 'x-subject': 'ada' });
  await page.getByRole('button', { name: 'Sign in with Example Login' }).click();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
  await page.getByRole('heading', { name: 'Users' }).waitFor();
  assert.equal(page.url(), `${appliance.url}/console/users`, 'neither code nor state is in the address');
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  assert.deepEqual(troubles, []);
});

test('a login that was not begun here, or that the provider refused, is told as such', async () => {
  const { page, troubles } = await visit(`${appliance.url}/console/oidc?code=x&state=y`);
  await page.getByRole('heading', { name: 'You are not logged in' }).waitFor();
  await page.getByText('A login starts at the login page, in the same window.').waitFor();
  assert.equal(page.url(), `${appliance.url}/console/oidc`);
  const keep = () => sessionStorage.setItem('kms-oidc', JSON.stringify({ binding: 'x', from: '/console' }));
  await page.evaluate(keep);
  await page.goto(`${appliance.url}/console/oidc?error=access_denied&state=y`);
  await page.getByText('The identity provider did not let you in.').waitFor();
  await page.evaluate(keep);
  await page.goto(`${appliance.url}/console/oidc?code=x&state=y`);
  await page.getByText('This login was not begun here, or is over: begin it again.').waitFor();
  await page.getByRole('link', { name: 'Go to the login page' }).click();
  await page.getByRole('button', { name: 'Log in' }).waitFor();
  assert.deepEqual(troubles, []);
});
