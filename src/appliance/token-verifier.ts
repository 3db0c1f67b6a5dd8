// Verification of signed tokens (RFC 7519, RFC 8725) by jose, under the keys that a trust pins or its issuer publishes.
// Nothing in a token chooses an address, a key beyond its id, or an algorithm beyond those of the key.
import type * as Jose from 'jose';
import type { World } from '../core/context.ts';
import type { TokenVerdict, TokenVerifier } from '../core/proofs/token-verifier.ts';
import { hashSecret } from '../crypto/secrets.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { isSpiffe, type Misfit, misfitOf, type TokenCheck, type Trust } from '../model/trust.ts';
import { allAlgorithms, IssuerKeys, pinnedKeys } from './issuer-keys.ts';

/** Characters of a token. */
const longestToken = 16_384;
/** Tolerated clock difference in seconds. */
const clockTolerance = 60;
/** Keys that a token without a key id is tried with. */
const mostTried = 5;
/** Sets of keys that are kept ready. */
const mostReady = 256;
/** Types of tokens for logins (RFC 8725 §3.11). */
const types: ReadonlySet<string> = new Set(['jwt', 'jose', 'at+jwt', 'application/jwt', 'application/at+jwt']);
/** Header parameters that change what a token means, or name keys. */
const refusedHeaders = ['crit', 'b64', 'enc', 'zip'] as const;

type KeySet = ReturnType<typeof Jose.createLocalJWKSet>;

interface ReadyKeys {
  readonly all: KeySet;
  /** Keys that say no id of their own, which a token's key id does not rule out. */
  readonly nameless: KeySet | undefined;
}

export function tokenVerifier(world: Pick<World, 'now' | 'elapsed'>): TokenVerifier {
  const issuers = new IssuerKeys(world);
  /** Least recently used first, by a hash of the keys. */
  const ready = new Map<string, ReadyKeys>();

  function readyKeys(jose: typeof Jose, set: unknown): ReadyKeys {
    const name = hashSecret(JSON.stringify(set));
    const keys = set as Jose.JSONWebKeySet;
    const nameless = keys.keys.filter(({ kid }) => kid === undefined);
    const known = ready.get(name) ?? {
      all: jose.createLocalJWKSet(keys),
      nameless: nameless.length === 0 ? undefined : jose.createLocalJWKSet({ keys: nameless }),
    };
    ready.delete(name);
    const [oldest] = ready.size >= mostReady ? ready.keys() : [];
    if (oldest !== undefined) ready.delete(oldest);
    ready.set(name, known);
    return known;
  }

  async function verify(token: string, trust: Trust): Promise<TokenVerdict> {
    const jose = await library();
    const malformed = whyMalformed(jose, token);
    if (malformed !== undefined) return { misfit: { check: 'form', reason: malformed } };
    const pinned = trust.jwks;
    let keys = readyKeys(jose, pinned ?? (await issuers.of(trust)));
    let key = await keyFor(jose, keys, token);
    if (key === undefined && !pinned) {
      keys = readyKeys(jose, await issuers.of(trust, true));
      key = await keyFor(jose, keys, token);
    }
    if (key === undefined) return misfit('keys', 'no key of its issuer has its key id and algorithm');
    let last: TokenVerdict = misfit('signature', 'its signature is not from its issuer');
    for (const each of key) {
      last = await underKey(jose, token, each, trust);
      if (!('misfit' in last) || last.misfit.check !== 'signature') return last;
    }
    return last;
  }

  async function underKey(jose: typeof Jose, token: string, key: Jose.CryptoKey, trust: Trust): Promise<TokenVerdict> {
    try {
      const { payload } = await jose.jwtVerify<JsonObject>(token, key, {
        algorithms: [...allAlgorithms],
        audience: [...trust.audiences],
        clockTolerance,
        currentDate: new Date(world.now()),
        requiredClaims: ['exp'],
        ...(!isSpiffe(trust.issuer) && { issuer: trust.issuer }),
      });
      const other = lifetimeMisfit(payload, trust, world.now() / 1000) ?? misfitOf(trust, payload);
      return other ? { misfit: other, claims: payload } : { claims: payload };
    } catch (error) {
      return { misfit: misfitFrom(jose, error) };
    }
  }

  return {
    verify,
    namedBy(token) {
      if (token.length > longestToken) return undefined;
      try {
        const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
        if (!isJsonObject(payload)) return undefined;
        const { iss, sub } = payload;
        return {
          issuer: typeof iss === 'string' ? iss : undefined,
          subject: typeof sub === 'string' ? sub : undefined,
        };
      } catch {
        return undefined;
      }
    },
    publicKeys: (given) => ({ ...pinnedKeys(given) }),
  };
}

