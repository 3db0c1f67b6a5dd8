// The client library in a browser: a page opens what Node encrypted, with the programs from the documentation; and a
// page does everything itself, from making a ring to noticing a damaged file.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { buildClient, clientName } from '../../build/client.ts';
import { programs } from '../docs/programs.ts';
import { visit } from '../support/browser.ts';
import { servedAppliance } from './appliance.ts';

const dir = mkdtempSync(join(tmpdir(), 'kms-sdk-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const library = join(dir, 'node_modules', clientName);
await buildClient(library);
const appliance = await servedAppliance();
const programsIn = (page: string) => programs(readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8'));
const [inNode = ''] = programsIn('README.md');
const inPage = programsIn('docs/sdk.md').find((program) => program.includes('document.')) ?? '';
const salaries = `42 people, 42 salaries\n${'é'.repeat(200_000)}`;

/** An API key that may do anything. */
async function apiKey(): Promise<string> {
  const account = await appliance.call('POST', '/auth/accounts', { uid: `it-${randomBytes(4).toString('hex')}` });
  const { body } = await appliance.call('POST', '/auth/apikey', { accountId: account.body.id, flags: { '*': true } });
  return body.key;
}

/** A page of the appliance's own origin with the library beside it. */
async function pageWith(body: string): Promise<{ page: Page; troubles: readonly string[] }> {
  const { page, troubles } = await visit('about:blank');
  const script = readFileSync(join(library, 'index.js'), 'utf8');
  await page.route(`${appliance.url}/app/kms-client/index.js`, (route) =>
    route.fulfill({ contentType: 'text/javascript', body: script }),
  );
  await page.route(`${appliance.url}/app/`, (route) =>
    route.fulfill({ contentType: 'text/html', body: `<!doctype html><meta charset="utf-8">${body}` }),
  );
  await page.goto(`${appliance.url}/app/`);
  return { page, troubles };
}

test('what the program in the README encrypts in Node, that in docs/sdk.md decrypts in the browser', async () => {
  const key = await apiKey();
  const { body } = await appliance.call('POST', '/ks/keyrings', { name: 'payroll' });
  const pem = `-----BEGIN PRIVATE KEY-----\n${body.privateKey}\n-----END PRIVATE KEY-----\n`;
  writeFileSync(join(dir, 'payroll.pem'), pem);
  writeFileSync(join(dir, 'salaries.txt'), salaries);
  writeFileSync(join(dir, 'encrypt.mjs'), inNode.replace('http://127.0.0.1:8080', appliance.url));
  await promisify(execFile)(process.execPath, ['encrypt.mjs'], { cwd: dir, env: { KMS_API_KEY: key } });
  assert.ok(existsSync(join(dir, 'salaries.kms')));

  const program = `${inPage.replace(/^(import .*)$/m, '$1\nbutton.onclick = async () => {')}};`;
  const { page, troubles } = await pageWith(`
    <label>File <input type="file"></label> <label>Private key <input type="file"></label>
    <label>API key <input type="password"></label> <button id="button">Decrypt</button> <output></output>
    <script type="module">${program}</script>`);
  await page.getByLabel('File').setInputFiles(join(dir, 'salaries.kms'));
  await page.getByLabel('Private key').setInputFiles(join(dir, 'payroll.pem'));
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Decrypt' }).click();
  await page.getByText('42 people').waitFor();
  assert.equal(await page.locator('output').textContent(), salaries);
  assert.deepEqual(troubles, []);
});

test('a page makes a ring whose private key stays with it, encrypts, decrypts, and is told of damage', async () => {
  const key = await apiKey();
  const { page, troubles } = await pageWith('');
  const sent: string[] = [];
  page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`));
  const told = await page.evaluate(async (apiKey) => {
    // In a variable, so that the compiler does not resolve it.
    const where = './kms-client/index.js';
    const kms: typeof import('../../src/client/sdk.ts') = await import(where);
    const client = kms.createClient({ baseUrl: location.origin, apiKey });
    const { privateKey, publicKey } = kms.generateRingKey();
    const { ring } = await client.createKeyring({ name: 'bonuses', publicKey });
    const encryption = kms.encryptStream({ client, ring: 'bonuses', privateKey, asset: { data: { year: 2026 } } });
    const message = new Uint8Array(3_000_000).map((_, at) => at * at);
    const file = new Uint8Array(await new Response(new Blob([message]).stream().pipeThrough(encryption)).arrayBuffer());
    const decryption = kms.decryptStream({ client, privateKey });
    const back = new Uint8Array(await new Response(new Blob([file]).stream().pipeThrough(decryption)).arrayBuffer());
    const code = async (call: Promise<unknown>): Promise<string> =>
      call.then(
        () => 'none',
        (error) => (error instanceof kms.KmsError ? `${error.code} ${kms.faultOf(error)}` : error.name),
      );
    const rings: string[] = [];
    for await (const each of kms.items(client.listKeyrings, { limit: 1 })) rings.push(each.name);
    return {
      privateKey,
      rings,
      isOwn: kms.readPrivateKeys(privateKey, 'it').every((each) => kms.publicKeyOf(each) === ring.publicKey),
      isSame: back.length === message.length && back.every((byte, at) => byte === message[at]),
      asset: (await decryption.answer).asset,
      cut: await code(kms.decryptBytes(file.subarray(0, 1_000_000), { client, privateKey })),
      altered: await code(kms.decryptBytes(file.with(2_000_000, (file[2_000_000] ?? 0) ^ 1), { client, privateKey })),
      other: await code(kms.decryptBytes(file, { client, privateKey: kms.generateRingKey().privateKey })),
      missing: await code(client.getKeyring({ ringname: 'nothing' })),
      ended: await code(client.listKeyrings({}, { signal: AbortSignal.abort() })),
    };
  }, key);
  const { privateKey, asset, ...rest } = told;
  assert.deepEqual(rest, {
    rings: rest.rings,
    isOwn: true,
    isSame: true,
    cut: 'corrupt altered',
    altered: 'corrupt altered',
    other: 'invalid undefined',
    missing: 'not-found undefined',
    ended: 'AbortError',
  });
  assert.deepEqual([asset?.valid, asset?.data], [true, { year: 2026 }]);
  assert.ok(rest.rings.includes('bonuses'));
  const [, secret = ''] = privateKey.split('\n');
  assert.ok(secret.length === 64 && sent.length > 5);
  for (const each of sent) assert.ok(!each.includes(secret));
  assert.deepEqual(troubles, []);
});
