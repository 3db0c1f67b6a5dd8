// Files that the console encrypts to public keys, for several keyrings, and the keys that it caches within one session.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { generateRingKey, publicKeyOf, readPrivateKeys } from '../../src/client/ring-keys.ts';
import { desk } from '../cli/kms.ts';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'keyring.payroll.encrypt': true } });
await appliance.addUser('eve', password, { flags: { 'keyring.turned.encrypt': true } });
const d = await desk();
after(() => d[Symbol.asyncDispose]());
const env = { KMS_SERVER: appliance.url, KMS_API_KEY: appliance.rootKey };
for (const [name, kem] of [
  ['payroll', 'x25519'],
  ['vault', 'mlkem768-x25519'],
] as const) {
  const { privateKey } = (await call('POST', '/ks/keyrings', { name, kem })).body;
  await writeFile(d.path(`${name}.key`), privateKey, { mode: 0o600 });
}
await call('PUT', '/ks/config', { ringname: 'vault', config: { offlineDecrypt: true } });
await writeFile(d.path('letter.txt'), 'a letter');

async function fingerprint(ring: string): Promise<string> {
  const { publicKey } = (await call('GET', `/ks/keyrings/${ring}`)).body.ring;
  const hex = createHash('sha256').update(Buffer.from(publicKey, 'base64')).digest('hex');
  return (hex.match(/.{8}/g) ?? []).join(' ');
}

async function openEncrypt(page: Page): Promise<void> {
  await page.evaluate(() => Object.defineProperty(window, 'showSaveFilePicker', { value: undefined }));
  await goTo(page, '/console/about');
  await page.getByRole('heading', { name: 'About', level: 1 }).waitFor();
  await goTo(page, '/console/encrypt');
  await page.getByLabel('File', { exact: true }).setInputFiles(d.path('letter.txt'));
}

async function downloaded(page: Page, button: string): Promise<Buffer> {
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: button }).click();
  return readFile(await (await downloading).path());
}

test('a file for two keyrings needs no private key to be made, and the key of either opens it', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/keyrings/vault');
  await page.getByText(await fingerprint('vault'), { exact: true }).waitFor();
  await openEncrypt(page);
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/ks/encrypt')) sent.push(request.postData() ?? '');
  });
  await page.getByLabel('Keyring', { exact: true }).fill('Payroll');
  await page.getByLabel('Further keyrings').fill('vault, payroll');
  const shown = page.getByRole('region', { name: 'Public keys' });
  await shown
    .getByText(await fingerprint('payroll'), { exact: true })
    .first()
    .waitFor();
  await shown.getByText(await fingerprint('vault'), { exact: true }).waitFor();
  await shown.getByText('files open offline', { exact: true }).waitFor();
  assert.equal(await shown.getByText('New: this browser has not encrypted to this keyring before.').count(), 3);
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page.getByText('The keyring payroll is listed twice.').waitFor();
  await page.getByLabel('Further keyrings').fill(Array.from({ length: 20 }, (_, n) => `r${n}`).join(' '));
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page.getByText('There are 21 keyrings, but a file can have at most 20.').waitFor();
  await page.getByLabel('Further keyrings').fill('vault');
  await page.getByLabel('Attach an asset').check();
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page.getByText('An asset belongs to only one keyring.').waitFor();
  await page.getByLabel('Attach an asset').uncheck();
  await looksRight(page, 'encrypt-public');
  assert.deepEqual(sent, []);
  const file = await downloaded(page, 'Encrypt and save');
  const result = page.getByRole('region', { name: 'Result' });
  await result.getByText(await fingerprint('vault'), { exact: true }).waitFor();
  await result.getByText(await fingerprint('payroll'), { exact: true }).waitFor();
  await looksRight(page, 'encrypt-public-done');
  assert.deepEqual(
    sent.map((each) => JSON.parse(each)),
    ['Payroll', 'vault'].map((ringname) => ({ ringname, recipient: true })),
  );
  assert.equal(file[8], 2);
  await writeFile(d.path('two.kms'), file);
  for (const ring of ['payroll', 'vault']) {
    const ran = await d.kms(`decrypt --private-key ${ring}.key two.kms`, { env });
    assert.deepEqual([ran.code, ran.stdout], [0, 'a letter'], ran.stderr);
  }

  // The console shows before decrypting how the file was made.
  await goTo(page, '/console/decrypt');
  await page.getByLabel('Encrypted file').setInputFiles(d.path('two.kms'));
  const says = page.getByRole('region', { name: 'What the file says about itself' });
  for (const text of [
    'the public key: the writer cannot open it',
    '2 keyrings, each of which opens it',
    'X25519, Hybrid',
    'for 1 of them, the private key alone opens it',
    '8 bytes',
  ]) {
    await says.getByText(text, { exact: true }).waitFor();
  }
  for (const ring of ['payroll', 'vault']) {
    await page.getByLabel('From a file').setInputFiles(d.path(`${ring}.key`));
    assert.equal((await downloaded(page, 'Decrypt and save')).toString(), 'a letter');
    await page.getByRole('region', { name: 'Result' }).getByRole('link', { name: ring }).waitFor();
  }
  await looksRight(page, 'decrypt-public-done');
  await page.getByLabel('Encrypted file').setInputFiles(d.path('letter.txt'));
  await says.waitFor({ state: 'detached' });
  assert.deepEqual(troubles, []);
});

