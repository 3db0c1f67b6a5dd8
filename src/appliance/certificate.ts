// When a certificate is valid, as `kms doctor` tells it, and the log of a server that takes one which is not.
import { X509Certificate } from 'node:crypto';

/** Both are epoch milliseconds. */
interface Validity {
  readonly from: number;
  readonly to: number;
}

/** Of the first certificate in `pem`. Throws where there is none. */
export function validityOf(pem: Uint8Array): Validity {
  const { validFrom, validTo } = new X509Certificate(pem);
  return { from: Date.parse(validFrom), to: Date.parse(validTo) };
}

/** Why no client takes it now; undefined where one may. */
export function whyNotValid({ from, to }: Validity, now: number): string | undefined {
  if (now > to) return `it was valid until ${new Date(to).toISOString()}`;
  return now < from ? `it is valid from ${new Date(from).toISOString()} on` : undefined;
}
