// A stand-in for an identity provider: the code is the name of the user who logged in.
import type { OidcClient } from '../../src/core/oidc.ts';
import { KmsError } from '../../src/errors.ts';

/** Settings as `kms tenant oidc set` would send them. */
export const pretendProvider = { issuer: 'https://login.example.org', clientId: 'kms', clientSecret: 'secret' };

export const pretendOidcClient: OidcClient = {
  async authorizationUrl({ issuer, clientId }, { redirectUri, state, nonce, challenge }) {
    const query = { client_id: clientId, redirect_uri: redirectUri, state, nonce, code_challenge: challenge };
    return `${issuer}/authorize?${new URLSearchParams(query)}`;
  },

  async redeem(_provider, { code }) {
    if (/^[\w-]+$/.test(code)) return { sub: code, email: `${code}@example.org`, email_verified: true };
    throw new KmsError('invalid', 'what the identity provider sent back is not valid: begin the login again');
  },
};
