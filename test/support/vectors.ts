// Vectors for the tests: the files of test/vectors, hexadecimal, and a check of both sides of HPKE against its vectors.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { gcm } from '@noble/ciphers/aes.js';
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { fromHex, toHex } from '../../src/crypto/bytes.ts';
import { type HpkeAead, type HpkeKem, setupRecipient, setupSender } from '../../src/crypto/hpke.ts';

export const hex = (text: string): Uint8Array => fromHex(text) ?? assert.fail('not hex');

/** The content of that file; callers know its shape. */
export const vectorsOf = (name: string) =>
  JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8'));

export interface HpkeVector {
  readonly aead_id: number;
  readonly info: string;
  readonly skRm: string;
  readonly pkRm: string;
  readonly enc: string;
  readonly shared_secret: string;
  readonly key: string;
  readonly base_nonce: string;
  readonly exporter_secret: string;
  readonly encryptions: readonly { sequence?: number; pt: string; aad: string; nonce: string; ct: string }[];
}

/** The AEADs of the published vectors, which the product does not use (RFC 9180 §7.3). */
const aeads: readonly (HpkeAead & { readonly cipher: typeof gcm | typeof chacha20poly1305 })[] = [
  { id: 0x0001, keyLength: 16, cipher: gcm },
  { id: 0x0003, keyLength: 32, cipher: chacha20poly1305 },
];

/** Checks that both sides get the published values; `random` is the KEM's randomness, in hexadecimal. */
export function isAsPublished(vector: HpkeVector, random: string, kem?: HpkeKem): void {
  const aead = aeads.find(({ id }) => id === vector.aead_id) ?? assert.fail(`AEAD ${vector.aead_id}`);
  const info = hex(vector.info);
  const sender = setupSender(hex(vector.pkRm), info, () => hex(random), aead, kem);
  const recipient = setupRecipient(hex(vector.skRm), hex(vector.enc), info, aead, kem);
  assert.ok(recipient);
  assert.equal(toHex(sender.enc), vector.enc);
  for (const context of [sender, recipient]) {
    assert.equal(toHex(context.sharedSecret), vector.shared_secret);
    assert.equal(toHex(context.key), vector.key);
    assert.equal(toHex(context.baseNonce), vector.base_nonce);
    assert.equal(toHex(context.exporterSecret), vector.exporter_secret);
  }
  for (const [at, { sequence = at, pt, aad, nonce, ct }] of vector.encryptions.entries()) {
    const bytes = sender.baseNonce.slice();
    const view = new DataView(bytes.buffer);
    view.setUint32(8, view.getUint32(8) ^ sequence);
    assert.equal(toHex(bytes), nonce);
    assert.equal(toHex(aead.cipher(sender.key, bytes, hex(aad)).encrypt(hex(pt))), ct);
    assert.equal(toHex(aead.cipher(recipient.key, bytes, hex(aad)).decrypt(hex(ct))), pt);
  }
}
