// The verifier that logins by signed tokens need: it lies outside, since it knows the issuers' keys.
import type { JsonObject } from '../../model/json.ts';
import type { Misfit, Trust } from './trust.ts';

export type TokenVerdict =
  | { readonly claims: JsonObject }
  /** `claims` are there if the signature is right. */
  | { readonly misfit: Misfit; readonly claims?: JsonObject };

export interface TokenVerifier {
  /** Checks everything but what the appliance itself knows. Rejects with `unavailable` while the keys cannot be had. */
  verify(token: string, trust: Trust): Promise<TokenVerdict>;
  /** The issuer that the token names, unverified: for choosing among proofs, each of which then decides for itself. */
  issuerOf(token: string): string | undefined;
  /** The public members of keys as given. Throws `invalid`. */
  publicKeys(given: unknown): JsonObject;
}
