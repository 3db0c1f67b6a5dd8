// The client of OpenID Connect providers: it reads their metadata and keys, and exchanges codes for ID tokens. It
// connects only to the configured issuer and the addresses in its metadata, over TLS except on this machine, for ten
// seconds at most, with a limit on the size of answers and without following redirects.
import type * as Oauth from 'oauth4webapi';
import type { World } from '../core/context.ts';
import type { Provider } from '../core/identity-provider.ts';
import type { Claims, CodeExchange, OidcClient } from '../core/oidc.ts';
import { KmsError, systemCode } from '../errors.ts';
import { isLoopbackHost } from '../model/hosts.ts';
import { askProvider } from './provider-request.ts';

/** Milliseconds that metadata is cached, and that a failure to read it is. */
const metadataFor = 3_600_000;
const failureFor = 3_000;
/** Milliseconds to wait for an answer. */
const answerTimeout = 10_000;
/** Largest answer in bytes. */
const mostAnswer = 262_144;
/** Concurrent requests, to one provider and in all, so that a slow provider does not block others. */
const mostOfProvider = 16;
const mostUnderWay = 256;
/** Providers that are cached. */
const mostRemembered = 256;
/** Characters of an error's name that are kept. */
const longestName = 64;
/** Tolerated clock difference in seconds. */
const clockTolerance = 60;

interface Metadata {
  readonly found: Promise<Oauth.AuthorizationServer>;
  until: number;
}

export function oidcClient(world: Pick<World, 'now' | 'elapsed'>, timeout = answerTimeout): OidcClient {
  const remembered = new Map<string, Metadata>();
  const underWay = new Map<string, number>();
  let underWayAtAll = 0;

  /** The `fetch` that the library uses for every request. */
  const fetchFor =
    (provider: Provider) =>
    async (address: string, options: RequestOptions): Promise<Response> => {
      const key = keyOf(provider);
      const ofProvider = underWay.get(key) ?? 0;
      if (ofProvider >= mostOfProvider || underWayAtAll >= mostUnderWay) {
        throw new KmsError('unavailable', 'too many logins are under way: try again');
      }
      underWay.set(key, ofProvider + 1);
      underWayAtAll++;
      try {
        return await send(new URL(address), options, provider, timeout);
      } finally {
        underWayAtAll--;
        const left = (underWay.get(key) ?? 1) - 1;
        if (left > 0) underWay.set(key, left);
        else underWay.delete(key);
      }
    };

  /** Concurrent calls share one request. */
  function metadataOf(oauth: typeof Oauth, provider: Provider): Promise<Oauth.AuthorizationServer> {
    const key = keyOf(provider);
    const known = remembered.get(key);
    const now = world.elapsed();
    if (known && known.until > now) return known.found;
    const [oldest] = remembered.size >= mostRemembered ? remembered.keys() : [];
    if (oldest !== undefined) remembered.delete(oldest);
    const metadata: Metadata = { found: discover(oauth, provider), until: now + metadataFor };
    metadata.found.catch(() => {
      metadata.until = world.elapsed() + failureFor;
    });
    remembered.delete(key);
    remembered.set(key, metadata);
    return metadata.found;
  }

  async function discover(oauth: typeof Oauth, provider: Provider): Promise<Oauth.AuthorizationServer> {
    const issuer = new URL(provider.issuer);
    const options = { algorithm: 'oidc' as const, ...transport(oauth, provider) };
    try {
      const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, options));
      checkAddress(new URL(server.authorization_endpoint ?? ''), provider);
      return server;
    } catch (cause) {
      throw unavailable(cause);
    }
  }

  function transport(oauth: typeof Oauth, provider: Provider) {
    // `send` checks every address before connecting.
    return { [oauth.customFetch]: fetchFor(provider), [oauth.allowInsecureRequests]: true };
  }

  return {
    async authorizationUrl(provider, { redirectUri, state, nonce, challenge }) {
      const { authorization_endpoint: endpoint = '' } = await metadataOf(await library(), provider);
      const url = new URL(endpoint);
      const query = {
        client_id: provider.clientId,
        response_type: 'code',
        redirect_uri: redirectUri,
        scope: provider.scope,
        state,
        nonce,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      };
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
      return url.href;
    },

    async redeem(provider, exchange) {
      const oauth = await library();
      const server = await metadataOf(oauth, provider);
      try {
        return await claimsOf(oauth, server, provider, exchange);
      } catch (error) {
        throw isRefusal(oauth, error) ? doesNotHold(error) : unavailable(error);
      }
    },
  };

  async function claimsOf(
    oauth: typeof Oauth,
    server: Oauth.AuthorizationServer,
    provider: Provider,
    { code, state, iss, redirectUri, nonce, verifier }: CodeExchange,
  ): Promise<Claims> {
    const client: Oauth.Client = {
      client_id: provider.clientId,
      [oauth.clockTolerance]: clockTolerance,
      [oauth.clockSkew]: Math.round((world.now() - Date.now()) / 1000),
    };
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const secret = provider.clientSecret;
    const proof = methods.includes('client_secret_basic')
      ? oauth.ClientSecretBasic(secret)
      : oauth.ClientSecretPost(secret);
    const returned = new URLSearchParams({ code, state, ...(iss !== undefined && { iss }) });
    const checked = oauth.validateAuthResponse(server, client, returned, state);
    const options = transport(oauth, provider);
    const request = oauth.authorizationCodeGrantRequest;
    const response = await request(server, client, proof, checked, redirectUri, verifier, options);
    const token = await oauth.processAuthorizationCodeResponse(server, client, response, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    await oauth.validateApplicationLevelSignature(server, response, options);
    const claims = oauth.getValidatedIdTokenClaims(token);
    if (!claims) throw new KmsError('invalid', 'expected an ID token');
    return claims;
  }
}

