// Wycheproof's vectors against the primitives of managed keys, by noble and by node:crypto; RSA is node:crypto's alone.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { openWithNonce, sealWithNonce } from '../../src/crypto/managed/ciphers.ts';
import { hkdfBytes, hmac, isHmac } from '../../src/crypto/managed/digests.ts';
import { ecdhShared } from '../../src/crypto/managed/ecdsa.ts';
import { unwrapKwp, wrapKwp } from '../../src/crypto/managed/key-wrap.ts';
import { importKey, importPublicKey, publicKeyOf } from '../../src/crypto/managed/keys.ts';
import { oaepDecrypt, oaepEncrypt, type RsaHash } from '../../src/crypto/managed/rsa.ts';
import type { RsaType } from '../../src/crypto/managed/rsa-keys.ts';
import { verifyWithKey } from '../../src/crypto/managed/signatures.ts';
import type { EcType, HashName, OaepHash } from '../../src/crypto/primitives.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { type CryptoChoice, takeCrypto } from '../../src/platform/native-crypto.ts';
import { hex, vectorsOf } from '../support/vectors.ts';

afterEach(() => takeCrypto('noble'));

type Result = 'valid' | 'invalid' | 'acceptable';
type Case<T> = T & { readonly tcId: number; readonly comment: string; readonly result: Result };
type Group<G, T> = G & { readonly file: string; readonly tests: readonly Case<T>[] };

const choices = ['noble', 'node'] as const satisfies readonly CryptoChoice[];

/** Runs each case of a file by both, and checks that the file has them. */
function each<G, T>(
  name: string,
  by: readonly CryptoChoice[],
  least: number,
  run: (group: Group<G, T>, given: Case<T>, label: string) => void,
): void {
  const { groups }: { groups: readonly Group<G, T>[] } = vectorsOf(`wycheproof-${name}`);
  for (const choice of by) {
    test(`Wycheproof: ${name} by ${choice}`, () => {
      takeCrypto(choice);
      let count = 0;
      for (const group of groups) {
        for (const given of group.tests) {
          run(group, given, `${group.file} ${given.tcId} ${given.comment}`);
          count++;
        }
      }
      assert.ok(count >= least, String(count));
    });
  }
}

interface AeadCase {
  readonly key: string;
  readonly iv: string;
  readonly aad: string;
  readonly msg: string;
  readonly ct: string;
  readonly tag: string;
}

for (const [name, least] of [
  ['aes-gcm', 59],
  ['chacha20-poly1305', 68],
] as const) {
  each<{ keySize: number }, AeadCase>(
    name,
    choices,
    least,
    ({ keySize }, { key, iv, aad, msg, ct, tag, result }, label) => {
      const type = name === 'aes-gcm' ? (keySize === 128 ? 'aes128-gcm' : 'aes256-gcm') : name;
      const opened = openWithNonce(type, hex(key), hex(iv), hex(ct + tag), hex(aad));
      assert.equal(opened && toHex(opened), result === 'valid' ? msg : undefined, label);
      if (result !== 'valid') return;
      assert.equal(toHex(sealWithNonce(type, hex(key), hex(iv), hex(msg), hex(aad))), ct + tag, label);
    },
  );
}

each<object, { key: string; msg: string; ct: string }>(
  'aes-kwp',
  ['noble'],
  39,
  (_, { key, msg, ct, result }, label) => {
    const opened = unwrapKwp(hex(key), hex(ct));
    assert.equal(opened && toHex(opened), result === 'valid' ? msg : undefined, label);
    if (result === 'valid') assert.equal(toHex(wrapKwp(hex(key), hex(msg))), ct, label);
  },
);

const hashOf = (bits: string): HashName => `sha2-${bits}` as HashName;

each<object, { key: string; msg: string; tag: string }>('hmac', choices, 96, ({ file }, given, label) => {
  const { key, msg, tag, result } = given;
  const hash = hashOf(file.slice(8, 11));
  assert.equal(isHmac(hash, hex(key), hex(msg), hex(tag)), result === 'valid', label);
  assert.equal(toHex(hmac(hash, hex(key), hex(msg))) === tag, result === 'valid', label);
});

interface HkdfCase {
  readonly ikm: string;
  readonly salt: string;
  readonly info: string;
  readonly size: number;
  readonly okm: string;
}

each<object, HkdfCase>('hkdf', ['noble'], 87, ({ file }, { ikm, salt, info, size, okm, result }, label) => {
  const derive = () =>
    hkdfBytes(hex(ikm), { hash: hashOf(file.slice(8, 11)), salt: hex(salt), info: hex(info), length: size });
  if (result === 'valid') assert.equal(toHex(derive()), okm, label);
  else assert.throws(derive, KmsError, label);
});

const rsaType = (keySize: number): RsaType => `rsa-${keySize}` as RsaType;
const bitsOf = (sha: string): string => sha.slice('SHA-'.length);

interface OaepGroup {
  readonly keySize: number;
  readonly sha: string;
  readonly privateKeyPkcs8: string;
}
const imported = new Map<string, Uint8Array>();

each<OaepGroup, { msg: string; ct: string; label: string }>(
  'rsa-oaep',
  ['node'],
  100,
  ({ keySize, sha, privateKeyPkcs8 }, { msg, ct, label: bound, result }, label) => {
    const [type, hash] = [rsaType(keySize), (sha === 'SHA-1' ? 'sha1' : hashOf(bitsOf(sha))) as OaepHash];
    const key = imported.get(privateKeyPkcs8) ?? importKey(type, 'der', hex(privateKeyPkcs8), systemRandom);
    imported.set(privateKeyPkcs8, key);
    const opened = oaepDecrypt(type, key, hash, hex(ct), hex(bound));
    assert.equal(opened && toHex(opened), result === 'valid' ? msg : undefined, label);
    if (result !== 'valid') return;
    const sealed = oaepEncrypt(type, publicKeyOf(type, key), hash, hex(msg), hex(bound));
    assert.deepEqual(oaepDecrypt(type, key, hash, sealed, hex(bound)), hex(msg), label);
  },
);

