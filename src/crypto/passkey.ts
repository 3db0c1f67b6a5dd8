// Passkeys: the service's side of Web Authentication (W3C, level 3), with public keys in COSE form (RFC 9052). It makes
// the options for the browser and verifies the responses. Attestation is neither requested nor checked: the make of an
// authenticator does not matter here, and nothing that one sends leads to a look-up elsewhere.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { KmsError } from '../errors.ts';
import { fromBase64Url, toBase64Url, utf8 } from './bytes.ts';

/** The relying party as the browser names it. */
export interface RelyingParty {
  /** Such as `https://kms.example.org`. */
  readonly origin: string;
  /** The origin's host, to which passkeys are bound. */
  readonly rpId: string;
}

export interface Passkey {
  /** The credential id that the authenticator gave it, base64url. */
  readonly credentialId: string;
  /** Base64url. */
  readonly publicKey: string;
  /** The authenticator's count of uses, if it counts. */
  readonly counter: number;
}

/** Time that the browser waits for the user, in milliseconds. */
export const passkeyTimeout = 300_000;

/** COSE ids of ES256, EdDSA and RS256: https://www.iana.org/assignments/cose. */
const algorithms: readonly number[] = [-7, -8, -257];
/** Bytes; a 4,096-bit RSA key takes about 530. */
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

/** PublicKeyCredentialCreationOptionsJSON (§5.1.3). `known` passkeys are not to be created again. */
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

/**
 * PublicKeyCredentialRequestOptionsJSON (§5.1.4). Without `known`, the authenticator offers the accounts that it knows.
 */
export function requestOptions(rp: RelyingParty, challenge: string, known: readonly KnownPasskey[] = []) {
  return {
    challenge,
    timeout: passkeyTimeout,
    rpId: rp.rpId,
    allowCredentials: known.map(descriptor),
    // A passkey used alone must identify the user; after a password, presence is enough.
    userVerification: known.length > 0 ? ('preferred' as const) : ('required' as const),
  };
}

function descriptor({ credentialId, transports }: KnownPasskey) {
  return { id: credentialId, type: 'public-key' as const, transports: [...transports] };
}

/** A response as received; only its shape has been checked. */
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
  /** Whether this service made the challenge for this purpose. */
  isChallenge(challenge: string): boolean;
}

/** Verifies a new passkey. Throws `invalid` if the response is not a registration with this service. */
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

/** Returns the new counter. Throws `invalid` if the passkey did not sign this challenge for this service. */
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
 * The attestation object without its attestation statement: checking that would mean trusting the makers' certificates
 * and asking their servers for revocations.
 */
async function withoutAttestation(attestationObject: string): Promise<string> {
  const { isoCBOR } = await import('@simplewebauthn/server/helpers');
  const bytes = fromBase64Url(attestationObject);
  if (!bytes) throw new Error('the attestation object is not base64url');
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
