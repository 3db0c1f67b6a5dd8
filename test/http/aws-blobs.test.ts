// Ciphertexts of AWS KMS and encryption contexts in their bytes: those of the vectors open for ever.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { blobOf, readBlob } from '../../src/dialects/aws/blobs.ts';
import { contextBytes } from '../../src/dialects/aws/encryption-context.ts';
import { tenantKeys } from '../../src/seal/tenant-keys.ts';

interface Vectors {
  readonly tenantKeys: Readonly<Record<string, string>>;
  readonly blobs: readonly { epoch: number; key: string; version: number; message: string; blob: string }[];
  readonly contexts: readonly { context: object; associated: string }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL('../vectors/aws-kms-blobs.json', import.meta.url), 'utf8'));

const held = Object.entries(vectors.tenantKeys).map(
  ([epoch, hex]) => [Number(epoch), Uint8Array.fromHex(hex)] as const,
);

test('a blob says its key and version to the tenant alone, of whatever epoch it is', () => {
  const all = tenantKeys(new Map(held));
  const others = tenantKeys(new Map(held.map(([epoch, key]) => [epoch, key.map((byte) => byte ^ 1)])));
  for (const { epoch, key, version, message, blob } of vectors.blobs) {
    const read = readBlob(all, blob);
    assert.ok(read.ids.includes(key));
    assert.equal(read.ciphertext, `vault:v${version}:${message}`);
    const then = tenantKeys(new Map(held.filter(([each]) => each <= epoch)));
    assert.equal(blobOf(then, key, read.ciphertext), blob);
    assert.throws(() => readBlob(others, blob), /InvalidCiphertextException/);
  }
  const [, newer] = vectors.blobs;
  const former = tenantKeys(new Map(held.slice(0, 1)));
  assert.throws(() => readBlob(former, newer?.blob ?? ''), /InvalidCiphertextException/);
});

test('no blob is made without the id of a key, or of nothing', () => {
  const all = tenantKeys(new Map(held));
  const [{ key, version, message } = assert.fail()] = vectors.blobs;
  const ciphertext = `vault:v${version}:${message}`;
  for (const id of ['', 'mkey_', key.slice(0, -1), 'app'])
    assert.throws(() => blobOf(all, id, ciphertext), /the id of a key/);
  for (const none of [undefined, '', 'vault:v1:', message])
    assert.throws(() => blobOf(all, key, none), /what it encrypted/);
});

test('contexts have the bytes of the vectors', () => {
  for (const { context, associated } of vectors.contexts) {
    assert.equal(Buffer.from(contextBytes(context)).toString('base64'), associated);
  }
});
