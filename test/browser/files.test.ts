// Files encrypted and decrypted in the browser: the command line opens the console's files, and the reverse; a file
// that can't be opened is reported, and nothing of it is saved.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { desk } from '../cli/kms.ts';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
const d = await desk();
after(() => d[Symbol.asyncDispose]());
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
const { key } = (await call('POST', '/auth/apikey', { accountId: accounts[0].id, flags: { '*': true } })).body;
const env = { KMS_SERVER: appliance.url, KMS_API_KEY: key };
const { privateKey } = (await call('POST', '/ks/keyrings', { name: 'payroll' })).body;
const { privateKey: otherKey } = (await call('POST', '/ks/keyrings', { name: 'other' })).body;
await writeFile(d.path('payroll.key'), privateKey, { mode: 0o600 });
await writeFile(d.path('other.key'), otherKey);
/** More than one block, and no whole number of chunks. */
const content = Buffer.from(Array.from({ length: 700_001 }, (_, index) => (index * 31 + (index >> 8)) & 255));
await writeFile(d.path('letter.txt'), content);

/** Simulates a browser without the file picker API. */
async function withoutPicker(page: Page): Promise<void> {
  await page.evaluate(() => Object.defineProperty(window, 'showSaveFilePicker', { value: undefined }));
}

async function downloaded(page: Page, button: string): Promise<{ name: string; content: Buffer }> {
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: button }).click();
  const download = await downloading;
  return { name: download.suggestedFilename(), content: await readFile(await download.path()) };
}

async function fillDecrypt(page: Page, file: string, keyFile = 'payroll.key'): Promise<void> {
  await goTo(page, '/console/decrypt');
  await page.getByRole('heading', { name: 'Decrypt a file', level: 1 }).waitFor();
  await page.getByLabel('Encrypted file').setInputFiles(d.path(file));
  await page.getByLabel('From a file').setInputFiles(d.path(keyFile));
}

test('a file encrypted in the browser opens with the command line, asset and all', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/encrypt?ring=payroll');
  await withoutPicker(page);
  await goTo(page, '/console/about');
  await page.getByRole('heading', { name: 'About', level: 1 }).waitFor();
  await looksRight(page, 'about');
  await goTo(page, '/console/encrypt?ring=payroll');
  await page.getByText('This browser does not let pages write').waitFor();
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page.getByText('This is required.').waitFor();
  await page.getByLabel('File', { exact: true }).setInputFiles(d.path('letter.txt'));
  await page.getByLabel('The private key of a keyring').check();
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page.getByText('Choose the file with the private key, or paste the key.').waitFor();
  await page.getByLabel('Or paste it').fill('not a key');
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page.getByText('This is not the private key of a keyring').waitFor();
  await page.getByLabel('Or paste it').fill(privateKey);
  await page.getByLabel('Attach an asset').check();
  await page.getByLabel('Data of the asset').fill('{"name": "Letter"}');
  await looksRight(page, 'encrypt');
  const { name, content: encrypted } = await downloaded(page, 'Encrypt and save');
  assert.equal(name, 'letter.txt.kms');
  await page.getByText('Saved as letter.txt.kms').first().waitFor();
  await looksRight(page, 'encrypt-done');
  const assetId = await page.getByRole('link', { name: /^asset_/ }).textContent();
  assert.deepEqual((await call('GET', `/assets/${assetId}`)).body.data, { name: 'Letter' });

  await writeFile(d.path('browser.kms'), encrypted);
  const ran = await d.kms('decrypt --private-key payroll.key browser.kms', { env });
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(ran.bytes.equals(content));
  assert.match(ran.stderr, /is valid/);
  assert.deepEqual(troubles, []);

  // The key was never sent, nor stored anywhere that outlives the page.
  const left = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href]));
  assert.ok(!left.includes(privateKey));
});

