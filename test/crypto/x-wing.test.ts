// X-Wing: the vectors of its draft and of HPKE's, Wycheproof's for ML-KEM-768; the suite with AES-256-GCM, which has no
// vectors, against node:crypto alone; and all refusals. With noble and with node:crypto.
import assert from 'node:assert/strict';
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  decapsulate,
  diffieHellman,
  type KeyObject,
} from 'node:crypto';
import { afterEach, test } from 'node:test';
import { ml_kem768 } from '@noble/post-quantum/ml-kem.js';
import fc from 'fast-check';
import { toHex, utf8 } from '../../src/crypto/bytes.ts';
import { hpkeOpen, hpkeSeal } from '../../src/crypto/hpke.ts';
import { native } from '../../src/crypto/primitives.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import {
  decapsulateXWing,
  encapsulateXWing,
  isUsableXWingKey,
  xWingKem,
  xWingPublicKey,
} from '../../src/crypto/x-wing.ts';
import { KmsError } from '../../src/errors.ts';
import { takeCrypto } from '../../src/platform/native-crypto.ts';
import { type HpkeVector, hex, isAsPublished, vectorsOf } from '../support/vectors.ts';

afterEach(() => takeCrypto('noble'));

interface XWingVector {
  readonly seed: string;
  readonly eseed: string;
  readonly ss: string;
  readonly pk: string;
  readonly ct: string;
}
const draft: readonly XWingVector[] = vectorsOf('x-wing-draft');

interface Vector extends HpkeVector {
  readonly kem_id: number;
  readonly kdf_id: number;
  readonly ikmE: string;
}
const hpke: readonly Vector[] = vectorsOf('hpke-pq-draft');

interface MlKemCase {
  readonly tcId: number;
  readonly result: 'valid' | 'invalid';
  readonly seed: string;
  readonly m: string;
  readonly ek: string;
  readonly c: string;
  readonly K: string;
}
function casesOf(name: string): readonly MlKemCase[] {
  const groups: readonly { tests: readonly MlKemCase[] }[] = vectorsOf(`wycheproof-mlkem-768-${name}`).testGroups;
  return groups.flatMap(({ tests }) => tests);
}

function isRefused(run: () => unknown): boolean {
  try {
    run();
    return false;
  } catch (error) {
    assert.ok(error instanceof KmsError && error.code === 'invalid', String(error));
    return true;
  }
}

for (const choice of ['noble', 'node'] as const) {
  test(`the draft's vectors, by ${choice}`, () => {
    takeCrypto(choice);
    assert.equal(native().mlKemDecapsulate !== undefined, choice === 'node');
    assert.equal(draft.length, 3);
    for (const { seed, eseed, ss, pk, ct } of draft) {
      assert.equal(toHex(xWingPublicKey(hex(seed))), pk);
      const { enc, shared } = encapsulateXWing(hex(pk), () => hex(eseed));
      assert.equal(toHex(enc), ct);
      assert.equal(toHex(shared), ss);
      assert.equal(toHex(decapsulateXWing(hex(seed), hex(ct)) ?? assert.fail()), ss);
    }
  });

  test(`HPKE with KEM 0x647a and HKDF-SHA256, by ${choice}`, () => {
    takeCrypto(choice);
    const vectors = hpke.filter(({ kem_id, kdf_id }) => kem_id === xWingKem.id && kdf_id === 1);
    assert.equal(vectors.length, 1);
    for (const vector of vectors) {
      assert.equal(toHex(xWingPublicKey(hex(vector.skRm))), vector.pkRm);
      isAsPublished(vector, vector.ikmE, xWingKem);
    }
  });
}