/** Loads the library with the first login. */
function library(): Promise<typeof Oauth> {
  return import('oauth4webapi');
}

/** Whether the login is at fault, not the provider. */
function isRefusal(oauth: typeof Oauth, error: unknown): boolean {
  if (error instanceof KmsError) return error.code === 'invalid';
  if (error instanceof oauth.ResponseBodyError) return error.error === 'invalid_grant';
  if (!(error instanceof oauth.OperationProcessingError)) return false;
  return [
    oauth.INVALID_RESPONSE,
    oauth.JWT_TIMESTAMP_CHECK,
    oauth.JWT_CLAIM_COMPARISON,
    oauth.KEY_SELECTION,
    oauth.AUTHORIZATION_RESPONSE_ERROR,
  ].includes(error.code ?? '');
}

function doesNotHold(error: unknown): KmsError {
  const message = 'what the identity provider sent back is not valid: begin the login again';
  const cause = inWords(error);
  return new KmsError('invalid', message, { cause, logReason: cause.message });
}

function unavailable(error: unknown): KmsError {
  if (error instanceof KmsError) return error;
  const message = 'the identity provider cannot be used now: try again later, or log in with a password';
  return new KmsError('unavailable', message, { cause: inWords(error) });
}

/** For the log. The library's errors hold whole answers, which may contain tokens. */
function inWords(error: unknown): Error {
  const code = systemCode(error);
  const message = error instanceof Error ? error.message : String(error);
  // The provider's error code, such as `invalid_grant` (RFC 6749 §5.2).
  const said = error instanceof Error && 'error' in error && typeof error.error === 'string' ? error.error : undefined;
  const named = said === undefined ? message : `${message}: ${said.slice(0, longestName)}`;
  return new Error(code === undefined ? named : `${code}: ${named}`);
}

interface RequestOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

function keyOf({ issuer, clientId, changedAt, ca = '' }: Provider): string {
  return JSON.stringify([issuer, clientId, changedAt, ca]);
}

/**
 * Throws `unavailable` unless the connection is confidential: plain HTTP is only for this machine, and only for an
 * issuer on it, since a remote provider must not lead to local services.
 */
function checkAddress({ protocol, hostname }: URL, { issuer }: Provider): void {
  if (protocol === 'https:') return;
  if (protocol === 'http:' && isLoopbackHost(hostname) && issuer.startsWith('http:')) return;
  throw unavailable(new Error(`the metadata names an address that is not https: ${protocol}//${hostname}`));
}

function send(
  url: URL,
  { method, headers, body }: RequestOptions,
  provider: Provider,
  timeout: number,
): Promise<Response> {
  checkAddress(url, provider);
  const { issuer, ca } = provider;
  return askProvider(url, { method, headers, body, issuer, ca, isPrivateAllowed: true, timeout, mostAnswer });
}
