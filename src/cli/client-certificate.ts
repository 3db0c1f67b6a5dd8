// The client certificate that a command shows to an appliance: named by options, or by a profile, which keeps the names
// of its files, since such certificates are replaced often.
import { createSecureContext } from 'node:tls';
import { KmsError, reasonOf } from '../errors.ts';
import type { Cli } from './command.ts';
import { readPem } from './files.ts';
import { readSecretBytes } from './secrets.ts';

/** Paths of PEM files. The key may be in the file of the certificate. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** A client certificate with its key, PEM. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

/** The files of --client-cert and --client-key; undefined if none are named. Throws `usage` for a key alone. */
export function namedCertificate(cli: Cli): CertificateFiles | undefined {
  const cert = cli.globals.get('--client-cert');
  const key = cli.globals.get('--client-key');
  if (cert !== undefined) return { cert, key: key ?? cert };
  if (key !== undefined) throw cli.wrong('--client-key goes with --client-cert');
  return undefined;
}

/** Throws `refused` if other users can read the key, and `invalid` unless the two belong together. */
export async function readClientCertificate({
  cert: file,
  key: keyFile,
}: CertificateFiles): Promise<ClientCertificate> {
  const isOneFile = file === keyFile;
  if (isOneFile && !/PRIVATE KEY-----/.test(await readPem(file, 'the client certificate'))) {
    throw new KmsError('invalid', `${file} has no private key in it`, { hint: 'name its file with --client-key' });
  }
  const key = await readPem(keyFile, 'the key of the client certificate', readSecretBytes);
  const cert = isOneFile ? key : await readPem(file, 'the client certificate');
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH') {
      throw new KmsError('invalid', `${file} and ${keyFile} are no client certificate and its key`, {
        hint: `the key in ${keyFile} is that of another certificate`,
        cause,
      });
    }
    throw new KmsError('invalid', `${file} and ${keyFile} are no client certificate and its key: ${reasonOf(cause)}`, {
      hint: 'give the certificate in PEM with --client-cert, those that signed it behind it, and its key, without a passphrase, with --client-key',
      cause,
    });
  }
  return { cert, key };
}