test('Wycheproof, ML-KEM-768: keys of seeds, and what is decapsulated, by noble and by node:crypto', () => {
  takeCrypto('node');
  const { mlKemPublicKey, mlKemDecapsulate } = native();
  assert.ok(mlKemPublicKey && mlKemDecapsulate);
  const seeds = casesOf('keygen-seed-test');
  assert.equal(seeds.length, 100);
  for (const { seed, ek } of seeds) {
    assert.equal(toHex(ml_kem768.keygen(hex(seed)).publicKey), ek);
    assert.equal(toHex(mlKemPublicKey(hex(seed))), ek);
  }
  let valid = 0;
  for (const { tcId, result, seed, ek, c, K } of casesOf('test')) {
    const run = (by: () => Uint8Array) => {
      if (result === 'valid') assert.equal(toHex(by()), K, `case ${tcId}`);
      else assert.throws(by, Error, `case ${tcId}`);
    };
    if (result === 'valid') {
      valid++;
      assert.equal(toHex(ml_kem768.keygen(hex(seed)).publicKey), ek);
    }
    run(() => ml_kem768.decapsulate(hex(c), ml_kem768.keygen(hex(seed)).secretKey));
    run(() => mlKemDecapsulate(hex(seed), hex(c)));
  }
  assert.equal(valid, 153);
});

test('Wycheproof, ML-KEM-768: what is encapsulated, and every key that fails the check is refused', () => {
  const x25519Part = hex(draft[0]?.pk ?? '').subarray(1184);
  const counts = { valid: 0, invalid: 0 };
  for (const { tcId, result, m, ek, c, K } of casesOf('encaps-test')) {
    counts[result]++;
    const publicKey = new Uint8Array([...hex(ek), ...x25519Part]);
    assert.equal(isUsableXWingKey(publicKey), result === 'valid', `case ${tcId}`);
    if (result === 'valid') {
      const { cipherText, sharedSecret } = ml_kem768.encapsulate(hex(ek), hex(m));
      assert.equal(toHex(cipherText), c, `case ${tcId}`);
      assert.equal(toHex(sharedSecret), K, `case ${tcId}`);
    } else
      assert.ok(
        isRefused(() => encapsulateXWing(publicKey, systemRandom)),
        `case ${tcId}`,
      );
  }
  assert.deepEqual(counts, { valid: 133, invalid: 132 });
});

/** X-Wing's and HPKE's receiver from the drafts, over node:crypto: no line shared with the product. */
function referenceOpen(seed: Uint8Array, enc: Uint8Array, info: string, aad: string, sealed: Uint8Array): Buffer {
  const pkcs8 = (prefix: string, key: Uint8Array): KeyObject =>
    createPrivateKey({ key: Buffer.concat([Buffer.from(prefix, 'hex'), key]), format: 'der', type: 'pkcs8' });
  const expanded = createHash('shake256', { outputLength: 96 }).update(seed).digest();
  const mlKem = pkcs8('3054020100300b060960864801650304040204428040', expanded.subarray(0, 64));
  const x25519 = pkcs8('302e020100300506032b656e04220420', expanded.subarray(64));
  const sent = createPublicKey({
    key: Buffer.concat([Buffer.from('302a300506032b656e032100', 'hex'), enc.subarray(1088)]),
    format: 'der',
    type: 'spki',
  });
  const own = createPublicKey(x25519).export({ format: 'der', type: 'spki' }).subarray(-32);
  const shared = createHash('sha3-256')
    .update(decapsulate(mlKem, enc.subarray(0, 1088)))
    .update(diffieHellman({ privateKey: x25519, publicKey: sent }))
    .update(enc.subarray(1088))
    .update(own)
    .update(Buffer.from('5c2e2f2f5e5c', 'hex'))
    .digest();
  const suite = Buffer.from('HPKE\x64\x7a\x00\x01\x00\x02', 'latin1');
  const labeled = (label: string, value: Uint8Array): Buffer =>
    Buffer.concat([Buffer.from('HPKE-v1'), suite, Buffer.from(label), value]);
  const extract = (salt: Uint8Array, ikm: Uint8Array): Buffer => createHmac('sha256', salt).update(ikm).digest();
  const none = Buffer.alloc(0);
  const context = Buffer.concat([
    Buffer.from([0]),
    extract(none, labeled('psk_id_hash', none)),
    extract(none, labeled('info_hash', Buffer.from(info))),
  ]);
  const secret = extract(shared, labeled('secret', none));
  const expand = (label: string, length: number): Buffer =>
    createHmac('sha256', secret)
      .update(Buffer.concat([Buffer.from([0, length]), labeled(label, context), Buffer.from([1])]))
      .digest()
      .subarray(0, length);
  const [key, nonce] = [expand('key', 32), expand('base_nonce', 12)];
  const cipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(aad));
  cipher.setAuthTag(sealed.subarray(-16));
  const plaintext = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]);
  const again = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(aad));
  assert.deepEqual(Buffer.concat([again.update(plaintext), again.final(), again.getAuthTag()]), Buffer.from(sealed));
  return plaintext;
}

