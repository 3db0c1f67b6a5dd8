// An issuer of signed tokens, with keys of its own, and an API key that trusts it.
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import type { Appliance } from './appliance.ts';

export class TokenIssuer {
  readonly issuer: string;
  readonly jwks: { readonly keys: readonly JWK[] };
  readonly #key: CryptoKey;
  readonly #alg: string;
  readonly #now: () => number;
  readonly #kid: string | undefined;

  private constructor(issuer: string, alg: string, key: CryptoKey, jwk: JWK, now: () => number) {
    this.issuer = issuer;
    this.jwks = { keys: [jwk] };
    this.#key = key;
    this.#kid = jwk.kid;
    this.#alg = alg;
    this.#now = now;
  }

  static async make(
    now: () => number,
    issuer = 'https://ci.example.org',
    alg = 'ES256',
    kid = 'one',
  ): Promise<TokenIssuer> {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    return new TokenIssuer(issuer, alg, privateKey, { ...(await exportJWK(publicKey)), kid }, now);
  }

  /** A token for the audience `kms`, valid for ten minutes; claims that are undefined are left out. */
  async token(claims: Readonly<Record<string, unknown>> = {}, header: Record<string, unknown> = {}): Promise<string> {
    const now = Math.floor(this.#now() / 1000);
    const all = { iss: this.issuer, aud: 'kms', sub: 'build', iat: now, exp: now + 600, ...claims };
    const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    return new SignJWT(kept)
      .setProtectedHeader({ alg: this.#alg, ...(this.#kid !== undefined && { kid: this.#kid }), ...header })
      .sign(this.#key);
  }
}

/** Adds a proof that trusts the issuer's subject `build`, unless `more` says otherwise; returns it. */
export async function trustIssuer(a: Appliance, keyid: string, issuer: TokenIssuer, more: object = {}) {
  const body = { kind: 'jwt', issuer: issuer.issuer, audience: 'kms', subject: 'build', jwks: issuer.jwks, ...more };
  const { status, body: proof } = await a.call('POST', `/auth/apikeys/${keyid}/proofs`, body);
  if (status !== 200) throw new Error(`the proof was refused: ${JSON.stringify(proof)}`);
  return proof;
}