interface SignatureGroup {
  readonly keySize: number;
  readonly sha: string;
  readonly publicKeyDer: string;
}
interface SignatureCase {
  readonly msg: string;
  readonly sig: string;
}

for (const [padding, least] of [
  ['pss', 72],
  ['pkcs1v15', 159],
] as const) {
  each<SignatureGroup & { sLen?: number }, SignatureCase>(
    `rsa-${padding}`,
    ['node'],
    least,
    ({ keySize, sha, sLen, publicKeyDer }, { msg, sig, result }, label) => {
      const type = rsaType(keySize);
      // The exponent 3.
      if (publicKeyDer.endsWith('020103')) {
        assert.throws(() => importPublicKey(type, 'der', hex(publicKeyDer)), /expected a public exponent from 65537/);
        return;
      }
      const publicKey = importPublicKey(type, 'der', hex(publicKeyDer));
      const options = {
        padding,
        hash: hashOf(bitsOf(sha)) as RsaHash,
        ...(sLen !== undefined && { saltLength: sLen }),
      };
      const input = { bytes: hex(msg), isDigest: false };
      // A DigestInfo without its NULL is acceptable to some, and not here.
      assert.equal(verifyWithKey(type, publicKey, input, options, hex(sig)), result === 'valid', label);
      if (padding === 'pkcs1v15') return;
      const anySalt = { ...options, saltLength: 'any' } as const;
      if (result === 'valid') assert.ok(verifyWithKey(type, publicKey, input, anySalt, hex(sig)), label);
    },
  );
}

const curves: readonly (readonly [name: string, type: EcType, signatures: number, agreements: number])[] = [
  ['p256', 'ecdsa-p256', 250, 52],
  ['p384', 'ecdsa-p384', 319, 44],
  ['p521', 'ecdsa-p521', 172, 53],
  ['secp256k1', 'ecdsa-secp256k1', 172, 80],
];

for (const [name, type, signatures, agreements] of curves) {
  each<SignatureGroup & { type: string }, SignatureCase>(
    `ecdsa-${name}`,
    choices,
    signatures,
    (group, { msg, sig, result }, label) => {
      const publicKey = importPublicKey(type, 'der', hex(group.publicKeyDer));
      const encoding = group.type === 'EcdsaP1363Verify' ? 'raw' : 'der';
      const options = { hash: hashOf(bitsOf(group.sha)), encoding } as const;
      const input = { bytes: hex(msg), isDigest: false };
      assert.equal(verifyWithKey(type, publicKey, input, options, hex(sig)), result === 'valid', label);
    },
  );

  each<{ encoding: string }, { public: string; private: string; shared: string }>(
    `ecdh-${name}`,
    ['noble'],
    agreements,
    ({ encoding }, given, label) => {
      const agree = (): string => {
        const publicKey = importPublicKey(type, encoding === 'ecpoint' ? 'raw' : 'der', hex(given.public));
        const scalar = given.private.replace(/^(?:00)+/, '');
        const length = type === 'ecdsa-p384' ? 96 : type === 'ecdsa-p521' ? 132 : 64;
        return toHex(ecdhShared(type, hex(scalar.padStart(length, '0')), publicKey));
      };
      if (given.result === 'valid') assert.equal(agree(), given.shared, label);
      else if (given.result === 'invalid') assert.throws(agree, KmsError, label);
    },
  );
}

each<{ publicKeyDer: string }, SignatureCase>(
  'ed25519',
  choices,
  71,
  ({ publicKeyDer }, { msg, sig, result }, label) => {
    const publicKey = importPublicKey('ed25519', 'der', hex(publicKeyDer));
    const isValid = verifyWithKey('ed25519', publicKey, { bytes: hex(msg), isDigest: false }, {}, hex(sig));
    assert.equal(isValid, result === 'valid', label);
  },
);

interface MlDsaGroup {
  readonly type: string;
  readonly publicKey: string;
  readonly privateSeed: string;
}

const publicKeyDigits = { 'ml-dsa-44': 2624, 'ml-dsa-87': 5184 } as const;

for (const [type, least] of [
  ['ml-dsa-44', 16],
  ['ml-dsa-87', 12],
] as const) {
  each<MlDsaGroup, { msg?: string; mu?: string; sig: string }>(
    type.replace('ml-', 'ml'),
    choices,
    least,
    (group, { msg, mu, sig, result }, label) => {
      const isValid = result === 'valid';
      // Signatures of the signing vectors prove the public key of the seed.
      const importIt = (): Uint8Array =>
        group.type === 'MlDsaSign'
          ? publicKeyOf(type, importKey(type, 'raw', hex(group.privateSeed), systemRandom))
          : importPublicKey(type, 'raw', hex(group.publicKey));
      const isSound =
        group.type === 'MlDsaSign' ? group.privateSeed.length === 64 : group.publicKey.length === publicKeyDigits[type];
      if (!isSound) {
        assert.throws(importIt, KmsError, label);
        assert.ok(!isValid);
        return;
      }
      const publicKey = importIt();
      if (msg !== undefined) {
        const input = { bytes: hex(msg), isDigest: false };
        assert.equal(verifyWithKey(type, publicKey, input, {}, hex(sig)), isValid, label);
      }
      if (mu === undefined) return;
      const prehashed = { bytes: hex(mu), isDigest: true };
      assert.equal(verifyWithKey(type, publicKey, prehashed, {}, hex(sig)), isValid, label);
    },
  );
}
