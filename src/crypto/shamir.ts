// Shamir's secret sharing, byte by byte over GF(2^8) with the polynomial of AES (x^8 + x^4 + x^3 + x + 1). Nothing is
// looked up or branched on by a secret byte: products are made of masks, and only the shares' numbers, which are
// public, steer anything.
import { KmsError } from '../errors.ts';

export interface ShamirShare {
  /** 1 to 255: the place at which the polynomials were evaluated. */
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

/** The byte whose product with `a` is 1 (FIPS 197 §4.2: a^254); 0 for 0. */
export function invert(a: number): number {
  let inverse = 1;
  for (let bit = 7; bit >= 0; bit--) {
    inverse = multiply(inverse, inverse);
    // 254 is public.
    if ((254 >>> bit) & 1) inverse = multiply(inverse, a);
  }
  return inverse;
}

/** `count` shares, any `threshold` of which make the secret again while fewer tell nothing of it. */
export function splitSecret(
  secret: Uint8Array,
  { count, threshold }: { readonly count: number; readonly threshold: number },
  random: (length: number) => Uint8Array,
): ShamirShare[] {
  if (!Number.isInteger(count) || !Number.isInteger(threshold) || threshold < 2 || count < threshold || count > 255) {
    throw new KmsError('invalid', `expected 2 to 255 shares and a threshold from 2 to their number`);
  }
  // Coefficients of x^1 up to x^(threshold - 1), one polynomial for each byte.
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
 * The secret of exactly as many shares as the threshold says. Shares that do not belong together, or too few, give
 * other bytes without a sign of it: whoever calls knows how to tell.
 */
export function combineShares(shares: readonly ShamirShare[]): Uint8Array {
  const length = shares[0]?.bytes.length ?? 0;
  const indices = new Set(shares.map(({ index }) => index));
  if (indices.size !== shares.length || shares.some(({ bytes }) => bytes.length !== length)) {
    throw new KmsError('invalid', 'expected shares of one length, each with a number of its own');
  }
  const secret = new Uint8Array(length);
  for (const { index, bytes } of shares) {
    // Lagrange at 0: the product of x_j / (x_j - x_i) over all others; minus is xor.
    let weight = 1;
    for (const other of indices) if (other !== index) weight = multiply(weight, multiply(other, invert(other ^ index)));
    for (let place = 0; place < length; place++) {
      secret[place] = (secret[place] ?? 0) ^ multiply(bytes[place] ?? 0, weight);
    }
  }
  return secret;
}
