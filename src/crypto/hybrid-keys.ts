// Encodings of X-Wing keys: PKCS#8 and SPKI as in the draft's example, JWK as WebCrypto exports it, and age's
// identities. All of them hold the seed, or the 1216 bytes of the public key.
import { fromBech32 } from './bech32.ts';
import { concatBytes, equalBytes, fromBase64Url, fromHex } from './bytes.ts';
import { isPem } from './pem.ts';
import { isUsableXWingKey, xWingPublicKey, xWingPublicKeyLength } from './x-wing.ts';
import { afterPrefix, keyTextBytes } from './x25519.ts';

/**
 * Accepted AlgorithmIdentifiers in DER: 1.3.6.1.4.1.62253.25722, from the arc of one of the draft's authors. The first
 * is the one written; a registered one will be put before it, and this one still be read.
 */
const identifiers = ['300d060b2b0601040183e62d81c87a'].map((hex) => fromHex(hex) ?? new Uint8Array());

/** SubjectPublicKeyInfo up to the key: lengths, algorithm, and the start of a bit string without unused bits. */
const spkiPrefixes = identifiers.map((identifier) => {
  const inside = identifier.length + 5 + xWingPublicKeyLength;
  const bits = xWingPublicKeyLength + 1;
  return concatBytes(
    Uint8Array.of(0x30, 0x82, inside >>> 8, inside),
    identifier,
    Uint8Array.of(0x03, 0x82, bits >>> 8, bits, 0x00),
  );
});
/** PrivateKeyInfo up to the seed. */
const pkcs8Prefixes = identifiers.map((identifier) =>
  concatBytes(Uint8Array.of(0x30, identifier.length + 5 + 32, 0x02, 0x01, 0x00), identifier, Uint8Array.of(0x04, 0x20)),
);

const agePrefix = 'age-secret-key-pq-';

/** SubjectPublicKeyInfo, DER. */
export function hybridKeyToSpki(publicKey: Uint8Array): Uint8Array {
  return concatBytes(...spkiPrefixes.slice(0, 1), publicKey);
}

/** PKCS#8 PrivateKeyInfo of a seed, DER. */
export function seedToPkcs8(seed: Uint8Array): Uint8Array {
  return concatBytes(...pkcs8Prefixes.slice(0, 1), seed);
}

/**
 * The 1216 bytes of a public key given as base64 SPKI DER, PEM, JWK, or base64 of the raw bytes. Undefined for anything
 * else, for unusable keys, and for the JWK of a private key, which must not be handed to others. Throws `invalid` for
 * PEM with two public keys.
 */
export function parseHybridKey(text: string): Uint8Array | undefined {
  const jwk = jwkOf(text);
  const key = jwk ? !jwk.isPrivate && jwk.publicKey : spkiKey(text);
  return key && isUsableXWingKey(key) ? key : undefined;
}

/**
 * The seed of a private key given as PEM, base64 PKCS#8 DER, JWK, or an age identity. Undefined for anything else: a
 * bare 32 bytes could just as well be an X25519 key. Throws `invalid` for PEM with two private keys.
 */
export function parseSeed(text: string): Uint8Array | undefined {
  const jwk = jwkOf(text);
  if (jwk) {
    const { seed, publicKey } = jwk;
    return seed && equalBytes(xWingPublicKey(seed), publicKey) ? seed : undefined;
  }
  const identity = fromBech32(text.trim());
  if (identity) return identity.prefix === agePrefix && identity.bytes.length === 32 ? identity.bytes : undefined;
  const bytes = keyTextBytes(text, 'PRIVATE KEY');
  return bytes && firstAfter(bytes, pkcs8Prefixes, 32);
}

function spkiKey(text: string): Uint8Array | undefined {
  const bytes = keyTextBytes(text, 'PUBLIC KEY');
  if (bytes?.length === xWingPublicKeyLength && !isPem(text)) return bytes;
  return bytes && firstAfter(bytes, spkiPrefixes, xWingPublicKeyLength);
}

function firstAfter(bytes: Uint8Array, prefixes: readonly Uint8Array[], length: number): Uint8Array | undefined {
  for (const prefix of prefixes) {
    const key = afterPrefix(bytes, prefix, length);
    if (key) return key;
  }
  return undefined;
}

interface Jwk {
  readonly publicKey: Uint8Array;
  /** Whether the JWK has a private part, even a malformed one. */
  readonly isPrivate: boolean;
  readonly seed?: Uint8Array;
}

/**
 * Reads a JWK of type `AKP` as WebCrypto exports it: `pub` always, `priv` for a private key; other members are ignored.
 */
function jwkOf(text: string): Jwk | undefined {
  if (!text.trimStart().startsWith('{')) return undefined;
  let fields: Readonly<Record<string, unknown>>;
  try {
    // Cast: a text that begins with `{` parses as an object or not at all.
    fields = JSON.parse(text) as typeof fields;
  } catch {
    return undefined;
  }
  const { kty, alg, pub, priv } = fields;
  if (kty !== 'AKP' || alg !== 'MLKEM768-X25519' || typeof pub !== 'string') return undefined;
  const publicKey = fromBase64Url(pub);
  if (publicKey?.length !== xWingPublicKeyLength) return undefined;
  const seed = typeof priv === 'string' ? fromBase64Url(priv) : undefined;
  const isPrivate = priv !== undefined;
  return seed?.length === 32 ? { publicKey, isPrivate, seed } : { publicKey, isPrivate };
}
