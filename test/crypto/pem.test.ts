// PEM with text outside its blocks, as RFC 7468 allows it and as tools write it, in every reader of keys: the block
// with the wanted label is found in any position, and two of them are refused.
import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import {
  generateRingKey,
  publicKeyBytes,
  publicKeyOf,
  publicKeySpki,
  readPrivateKeys,
} from '../../src/client/ring-keys.ts';
import { givenPair } from '../../src/core/rings.ts';
import { fromBase64, toBase64 } from '../../src/crypto/bytes.ts';
import { parseHybridKey, parseSeed } from '../../src/crypto/hybrid-keys.ts';
import { isPem, pemBlock, pemBlocks } from '../../src/crypto/pem.ts';
import { parsePrivateKey, parsePublicKey } from '../../src/crypto/x25519.ts';
import type { Kem } from '../../src/model/kems.ts';

const block = (label: string, body: string): string =>
  `-----BEGIN ${label}-----\n${(body.match(/.{1,64}/g) ?? []).join('\n')}\n-----END ${label}-----\n`;

const other = generateKeyPairSync('ed25519');
const otherPrivate = String(other.privateKey.export({ format: 'pem', type: 'pkcs8' }));
const certificate = block('CERTIFICATE', toBase64(new Uint8Array(300)));

/** Text that tools and people put around a block. */
const around: Readonly<Record<string, (pem: string, beside: string) => string>> = {
  nothing: (pem) => pem,
  'blank lines': (pem) => `\n\n  \n${pem}\n\n`,
  'lines of Windows': (pem) => `comment\n${pem}`.replaceAll('\n', '\r\n'),
  'a comment before': (pem) => `# the key of payroll, made by Kate\n${pem}`,
  'a comment after': (pem) => `${pem}# keep it in the safe\n`,
  'Bag Attributes': (pem) =>
    `Bag Attributes\n    friendlyName: payroll\n    localKeyID: 54 69 6D 65\nKey Attributes: <No Attributes>\n${pem}`,
  'openssl -text': (pem) => `${pem}X25519 Private-Key:\npriv:\n    70:c1:9e:\n    a0:11\npub:\n    15:22\n`,
  'an outline': (pem) => `--- key ---\n- one\n${pem}-- end --\n`,
  'a byte order mark': (pem) => `\ufeff${pem}`,
  'a certificate before': (pem) => certificate + pem,
  'a certificate after': (pem) => pem + certificate,
  'the other half before': (pem, beside) => beside + pem,
  'the other half after': (pem, beside) => pem + beside,
};

for (const kem of ['x25519', 'mlkem768-x25519'] as const satisfies readonly Kem[]) {
  const { privateKey, publicKey } = generateRingKey(kem);
  const publicPem = block('PUBLIC KEY', publicKey);
  const raw = readPrivateKeys(privateKey, 'it')[0]?.bytes ?? assert.fail();

  test(`${kem}: a key is found whatever stands around its block`, () => {
    for (const [what, put] of Object.entries(around)) {
      const both = put(privateKey, publicPem);
      const [read, ...more] = readPrivateKeys(both, 'it');
      assert.deepEqual([read?.kem, more], [kem, []], what);
      assert.equal(publicKeyOf(read ?? assert.fail()), publicKey, what);
      assert.deepEqual(readPrivateKeys(Buffer.from(both), 'it')[0]?.bytes, raw, what);
      assert.deepEqual((kem === 'x25519' ? parsePrivateKey : parseSeed)(both), raw, what);
      const named = put(publicPem, privateKey);
      assert.deepEqual((kem === 'x25519' ? parsePublicKey : parseHybridKey)(named), publicKeyBytes(publicKey), what);
      assert.equal(toBase64(publicKeySpki(named) ?? assert.fail(what)), publicKey, what);
    }
    if (kem === 'x25519')
      assert.equal(createPrivateKey(around['Bag Attributes']?.(privateKey, '') ?? '').type, 'private');
  });

  test(`${kem}: two public keys are ambiguous, and one that is broken is none`, () => {
    const two = { message: 'expected one PEM block "PUBLIC KEY", found 2' };
    assert.throws(() => publicKeyBytes(publicPem + block('PUBLIC KEY', generateRingKey(kem).publicKey)), two);
    assert.throws(() => publicKeyBytes(publicPem + publicPem), two);
    assert.throws(() => givenPair(publicPem + publicPem), two);
    for (const broken of [
      publicPem.replace('-----END PUBLIC KEY-----', ''),
      publicPem.replace('-----END PUBLIC KEY-----', '-----END PRIVATE KEY-----'),
      publicPem.replace(/A/, '!'),
      publicPem.replace('-----BEGIN PUBLIC', '-----BEGIN RSA PUBLIC'),
    ]) {
      assert.equal(publicKeyBytes(broken), undefined, broken);
    }
  });

  test(`${kem}: private keys of a ring may be several, and each must be one`, () => {
    const older = generateRingKey('x25519').privateKey;
    const read = readPrivateKeys(`the older one\n${older}and the newer one\n${privateKey}`, 'it');
    assert.deepEqual(
      read.map((key) => key.kem),
      ['x25519', kem],
    );
    for (const with_ of [otherPrivate, privateKey.replace(/\n.{5}/, '\n'), privateKey.replace(/-----END.*\n/, '')]) {
      assert.throws(() => readPrivateKeys(with_ + older, 'it'), /it holds no private key/);
      assert.throws(() => readPrivateKeys(older + with_, 'it'), /it holds no private key/);
    }
    assert.throws(() => (kem === 'x25519' ? parsePrivateKey : parseSeed)(privateKey + privateKey), /found 2/);
  });

  test(`${kem}: who sends a private key along is told, and no ring is made of it`, () => {
    assert.deepEqual(givenPair(`a comment\n${publicPem}`), { kem, publicKey });
    assert.throws(() => givenPair(publicPem + privateKey), /publicKey: there is a private key beside it/);
  });
}

test('a block is one of its label alone; its headers and its damage are not read over', () => {
  const encrypted = `-----BEGIN PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\nAAAA\n-----END PRIVATE KEY-----\n`;
  assert.deepEqual(pemBlocks(encrypted, 'PRIVATE KEY'), [undefined]);
  assert.deepEqual(pemBlocks(certificate, 'PRIVATE KEY'), []);
  assert.equal(pemBlock(block('ENCRYPTED PRIVATE KEY', 'AAAA'), 'PRIVATE KEY'), undefined);
  assert.deepEqual(pemBlock(block('PRIVATE KEY', 'AAAA'), 'PRIVATE KEY'), fromBase64('AAAA'));
  assert.deepEqual(['AAAA', '---- BEGIN', '{"kty":"AKP"}', encrypted].map(isPem), [false, false, false, true]);
});
