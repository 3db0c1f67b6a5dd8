// ML-DSA-65: Wycheproof's vectors, and node:crypto, which signs and verifies the same.
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { toHex } from '../../src/crypto/bytes.ts';
import { isMlDsaSpki, mlDsaSign, mlDsaSpki, mlDsaVerify } from '../../src/crypto/ml-dsa.ts';
import { hex, vectorsOf } from '../support/vectors.ts';

interface Vectors {
  readonly verify: readonly {
    readonly publicKey: string;
    readonly publicKeyDer: string;
    readonly tests: readonly { tcId: number; comment: string; msg: string; sig: string; result: 'valid' | 'invalid' }[];
  }[];
  readonly sign: readonly { tcId: number; comment: string; privateSeed: string; msg: string; sig: string }[];
}
const vectors: Vectors = vectorsOf('wycheproof-mldsa-65');

test('Wycheproof: what verifies, and what does not', () => {
  let count = 0;
  for (const { publicKey, publicKeyDer, tests } of vectors.verify) {
    const spki = hex(publicKeyDer === '' ? publicKey : publicKeyDer);
    for (const { tcId, comment, msg, sig, result } of tests) {
      assert.equal(mlDsaVerify(spki, hex(msg), hex(sig)), result === 'valid', `${tcId} ${comment}`);
      count++;
    }
  }
  assert.ok(count > 40, String(count));
});

test('Wycheproof: keys from seeds, and deterministic signatures', () => {
  assert.ok(vectors.sign.length >= 5);
  for (const { tcId, comment, privateSeed, msg, sig } of vectors.sign) {
    assert.equal(toHex(mlDsaSign(hex(privateSeed), hex(msg)).signature), sig, `${tcId} ${comment}`);
  }
});

test('node:crypto verifies what is signed here, and the other way round', () => {
  const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  fc.assert(
    fc.property(bytesOf(32), fc.uint8Array({ maxLength: 300 }), fc.nat(3308), (seed, message, at) => {
      const { spki, signature } = mlDsaSign(seed, message);
      assert.deepEqual(spki, mlDsaSpki(seed));
      assert.ok(isMlDsaSpki(spki) && mlDsaVerify(spki, message, signature));
      const publicKey = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
      assert.ok(verify(null, message, publicKey, signature));
      const der = Buffer.concat([Buffer.from('3034020100300b060960864801650304031204228020', 'hex'), seed]);
      const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
      assert.deepEqual(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }), Buffer.from(spki));
      assert.ok(mlDsaVerify(spki, message, new Uint8Array(sign(null, message, privateKey))));
      const changed = signature.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.equal(mlDsaVerify(spki, message, changed), false);
      assert.equal(verify(null, message, publicKey, changed), false);
    }),
    { numRuns: 20 },
  );
});

test('what is no key or signature does not verify', () => {
  const { spki, signature } = mlDsaSign(new Uint8Array(32).fill(1), new Uint8Array(3));
  for (const wrong of [new Uint8Array(), spki.slice(1), spki.slice(22), new Uint8Array([...spki, 0])]) {
    assert.equal(isMlDsaSpki(wrong), false);
    assert.equal(mlDsaVerify(wrong, new Uint8Array(3), signature), false);
  }
  for (const wrong of [new Uint8Array(), signature.slice(1), new Uint8Array(3309), new Uint8Array([...signature, 0])]) {
    assert.equal(mlDsaVerify(spki, new Uint8Array(3), wrong), false);
  }
});