test('AES-256-GCM with KEM 0x647a: what is sealed opens by node:crypto alone', () => {
  for (let i = 0; i < 10; i++) {
    const seed = systemRandom(32);
    const plaintext = systemRandom(i * 7);
    const sealed = hpkeSeal(xWingPublicKey(seed), utf8('info'), utf8('aad'), plaintext, systemRandom, xWingKem);
    const opened = referenceOpen(seed, sealed.enc, 'info', 'aad', sealed.ciphertext);
    assert.deepEqual(new Uint8Array(opened), plaintext);
  }
});

test('what is sealed opens with its seed and as it was; noble and node:crypto tell the same of every change', () => {
  const [seed, other] = [systemRandom(32), systemRandom(32)];
  const { enc, ciphertext } = hpkeSeal(
    xWingPublicKey(seed),
    utf8('info'),
    utf8('aad'),
    systemRandom(32),
    systemRandom,
    xWingKem,
  );
  const open = (key = seed, e = enc, info = 'info', aad = 'aad', text = ciphertext) =>
    hpkeOpen(key, e, utf8(info), utf8(aad), text, xWingKem);
  assert.equal(open()?.length, 32);
  assert.equal(open(other), undefined);
  assert.equal(open(seed, enc, 'infO'), undefined);
  assert.equal(open(seed, enc, 'info', 'aaD'), undefined);
  assert.equal(open(seed, enc, 'info', 'aad', ciphertext.subarray(0, 15)), undefined);
  assert.equal(hpkeOpen(seed, enc, utf8('info'), utf8('aad'), ciphertext), undefined, 'by another KEM');
  fc.assert(
    fc.property(fc.integer({ min: 0, max: (1120 + 48) * 8 - 1 }), (bit) => {
      const all = new Uint8Array([...enc, ...ciphertext]);
      all[bit >>> 3] = (all[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
      assert.equal(open(seed, all.subarray(0, 1120), 'info', 'aad', all.subarray(1120)), undefined);
      const secrets = (['noble', 'node'] as const).map((choice) => {
        takeCrypto(choice);
        return decapsulateXWing(seed, all.subarray(0, 1120));
      });
      assert.deepEqual(secrets[0], secrets[1]);
    }),
    { numRuns: 60 },
  );
});

test('other lengths, points of low order and seeds of another length are refused', () => {
  const seed = systemRandom(32);
  const publicKey = xWingPublicKey(seed);
  const { enc } = encapsulateXWing(publicKey, systemRandom);
  assert.ok(isUsableXWingKey(publicKey));
  const lowOrder = publicKey.slice();
  lowOrder.fill(0, 1184);
  // The first of the 768 numbers becomes 3329, the modulus.
  const overflowing = publicKey.slice();
  overflowing[0] = 0x01;
  overflowing[1] = ((overflowing[1] ?? 0) & 0xf0) | 0x0d;
  const wrong = [new Uint8Array(), publicKey.subarray(1), new Uint8Array([...publicKey, 0]), publicKey.subarray(1184)];
  for (const bytes of [...wrong, lowOrder, overflowing]) {
    assert.equal(isUsableXWingKey(bytes), false);
    assert.ok(isRefused(() => encapsulateXWing(bytes, systemRandom)));
  }
  const lowOrderEnc = enc.slice();
  lowOrderEnc.fill(0, 1088);
  for (const choice of ['noble', 'node'] as const) {
    takeCrypto(choice);
    for (const bytes of [new Uint8Array(), enc.subarray(1), new Uint8Array([...enc, 0]), lowOrderEnc]) {
      assert.equal(decapsulateXWing(seed, bytes), undefined);
    }
    for (const length of [0, 31, 33, 64]) {
      assert.throws(() => xWingPublicKey(new Uint8Array(length)), /expected a seed of 32 bytes/);
      assert.throws(() => decapsulateXWing(new Uint8Array(length), enc), /expected a seed of 32 bytes/);
    }
  }
});
