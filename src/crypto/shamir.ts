// Shamir's secret sharing, byte by byte over GF(2^8) with the polynomial of AES (x^8 + x^4 + x^3 + x + 1). No table is
// indexed and no branch taken by a secret byte: products use masks, and only the share numbers, which are public,
// affect control flow.
import { KmsError } from '../errors.ts';

export interface ShamirShare {
  /** 1 to 255: the point at which the polynomials were evaluated. */
  readonly index: number;
  readonly bytes: Uint8Array;
}

/** The product of two bytes. */
export function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 0; bit < 8; bit++) {
    product ^= a & -(b & 1);
    a = (a << 1) ^ (0x11b & -(a >>> 7));
    b >>>= 1;
  }
  return product;
}

/** The inverse of `a` (FIPS 197 §4.2: a^254); 0 for 0. */
export function invert(a: number): number {
  let inverse = 1;
  for (let bit = 7; bit >= 0; bit--) {
    inverse = multiply(inverse, inverse);
    // Safe to branch on: the exponent 254 is public.
    if ((254 >>> bit) & 1) inverse = multiply(inverse, a);
  }
  return inverse;
}

/** `count` shares, any `threshold` of which restore the secret while fewer reveal nothing about it. */
export function splitSecret(
  secret: Uint8Array,
  { count, threshold }: { readonly count: number; readonly threshold: number },
  random: (length: number) => Uint8Array,
): ShamirShare[] {
  if (!Number.isInteger(count) || !Number.isInteger(threshold) || threshold < 2 || count < threshold || count > 255) {
    throw new KmsError('invalid', `expected 2 to 255 shares and a threshold from 2 to their number`);
  }
  // Coefficients of x^1 to x^(threshold - 1), one polynomial per byte.
  const coefficients = random(secret.length * (threshold - 1));
  const shares = Array.from({ length: count }, (_, at) => {
    const index = at + 1;
    const bytes = secret.map((constant, place) => {
      let value = 0;
      for (let power = threshold - 2; power >= 0; power--) {
        value = multiply(value ^ (coefficients[power * secret.length + place] ?? 0), index);
      }
      return value ^ constant;
    });
    return { index, bytes };
  });
  coefficients.fill(0);
  return shares;
}

/**
 * The secret from exactly `threshold` shares. Too few shares, or shares of different secrets, yield wrong bytes without
 * any sign of it: the caller must be able to tell.
 */
export function combineShares(shares: readonly ShamirShare[]): Uint8Array {
  const length = shares[0]?.bytes.length ?? 0;
  const indices = new Set(shares.map(({ index }) => index));
  if (indices.size !== shares.length || shares.some(({ bytes }) => bytes.length !== length)) {
    throw new KmsError('invalid', 'expected shares of one length, each with a number of its own');
  }
  const secret = new Uint8Array(length);
  for (const { index, bytes } of shares) {
    // Lagrange interpolation at 0: the product of x_j / (x_j - x_i) over all others; minus is xor.
    let weight = 1;
    for (const other of indices) if (other !== index) weight = multiply(weight, multiply(other, invert(other ^ index)));
    for (let place = 0; place < length; place++) {
      secret[place] = (secret[place] ?? 0) ^ multiply(bytes[place] ?? 0, weight);
    }
  }
  return secret;
}
