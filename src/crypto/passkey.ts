// Passkeys: Web Authentication (W3C, level 3) as a service does it, with public keys in COSE form (RFC 9052). What the
// browser is asked for, and whether what it answers is good. Attestation is neither asked for nor looked at: which make
// an authenticator is does not matter here, and nothing that one sends leads to a look-up elsewhere.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { KmsError } from '../errors.ts';
import { fromBase64Url, toBase64Url, utf8 } from './bytes.ts';

/** The service as the browser names it. */
export interface RelyingParty {
  /** Such as `https://kms.example.org`. */
  readonly origin: string;
  /** Its host: passkeys are for one. */
  readonly rpId: string;
}

export interface Passkey {
  /** What the authenticator calls it, base64url. */
  readonly credentialId: string;
  /** Base64url. */
  readonly publicKey: string;
  /** How often it was used, as far as the authenticator counts. */
  readonly counter: number;
}

/** Milliseconds that the browser waits for somebody. */
export const passkeyTimeout = 300_000;

/** ES256, EdDSA, RS256: https://www.iana.org/assignments/cose. */
const algorithms: readonly number[] = [-7, -8, -257];
/** Bytes; of an RSA key of 4,096 bits there are about 530. */
const longestPublicKey = 1024;

interface Person {
  /** At most 64 bytes. */
  readonly id: string;
  readonly name: string;
  readonly displayName: string;
}

interface KnownPasskey {
  readonly credentialId: string;
  readonly transports: readonly string[];
}

/** PublicKeyCredentialCreationOptionsJSON (§5.1.3). `known` are those that need not be made again. */
export function creationOptions(rp: RelyingParty, person: Person, challenge: string, known: readonly KnownPasskey[]) {
  return {
    rp: { id: rp.rpId, name: 'Key management service' },
    user: { ...person, id: toBase64Url(utf8(person.id)) },
    challenge,
    pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key' as const, alg })),
    timeout: passkeyTimeout,
    excludeCredentials: known.map(descriptor),
    authenticatorSelection: { residentKey: 'preferred' as const, userVerification: 'preferred' as const },
    attestation: 'none' as const,
  };
}

/** PublicKeyCredentialRequestOptionsJSON (§5.1.4). Without `known`, the authenticator proposes whom it knows. */
export function requestOptions(rp: RelyingParty, challenge: string, known: readonly KnownPasskey[] = []) {
  return {
    challenge,
    timeout: passkeyTimeout,
    rpId: rp.rpId,
    allowCredentials: known.map(descriptor),
    // Alone it has to tell who is there; after a password it is enough that somebody is.
    userVerification: known.length > 0 ? ('preferred' as const) : ('required' as const),
  };
}

function descriptor({ credentialId, transports }: KnownPasskey) {
  return { id: credentialId, type: 'public-key' as const, transports: [...transports] };
}

/** A response as it was sent, of which nothing is known but its form. */
interface Sent {
  readonly id: string;
  readonly rawId: string;
  readonly type: 'public-key';
}

export interface SentRegistration extends Sent {
  readonly response: {
    readonly clientDataJSON: string;
    readonly attestationObject: string;
    readonly transports?: readonly string[];
  };
}

export interface SentAssertion extends Sent {
  readonly response: {
    readonly clientDataJSON: string;
    readonly authenticatorData: string;
    readonly signature: string;
    readonly userHandle?: string;
  };
}

interface Expected {
  readonly rp: RelyingParty;
  /** Whether this service made the challenge, for this. */
  isChallenge(challenge: string): boolean;
}

/** Throws `invalid` for what is no new passkey of this service. */
export async function verifyRegistration(sent: SentRegistration, { rp, isChallenge }: Expected): Promise<Passkey> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
  try {
    const attestationObject = await withoutAttestation(sent.response.attestationObject);
    const response: RegistrationResponseJSON = {
      ...sent,
      response: { clientDataJSON: sent.response.clientDataJSON, attestationObject },
      clientExtensionResults: {},
    };
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: isChallenge,
      expectedOrigin: rp.origin,
      expectedRPID: rp.rpId,
      requireUserVerification: false,
      supportedAlgorithmIDs: [...algorithms],
    });
    if (!verified) throw new Error('it is not verified');
    const { id: credentialId, publicKey, counter } = registrationInfo.credential;
    if (publicKey.length > longestPublicKey) throw new Error(`the public key has ${publicKey.length} bytes`);
    return { credentialId, publicKey: toBase64Url(publicKey), counter };
  } catch (cause) {
    throw refused(cause);
  }
}

/** Answers the new counter. Throws `invalid` for what that passkey did not sign, here and now. */
export async function verifyAssertion(
  sent: SentAssertion,
  { credentialId, publicKey, counter }: Passkey,
  { rp, isChallenge, isAlone }: Expected & { readonly isAlone: boolean },
): Promise<number> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
  try {
    const response: AuthenticationResponseJSON = { ...sent, clientExtensionResults: {} };
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: isChallenge,
      expectedOrigin: rp.origin,
      expectedRPID: rp.rpId,
      requireUserVerification: isAlone,
      credential: { id: credentialId, publicKey: Uint8Array.from(fromBase64Url(publicKey) ?? []), counter },
    });
    if (!verified || sent.id !== credentialId) throw new Error('it is not verified');
    return authenticationInfo.newCounter;
  } catch (cause) {
    throw refused(cause);
  }
}

/**
 * The attestation object with what the authenticator says of itself taken away: checking that would mean to trust the
 * makers' certificates, and to ask their servers whether those are still good.
 */
async function withoutAttestation(attestationObject: string): Promise<string> {
  const { isoCBOR } = await import('@simplewebauthn/server/helpers');
  const bytes = fromBase64Url(attestationObject);
  if (!bytes) throw new Error('the attestation object is no base64url');
  const decoded: unknown = isoCBOR.decodeFirst(Uint8Array.from(bytes));
  const authData: unknown = decoded instanceof Map ? decoded.get('authData') : undefined;
  if (!(authData instanceof Uint8Array)) throw new Error('the attestation object has no authenticator data');
  const entries: [string, string | Uint8Array | Map<string, string>][] = [
    ['fmt', 'none'],
    ['attStmt', new Map<string, string>()],
    ['authData', authData],
  ];
  return toBase64Url(isoCBOR.encode(new Map(entries)));
}

function refused(cause: unknown): KmsError {
  return new KmsError('invalid', 'the passkey was not accepted', { cause });
}
