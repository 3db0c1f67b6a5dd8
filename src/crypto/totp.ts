// Time-based one-time passwords (TOTP, RFC 6238, over HOTP, RFC 4226) as authenticator apps make them: HMAC-SHA-1, six
// digits, steps of 30 seconds. The caller remembers the step of each accepted code, since a code works only once.
import { hmac } from '@noble/hashes/hmac.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { base32nopad } from '@scure/base';

/** Length of a secret in bytes: RFC 4226 §4 recommends 160 bits. */
export const totpSecretLength = 20;
/** Milliseconds. */
const step = 30_000;
/** Steps by which an app's clock may be ahead or behind. */
const tolerance = 1;

export function totpStep(now: number): number {
  return Math.floor(now / step);
}

/** HOTP (RFC 4226 §5.3) with the step as the counter. */
export function totpCode(secret: Uint8Array, counter: number, digits = 6): string {
  const message = new Uint8Array(8);
  new DataView(message.buffer).setBigUint64(0, BigInt(counter));
  const mac = hmac(sha1, secret, message);
  const offset = (mac[19] ?? 0) & 15;
  const number = new DataView(mac.buffer, mac.byteOffset).getUint32(offset) & 0x7fffffff;
  return String(number % 10 ** digits).padStart(digits, '0');
}

/** Whether the text is formed like a code. */
export function isTotpCode(text: string): boolean {
  return /^\d{6}$/.test(text);
}

/**
 * The step that the code is for: the present, previous or next one, and later than `last`, the step of the last code
 * that was used. Undefined for any other code.
 */
export function matchTotp(secret: Uint8Array, code: string, now: number, last: number): number | undefined {
  const present = totpStep(now);
  for (let counter = Math.max(0, present - tolerance); counter <= present + tolerance; counter++) {
    if (counter > last && totpCode(secret, counter) === code) return counter;
  }
  return undefined;
}

interface TotpLabel {
  /** The service's name. */
  readonly issuer: string;
  /** The user's account there. */
  readonly account: string;
}

/** URI for the QR code, in Google Authenticator's format, which all apps follow. */
export function totpUri(secret: Uint8Array, { issuer, account }: TotpLabel): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  const parameters = new URLSearchParams({ secret: totpSecretText(secret), issuer });
  // Apps do not read a plus sign as a space.
  return `otpauth://totp/${label}?${parameters.toString().replaceAll('+', '%20')}`;
}

/** RFC 4648 base32 without padding: a secret's length is a multiple of five bytes. */
export function totpSecretText(secret: Uint8Array): string {
  return base32nopad.encode(secret);
}
