// `fetch` over the network, trusting the authorities that somebody names, with a word on what to do about a certificate that is
// not trusted.
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { KmsError } from '../errors.ts';
import type { Authorities } from './target.ts';

type Fetch = (request: Request) => Promise<Response>;

/** What OpenSSL says of a chain that ends nowhere. */
const untrusted: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_UNTRUSTED',
]);

const faults: Readonly<Record<string, readonly [problem: string, hint: string]>> = {
  CERT_HAS_EXPIRED: ['its certificate has expired', 'renew it, or set the clock of this machine'],
  CERT_NOT_YET_VALID: ['its certificate is not valid yet', 'set the clock of this machine'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['its certificate is for another name', 'use a name that the certificate has'],
};

/** Throws `invalid` where the authorities are no certificates. Without any it trusts the well-known ones. */
export function networkFetch(base: string, authorities: Authorities | undefined): Fetch {
  if (authorities !== undefined) trust(authorities);
  return async (request) => {
    try {
      return await fetch(request);
    } catch (cause) {
      throw certificateFault(cause, base, authorities?.from) ?? cause;
    }
  };
}

/** For the whole process, which is one command: `fetch` has no setting of its own. */
function trust({ pem, from }: Authorities): void {
  try {
    setDefaultCACertificates([pem]);
    if (getCACertificates('default').length > 0) return;
  } catch {
    // Said below.
  }
  throw new KmsError('invalid', `${from} has no certificate in it`, {
    hint: 'give the certificate of the authority that signed the one of the server, PEM',
  });
}

function certificateFault(cause: unknown, base: string, from: string | undefined): KmsError | undefined {
  const code = codeOf(cause);
  if (code === undefined) return undefined;
  if (untrusted.has(code)) {
    const hint =
      from === undefined
        ? 'name the authority that signed it, PEM, with --ca-file FILE (KMS_CA_FILE)'
        : `none of the authorities in ${from} signed it`;
    return new KmsError('unavailable', `cannot reach ${base}: its certificate is not trusted`, { hint, cause });
  }
  const fault = faults[code];
  return fault && new KmsError('unavailable', `cannot reach ${base}: ${fault[0]}`, { hint: fault[1], cause });
}

/** `fetch` hides the code below its own error. */
function codeOf(error: unknown): string | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if ('code' in inner && typeof inner.code === 'string') return inner.code;
  }
  return undefined;
}
