// Passkeys at logins. Challenges are not stored: each carries its expiry and a MAC under a tenant key that binds it to
// its purpose and user. A used one is remembered until it expires, so that it works once; asking for challenges cannot
// fill the store.
import { concatBytes, equalBytes, fromBase64Url, toBase64Url, utf8 } from '../crypto/bytes.ts';
import { hmacSha256 } from '../crypto/hash.ts';
import { isSignedChallenge, type KeptAssertion } from '../crypto/kept-assertion.ts';
import {
  creationOptions,
  type Passkey,
  passkeyTimeout,
  type RelyingParty,
  requestOptions,
  type SentAssertion,
  type SentRegistration,
  verifyAssertion,
  verifyRegistration,
} from '../crypto/passkey.ts';
import { KmsError } from '../errors.ts';
import { addressBytes } from '../model/addresses.ts';
import type { Tables } from '../store/port.ts';
import type { PasskeyData, SecondFactor } from '../store/tables/second-factors.ts';
import type { Tenant, World } from './context.ts';

/** Purpose of a challenge, and the user whose answer it expects; no user yet if the passkey itself tells who it is. */
interface ChallengeSubject {
  readonly purpose: 'create' | 'second-factor' | 'login';
  readonly userId: string;
}

/** A challenge that this service made and that has not expired. */
interface Challenge {
  readonly text: string;
  readonly expiresAt: number;
}

/** Context that passkeys are made and checked in. */
export interface PasskeyPlace {
  readonly tenant: Tenant;
  readonly world: World;
  /** Origin of the page. */
  readonly origin: string;
}

const nonceLength = 16;
const timeLength = 8;
const macLength = 16;

function newChallenge({ tenant, world }: PasskeyPlace, subject: ChallengeSubject): string {
  const time = new Uint8Array(timeLength);
  new DataView(time.buffer).setFloat64(0, world.now() + passkeyTimeout);
  const said = concatBytes(world.random(nonceLength), time);
  return toBase64Url(concatBytes(said, macOf(tenant, subject, said)));
}

function readChallenge(
  { tenant, world }: PasskeyPlace,
  subject: ChallengeSubject,
  text: string,
): Challenge | undefined {
  const bytes = fromBase64Url(text);
  if (bytes?.length !== nonceLength + timeLength + macLength) return undefined;
  const said = bytes.subarray(0, nonceLength + timeLength);
  if (!equalBytes(bytes.subarray(said.length), macOf(tenant, subject, said))) return undefined;
  const expiresAt = new DataView(said.buffer, said.byteOffset).getFloat64(nonceLength);
  return world.now() < expiresAt ? { text, expiresAt } : undefined;
}

function macOf({ id, keys }: Tenant, { purpose, userId }: ChallengeSubject, said: Uint8Array): Uint8Array {
  const label = utf8(`kms/passkey/v1 ${purpose} ${id} ${userId} `);
  return hmacSha256(keys.key('passkey'))(concatBytes(label, said)).subarray(0, macLength);
}

/** Undefined if the page is at an IP address, which passkeys do not support. */
function relyingParty(origin: string): RelyingParty | undefined {
  const { hostname } = new URL(origin);
  return addressBytes(hostname.replace(/^\[|\]$/g, '')) ? undefined : { origin, rpId: hostname };
}

/** Throws `invalid` if there can be none. */
function needRelyingParty({ origin }: PasskeyPlace): RelyingParty {
  const rp = relyingParty(origin);
  if (rp) return rp;
  throw new KmsError('invalid', 'passkeys need a page at a host name, not at an IP address');
}

type Person = Parameters<typeof creationOptions>[1];

/** Browser options to make a passkey. `factors` are the user's existing ones. */
export function newCreationOptions(place: PasskeyPlace, person: Person, factors: readonly SecondFactor[]) {
  const rp = needRelyingParty(place);
  const challenge = newChallenge(place, { purpose: 'create', userId: person.id });
  return creationOptions(rp, person, challenge, knownOf(factors, rp));
}

/** Browser options to log in by a passkey alone. */
export function loginOptions(place: PasskeyPlace) {
  return requestOptions(needRelyingParty(place), newChallenge(place, { purpose: 'login', userId: '' }));
}

/** Browser options after a password; undefined if none of the factors is a passkey for this page. */
export function secondFactorOptions(place: PasskeyPlace, userId: string, factors: readonly SecondFactor[]) {
  const rp = relyingParty(place.origin);
  const known = rp ? knownOf(factors, rp) : [];
  if (!rp || known.length === 0) return undefined;
  return requestOptions(rp, newChallenge(place, { purpose: 'second-factor', userId }), known);
}

