// One-time passwords by the clock (TOTP, RFC 6238, over HOTP, RFC 4226) as authenticator apps have them: HMAC-SHA-1,
// six digits, steps of 30 seconds. Whoever checks a code remembers the step that it was for, since a code works once.
import { hmac } from '@noble/hashes/hmac.js';
import { sha1 } from '@noble/hashes/legacy.js';

/** Bytes of a secret: RFC 4226 §4 recommends 160 bits. */
export const totpSecretLength = 20;
/** Milliseconds. */
const step = 30_000;
/** Steps by which the clock of an app may be ahead or behind. */
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

/** Whether the text has the form of a code. */
export function isTotpCode(text: string): boolean {
  return /^\d{6}$/.test(text);
}

/**
 * The step that the code is for: the present one, the one before or the one after, and later than `last`, that of the
 * last code that was used; undefined for every other code.
 */
export function matchTotp(secret: Uint8Array, code: string, now: number, last: number): number | undefined {
  const present = totpStep(now);
  for (let counter = Math.max(0, present - tolerance); counter <= present + tolerance; counter++) {
    if (counter > last && totpCode(secret, counter) === code) return counter;
  }
  return undefined;
}

interface TotpLabel {
  /** The service. */
  readonly issuer: string;
  /** Whose it is there. */
  readonly account: string;
}

/** What an app takes as a QR code. The form is that of Google Authenticator, which all follow. */
export function totpUri(secret: Uint8Array, { issuer, account }: TotpLabel): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  const parameters = new URLSearchParams({ secret: totpSecretText(secret), issuer });
  // Apps read a plus sign as one.
  return `otpauth://totp/${label}?${parameters.toString().replaceAll('+', '%20')}`;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** RFC 4648 base32, without padding: `length` of bytes is a multiple of five. */
export function totpSecretText(secret: Uint8Array): string {
  let text = '';
  let held = 0;
  let bits = 0;
  for (const byte of secret) {
    held = ((held << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet.charAt((held >>> (bits - 5)) & 31);
  }
  return text;
}
