// The certificate that the appliance issued, as a PKCS #12 file under a new password.
import { toHex } from '../crypto/bytes.ts';
import { pemBlock } from '../crypto/pem.ts';
import { toPkcs12 } from '../crypto/pkcs12.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';

interface Issued {
  readonly certificate?: string;
  readonly privateKey?: string;
  readonly caCertificate?: string;
}

interface Pkcs12File {
  readonly bytes: Uint8Array;
  readonly password: string;
}

const passwordBytes = 15;

/** `name` is what software lists the key as. Throws `invalid` unless all three are there. */
export function pkcs12File(
  { certificate = '', privateKey = '', caCertificate = '' }: Issued,
  name: string,
): Pkcs12File {
  const [leaf, authority] = [certificate, caCertificate].map((pem) => pemBlock(pem, 'CERTIFICATE'));
  const key = pemBlock(privateKey, 'PRIVATE KEY');
  if (!leaf || !authority || !key) {
    throw new KmsError('invalid', 'expected a certificate with its key and authority from the appliance');
  }
  // Printable letters, so that all software means the same bytes.
  const password = toHex(systemRandom(passwordBytes));
  try {
    const bytes = toPkcs12({ certificate: leaf, privateKey: key, authority, name, password }, systemRandom);
    return { bytes, password };
  } finally {
    key.fill(0);
  }
}
