// A keyring of X25519 becomes hybrid in the console: the private key is saved first, and no failure on the way loses
// one.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { privateKeyPem, publicKeyOf, readPrivateKeys, unwrapRingKey } from '../../src/client/ring-keys.ts';
import { servedAppliance } from './appliance.ts';
import { password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'keyring.list': true, 'keyring.*.read': true } });
const half = { 'keyring.list': true, 'keyring.*.read': true, 'keyring.*.config': true };
await appliance.addUser('eve', password, { flags: half });

const ringOf = async (name: string) => (await call('GET', `/ks/keyrings/${name}`)).body.ring;
const x25519 = async (name: string): Promise<string> =>
  (await call('POST', '/ks/keyrings', { name, kem: 'x25519' })).body.privateKey;

async function saved(page: Page): Promise<{ name: string; text: string }> {
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save as a file' }).click();
  const download = await downloading;
  return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
}

const begin = 'Upgrade to hybrid…';

test('what was encrypted before and after an upgrade opens with the file that was saved before it', async () => {
  const earlier = await x25519('ledger');
  const other = await x25519('other');
  const before = await ringOf('ledger');
  const old = (await call('POST', '/ks/encrypt', { ringname: 'ledger' })).body;
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/ledger');
  const sent: string[] = [];
  page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`));
  await page.getByRole('button', { name: begin }).click();
  await page.getByText('What was encrypted before needs the earlier private key as well').waitFor();
  await looksRight(page, 'upgrade');
  await page.getByLabel('Or paste it').fill('no key');
  await page.getByRole('button', { name: 'Make the private key' }).click();
  await page.getByText('This is not the private key of a keyring').waitFor();
  await page.getByLabel('Or paste it').fill(other);
  await page.getByRole('button', { name: 'Make the private key' }).click();
  await page.getByText('This is not the private key of ledger.').waitFor();
  await page.getByLabel('Or paste it').fill(earlier);
  await page.getByRole('button', { name: 'Make the private key' }).click();

  const dialog = page.getByRole('dialog', { name: 'Save the private key now' });
  await dialog.getByText('Nothing has changed yet.').waitFor();
  await looksRight(page, 'upgrade-save');
  for (let i = 0; i < 3; i++) await page.keyboard.press('Escape');
  await dialog.getByRole('button', { name: 'Upgrade the keyring' }).click();
  await dialog.getByText('Tick this first.').waitFor();
  await dialog.getByRole('checkbox').check();
  await dialog.getByRole('button', { name: 'Upgrade the keyring' }).click();
  await dialog.getByText('Copy the key or save it as a file first.').waitFor();
  assert.deepEqual(await ringOf('ledger'), before);
  const { name, text } = await saved(page);
  assert.equal(name, 'ledger.key');
  assert.ok(text.startsWith(privateKeyPem(earlier)));
  const [first, hybrid] = readPrivateKeys(text, 'it');
  assert.ok(first && hybrid);
  assert.deepEqual([publicKeyOf(first), hybrid.kem], [before.publicKey, 'mlkem768-x25519']);

  // If a request fails, the key stays visible, and the request can be repeated.
  for (const path of ['/ks/config', '/ks/rotate']) {
    await page.route(`**${path}`, (route) => route.abort());
    await dialog.getByRole('button', { name: 'Upgrade the keyring' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'cannot be reached' }).waitFor();
    assert.equal(await dialog.getByLabel('Private key of ledger', { exact: true }).inputValue(), text);
    await page.unroute(`**${path}`);
  }
  const between = await ringOf('ledger');
  assert.deepEqual([between.publicKey, between.activeKey], [publicKeyOf(hybrid), before.activeKey]);
  await dialog.getByRole('button', { name: 'Upgrade the keyring' }).click();
  await page.getByRole('status').filter({ hasText: 'The keyring is hybrid now' }).waitFor();
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: begin }).waitFor({ state: 'detached' });
  const after = await ringOf('ledger');
  assert.deepEqual([after.kem, after.publicKey], ['mlkem768-x25519', publicKeyOf(hybrid)]);
  const keys = page.getByRole('table', { name: 'Keys of ledger' });
  await keys.getByRole('row').filter({ hasText: before.activeKey }).getByText('X25519').waitFor();
  await keys.getByRole('row').filter({ hasText: after.activeKey }).getByText('Hybrid').waitFor();

  const fresh = (await call('POST', '/ks/encrypt', { ringname: 'ledger' })).body;
  for (const { key, header } of [old, fresh]) {
    const again = (await call('POST', '/ks/decrypt', { header })).body;
    assert.deepEqual(
      await unwrapRingKey({ privateKey: text, key: again.key }),
      await unwrapRingKey({ privateKey: text, key }),
    );
  }
  for (const { bytes } of [first, hybrid]) {
    for (const form of ['base64', 'base64url', 'hex'] as const) {
      assert.ok(!sent.join('\n').includes(Buffer.from(bytes).toString(form)), 'a private key crossed the network');
    }
  }
  assert.deepEqual(troubles, []);
});

test('without the earlier private key the new one has a name of its own, and leaving changes nothing', async () => {
  await x25519('alone');
  const before = await ringOf('alone');
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/alone');
  await page.getByRole('button', { name: begin }).click();
  await page.getByRole('button', { name: 'Make the private key' }).click();
  await page.getByText('do not replace the file with it').waitFor();
  const { name, text } = await saved(page);
  assert.equal(name, 'alone.hybrid.key');
  assert.equal(readPrivateKeys(text, 'it').length, 1);
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.deepEqual(await ringOf('alone'), before);

  // A pair that another person configured meanwhile is not replaced.
  await page.getByRole('button', { name: begin }).click();
  await page.getByRole('button', { name: 'Make the private key' }).click();
  await saved(page);
  await page.getByRole('dialog').getByRole('checkbox').check();
  const publicKey = Buffer.alloc(32, 9).toString('base64');
  await call('PUT', '/ks/config', { ringname: 'alone', config: { publicKey } });
  const theirs = await ringOf('alone');
  await page.getByRole('button', { name: 'Upgrade the keyring' }).click();
  await page.getByRole('alert').filter({ hasText: 'Somebody else has changed its key pair in the meantime' }).waitFor();
  assert.deepEqual(await ringOf('alone'), theirs);
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('link', { name: 'About' }).first().click();
  await page.getByRole('heading', { name: 'About', level: 1 }).waitFor();
  assert.deepEqual(troubles, []);
});

test('an upgrade that was cut off goes on with the file that has both', async () => {
  const earlier = await x25519('again');
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/again');
  await page.getByRole('button', { name: begin }).click();
  await page.getByLabel('Or paste it').fill(earlier);
  await page.getByRole('button', { name: 'Make the private key' }).click();
  const first = await saved(page);
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: begin }).click();
  const buffer = Buffer.from(first.text);
  await page.getByLabel('From a file').setInputFiles({ name: 'again.key', mimeType: 'text/plain', buffer });
  await page.getByRole('button', { name: 'Make the private key' }).click();
  assert.deepEqual(await saved(page), first);
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();

  // Another program configured only the public key: the page says what is left to do.
  const publicKey = publicKeyOf(readPrivateKeys(first.text, 'it').at(-1) ?? assert.fail());
  await call('PUT', '/ks/config', { ringname: 'again', config: { publicKey } });
  await page.reload();
  await page.getByText('The active key is still wrapped to the earlier public key.').waitFor();
  await page.getByRole('button', { name: 'Rotate…' }).click();
  await page.getByRole('button', { name: 'Rotate the keyring' }).click();
  await page.getByText('The active key is still wrapped').waitFor({ state: 'detached' });
  const { activeKey } = await ringOf('again');
  assert.equal((await call('GET', `/ks/keyrings/again/keys/${activeKey}`)).body.publicKey, publicKey);
  assert.deepEqual(troubles, []);
});

test('only who may change and rotate a keyring of X25519 is shown the upgrade', async () => {
  await x25519('plain');
  await call('POST', '/ks/keyrings', { name: 'hybrid', kem: 'mlkem768-x25519' });
  for (const [user, ring] of [
    ['bob', 'plain'],
    ['eve', 'plain'],
    ['ada', 'hybrid'],
  ] as const) {
    const { page, troubles } = await visitAs(appliance, user, `/console/keyrings/${ring}`);
    await page
      .getByRole('table', { name: `Keys of ${ring}` })
      .getByText('active')
      .waitFor();
    assert.equal(await page.getByRole('button', { name: begin }).count(), 0, user);
    assert.deepEqual(troubles, []);
  }
});