/** Loads the library with the first login. */
function library(): Promise<typeof Jose> {
  return import('jose');
}

function misfit(check: TokenCheck, reason: string): { readonly misfit: Misfit } {
  return { misfit: { check, reason } };
}

function whyMalformed(jose: typeof Jose, token: string): string | undefined {
  if (token.length > longestToken) return `it has more than ${longestToken} characters`;
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return 'it is not a signed token of three parts';
  let header: Jose.ProtectedHeaderParameters;
  try {
    header = jose.decodeProtectedHeader(token);
  } catch {
    return 'its header cannot be read';
  }
  const refused = refusedHeaders.find((name) => name in header);
  if (refused !== undefined) return `its header has ${refused}`;
  const { alg, typ } = header;
  if (typeof alg !== 'string' || !allAlgorithms.includes(alg)) return 'its algorithm is not one for signed tokens';
  if (typ !== undefined && !(typeof typ === 'string' && types.has(typ.toLowerCase()))) {
    return 'it is a token for something else';
  }
  return undefined;
}

/** The keys that may have signed the token; undefined if there are none. */
async function keyFor(
  jose: typeof Jose,
  { all, nameless }: ReadyKeys,
  token: string,
): Promise<Jose.CryptoKey[] | undefined> {
  const { kid, ...header } = jose.decodeProtectedHeader(token) as Jose.JWSHeaderParameters;
  const found = await chosen(jose, all, kid === undefined ? header : { ...header, kid });
  return found ?? (kid !== undefined && nameless ? chosen(jose, nameless, header) : undefined);
}

async function chosen(
  jose: typeof Jose,
  set: KeySet,
  header: Jose.JWSHeaderParameters,
): Promise<Jose.CryptoKey[] | undefined> {
  try {
    return [await set(header)];
  } catch (error) {
    if (!(error instanceof jose.errors.JWKSMultipleMatchingKeys)) return undefined;
    const several: Jose.CryptoKey[] = [];
    for await (const key of error) {
      several.push(key);
      if (several.length === mostTried) break;
    }
    return several;
  }
}

/** Reads a claim that jose has checked to be a number, if it is there. */
function timeOf(claims: JsonObject, name: string): number | undefined {
  const value = claims[name];
  return typeof value === 'number' ? value : undefined;
}

function lifetimeMisfit(claims: JsonObject, { longest }: Trust, now: number): Misfit | undefined {
  const begins = timeOf(claims, 'iat');
  if (begins !== undefined && begins > now + clockTolerance) {
    return { check: 'time', claim: 'iat', reason: 'it was issued in the future' };
  }
  const from = begins ?? timeOf(claims, 'nbf') ?? now;
  if ((timeOf(claims, 'exp') ?? now) - from > longest) {
    return { check: 'time', claim: 'exp', reason: `it is valid for more than ${longest} s` };
  }
  return undefined;
}

function misfitFrom(jose: typeof Jose, error: unknown): Misfit {
  const { errors } = jose;
  if (error instanceof errors.JWTExpired) return { check: 'time', claim: 'exp', reason: 'it has expired' };
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason } = error;
    if (claim === 'iss') return { check: 'issuer', claim, reason: 'its issuer is another' };
    if (claim === 'aud') return { check: 'audience', claim, reason: 'it was issued for another audience' };
    if (claim === 'nbf') return { check: 'time', claim, reason: 'it is not valid yet' };
    if (reason === 'missing') return { check: 'time', claim, reason: `the claim ${claim} is missing` };
    return { check: 'time', claim, reason: `the claim ${claim} is malformed` };
  }
  if (error instanceof errors.JWTInvalid) return { check: 'form', reason: 'its claims cannot be read' };
  return { check: 'signature', reason: 'its signature is not from its issuer' };
}
