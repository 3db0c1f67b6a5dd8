// What a client is made with, checked before it is used: an address or a credential that cannot be sent would fail later, as if the
// appliance could not be reached, and the platform's own errors have the credential in them.
import { KmsError } from '../errors.ts';

/** The address without slashes at its end. Throws `invalid` for anything but http and https, and for a user, query or fragment in it. */
export function checkedBase(baseUrl: string): string {
  const base = typeof baseUrl === 'string' ? baseUrl.replace(/\/+$/, '') : undefined;
  if (base === undefined || !isAddress(base)) {
    throw new KmsError('invalid', 'baseUrl: expected an http or https address, such as https://kms.example');
  }
  return base;
}

/** Those of every request; the credential and the two that a call itself needs go before `further`. Throws `invalid`. */
export function headersOf(apiKey: string | undefined, further: Readonly<Record<string, string>> = {}): Headers {
  const headers = new Headers({ accept: 'application/json' });
  for (const [name, value] of Object.entries(further)) {
    try {
      headers.set(name, value);
    } catch {
      throw new KmsError('invalid', 'headers: expected names and values that can stand in an HTTP header');
    }
  }
  if (apiKey === undefined) return headers;
  const key = typeof apiKey === 'string' ? apiKey.trim() : '';
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new KmsError('invalid', 'apiKey: expected one word', {
      hint: 'an API key looks like kms_ and 49 letters and digits',
    });
  }
  headers.set('authorization', `Bearer ${key}`);
  return headers;
}

/** In a page an address may also be relative to it, and so empty. */
function isAddress(base: string): boolean {
  try {
    return /^https?:/.test(new Request(`${base}/`).url) && !/[?#]/.test(base);
  } catch {
    return false;
  }
}
