// RSA by node:crypto (OpenSSL), which managed keys of that kind cannot do without.
import {
  constants,
  createPrivateKey,
  generateKeyPair,
  privateDecrypt,
  privateEncrypt,
  publicDecrypt,
  publicEncrypt,
} from 'node:crypto';
import { native, type OaepHash, putIn, type RsaPrimitives } from '../crypto/primitives.ts';
import { KmsError } from '../errors.ts';
import { kept, plain, publicKey } from './native-key-objects.ts';

const privateKey = kept((pkcs8) => createPrivateKey({ key: viewOf(pkcs8), format: 'der', type: 'pkcs8' }));

/** The same bytes, not a copy that would have to be wiped. */
function viewOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

const oaepHashes: Readonly<Record<OaepHash, string>> = {
  sha1: 'sha1',
  'sha2-256': 'sha256',
  'sha2-384': 'sha384',
  'sha2-512': 'sha512',
};

const raw = constants.RSA_NO_PADDING;

function oaep(hash: OaepHash, label: Uint8Array) {
  const padding = constants.RSA_PKCS1_OAEP_PADDING;
  return { padding, oaepHash: oaepHashes[hash], ...(label.length > 0 && { oaepLabel: label }) };
}

export const nodeRsa: RsaPrimitives = {
  generate: (bits) =>
    new Promise((resolve, reject) => {
      const encoding = {
        publicKeyEncoding: { type: 'spki', format: 'der' },
        privateKeyEncoding: { type: 'pkcs8', format: 'der' },
      } as const;
      // libuv's threads make it.
      generateKeyPair('rsa', { modulusLength: bits, publicExponent: 65537, ...encoding }, (error, _, made) => {
        if (error) reject(new KmsError('internal', 'node:crypto made no RSA key', { cause: error }));
        else resolve(plain(made));
      });
    }),
  privateOperation: (key, block) => plain(privateEncrypt({ key: privateKey(key), padding: raw }, block)),
  publicOperation(key, block) {
    try {
      return plain(publicDecrypt({ key: publicKey(key), padding: raw }, block));
    } catch {
      return undefined;
    }
  },
  oaepEncrypt: (key, hash, label, message) =>
    plain(publicEncrypt({ key: publicKey(key), ...oaep(hash, label) }, message)),
  oaepDecrypt(key, hash, label, sealed) {
    try {
      return plain(privateDecrypt({ key: privateKey(key), ...oaep(hash, label) }, sealed));
    } catch {
      return undefined;
    }
  },
};

/** For a command, which needs RSA alone. */
export function startRsa(): void {
  const before = native();
  if (!before.rsa) putIn({ ...before, rsa: nodeRsa });
}
