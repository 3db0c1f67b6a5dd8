// Objects of KMIP in the console: what clients made over TLS is listed with its type, state and client, and with who
// got it last.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { byteString, encodeItem, enumeration, structure } from '../../src/dialects/kmip/ttlv.ts';
import { type Asked, idIn, requestOf, resultsOf, template, uid } from '../support/kmip-client.ts';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance({}, { kmip: true });
const { call, kmip } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;
const looks = [390, 820, 1280].flatMap((width) => (['light', 'dark'] as const).map((scheme) => ({ scheme, width })));

interface Shown {
  readonly cert: string;
  readonly key: string;
}

async function client(name: string, flags: object): Promise<Shown> {
  const { body } = await call('POST', '/auth/apikey', { accountId: accounts[0].id, name, flags });
  const proof = await call('POST', `/auth/apikeys/${body.keyid}/proofs`, { kind: 'certificate', issue: true });
  return { cert: proof.body.certificate, key: proof.body.privateKey };
}

/** Sends one operation, in a connection of its own, and returns the payload of its answer. */
async function did(shown: Shown, asked: Asked) {
  const { port, ca } = kmip ?? assert.fail('no listener of KMIP');
  const socket = connect({ port, host: '127.0.0.1', ca, ...shown });
  socket.write(encodeItem(requestOf([asked])));
  let answer = Buffer.alloc(0);
  for await (const chunk of socket) {
    answer = Buffer.concat([answer, chunk]);
    if (answer.length >= 8 && answer.length >= 8 + answer.readUInt32BE(4)) break;
  }
  socket.destroy();
  const [result] = resultsOf(answer);
  assert.ok(result);
  assert.equal(result.status, 0, `${result.message}`);
  return result.payload;
}

const made = (name: string): Asked => ({
  operation: 'Create',
  fields: [
    enumeration(tags.objectType, 2),
    template(
      ['Name', name],
      ['Cryptographic Algorithm', 3],
      ['Cryptographic Length', 256],
      ['Cryptographic Usage Mask', 12],
    ),
  ],
});

test('the console lists objects of KMIP, their states, and who got what', async () => {
  const storage = await client('storage', { 'kmip.*': true });
  const reader = await client('reader', { 'key.*.read': true, 'key.*.export': true });
  const volume = idIn(await did(storage, made('volume-7')));
  const gone = idIn(await did(storage, made('old-volume')));
  const secret = structure(
    tags.secretData,
    enumeration(tags.secretDataType, 1),
    structure(
      tags.keyBlock,
      enumeration(tags.keyFormatType, 2),
      structure(tags.keyValue, byteString(tags.keyMaterial, new Uint8Array(20).fill(7))),
    ),
  );
  const fields = [enumeration(tags.objectType, 7), template(['Name', 'passphrase']), secret];
  await did(storage, { operation: 'Register', fields });
  await did(storage, { operation: 'Activate', fields: [uid(volume)] });
  await did(storage, { operation: 'Destroy', fields: [uid(gone)] });
  await did(storage, { operation: 'Get', fields: [uid(volume)] });
  await did(reader, { operation: 'Get', fields: [uid(volume)] });
  await call('POST', '/managed-keys', { name: 'native' });

  const { page, troubles } = await visitAs(appliance, 'ada', '/console', { width: 1280 });
  await page.getByRole('link', { name: 'KMIP objects' }).first().click();
  await page.getByRole('heading', { name: 'KMIP objects', level: 1 }).waitFor();
  const table = page.getByRole('table', { name: 'KMIP objects' });
  const row = (name: string) => table.getByRole('row').filter({ hasText: name });
  for (const text of ['symmetric key', 'aes256-gcm', 'active', 'API key storage', 'API key reader']) {
    await row('volume-7').getByText(text, { exact: true }).waitFor();
  }
  for (const text of ['secret data', 'not active yet', 'never']) {
    await row('passphrase').getByText(text, { exact: true }).waitFor();
  }
  await row('old-volume').getByText('pending deletion').waitFor();
  assert.equal(await table.getByRole('row').count(), 4, 'no key that was made otherwise');
  await looksRight(page, 'kmip', looks);

  await page.getByRole('searchbox').fill('reader');
  await row('passphrase').waitFor({ state: 'detached' });
  await row('volume-7').getByRole('link', { name: 'volume-7' }).click();
  await page.getByText('symmetric key “volume-7” of').waitFor();
  await goTo(page, '/console/kmip');
  await page.getByRole('button', { name: 'Never fetched' }).click();
  await row('volume-7').waitFor({ state: 'detached' });
  await row('passphrase').waitFor();
  assert.deepEqual(troubles, []);
});
