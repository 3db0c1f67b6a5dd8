// A real OpenID Connect provider on this machine, for tests. The test determines the user and the claims; the login
// follows the provider's own redirects with its cookies. Answers can be altered on their way, to test broken and
// hostile providers.
import { generateKeyPairSync, sign } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

export interface ProviderOptions {
  readonly redirectUris: readonly string[];
  /** Claims of the ID token by subject. */
  readonly people: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface TestProvider {
  readonly issuer: string;
  /** Requests received, as `GET /jwks`. */
  readonly requests: string[];
  /** Changes an answer before it is sent. */
  change: ((path: string, body: Record<string, unknown>) => Record<string, unknown> | string) | undefined;
  /** Replaces the provider's answer, if it returns one. */
  instead:
    | ((
        path: string,
      ) => { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string } | undefined)
    | undefined;
  /** The ID token with other claims, signed by the provider. */
  signed(token: unknown, claims: object): string;
  /** Logs in at that URL as the person, and returns the parameters of the final redirect. */
  logIn(url: string, subject: string): Promise<URLSearchParams>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const clientId = 'kms';
export const clientSecret = 'a secret of at least thirty-two bytes for this client';

export async function testProvider({ redirectUris, people }: ProviderOptions): Promise<TestProvider> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Cast: a server that listens on a port has such an address.
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'test', alg: 'RS256', use: 'sig' };
  const provider: Provider = quietly(
    () =>
      new Provider(issuer, {
        jwks: { keys: [jwk] },
        // Seconds.
        ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 3600, IdToken: 3600, Interaction: 3600, Session: 3600 },
        clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [...redirectUris] }],
        claims: { openid: ['sub', ...new Set(Object.values(people).flatMap((claims) => Object.keys(claims)))] },
        conformIdTokenClaims: false,
        pkce: { required: () => true },
        cookies: { keys: ['a key for the cookies of a test'] },
        features: { devInteractions: { enabled: false } },
        interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
        findAccount: async (_ctx, sub) => ({ accountId: sub, claims: async () => ({ sub, ...people[sub] }) }),
        async loadExistingGrant(ctx) {
          const { client, session } = ctx.oidc;
          const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: client?.clientId ?? '' });
          grant.addOIDCScope('openid email profile');
          await grant.save();
          return grant;
        },
      }),
  );
  const callback = provider.callback();
  const requests: string[] = [];
  const made: TestProvider = {
    issuer,
    requests,
    change: undefined,
    instead: undefined,
    signed(token, claims) {
      const [header = ''] = String(token).split('.');
      const text = `${header}.${withClaims(token, claims)}`;
      return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
    },
    async logIn(url, subject) {
      const cookies = new Map<string, string>();
      let at = new URL(url);
      for (let step = 0; step < 10; step++) {
        if (!at.href.startsWith(issuer)) return at.searchParams;
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
        const response = await fetch(at, { redirect: 'manual', headers: { cookie, 'x-subject': subject } });
        for (const line of response.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
          cookies.set(name, value);
        }
        const to = response.headers.get('location');
        if (to === null) throw new Error(`the provider answered ${response.status}: ${await response.text()}`);
        at = new URL(to, at);
      }
      throw new Error('the provider leads round in circles');
    },
    [Symbol.asyncDispose]: () => closed(server),
  };
  server.on('request', (request, response) => {
    const path = new URL(request.url ?? '/', issuer).pathname;
    requests.push(`${request.method} ${path}`);
    const other = made.instead?.(path);
    if (other) {
      response.writeHead(other.status, other.headers).end(other.body);
      return;
    }
    if (path.startsWith('/interaction/')) {
      const accountId = String(request.headers['x-subject']);
      void provider.interactionFinished(request, response, { login: { accountId } });
      return;
    }
    const { change } = made;
    if (change && !path.startsWith('/auth')) {
      const end = response.end.bind(response);
      // Cast: the provider ends each answer with one text or its bytes.
      response.end = ((text: string | Buffer) => {
        const body = change(path, JSON.parse(String(text)));
        const sent = typeof body === 'string' ? body : JSON.stringify(body);
        response.setHeader('content-length', Buffer.byteLength(sent));
        return end(sent);
      }) as typeof response.end;
    }
    void callback(request, response);
  });
  return made;
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

/** The ID token's payload with these claims in place of its own. */
export function withClaims(token: unknown, claims: object): string {
  const [, payload = ''] = String(token).split('.');
  const said = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return Buffer.from(JSON.stringify({ ...said, ...claims })).toString('base64url');
}

/** Silences its warnings that it is a development setup, which is intended here. */
function quietly<T>(make: () => T): T {
  const { info, warn } = console;
  console.info = console.warn = () => {};
  try {
    return make();
  } finally {
    Object.assign(console, { info, warn });
  }
}
