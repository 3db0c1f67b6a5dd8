// The verifier that logins by signed tokens need: it lies outside, since it knows the issuers' keys.
import type { JsonObject } from '../../model/json.ts';
import { isSpiffe, type Misfit, type Trust } from '../../model/trust.ts';

export type TokenVerdict =
  | { readonly claims: JsonObject }
  /** `claims` are there if the signature is right. */
  | { readonly misfit: Misfit; readonly claims?: JsonObject };

interface NamedParties {
  readonly issuer: string | undefined;
  readonly subject: string | undefined;
}

export interface TokenVerifier {
  /** Checks everything but what the appliance itself knows. Rejects with `unavailable` while the keys cannot be had. */
  verify(token: string, trust: Trust): Promise<TokenVerdict>;
  /**
   * The issuer and subject that a token names, unverified: proofs of other issuers are left out, and the others decide
   * for themselves. Undefined if its claims cannot be read.
   */
  namedBy(token: string): NamedParties | undefined;
  /** The public members of keys as given. Throws `invalid`. */
  publicKeys(given: unknown): JsonObject;
}

/** The verdict on a token, without a look at any key if it names another issuer. */
export async function checkToken(verifier: TokenVerifier, token: string, trust: Trust): Promise<TokenVerdict> {
  const named = verifier.namedBy(token);
  if (named && !isNamed(trust, named)) {
    return { misfit: { check: 'issuer', claim: 'iss', reason: 'its issuer is another' } };
  }
  return verifier.verify(token, trust);
}

function isNamed({ issuer }: Trust, named: NamedParties): boolean {
  return isSpiffe(issuer) ? named.subject?.startsWith(`${issuer}/`) === true : named.issuer === issuer;
}