test('a public key that is not the one that was shown is refused, and nothing is saved', async () => {
  const { privateKey } = (await call('POST', '/ks/keyrings', { name: 'moved' })).body;
  const { page, troubles } = await visitAs(appliance, 'ada');
  const downloads: string[] = [];
  page.on('download', (download) => downloads.push(download.suggestedFilename()));
  await openEncrypt(page);
  await page.getByLabel('Keyring', { exact: true }).fill('moved');
  const [own] = readPrivateKeys(privateKey, 'it');
  assert.equal(publicKeyOf(own ?? assert.fail()), (await call('GET', '/ks/keyrings/moved')).body.ring.publicKey);
  await page.getByText(await fingerprint('moved'), { exact: true }).waitFor();
  const publicKey = Buffer.alloc(32, 9).toString('base64');
  await call('PUT', '/ks/config', { ringname: 'moved', config: { publicKey } });
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page
    .getByRole('alert')
    .filter({ hasText: 'the public key of moved is not the one that was shown here. What to do: ask its owner' })
    .waitFor();
  assert.deepEqual([downloads, troubles], [[], []]);
});

test('a public key that changed since the last file is said to be, and taken once its owner was asked', async () => {
  await call('POST', '/ks/keyrings', { name: 'turned' });
  for (const user of ['ada', 'eve']) {
    const { page, troubles } = await visitAs(appliance, user);
    const shown = page.getByRole('region', { name: 'Public keys' });
    const accepted = page.getByLabel('The owner of turned told me about the changed public key');
    const encrypt = page.getByRole('button', { name: 'Encrypt and save' });
    const downloads: string[] = [];
    page.on('download', (download) => downloads.push(download.suggestedFilename()));
    const open = async (): Promise<void> => {
      await openEncrypt(page);
      await page.getByLabel('Keyring', { exact: true }).fill('Turned');
    };
    await open();
    if (user === 'ada') await shown.getByText('New: this browser has not encrypted').waitFor();
    await downloaded(page, 'Encrypt and save');
    await open();
    if (user === 'ada') await shown.getByText('Known: the public key that this browser encrypted to before.').waitFor();
    await downloaded(page, 'Encrypt and save');
    assert.equal(await accepted.count(), 0);

    const { publicKey } = generateRingKey();
    assert.equal((await call('PUT', '/ks/config', { ringname: 'turned', config: { publicKey } })).status, 200);
    await open();
    if (user === 'eve') {
      // For eve, the change is known only once the service answers.
      await encrypt.click();
      await page.getByRole('alert').filter({ hasText: 'encrypted to another public key of turned before' }).waitFor();
    }
    await shown.getByText('Changed: this browser encrypted to another public key of this keyring before.').waitFor();
    await shown.getByText(await fingerprint('turned'), { exact: true }).waitFor();
    await encrypt.click();
    await page.getByText('Ask the owner first, and compare the fingerprint with the answer.').waitFor();
    assert.equal(downloads.length, 2);
    await looksRight(page, `encrypt-changed-${user}`);
    await accepted.check();
    assert.equal((await downloaded(page, 'Encrypt and save'))[8], 2);
    await open();
    if (user === 'ada') await shown.getByText('Known: the public key').waitFor();
    await downloaded(page, 'Encrypt and save');
    assert.deepEqual(troubles, []);
  }
});

