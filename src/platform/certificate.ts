// A certificate with its private key, as `serve` loads it and `kms doctor` checks it; and its validity, as reported by
// doctor and by the log of a server with an invalid one.
import { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { KmsError, systemError } from '../errors.ts';
import { readFileWithin } from './node-files.ts';
import { refuseExposed, refusePipe } from './ownership.ts';

/** Both in epoch milliseconds. */
interface Validity {
  readonly from: number;
  readonly to: number;
}

/** Validity of the first certificate in `pem`. Throws if there is none. */
export function validityOf(pem: Uint8Array): Validity {
  const { validFromDate, validToDate } = new X509Certificate(pem);
  return { from: validFromDate.getTime(), to: validToDate.getTime() };
}

/** Why clients refuse the certificate now; undefined if it is within its validity. */
export function whyNotValid({ from, to }: Validity, now: number): string | undefined {
  if (now > to) return `it was valid until ${new Date(to).toISOString()}`;
  return now < from ? `it is valid from ${new Date(from).toISOString()} on` : undefined;
}

/**
 * Reads both files. Throws `refused` if they are not a certificate with its key, or if others can read the key, unless
 * it may be `exposed`.
 */
export async function readPair(
  certFile: string,
  keyFile: string,
  { exposed = false } = {},
): Promise<{ cert: Buffer; key: Buffer }> {
  const [cert, key] = await Promise.all([readPem(certFile, 'a certificate'), readPem(keyFile, 'its private key')]);
  const info = await stat(keyFile);
  if (!exposed && info.isFile())
    refuseExposed(keyFile, info, "the certificate's private key", 'get another certificate');
  if (/^(?:-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED)/m.test(key.toString('latin1'))) {
    throw new KmsError('refused', `${keyFile} is a private key with a passphrase, which nobody could enter`, {
      hint: `give one without, in a file that only its owner may read: openssl pkey -in ${keyFile} -out NEW`,
    });
  }
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new KmsError(
      'refused',
      `${certFile} and ${keyFile} are not a certificate and private key that belong together`,
      {
        hint: 'give a PEM certificate chain and its unencrypted PEM private key',
        cause: error,
      },
    );
  }
  return { cert, key };
}

/** In bytes: a chain has some thousands. */
export const longestPem = 1024 * 1024;

async function readPem(file: string, what: string): Promise<Buffer> {
  try {
    refusePipe(file, await stat(file), what);
    return await readFileWithin(file, longestPem);
  } catch (error) {
    throw systemError(error, file);
  }
}
