// Keys of the issuers of signed tokens: pinned ones, and those that an issuer publishes, which are asked for once an
// hour and when a token names an unknown key, at most once a minute. What cannot be asked for now is taken from the
// last answer for a day.
import type { JSONWebKeySet, JWK } from 'jose';
import { discoveryDocument, jwkSet, mostJwks, publicJwk } from '../api/jwks.ts';
import type { World } from '../core/context.ts';
import { invalidField, KmsError } from '../errors.ts';
import { isSpiffe, type Trust } from '../model/trust.ts';
import { askProvider } from './provider-request.ts';

/** Algorithms that tokens may be signed with, by the type and curve of the key. */
const algorithms: Readonly<Record<string, readonly string[]>> = {
  RSA: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  'EC P-256': ['ES256'],
  'EC P-384': ['ES384'],
  'EC P-521': ['ES512'],
  'OKP Ed25519': ['EdDSA', 'Ed25519'],
};
export const allAlgorithms: readonly string[] = Object.values(algorithms).flat();

/** Bits of an RSA modulus. */
const leastModulus = 2048;
const mostModulus = 8192;
/** Digits of the base64url of an RSA exponent: what a larger one costs to verify with is for an attacker to choose. */
const longestExponent = 7;
/** Keys pinned in one proof, and characters of them. */
const mostPinned = 20;
const longestPinned = 65_536;
/** Bytes of an answer. */
const mostAnswer = 1_048_576;
const answerTimeout = 5_000;
const freshFor = 3_600_000;
const askedAgain = 60_000;
const goodFor = 86_400_000;
const mostRemembered = 256;

type PublicJwk = ReturnType<typeof publicJwk.parse>;

/** The keys that verify tokens, with their public members alone. Keys for anything else are left out. */
function verifyingKeys(given: unknown): JSONWebKeySet {
  const set = jwkSet.safeParse(given);
  if (!set.success) throw invalidField('jwks', `expected a JSON Web Key Set of at most ${mostJwks} keys`);
  const keys = set.data.keys.flatMap((each) => {
    if ('d' in each || 'k' in each) throw invalidField('jwks', 'has a private or secret key: give public keys alone');
    const key = publicJwk.safeParse(each);
    return key.success && isForTokens(key.data) ? [verifying(key.data)] : [];
  });
  return { keys };
}

/** Keys that somebody gives to be pinned. Throws `invalid` if there are none, or too many. */
export function pinnedKeys(given: unknown): JSONWebKeySet {
  const set = verifyingKeys(given);
  if (set.keys.length === 0)
    throw invalidField('jwks', 'has no key for signed tokens: RSA from 2,048 bits, EC, Ed25519');
  if (set.keys.length > mostPinned || JSON.stringify(set).length > longestPinned) {
    throw invalidField('jwks', `expected at most ${mostPinned} keys, and ${longestPinned} characters`);
  }
  return set;
}

function isForTokens({ kty, crv, alg, use, n = '', e = '' }: PublicJwk): boolean {
  // SPIFFE's word for it is `jwt-svid`.
  if (use !== undefined && use !== 'sig' && use !== 'jwt-svid') return false;
  const kind = kty === 'RSA' ? kty : `${kty} ${crv}`;
  const fitting = Object.hasOwn(algorithms, kind) ? algorithms[kind] : undefined;
  if (!fitting || (alg !== undefined && !fitting.includes(alg))) return false;
  const bits = Math.floor((n.length * 6) / 8) * 8;
  return kty !== 'RSA' || (bits >= leastModulus && bits <= mostModulus && e.length <= longestExponent);
}

function verifying({ use: _, ...members }: PublicJwk): JWK {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as unknown as JWK;
}

interface Remembered {
  keys: JSONWebKeySet | undefined;
  /** Monotonic milliseconds of the last answer with keys, and of the last try. */
  answeredAt: number;
  triedAt: number | undefined;
  underWay: Promise<void> | undefined;
  problem: unknown;
}

/** An issuer's published keys. */
export class IssuerKeys {
  readonly #elapsed: World['elapsed'];
  readonly #timeout: number;
  readonly #remembered = new Map<string, Remembered>();

  constructor({ elapsed }: Pick<World, 'elapsed'>, timeout = answerTimeout) {
    this.#elapsed = elapsed;
    this.#timeout = timeout;
  }

  /**
   * The keys now. `missing`: a token names a key that is not among them, so that they are asked for again, if that was
   * not done within the last minute. Throws `unavailable`.
   */
  async of(trust: Trust, missing = false): Promise<JSONWebKeySet> {
    const known = this.#entry(trust);
    const now = this.#elapsed();
    const isDue = known.keys === undefined || now - known.answeredAt > freshFor || missing;
    if (isDue && (known.underWay || known.triedAt === undefined || now - known.triedAt >= askedAgain)) {
      known.underWay ??= this.#ask(trust, known).finally(() => {
        known.underWay = undefined;
      });
      await known.underWay;
    }
    if (known.keys && this.#elapsed() - known.answeredAt < goodFor) return known.keys;
    const why = known.problem instanceof Error ? known.problem.message : 'they were not asked for';
    // Not as a failure of the appliance: anybody can cause it, as often as they like.
    throw new KmsError('unavailable', `the keys of ${trust.issuer} cannot be had now: try again later`, {
      logReason: why.slice(0, 200),
    });
  }

  #entry(trust: Trust): Remembered {
    const name = JSON.stringify([trust.issuer, trust.jwksUrl, trust.ca, trust.isPrivateAllowed]);
    const known = this.#remembered.get(name) ?? {
      keys: undefined,
      answeredAt: 0,
      triedAt: undefined,
      underWay: undefined,
      problem: undefined,
    };
    this.#remembered.delete(name);
    const [oldest] = this.#remembered.size >= mostRemembered ? this.#remembered.keys() : [];
    if (oldest !== undefined) this.#remembered.delete(oldest);
    this.#remembered.set(name, known);
    return known;
  }

  async #ask(trust: Trust, known: Remembered): Promise<void> {
    known.triedAt = this.#elapsed();
    try {
      // An address of the keys was given with the trust, and may be in clear on this machine like an issuer's.
      const keys = trust.jwksUrl
        ? await this.#json(trust.jwksUrl, { ...trust, issuer: trust.jwksUrl })
        : await this.#json(await this.#discover(trust), trust);
      known.keys = verifyingKeys(keys);
      known.answeredAt = this.#elapsed();
      known.problem = undefined;
    } catch (error) {
      known.problem = error;
    }
  }

  /** OpenID Connect Discovery 1.0, section 4. */
  async #discover(trust: Trust): Promise<string> {
    if (isSpiffe(trust.issuer)) throw new Error('a SPIFFE trust domain has no discovery document');
    const document = discoveryDocument.safeParse(
      await this.#json(`${trust.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, trust),
    );
    if (!document.success) throw new Error('its discovery document has no issuer or no jwks_uri');
    const { issuer, jwks_uri: url } = document.data;
    if (issuer !== trust.issuer) throw new Error('its discovery document names another issuer');
    return url;
  }

  async #json(address: string, { issuer, ca, isPrivateAllowed }: Trust): Promise<unknown> {
    const response = await askProvider(new URL(address), {
      method: 'GET',
      headers: { accept: 'application/json' },
      issuer,
      isPrivateAllowed,
      timeout: this.#timeout,
      mostAnswer,
      ...(ca !== undefined && { ca }),
    });
    if (response.status !== 200) throw new Error(`the issuer answered ${response.status}`);
    try {
      return await response.json();
    } catch {
      throw new Error('the issuer answered something other than JSON');
    }
  }
}
