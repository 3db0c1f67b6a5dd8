// Keys and operations of a Tang server: pairs of P-521 keys, one that signs the advertisement (ES512, RFC 7518) and one
// for the McCallum-Relyea exchange, which multiplies a client's blinded point. On the wire, points are JWK and
// signatures JWS; docs/formats.md describes how pairs are sealed.
import { p521 } from '@noble/curves/nist.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { openXChaCha, sealXChaCha } from './aead.ts';
import { concatBytes, fromBase64, fromBase64Url, toBase64, toBase64Url, utf8 } from './bytes.ts';

/** Length of a scalar and of a coordinate in bytes. */
const length = 66;
/** Length of a pair's two secret keys in bytes; the signing key comes first. */
const pairLength = 2 * length;

/** The secret keys of a new pair. */
export function newTangPair(random: (length: number) => Uint8Array): Uint8Array {
  const scalar = (): Uint8Array => p521.utils.randomSecretKey(random(99));
  for (;;) {
    const pair = concatBytes(scalar(), scalar());
    // A thumbprint with a leading hyphen would be taken for an option on a command line.
    if (!tangThumbprints(tangPoints(pair).signing).s256.startsWith('-')) return pair;
  }
}

/** A public point, in base64url. */
interface Coordinates {
  readonly x: string;
  readonly y: string;
}

/** The public keys of a pair. */
interface TangPoints {
  readonly signing: Coordinates;
  readonly exchange: Coordinates;
}

export function tangPoints(pair: Uint8Array): TangPoints {
  const pointOf = (secret: Uint8Array): Coordinates => coordinates(p521.getPublicKey(secret, false));
  return { signing: pointOf(pair.subarray(0, length)), exchange: pointOf(pair.subarray(length)) };
}

function coordinates(point: Uint8Array): Coordinates {
  return { x: toBase64Url(point.subarray(1, 1 + length)), y: toBase64Url(point.subarray(1 + length)) };
}

/** Thumbprints of a key (RFC 7638) that clients ask for: SHA-256, and SHA-1 for clevis before version 9. */
export function tangThumbprints({ x, y }: Coordinates): { readonly s256: string; readonly s1: string } {
  const text = utf8(JSON.stringify({ crv: 'P-521', kty: 'EC', x, y }));
  return { s256: toBase64Url(sha256(text)), s1: toBase64Url(sha1(text)) };
}

/** The advertisement of a pair: a JWS over its public keys, signed by each of `signers`. */
export function advertisement({ signing, exchange }: TangPoints, signers: readonly Uint8Array[]): string {
  const jwk = (alg: string, operation: string, { x, y }: Coordinates): object => {
    return { alg, crv: 'P-521', key_ops: [operation], kty: 'EC', x, y };
  };
  const keys = [jwk('ES512', 'verify', signing), jwk('ECMR', 'deriveKey', exchange)];
  const payload = toBase64Url(utf8(JSON.stringify({ keys })));
  const header = toBase64Url(utf8(JSON.stringify({ alg: 'ES512', cty: 'jwk-set+json' })));
  const message = utf8(`${header}.${payload}`);
  const signatures = signers.map((pair) => {
    const signature = p521.sign(message, pair.subarray(0, length), { lowS: false, format: 'compact' });
    return { protected: header, signature: toBase64Url(signature) };
  });
  // RFC 7515 §7.2.2: a single signature uses the flattened form.
  return JSON.stringify(signatures.length === 1 ? { payload, ...signatures[0] } : { payload, signatures });
}

/** The exchange's result for a client's point, as a JWK; undefined if it is not a point of the curve. */
export function exchanged(pair: Uint8Array, x: string, y: string): string | undefined {
  const [left, right] = [fromBase64Url(x), fromBase64Url(y)];
  if (left?.length !== length || right?.length !== length) return undefined;
  let point: InstanceType<typeof p521.Point>;
  try {
    // The point at infinity is ruled out too: it has no uncompressed form.
    point = p521.Point.fromBytes(concatBytes(Uint8Array.of(4), left, right));
  } catch {
    return undefined;
  }
  const product = point.multiply(p521.Point.Fn.fromBytes(pair.subarray(length))).toBytes(false);
  return JSON.stringify({ alg: 'ECMR', crv: 'P-521', key_ops: ['deriveKey'], kty: 'EC', ...coordinates(product) });
}

const sealedFormat = 1;

/** Seals a pair for the database under a key of the tenant: base64 of the format number, a nonce and the ciphertext. */
export function sealTangPair(
  sealing: Uint8Array,
  thumbprint: string,
  pair: Uint8Array,
  random: (length: number) => Uint8Array,
): string {
  const nonce = random(24);
  return toBase64(
    concatBytes(Uint8Array.of(sealedFormat), nonce, sealXChaCha(sealing, nonce, pair, place(thumbprint))),
  );
}

/** Undefined if it was sealed under another thumbprint or altered. */
export function openTangPair(sealing: Uint8Array, thumbprint: string, text: string): Uint8Array | undefined {
  const bytes = fromBase64(text);
  if (bytes?.[0] !== sealedFormat || bytes.length !== 1 + 24 + pairLength + 16) return undefined;
  return openXChaCha(sealing, bytes.slice(1, 25), bytes.subarray(25), place(thumbprint));
}

function place(thumbprint: string): Uint8Array {
  return utf8(`kms/tang/pair/1\0${thumbprint}`);
}