test('who may list no keyrings is told the fingerprint afterwards', async () => {
  const { page, troubles } = await visitAs(appliance, 'bob');
  await openEncrypt(page);
  await page.getByLabel('Keyring', { exact: true }).fill('vault');
  await page.getByRole('button', { name: 'Encrypt and save' }).click();
  await page.getByText('You would need the flag keyring.vault.encrypt.').waitFor();
  await page.getByLabel('Keyring', { exact: true }).fill('payroll');
  assert.equal(await page.getByRole('region', { name: 'Public keys' }).count(), 0);
  assert.equal((await downloaded(page, 'Encrypt and save'))[8], 2);
  const result = page.getByRole('region', { name: 'Result' });
  await result.getByText(await fingerprint('payroll'), { exact: true }).waitFor();
  assert.deepEqual(troubles, []);
});

test('keys that were unwrapped are named again within one session, and in no other', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada');
  const sent: { path: string; body: { knownKeys?: string[] } }[] = [];
  page.on('request', (request) => {
    const path = new URL(request.url()).pathname;
    if (/^\/ks\/(en|de)crypt$/.test(path)) sent.push({ path, body: JSON.parse(request.postData() ?? '') });
  });
  const { activeKey } = (await call('GET', '/ks/keyrings/vault')).body.ring;
  const encryptOnce = async (): Promise<Buffer> => {
    await openEncrypt(page);
    await page.getByLabel('The private key of a keyring').check();
    await page.getByLabel('Keyring', { exact: true }).fill('vault');
    await page.getByLabel('From a file').setInputFiles(d.path('vault.key'));
    return downloaded(page, 'Encrypt and save');
  };
  const decryptOnce = async (file: Buffer): Promise<void> => {
    await writeFile(d.path('one.kms'), file);
    await goTo(page, '/console/decrypt');
    await page.getByLabel('Encrypted file').setInputFiles(d.path('one.kms'));
    await page.getByText('the private key', { exact: true }).waitFor();
    await page.getByLabel('From a file').setInputFiles(d.path('vault.key'));
    assert.equal((await downloaded(page, 'Decrypt and save')).toString(), 'a letter');
  };
  const named = (): unknown[] => sent.splice(0).map(({ path, body }) => [path, body.knownKeys]);

  await encryptOnce();
  await decryptOnce(await encryptOnce());
  assert.deepEqual(named(), [
    ['/ks/encrypt', undefined],
    ['/ks/encrypt', [activeKey]],
    ['/ks/decrypt', [activeKey]],
  ]);
  // The page stays the same, without a reload.
  await page.evaluate(() => Object.assign(window, { same: true }));
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('User name or e-mail address').fill('ada');
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
  await encryptOnce();
  assert.deepEqual(named(), [['/ks/encrypt', undefined]]);
  assert.ok(await page.evaluate(() => 'same' in window));
  const left = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  assert.ok(!left.includes(activeKey));
  assert.deepEqual(troubles, []);
});