test('a file of the command line opens in the browser, which says what became of its asset', async () => {
  const made = await d.json<{ asset: { id: string } }>(
    [
      'encrypt',
      '--ring',
      'payroll',
      '--private-key',
      'payroll.key',
      '--asset-data',
      '{"case":17}',
      '--json',
      '-o',
      'cli.kms',
      'letter.txt',
    ],
    { env },
  );
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/decrypt');
  await withoutPicker(page);
  await fillDecrypt(page, 'cli.kms');
  const { name, content: decrypted } = await downloaded(page, 'Decrypt and save');
  assert.equal(name, 'cli');
  assert.ok(decrypted.equals(content));
  await page.getByText('valid', { exact: true }).waitFor();
  await page.getByText('"case": 17').waitFor();
  await looksRight(page, 'decrypt-done');

  assert.equal((await call('DELETE', `/assets/${made.asset.id}`)).status, 200);
  await goTo(page, '/console/about');
  await fillDecrypt(page, 'cli.kms');
  await page.getByRole('button', { name: 'Decrypt and save' }).click();
  await page.getByText(/^Nothing was decrypted: .*Nothing was saved\.$/).waitFor();
  await looksRight(page, 'decrypt-refused');
  await page.getByLabel('Decrypt even if').check();
  assert.ok((await downloaded(page, 'Decrypt and save')).content.equals(content));
  await page.getByText('not valid', { exact: true }).waitFor();
  assert.deepEqual(troubles, []);
});

test('what cannot be opened is told, and nothing is saved', async () => {
  const plain = ['encrypt', '--ring', 'payroll', '--private-key', 'payroll.key', '-o', 'plain.kms', 'letter.txt'];
  assert.equal((await d.kms(plain, { env })).code, 0);
  const whole = await readFile(d.path('plain.kms'));
  const altered = Buffer.from(whole);
  altered[whole.length - 100] = (altered[whole.length - 100] ?? 0) ^ 1;
  await writeFile(d.path('altered.kms'), altered);
  await writeFile(d.path('cut.kms'), whole.subarray(0, whole.length - 20_000));
  const cases: readonly (readonly [file: string, key: string, told: RegExp])[] = [
    ['altered.kms', 'payroll.key', /a part of it does not verify/],
    ['cut.kms', 'payroll.key', /was altered or cut/],
    ['letter.txt', 'payroll.key', /not a kms file/],
    ['plain.kms', 'other.key', /it is not the private key of its ring/],
  ];
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/decrypt');
  await withoutPicker(page);
  const downloads: string[] = [];
  page.on('download', (download) => downloads.push(download.suggestedFilename()));
  for (const [file, keyFile, told] of cases) {
    await goTo(page, '/console/about');
    await fillDecrypt(page, file, keyFile);
    await page.getByRole('button', { name: 'Decrypt and save' }).click();
    await page.getByText(told).waitFor();
    await page.getByText('Nothing was saved.').waitFor();
  }
  assert.deepEqual([downloads, troubles], [[], []]);
});

test('where the browser lets it, the file is written piece by piece', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/encrypt?ring=payroll');
  // The browser's dialog can't be driven from here: this stands in for it and returns a file of the page's own.
  await page.evaluate(() => {
    const value = async ({ suggestedName }: { suggestedName: string }) =>
      (await navigator.storage.getDirectory()).getFileHandle(suggestedName, { create: true });
    Object.defineProperty(window, 'showSaveFilePicker', { value });
  });
  await goTo(page, '/console/about');
  await goTo(page, '/console/encrypt?ring=payroll');
  await page.getByLabel('File', { exact: true }).setInputFiles(d.path('letter.txt'));
  await page.getByLabel('The private key of a keyring').check();
  await page.getByLabel('From a file').setInputFiles(d.path('payroll.key'));
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page.getByText('Saved as letter.txt.kms.').first().waitFor();
  const written = await page.evaluate(async () => {
    const handle = await (await navigator.storage.getDirectory()).getFileHandle('letter.txt.kms');
    return [...new Uint8Array(await (await handle.getFile()).arrayBuffer())];
  });
  const ran = await d.kms('decrypt --private-key payroll.key', { env, stdin: Uint8Array.from(written) });
  assert.ok(ran.bytes.equals(content), ran.stderr);

  assert.deepEqual(troubles, []);
});
