// Signatures, MACs and encryption by managed keys: node:crypto agrees, options that do not fit are refused, and noble
// and the platform give the same.
import assert from 'node:assert/strict';
import {
  constants,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type KeyObject,
  privateDecrypt,
  sign,
  verify,
} from 'node:crypto';
import { after, before, test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import { toHex, utf8 } from '../../src/crypto/bytes.ts';
import { openAead, sealAead, sealWithNonce } from '../../src/crypto/managed/ciphers.ts';
import { digest, hkdfBytes, hmac, hmacHashes, isHmac } from '../../src/crypto/managed/digests.ts';
import { exportPkcs8, generateKey, importKey, importPublicKey, publicKeyOf } from '../../src/crypto/managed/keys.ts';
import { longestOaepMessage, oaepDecrypt, oaepEncrypt } from '../../src/crypto/managed/rsa.ts';
import { generateRsaKey } from '../../src/crypto/managed/rsa-keys.ts';
import {
  type SignatureOptions,
  type SigningType,
  signWithKey,
  verifyWithKey,
} from '../../src/crypto/managed/signatures.ts';
import type { HashName } from '../../src/crypto/primitives.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { type CryptoChoice, takeCrypto } from '../../src/platform/native-crypto.ts';
import { hex } from '../support/vectors.ts';

let rsaKey: Uint8Array;
before(async () => {
  takeCrypto('node');
  rsaKey = await generateRsaKey('rsa-2048');
});
after(() => takeCrypto('noble'));

const choices = ['noble', 'node'] as const satisfies readonly CryptoChoice[];
const nodeHashes = { 'sha2-224': 'sha224', 'sha2-256': 'sha256', 'sha2-384': 'sha384', 'sha2-512': 'sha512' } as const;
const allHashes = Object.keys(nodeHashes) as HashName[];
const rsaHashes = ['sha2-256', 'sha2-384', 'sha2-512'] as const;
const ecTypes = ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ecdsa-secp256k1'] as const;
const message = utf8('message');
const plainInput = { bytes: message, isDigest: false };
const hashed = (hash: HashName) => ({
  bytes: new Uint8Array(createHash(nodeHashes[hash]).update(message).digest()),
  isDigest: true,
});

const refuses = (run: () => unknown, words: RegExp): void =>
  assert.throws(run, (error) => error instanceof KmsError && error.code === 'invalid' && words.test(error.message));

function keyObjects(type: SigningType, key: Uint8Array): { privateKey: KeyObject; publicKey: KeyObject } {
  const privateKey = createPrivateKey({ key: Buffer.from(exportPkcs8(type, key)), format: 'der', type: 'pkcs8' });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

test('RSA: node:crypto verifies each padding, hash and salt, of messages and of digests, and the other way round', () => {
  const { privateKey, publicKey: nodePublic } = keyObjects('rsa-2048', rsaKey);
  const publicKey = publicKeyOf('rsa-2048', rsaKey);
  for (const hash of rsaHashes) {
    const longest = 256 - 2 - digest(hash, message).length;
    for (const [options, padding, saltLength] of [
      [{ padding: 'pkcs1v15' }, constants.RSA_PKCS1_PADDING, undefined],
      [{ padding: 'pss' }, constants.RSA_PKCS1_PSS_PADDING, digest(hash, message).length],
      [{ padding: 'pss', saltLength: 'hash' }, constants.RSA_PKCS1_PSS_PADDING, digest(hash, message).length],
      [{ padding: 'pss', saltLength: 'longest' }, constants.RSA_PKCS1_PSS_PADDING, longest],
      [{ padding: 'pss', saltLength: 0 }, constants.RSA_PKCS1_PSS_PADDING, 0],
      [{ padding: 'pss', saltLength: 13 }, constants.RSA_PKCS1_PSS_PADDING, 13],
    ] as const) {
      const how = { ...options, hash };
      const node = { padding, ...(saltLength !== undefined && { saltLength }) };
      const theirs = new Uint8Array(sign(nodeHashes[hash], message, { key: privateKey, ...node }));
      for (const input of [plainInput, hashed(hash)]) {
        const ours = signWithKey('rsa-2048', rsaKey, input, how, systemRandom);
        assert.ok(verify(nodeHashes[hash], message, { key: nodePublic, ...node }, ours));
        for (const each of [ours, theirs]) {
          assert.ok(verifyWithKey('rsa-2048', publicKey, input, how, each));
          assert.ok(!verifyWithKey('rsa-2048', publicKey, input, how, each.with(7, (each[7] ?? 0) ^ 1)));
          assert.ok(!verifyWithKey('rsa-2048', publicKey, input, how, each.subarray(1)));
          assert.ok(!verifyWithKey('rsa-2048', publicKey, { ...plainInput, bytes: utf8('other') }, how, each));
          if (how.padding !== 'pss') continue;
          assert.ok(verifyWithKey('rsa-2048', publicKey, input, { ...how, saltLength: 'any' }, each));
          assert.ok(!verifyWithKey('rsa-2048', publicKey, input, { ...how, saltLength: 12 }, each));
        }
      }
    }
  }
  assert.ok(
    !verifyWithKey(
      'rsa-2048',
      publicKey,
      plainInput,
      { padding: 'pss', hash: 'sha2-256' },
      new Uint8Array(256).fill(255),
    ),
  );
});

test('RSA: OAEP with each hash and label, at every length', () => {
  const { privateKey } = keyObjects('rsa-2048', rsaKey);
  const publicKey = publicKeyOf('rsa-2048', rsaKey);
  for (const hash of ['sha1', 'sha2-256', 'sha2-384', 'sha2-512'] as const) {
    const longest = longestOaepMessage('rsa-2048', hash);
    for (const label of [new Uint8Array(), utf8('label')]) {
      for (const text of [new Uint8Array(), message, systemRandom(longest)]) {
        const sealed = oaepEncrypt('rsa-2048', publicKey, hash, text, label);
        assert.deepEqual(oaepDecrypt('rsa-2048', rsaKey, hash, sealed, label), text);
        const oaepHash = hash === 'sha1' ? hash : nodeHashes[hash];
        const opened = privateDecrypt(
          { key: privateKey, oaepHash, ...(label.length > 0 && { oaepLabel: label }) },
          sealed,
        );
        assert.deepEqual(new Uint8Array(opened), text);
        assert.equal(oaepDecrypt('rsa-2048', rsaKey, hash, sealed, utf8('another')), undefined);
        assert.equal(oaepDecrypt('rsa-2048', rsaKey, hash, sealed.with(9, (sealed[9] ?? 0) ^ 1), label), undefined);
        assert.equal(oaepDecrypt('rsa-2048', rsaKey, hash, sealed.subarray(1), label), undefined);
      }
    }
    refuses(
      () => oaepEncrypt('rsa-2048', publicKey, hash, new Uint8Array(longest + 1), message),
      /^plaintext: expected at most/,
    );
  }
  assert.deepEqual(
    [longestOaepMessage('rsa-2048', 'sha1'), longestOaepMessage('rsa-2048', 'sha2-256')],
    [214, 190],
    'as AWS has them',
  );
});

test('without a platform there is no RSA, and the error says so', () => {
  takeCrypto('noble');
  const publicKey = publicKeyOf('rsa-2048', rsaKey);
  const how = { padding: 'pss', hash: 'sha2-256' } as const;
  for (const run of [
    () => signWithKey('rsa-2048', rsaKey, plainInput, how, systemRandom),
    () => verifyWithKey('rsa-2048', publicKey, plainInput, how, new Uint8Array(256)),
    () => oaepEncrypt('rsa-2048', publicKey, 'sha1', message, message),
    () => oaepDecrypt('rsa-2048', rsaKey, 'sha1', new Uint8Array(256), message),
    () => importKey('rsa-2048', 'der', rsaKey, systemRandom),
  ]) {
    assert.throws(run, { code: 'unavailable', message: /^RSA keys cannot be used here/ });
  }
  takeCrypto('node');
});

for (const choice of choices) {
  test(`ECDSA by ${choice}: each curve, hash and encoding, of messages and of digests`, () => {
    takeCrypto(choice);
    for (const type of ecTypes) {
      const key = generateKey(type, systemRandom);
      const publicKey = publicKeyOf(type, key);
      const nodePublic = keyObjects(type, key).publicKey;
      for (const hash of allHashes) {
        for (const encoding of ['der', 'raw'] as const) {
          const how = { hash, encoding };
          const dsaEncoding = encoding === 'der' ? 'der' : 'ieee-p1363';
          for (const input of [plainInput, hashed(hash)]) {
            const made = signWithKey(type, key, input, how, systemRandom);
            assert.ok(verify(nodeHashes[hash], message, { key: nodePublic, dsaEncoding }, made), `${type} ${hash}`);
            assert.ok(verifyWithKey(type, publicKey, input, how, made));
            assert.ok(
              !verifyWithKey(type, publicKey, input, { hash, encoding: encoding === 'der' ? 'raw' : 'der' }, made),
            );
            assert.ok(!verifyWithKey(type, publicKey, input, how, made.subarray(1)));
          }
        }
      }
    }
  });
}

test('secp256k1: signatures have the smaller s, and both are accepted', () => {
  const key = generateKey('ecdsa-secp256k1', systemRandom);
  const publicKey = publicKeyOf('ecdsa-secp256k1', key);
  for (const choice of choices) {
    takeCrypto(choice);
    for (let i = 0; i < 20; i++) {
      const input = { bytes: systemRandom(20), isDigest: false };
      const made = signWithKey('ecdsa-secp256k1', key, input, { hash: 'sha2-256' }, systemRandom);
      const { r, s } = secp256k1.Signature.fromBytes(made, 'der');
      assert.ok(s <= secp256k1.Point.Fn.ORDER / 2n);
      const other = new secp256k1.Signature(r, secp256k1.Point.Fn.ORDER - s).toBytes('der');
      assert.ok(verifyWithKey('ecdsa-secp256k1', publicKey, input, { hash: 'sha2-256' }, other));
    }
  }
});

test('Ed25519ph (RFC 8032 §7.3), which no other signature passes for', () => {
  const seed = hex('833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42');
  const publicKey = importPublicKey(
    'ed25519',
    'raw',
    hex('ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf'),
  );
  const signature =
    '98a70222f0b8121aa9d30f813d683f809e462b469c7ff87639499bb94e6dae41' +
    '31f85042463c2a355a2003d062adf5aaa10b8c61e636062aaad11c2a26083406';
  const input = { bytes: utf8('abc'), isDigest: false };
  const ph = { variant: 'ph' } as const;
  assert.equal(toHex(signWithKey('ed25519', seed, input, ph, systemRandom)), signature);
  assert.ok(verifyWithKey('ed25519', publicKey, input, ph, hex(signature)));
  assert.ok(!verifyWithKey('ed25519', publicKey, input, {}, hex(signature)));
  assert.ok(!verifyWithKey('ed25519', publicKey, { ...input, bytes: message }, ph, hex(signature)));
  assert.ok(!verifyWithKey('ed25519', publicKey, input, ph, signWithKey('ed25519', seed, input, {}, systemRandom)));
  assert.ok(!verifyWithKey('ed25519', publicKey, input, ph, message));
});

test('ML-DSA: messages and message representatives, by noble and by node:crypto', () => {
  for (const type of ['ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87'] as const) {
    const key = generateKey(type, systemRandom);
    const publicKey = publicKeyOf(type, key);
    const mu = { bytes: systemRandom(64), isDigest: true };
    const prehashed = signWithKey(type, key, mu, {}, systemRandom);
    assert.ok(verifyWithKey(type, publicKey, mu, {}, prehashed));
    assert.ok(!verifyWithKey(type, publicKey, { ...mu, isDigest: false }, {}, prehashed));
    for (const choice of choices) {
      takeCrypto(choice);
      const made = signWithKey(type, key, plainInput, {}, systemRandom);
      assert.ok(verify(null, message, keyObjects(type, key).publicKey, made));
      assert.ok(verifyWithKey(type, publicKey, plainInput, {}, made));
      assert.ok(!verifyWithKey(type, publicKey, plainInput, {}, made.with(3, (made[3] ?? 0) ^ 1)));
      assert.ok(!verifyWithKey(type, publicKey, plainInput, {}, made.subarray(1)));
    }
  }
});

test('options that do not fit the type are refused, and so is a digest of another length', () => {
  const keys: Readonly<Record<string, Uint8Array>> = {
    'rsa-2048': rsaKey,
    'ecdsa-p256': generateKey('ecdsa-p256', systemRandom),
    ed25519: generateKey('ed25519', systemRandom),
    'ml-dsa-44': generateKey('ml-dsa-44', systemRandom),
  };
  const table: readonly (readonly [SigningType, SignatureOptions, RegExp])[] = [
    ['rsa-2048', {}, /^padding: rsa-2048 needs one/],
    ['rsa-2048', { padding: 'pss' }, /^hash: rsa-2048 needs one/],
    ['rsa-2048', { padding: 'pss', hash: 'sha2-224' }, /^hash: rsa-2048 signs with sha2-256/],
    ['rsa-2048', { padding: 'pkcs1v15', hash: 'sha2-256', saltLength: 1 }, /^saltLength: .* has no salt/],
    ['rsa-2048', { padding: 'pss', hash: 'sha2-256', saltLength: 223 }, /^saltLength: expected 0 to 222/],
    ['rsa-2048', { padding: 'pss', hash: 'sha2-256', saltLength: -1 }, /^saltLength: expected 0 to 222/],
    ['rsa-2048', { padding: 'pss', hash: 'sha2-256', saltLength: 1.5 }, /^saltLength: expected 0 to 222/],
    ['rsa-2048', { padding: 'pss', hash: 'sha2-256', encoding: 'der' }, /^encoding: /],
    ['rsa-2048', { padding: 'pss', hash: 'sha2-256', variant: 'ph' }, /^variant: /],
    ['ecdsa-p256', {}, /^hash: ecdsa-p256 needs one/],
    ['ecdsa-p256', { hash: 'sha2-256', padding: 'pss' }, /^padding: /],
    ['ecdsa-p256', { hash: 'sha2-256', saltLength: 'any' }, /^saltLength: /],
    ['ecdsa-p256', { hash: 'sha2-256', variant: 'ph' }, /^variant: /],
    ['ed25519', { hash: 'sha2-512' }, /^hash: signatures of ed25519 have no such choice/],
    ['ed25519', { encoding: 'raw' }, /^encoding: /],
    ['ml-dsa-44', { hash: 'sha2-512' }, /^hash: /],
    ['ml-dsa-44', { variant: 'ph' }, /^variant: /],
  ];
  for (const [type, options, words] of table) {
    const key = keys[type] ?? assert.fail();
    refuses(() => signWithKey(type, key, plainInput, options, systemRandom), words);
    refuses(() => verifyWithKey(type, publicKeyOf(type, key), plainInput, options, message), words);
  }
  const anySalt = { padding: 'pss', hash: 'sha2-256', saltLength: 'any' } as const;
  refuses(() => signWithKey('rsa-2048', rsaKey, plainInput, anySalt, systemRandom), /length of the salt to make/);
  for (const [type, key] of Object.entries(keys)) {
    const signer = type as SigningType;
    for (const hash of rsaHashes) {
      const options: SignatureOptions =
        type === 'rsa-2048' ? { padding: 'pkcs1v15', hash } : type === 'ecdsa-p256' ? { hash } : {};
      for (const length of [0, 20, 31, 33, 63, 65]) {
        const input = { bytes: new Uint8Array(length), isDigest: true };
        refuses(() => signWithKey(signer, key, input, options, systemRandom), /^prehashed input: /);
        for (const encoding of type === 'ecdsa-p256' ? (['der', 'raw'] as const) : [undefined]) {
          const how = { ...options, encoding };
          refuses(() => verifyWithKey(signer, publicKeyOf(signer, key), input, how, message), /^prehashed input: /);
        }
      }
    }
  }
});

test('keys of another type are refused as invalid, whatever they are', async () => {
  const smallest = (type: SigningType): Promise<Uint8Array> | Uint8Array =>
    type === 'rsa-2048'
      ? rsaKey
      : type === 'rsa-3072' || type === 'rsa-4096'
        ? generateRsaKey(type)
        : generateKey(type, systemRandom);
  const types = ['rsa-2048', 'rsa-3072', ...ecTypes, 'ed25519', 'ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87'] as const;
  const keys = await Promise.all(types.map(async (type) => ({ type, key: await smallest(type) })));
  const optionsOf = (type: SigningType): SignatureOptions => {
    if (type.startsWith('rsa-')) return { padding: 'pss', hash: 'sha2-256' };
    return type.startsWith('ecdsa-') ? { hash: 'sha2-256' } : {};
  };
  // Seeds and scalars of 32 bytes tell no type.
  const bare = new Set<string>(['ecdsa-p256', 'ecdsa-secp256k1', 'ed25519', 'ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87']);
  for (const choice of choices) {
    takeCrypto(choice);
    for (const { type: own, key } of keys) {
      const publicKey = publicKeyOf(own, key);
      for (const type of types) {
        if (type === own || (choice === 'noble' && type.startsWith('rsa-'))) continue;
        const options = optionsOf(type);
        for (const input of [
          plainInput,
          { bytes: systemRandom(type.startsWith('ml-dsa-') ? 64 : 32), isDigest: true },
        ]) {
          if (type === 'ed25519' && input.isDigest) continue;
          if (!bare.has(own) || !bare.has(type)) {
            refuses(
              () => signWithKey(type, key, input, options, systemRandom),
              /^expected a (?:private )?(?:key|seed) of/,
            );
          }
          for (const length of [64, 70, 256, 2420]) {
            const verifies = () => verifyWithKey(type, publicKey, input, options, new Uint8Array(length).fill(1));
            if (type.startsWith('rsa-')) assert.equal(verifies(), false);
            else refuses(verifies, /^expected a public key of the type/);
          }
        }
      }
      if (choice === 'noble' || own.startsWith('rsa-2048')) continue;
      refuses(
        () => oaepEncrypt('rsa-2048', publicKey, 'sha1', message, message),
        /^expected a key of the type rsa-2048/,
      );
      assert.equal(oaepDecrypt('rsa-2048', key, 'sha1', new Uint8Array(256), message), undefined);
    }
  }
});

test('hashes, HMAC and HKDF are those of node:crypto, by both', () => {
  const bytes = fc.uint8Array({ maxLength: 300 });
  const key = fc.uint8Array({ minLength: 16, maxLength: 200 });
  fc.assert(
    fc.property(fc.constantFrom(...allHashes), key, bytes, bytes, (hash, secret, text, info) => {
      const right = toHex(createHmac(nodeHashes[hash], secret).update(text).digest());
      for (const choice of choices) {
        takeCrypto(choice);
        const mac = hmac(hash, secret, text);
        assert.equal(toHex(digest(hash, text)), createHash(nodeHashes[hash]).update(text).digest('hex'));
        assert.equal(toHex(mac), right);
        assert.ok(isHmac(hash, secret, text, mac));
        assert.ok(!isHmac(hash, secret, text, mac.subarray(1)) && !isHmac(hash, secret, text, new Uint8Array()));
        assert.ok(!isHmac(hash, secret, text, mac.with(0, (mac[0] ?? 0) ^ 1)));
      }
      const derived = hkdfBytes(secret, { hash, salt: text, info, length: 77 });
      assert.equal(toHex(derived), Buffer.from(hkdfSync(nodeHashes[hash], secret, text, info, 77)).toString('hex'));
    }),
    { numRuns: 200 },
  );
  refuses(() => hkdfBytes(message, { hash: 'sha2-256', info: message, length: 0 }), /^length: expected 1 to 8160/);
  refuses(() => hkdfBytes(message, { hash: 'sha2-256', info: message, length: 8161 }), /^length: expected 1 to 8160/);
  assert.deepEqual(Object.values(hmacHashes), allHashes);
});

test('AEADs: the same by both, and nothing opens that was changed', () => {
  const bytes = fc.uint8Array({ maxLength: 2000 });
  for (const type of ['aes128-gcm', 'aes256-gcm', 'chacha20-poly1305'] as const) {
    const key = generateKey(type, systemRandom);
    fc.assert(
      fc.property(bytes, fc.uint8Array({ maxLength: 40 }), fc.nat(), (text, bound, at) => {
        const nonce = systemRandom(12);
        const [one, two] = choices.map((choice) => {
          takeCrypto(choice);
          return sealAead(type, key, text, bound, () => nonce);
        });
        assert.ok(one && two);
        assert.deepEqual(one, two);
        for (const choice of choices) {
          takeCrypto(choice);
          assert.deepEqual(openAead(type, key, one, bound), text);
          const where: number = at % one.length;
          assert.equal(openAead(type, key, one.with(where, (one[where] ?? 0) ^ 1), bound), undefined);
          assert.equal(openAead(type, key, one, new Uint8Array([...bound, 0])), undefined);
          assert.equal(openAead(type, key, one.subarray(0, where), bound), undefined);
        }
      }),
      { numRuns: 60 },
    );
    refuses(
      () => sealAead(type, key.subarray(1), message, message, systemRandom),
      /^expected a key of (?:16|32) bytes/,
    );
    refuses(() => sealWithNonce(type, key, new Uint8Array(11), message, message), /^expected a nonce of 12 bytes/);
  }
});
