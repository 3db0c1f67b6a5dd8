// Types of managed keys: their facts against the rules and against the cryptography, which has names of its own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  exportPkcs8,
  generateKey,
  importKey,
  importPublicKey,
  type ManagedKeyType,
  publicKeyOf,
  rawPublicKey,
} from '../../src/crypto/managed/keys.ts';
import { signWithKey, verifyWithKey } from '../../src/crypto/managed/signatures.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import {
  isPublicUse,
  type KeyType,
  type KeyUse,
  keyTypeFacts,
  keyTypes,
  keyUses,
  usesProblem,
  usualUses,
} from '../../src/model/key-types.ts';

/** Fails to compile unless both have the same types. */
const same: readonly ManagedKeyType[] & readonly KeyType[] = keyTypes;
const alike: Record<ManagedKeyType, unknown> = keyTypeFacts;

const subsets: readonly (readonly KeyUse[])[] = Array.from({ length: 2 ** keyUses.length }, (_, n) =>
  keyUses.filter((_, at) => (n >> at) & 1),
);

test('uses: all sets of them for each type, by its one purpose', () => {
  assert.deepEqual(Object.keys(alike), same);
  const purposes: Record<string, readonly string[]> = {
    aes: ['encrypt decrypt wrap unwrap derive export'],
    chacha20: ['encrypt decrypt derive export'],
    rsa: ['encrypt decrypt wrap unwrap export', 'sign verify export'],
    ecdsa: ['sign verify export', 'derive export'],
    ed25519: ['sign verify export'],
    hmac: ['mac verify derive export'],
    ml: ['sign verify export'],
    secret: ['derive export'],
  };
  for (const type of keyTypes) {
    const sets = (purposes[type.replace(/(?:128|256)?-.*/, '')] ?? assert.fail(type)).map((text) => text.split(' '));
    for (const uses of subsets) {
      const isOne = uses.length > 0 && sets.some((set) => uses.every((use) => set.includes(use)));
      const problem = usesProblem(type, uses);
      assert.equal(problem === undefined, isOne, `${type}: ${uses.join(' ')}: ${problem}`);
    }
    assert.equal(usesProblem(type, usualUses(type)), undefined);
  }
  assert.match(usesProblem('rsa-2048', ['encrypt', 'sign']) ?? '', /^a key of the type rsa-2048 has one purpose: /);
  assert.equal(usesProblem('ed25519', ['encrypt']), 'a key of the type ed25519 cannot encrypt');
});

test('a public key alone encrypts, verifies and wraps, and symmetric keys have none', () => {
  for (const type of keyTypes) {
    for (const use of keyUses) {
      const isPublic = keyTypeFacts[type].isAsymmetric && ['encrypt', 'verify', 'wrap'].includes(use);
      assert.equal(isPublicUse(type, use), isPublic, `${type} ${use}`);
    }
  }
});

test('lengths are those of the keys that are made and taken in', () => {
  for (const type of keyTypes) {
    const { length, importLengths, isAsymmetric } = keyTypeFacts[type];
    if (type === 'rsa-2048' || type === 'rsa-3072' || type === 'rsa-4096') {
      assert.equal(length, undefined);
      continue;
    }
    const key = generateKey(type, systemRandom);
    assert.equal(key.length, length, type);
    assert.deepEqual(importKey(type, 'raw', key, systemRandom), key);
    const [least, most] = importLengths ?? [key.length, key.length];
    const taken = (count: number): boolean => {
      try {
        // Below the order of each curve.
        importKey(type, 'raw', new Uint8Array(count).fill(1, 1).with(0, 0), systemRandom);
        return true;
      } catch (error) {
        assert.ok(error instanceof KmsError && error.code === 'invalid');
        return false;
      }
    };
    assert.ok(!taken(least - 1 || most + 1) && taken(Math.max(least, 2)) && taken(most) && !taken(most + 1), type);
    if (!isAsymmetric) assert.throws(() => importKey(type, 'der', key, systemRandom), KmsError);
  }
});

test('each type that signs does so with its hashes and encodings, and no other', () => {
  const input = { bytes: new TextEncoder().encode('message'), isDigest: false };
  for (const type of keyTypes) {
    if (!type.startsWith('ecdsa-') && type !== 'ed25519' && !type.startsWith('ml-dsa-')) continue;
    // Cast: RSA's types need the platform, and are in test/crypto.
    const signer = type as 'ecdsa-p256' | 'ed25519' | 'ml-dsa-44';
    const { hashes, encodings } = keyTypeFacts[type];
    const key = generateKey(signer, systemRandom);
    const publicKey = publicKeyOf(signer, key);
    assert.deepEqual(importPublicKey(signer, 'der', publicKey), publicKey);
    assert.deepEqual(importPublicKey(signer, 'raw', rawPublicKey(signer, publicKey)), publicKey);
    assert.deepEqual(importKey(signer, 'der', exportPkcs8(signer, key), systemRandom), key);
    for (const hash of ['sha2-224', 'sha2-256', 'sha2-384', 'sha2-512', undefined] as const) {
      for (const encoding of ['der', 'raw', undefined] as const) {
        const isOne =
          (hash === undefined ? hashes.length === 0 : hashes.includes(hash)) &&
          (encoding === undefined || encodings.includes(encoding));
        const sign = () => signWithKey(signer, key, input, { hash, encoding }, systemRandom);
        if (isOne) assert.ok(verifyWithKey(signer, publicKey, input, { hash, encoding }, sign()), `${type} ${hash}`);
        else assert.throws(sign, { name: 'KmsError', code: 'invalid' });
      }
    }
  }
});

test('names in other systems are unique where they must be', () => {
  const facts = keyTypes.map((type) => keyTypeFacts[type]);
  const names = [
    facts.flatMap(({ vault }) => (vault && !vault.isShownOnly ? [`${vault.type} ${vault.parameterSet ?? ''}`] : [])),
    facts.flatMap(({ awsSpec }) => awsSpec ?? []),
    facts.flatMap(({ kmip }) => (kmip ? [`${kmip.algorithm} ${kmip.length} ${kmip.curve ?? ''}`] : [])),
  ];
  for (const each of names) assert.equal(new Set(each).size, each.length);
  for (const { awsSpec, purposes } of facts) {
    assert.equal(
      awsSpec !== undefined,
      purposes.some(({ aws }) => aws !== undefined),
    );
  }
});