/** Browser options to sign a word about a request; undefined if none of the factors is a passkey for this page. */
export function approvalOptions(place: PasskeyPlace, challenge: string, factors: readonly SecondFactor[]) {
  const rp = relyingParty(place.origin);
  const known = rp ? knownOf(factors, rp) : [];
  if (!rp || known.length === 0) return undefined;
  return { ...requestOptions(rp, challenge, known), userVerification: 'required' as const };
}

function knownOf(factors: readonly SecondFactor[], { rpId }: RelyingParty) {
  return factors.flatMap(({ credentialId, data }) =>
    credentialId !== undefined && data.kind === 'passkey' && data.rpId === rpId
      ? [{ credentialId, transports: data.transports }]
      : [],
  );
}

/** A new passkey, and the challenge to consume for it. */
export interface VerifiedPasskey {
  readonly passkey: Passkey;
  readonly rpId: string;
  readonly challenge: Challenge;
}

/** Throws `invalid`. */
export async function verifyNewPasskey(
  place: PasskeyPlace,
  userId: string,
  sent: SentRegistration,
): Promise<VerifiedPasskey> {
  const rp = needRelyingParty(place);
  const { isChallenge, taken } = challengeCheck(place, { purpose: 'create', userId });
  const passkey = await verifyRegistration(sent, { rp, isChallenge });
  return { passkey, rpId: rp.rpId, challenge: taken() };
}

/** A successful use of a passkey. */
export interface VerifiedUse {
  readonly factor: SecondFactor;
  /** Its data after this use. */
  readonly data: PasskeyData;
  readonly challenge: Challenge;
}

/** Throws `invalid`. */
export async function verifyPasskeyUse(
  place: PasskeyPlace,
  factor: SecondFactor | undefined,
  subject: ChallengeSubject,
  sent: SentAssertion,
): Promise<VerifiedUse> {
  const rp = needRelyingParty(place);
  const { data, credentialId } = factor ?? {};
  if (!factor || data?.kind !== 'passkey' || credentialId === undefined || data.rpId !== rp.rpId) {
    throw new KmsError('invalid', 'the passkey was not accepted');
  }
  const { isChallenge, taken } = challengeCheck(place, subject);
  const isAlone = subject.purpose === 'login';
  const counter = await verifyAssertion(sent, { ...data, credentialId }, { rp, isChallenge, isAlone });
  return { factor, data: { ...data, counter }, challenge: taken() };
}

/** A use of a passkey that signed a word, and its signature as the record of the word keeps it. */
interface SignedWord {
  readonly use: Omit<VerifiedUse, 'challenge'>;
  readonly assertion: KeptAssertion;
}

/** The use of a passkey to sign a word; the authenticator verified who is there. Throws `invalid`. */
export async function verifyApproval(
  place: PasskeyPlace,
  factor: SecondFactor | undefined,
  challenge: string,
  sent: SentAssertion,
): Promise<SignedWord> {
  const rp = needRelyingParty(place);
  const { data, credentialId } = factor ?? {};
  if (!factor || data?.kind !== 'passkey' || credentialId === undefined || data.rpId !== rp.rpId) {
    throw new KmsError('invalid', 'the passkey was not accepted');
  }
  const isChallenge = (text: string): boolean => text === challenge;
  const counter = await verifyAssertion(sent, { ...data, credentialId }, { rp, isChallenge, isAlone: true });
  const { clientDataJSON, authenticatorData, signature } = sent.response;
  const signed = { clientDataJSON, authenticatorData, signature };
  const assertion = { credentialId, publicKey: data.publicKey, ...rp, ...signed };
  // A record must not have what a verifier of the log refuses.
  if (!isSignedChallenge(assertion, challenge)) throw new KmsError('invalid', 'the passkey was not accepted');
  return { use: { factor, data: { ...data, counter } }, assertion };
}

function challengeCheck(place: PasskeyPlace, subject: ChallengeSubject) {
  let challenge: Challenge | undefined;
  return {
    isChallenge(text: string): boolean {
      challenge = readChallenge(place, subject, text);
      return challenge !== undefined;
    },
    taken(): Challenge {
      if (!challenge) throw new KmsError('internal', 'expected a challenge that was looked at');
      return challenge;
    },
  };
}

/** Throws `invalid` if the challenge was used before. */
export function useChallenge(tables: Pick<Tables, 'secondFactors'>, { text, expiresAt }: Challenge, now: number) {
  if (tables.secondFactors.useChallenge(text, expiresAt, now)) return;
  throw new KmsError('invalid', 'the passkey was not accepted');
}
