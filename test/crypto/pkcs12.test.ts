// PKCS #12, read by the platform's OpenSSL: both ends of a TLS connection have nothing else.
import assert from 'node:assert/strict';
import { duplexPair } from 'node:stream';
import { test } from 'node:test';
import { connect, createSecureContext, TLSSocket } from 'node:tls';
import { pemBlock } from '../../src/crypto/pem.ts';
import { toPkcs12 } from '../../src/crypto/pkcs12.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { TestCertificate } from '../support/client-certificates.ts';

const password = 'a password of printable letters';

async function fileOf() {
  const authority = await TestCertificate.authority(Date.now());
  const leaf = await authority.signs();
  const privateKey = pemBlock(await leaf.keyPem(), 'PRIVATE KEY') ?? assert.fail('no key');
  const parts = { certificate: leaf.der, privateKey, authority: authority.der, name: 'san é', password };
  return { authority, leaf, file: Buffer.from(toPkcs12(parts, systemRandom)) };
}

test('a file is opened with its password, and has the certificate, its key and the authority', async () => {
  const { authority, leaf, file } = await fileOf();
  const [near, far] = duplexPair();
  const server = new TLSSocket(far, { isServer: true, pfx: file, passphrase: password, rejectUnauthorized: false });
  server.on('error', () => {});
  const client = connect({ socket: near, rejectUnauthorized: false });
  await new Promise((resolve, reject) => client.once('secureConnect', resolve).once('error', reject));
  const shown = client.getPeerCertificate(true);
  assert.deepEqual(new Uint8Array(shown.raw), leaf.der);
  assert.deepEqual(new Uint8Array(shown.issuerCertificate.raw), authority.der);
  client.destroy();
  server.destroy();
});

test('another password, or an altered byte, is refused', async () => {
  const { file } = await fileOf();
  createSecureContext({ pfx: file, passphrase: password });
  assert.throws(() => createSecureContext({ pfx: file, passphrase: `${password}.` }), /mac verify failure/);
  const altered = Buffer.from(file);
  altered[file.length >> 1] = (altered[file.length >> 1] ?? 0) ^ 1;
  assert.throws(() => createSecureContext({ pfx: altered, passphrase: password }));
});

test('two files of the same certificate have nothing in common but that', async () => {
  const authority = await TestCertificate.authority(Date.now());
  const privateKey = pemBlock(await authority.keyPem(), 'PRIVATE KEY') ?? assert.fail('no key');
  const parts = { certificate: authority.der, privateKey, authority: authority.der, name: 'san', password };
  const [one, two] = [toPkcs12(parts, systemRandom), toPkcs12(parts, systemRandom)];
  assert.equal(one.length, two.length);
  assert.notDeepEqual(one, two);
  const text = Buffer.from(one).toString('latin1');
  assert.ok(!text.includes(Buffer.from(privateKey.subarray(-32)).toString('latin1')));
});
