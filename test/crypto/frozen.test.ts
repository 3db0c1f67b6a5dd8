// Texts of format version 1, made once and kept: they must stay readable, and the same bytes must produce them again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeHeader, encodeHeader, inspectHeader } from '../../src/crypto/header.ts';
import { openKeyHash, type SealingKeys, sealKeyHash } from '../../src/crypto/key-hash.ts';
import { unwrapRingKey, wrapRingKey } from '../../src/crypto/ring-key.ts';
import { hashSecret, isWellFormedApiKey, newApiKeySecret } from '../../src/crypto/secrets.ts';
import { parsePrivateKey, parsePublicKey, publicFromPrivate } from '../../src/crypto/x25519.ts';
import { KmsError } from '../../src/errors.ts';
import { hex, vectorsOf } from '../support/vectors.ts';

interface Frozen {
  readonly epoch: number;
  readonly hashKey: string;
  readonly headerKey: string;
  readonly ringId: string;
  readonly keyId: string;
  readonly hash: string;
  readonly header: string;
  readonly asset: { readonly id: string; readonly version: number; readonly signature: string };
  readonly headerWithAsset: string;
  readonly apiKey: string;
  readonly apiKeyHash: string;
  readonly privateKey: string;
  readonly publicKey: string;
  readonly inputKey: string;
  readonly wrappedKs: { readonly wrapped: string; readonly iv: string };
  readonly wrappedAsym: { readonly wrapped: string; readonly iv: string };
}

const frozen: Frozen = vectorsOf('formats-v1');
const counted =
  (first: number) =>
  (length: number): Uint8Array =>
    Uint8Array.from({ length }, (_, i) => (first + i) & 0xff);

const secrets = { hash: hex(frozen.hashKey), header: hex(frozen.headerKey) };
const keys: SealingKeys = {
  epoch: frozen.epoch,
  key(label, epoch = frozen.epoch) {
    if (epoch !== frozen.epoch) throw new KmsError('not-found', 'no such epoch');
    return secrets[label];
  },
};
const asset = { ...frozen.asset, signature: hex(frozen.asset.signature) };

const sealed = () => sealKeyHash(keys, frozen.ringId, frozen.keyId, counted(0x80));

test('hash', () => {
  const { ringId, keyId } = frozen;
  assert.deepEqual(openKeyHash(keys, frozen.hash), { ringId, keyId });
  assert.equal(sealed().hash, frozen.hash);
});

test('headers', () => {
  const { hash, ringId, keyId } = frozen;
  const base = { version: 1, isRecipient: false, isOffline: false, reference: { ringId, keyId }, intact: true };
  assert.deepEqual(decodeHeader(keys, frozen.header), { ...base, hasAsset: false });
  assert.equal(inspectHeader(frozen.header)?.hash, hash);
  assert.equal(encodeHeader(keys, sealed()), frozen.header);
  const withAsset = { ...base, hasAsset: true, asset: { ...asset, intact: true } };
  assert.deepEqual(decodeHeader(keys, frozen.headerWithAsset), withAsset);
  assert.equal(inspectHeader(frozen.headerWithAsset)?.hash, hash);
  assert.equal(encodeHeader(keys, { ...sealed(), asset }), frozen.headerWithAsset);
});

test('API key', () => {
  assert.ok(isWellFormedApiKey(frozen.apiKey));
  assert.equal(hashSecret(frozen.apiKey), frozen.apiKeyHash);
  assert.equal(newApiKeySecret(counted(0xa0)), frozen.apiKey);
});

test('ring key pair and wrapped keys', async () => {
  const privateKey = parsePrivateKey(frozen.privateKey) ?? assert.fail('private key not read');
  const publicKey = parsePublicKey(frozen.publicKey) ?? assert.fail('public key not read');
  assert.deepEqual(publicFromPrivate(privateKey), publicKey);
  for (const [service, expected] of [
    ['ks', frozen.wrappedKs],
    ['asym', frozen.wrappedAsym],
  ] as const) {
    assert.deepEqual(await unwrapRingKey(service, privateKey, frozen.keyId, expected.wrapped), hex(frozen.inputKey));
    assert.deepEqual(wrapRingKey(service, publicKey, frozen.keyId, hex(frozen.inputKey), counted(0x21)), expected);
  }
});
