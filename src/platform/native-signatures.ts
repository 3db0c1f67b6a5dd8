// Signatures by node:crypto (OpenSSL): Ed25519, ECDSA and, where Node has it, ML-DSA.
import * as nodeCrypto from 'node:crypto';
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { der, tags } from '../crypto/der.ts';
import { ed25519FromSpki, ed25519ToSpki } from '../crypto/ed25519.ts';
import { curveOid } from '../crypto/managed/ecdsa.ts';
import { mlDsaSeedToPkcs8 } from '../crypto/managed/ml-dsa-keys.ts';
import type { EcType, MlDsaSet, Primitives } from '../crypto/primitives.ts';
import { KmsError } from '../errors.ts';
import { kept, plain, privateKeyFrom, publicKey } from './native-key-objects.ts';

/** Node's names of hashes. */
export const hashNames = {
  'sha2-224': 'sha224',
  'sha2-256': 'sha256',
  'sha2-384': 'sha384',
  'sha2-512': 'sha512',
} as const;

/** The DER before the 32 bytes of an Ed25519 seed in PKCS #8 (RFC 8410 §7). */
const ed25519Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const ed25519Private = kept((seed) => privateKeyFrom(ed25519Prefix, seed, 32));
const ed25519Public = kept((key) => publicKey(ed25519ToSpki(key)));

/** SEC 1 DER of a scalar (RFC 5915 §3), without its public key. */
function ecPrivateFor(type: EcType): (key: Uint8Array) => KeyObject {
  const version = der(tags.integer, Uint8Array.of(1));
  const curve = der(tags.explicit0, der(tags.oid, curveOid(type)));
  return kept((key) => {
    const scalar = der(tags.octetString, key);
    const sec1 = der(tags.sequence, version, scalar, curve);
    try {
      return createPrivateKey({ key: Buffer.from(sec1.buffer), format: 'der', type: 'sec1' });
    } finally {
      scalar.fill(0);
      sec1.fill(0);
    }
  });
}

const ecPrivate: Readonly<Record<EcType, (key: Uint8Array) => KeyObject>> = {
  'ecdsa-p256': ecPrivateFor('ecdsa-p256'),
  'ecdsa-p384': ecPrivateFor('ecdsa-p384'),
  'ecdsa-p521': ecPrivateFor('ecdsa-p521'),
  'ecdsa-secp256k1': ecPrivateFor('ecdsa-secp256k1'),
};

function mlDsaPrivateFor(set: MlDsaSet): (seed: Uint8Array) => KeyObject {
  return kept((seed) => {
    const pkcs8 = mlDsaSeedToPkcs8(`ml-dsa-${set}`, seed);
    try {
      return createPrivateKey({ key: Buffer.from(pkcs8.buffer), format: 'der', type: 'pkcs8' });
    } finally {
      pkcs8.fill(0);
    }
  });
}

const mlDsaPrivate: Readonly<Record<MlDsaSet, (seed: Uint8Array) => KeyObject>> = {
  44: mlDsaPrivateFor(44),
  65: mlDsaPrivateFor(65),
  87: mlDsaPrivateFor(87),
};

/** Node has ML-DSA since 24.6, and this since 24.7. */
const hasMlDsa = 'encapsulate' in nodeCrypto;

export const nodeSignatures: Partial<Primitives> = {
  ed25519Sign: (seed, message) => plain(nodeCrypto.sign(null, message, ed25519Private(seed))),
  ed25519PublicKey(seed) {
    const spki = createPublicKey(ed25519Private(seed)).export({ format: 'der', type: 'spki' });
    const key = ed25519FromSpki(plain(spki));
    if (!key) throw new KmsError('internal', 'expected the SPKI of an Ed25519 key from node:crypto');
    return key;
  },
  ed25519Verify: (key, message, signature) => nodeCrypto.verify(null, message, ed25519Public(key), signature),
  ecdsaSign: (type, key, hash, message) => plain(nodeCrypto.sign(hashNames[hash], message, ecPrivate[type](key))),
  ecdsaVerify: (spki, hash, message, signature) =>
    nodeCrypto.verify(hashNames[hash], message, publicKey(spki), signature),
  ...(hasMlDsa && {
    mlDsaSign: (set, seed, message) => plain(nodeCrypto.sign(null, message, mlDsaPrivate[set](seed))),
    mlDsaVerify: (spki, message, signature) => nodeCrypto.verify(null, message, publicKey(spki), signature),
  }),
};
