// The trust of an API key in signed tokens (JWT): issuer, audience, subject and claims. One that would let in strangers
// cannot be made; a claim fits exactly or by a glob whose `*` stops at a slash.
import { invalidField } from '../errors.ts';
import { isLoopbackHost } from './hosts.ts';
import { isJsonObject, type JsonObject } from './json.ts';

export interface Trust {
  /** https, or `spiffe://` and a trust domain; compared byte for byte. */
  readonly issuer: string;
  /** At least one; the token must name one of them. */
  readonly audiences: readonly string[];
  readonly subject?: string;
  /** Each claim, by name or JSON pointer, and the values of which it must have one. */
  readonly claims: Readonly<Record<string, readonly string[]>>;
  /** Pinned public keys (RFC 7517); absent: those that the issuer publishes. */
  readonly jwks?: JsonObject;
  /** Address of the keys, if the issuer has no discovery document. */
  readonly jwksUrl?: string;
  /** PEM of the authorities that the issuer's address is trusted by, instead of the public ones. */
  readonly ca?: string;
  /** Whether its keys may come from a private address, such as a cluster's. */
  readonly isPrivateAllowed: boolean;
  /** Whether each token may be used only once; it then needs the claim `jti`. */
  readonly once: boolean;
  /** Longest time between `iat` and `exp` in seconds. */
  readonly longest: number;
}

/** Where and how a trust is stored. */
export function trustOf({ settings }: { readonly settings: JsonObject }): Trust {
  // Cast: the column holds what was written into it when the proof was added.
  return settings as unknown as Trust;
}

const longestLifetime = 24 * 3600;
const longestText = 1024;
const mostAudiences = 10;
const mostClaims = 20;
const mostValues = 50;
const longestPem = 65_536;

/** Claims that say nothing about who sent the token, or that any project of a public issuer can set. */
const commonClaims: ReadonlySet<string> = new Set([
  'iss',
  'aud',
  'exp',
  'nbf',
  'iat',
  'jti',
  'azp',
  'ref',
  'ref_type',
  'ref_protected',
  'ref_path',
  'sha',
  'environment',
  'environment_protected',
  'environment_action',
  'deployment_tier',
  'event_name',
  'workflow',
  'pipeline_source',
  'runner_environment',
  'email_verified',
  'kubernetes.io',
]);

/** An issuer that everybody can get tokens from: subjects and claims that name an owner. */
interface PublicIssuer {
  /** Matches the whole subject, or what stands before its first star. */
  readonly subject: RegExp;
  readonly claims: readonly string[];
}

const publicIssuers: Readonly<Record<string, PublicIssuer>> = {
  'https://token.actions.githubusercontent.com': {
    subject: /^(?:[a-z_]+:[^:*]+:)*(?:repo|repository|repository_owner|repository_owner_id|repository_id):[^:*/]+[/:@]/,
    claims: [
      ...['repository', 'repository_id', 'repository_owner', 'repository_owner_id'],
      ...['job_workflow_ref', 'workflow_ref', 'enterprise', 'enterprise_id'],
    ],
  },
  'https://gitlab.com': {
    subject: /^(?:project_path|user):[^:*/]+[/:]/,
    claims: [
      ...['project_id', 'project_path', 'namespace_id', 'namespace_path'],
      ...['user_id', 'user_login', 'ci_config_ref_uri'],
    ],
  },
  'https://accounts.google.com': {
    subject: /^[0-9]+$/,
    claims: ['email', 'hd', '/google/compute_engine/project_id', '/google/compute_engine/instance_id'],
  },
  'https://app.terraform.io': {
    subject: /^organization:[^:*]+:/,
    claims: [
      'terraform_organization_id',
      'terraform_organization_name',
      'terraform_project_id',
      'terraform_workspace_id',
    ],
  },
  'https://agent.buildkite.com': {
    subject: /^organization:[^:*]+:/,
    claims: ['organization_slug', 'organization_id', 'pipeline_id'],
  },
  'https://oidc.vercel.com': { subject: /^owner:[^:*]+:/, claims: ['owner', 'owner_id', 'project_id'] },
  'https://oauth2.sigstore.dev/auth': { subject: /^[^*]+$/, claims: ['email'] },
};

/** Trust as given. */
export interface TrustInput {
  readonly issuer: string;
  readonly audience: string | readonly string[];
  readonly subject?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly jwks?: JsonObject;
  readonly jwksUrl?: string;
  readonly ca?: string;
  readonly once?: boolean;
  readonly longest?: number;
}

/** Throws `invalid` for a trust that says too little. `jwks` is checked by its reader. */
export function checkedTrust(given: TrustInput, isPrivateAllowed: boolean): Trust {
  const issuer = checkedIssuer(given.issuer);
  const audiences = [given.audience].flat();
  if (audiences.length === 0 || audiences.length > mostAudiences) {
    throw invalidField('audience', `expected 1 to ${mostAudiences} audiences`);
  }
  for (const each of audiences) shortText('audience', each);
  const claims = checkedClaims(given.claims ?? {});
  const { subject, jwks, jwksUrl, ca, once = false, longest = longestLifetime } = given;
  if (subject !== undefined) globText('subject', subject);
  if (!Number.isInteger(longest) || longest < 60 || longest > longestLifetime) {
    throw invalidField('longest', `expected 60 to ${longestLifetime} seconds`);
  }
  if (isSpiffe(issuer) && subject !== undefined && !subject.startsWith(`${issuer}/`)) {
    throw invalidField('subject', `expected a SPIFFE ID of this trust domain: ${issuer}/…`);
  }
  if (isSpiffe(issuer) && jwks === undefined && jwksUrl === undefined) {
    throw invalidField('jwks', 'a SPIFFE trust domain publishes no keys by its name: give its bundle, or its address');
  }
  if (jwksUrl !== undefined) httpsAddress('jwksUrl', jwksUrl);
  if (ca !== undefined && ca.length > longestPem) throw invalidField('ca', `expected at most ${longestPem} characters`);
  if (!namesSomebody(issuer, subject, claims)) {
    throw invalidField(
      'subject',
      'would let in others: anybody who can get a token from this issuer could have these claims; name a subject, or a claim that only your own programs have',
    );
  }
  return {
    issuer,
    audiences,
    claims,
    isPrivateAllowed,
    once,
    longest,
    ...(subject !== undefined && { subject }),
    ...(jwks !== undefined && { jwks }),
    ...(jwksUrl !== undefined && { jwksUrl }),
    ...(ca !== undefined && { ca }),
  };
}

/** Whether the issuer is a SPIFFE trust domain, whose tokens are known by their subject. */
export function isSpiffe(issuer: string): boolean {
  return issuer.startsWith('spiffe://');
}

function checkedIssuer(text: string): string {
  shortText('issuer', text);
  if (isSpiffe(text)) {
    if (/^spiffe:\/\/[a-z0-9._-]{1,255}$/.test(text)) return text;
    throw invalidField('issuer', 'expected spiffe:// and a trust domain in lower case, without a path');
  }
  httpsAddress('issuer', text);
  return text;
}

/** Throws `invalid` unless it is https, or http on this machine. */
function httpsAddress(field: string, text: string): void {
  shortText(field, text);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.username === '' && url.password === '' && url.hash === '';
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (isPlain && isSafe) return;
  throw invalidField(field, 'expected https://host[/path] (http on this machine alone)');
}

function globText(field: string, value: string): void {
  shortText(field, value);
  if (value.split('*').length > mostStars + 1) throw invalidField(field, `expected at most ${mostStars} stars`);
}

function shortText(field: string, value: string): void {
  if (value.trim() === '') throw invalidField(field, 'is required');
  if (value.length > longestText) throw invalidField(field, `expected at most ${longestText} characters`);
  if (/\p{Cc}/u.test(value)) throw invalidField(field, 'expected no control characters');
}

function checkedClaims(given: Readonly<Record<string, unknown>>): Record<string, readonly string[]> {
  const entries = Object.entries(given);
  if (entries.length > mostClaims) throw invalidField('claims', `expected at most ${mostClaims} claims`);
  const checked = entries.map(([claim, value]) => {
    const field = `claims.${claim}`;
    shortText('claims', claim);
    if (claim === 'sub' || claim === '/sub') throw invalidField(field, 'is given as the subject');
    const values = [value].flat().map((each) => {
      if (typeof each !== 'string' && !Number.isSafeInteger(each) && typeof each !== 'boolean') {
        throw invalidField(field, 'expected a text, an integer of at most 2^53, a boolean, or a list of them');
      }
      globText(field, String(each));
      return String(each);
    });
    if (values.length === 0 || values.length > mostValues) {
      throw invalidField(field, `expected 1 to ${mostValues} values`);
    }
    return [claim, values] as const;
  });
  return Object.fromEntries(checked);
}

/** Whether only somebody in particular can have such a token. */
function namesSomebody(issuer: string, subject: string | undefined, claims: Trust['claims']): boolean {
  const known = Object.hasOwn(publicIssuers, issuer) ? publicIssuers[issuer] : undefined;
  if (
    subject !== undefined &&
    isBordered(subject) &&
    (known ? known.subject : privateSubject).test(beforeStar(subject))
  ) {
    return true;
  }
  return Object.entries(claims).some(([claim, values]) => {
    const isOwn = known ? known.claims.includes(claim) : !commonClaims.has(claim.replace(/^\//, ''));
    return isOwn && values.every(isBordered);
  });
}

/** Beyond a scheme, a trust domain, or the words that all service accounts of Kubernetes begin with. */
const privateSubject = /^(?!(?:[a-z]+:(?:\/\/[^/]*\/?)?|system:serviceaccount:[^:]*)$)./;

function beforeStar(glob: string): string {
  return glob.split('*')[0] ?? '';
}

/** Whether what stands before the first star ends where a name does, so that no longer name begins the same. */
function isBordered(glob: string): boolean {
  return !glob.includes('*') || /[:/@]$/.test(beforeStar(glob));
}

/** Checks of a token, in their order. */
export const tokenChecks = [
  'role',
  'issuer',
  'form',
  'keys',
  'signature',
  'audience',
  'time',
  'subject',
  'claims',
  'api-key',
  'once',
] as const;
export type TokenCheck = (typeof tokenChecks)[number];

/** A check of a token that failed: which one, and why, as the end of a sentence about the token. */
export interface Misfit {
  readonly check: TokenCheck;
  readonly claim?: string;
  readonly reason: string;
}

/** The first of subject and claims that does not fit. The rest was checked with the signature. */
export function misfitOf(trust: Trust, claims: JsonObject): Misfit | undefined {
  const { sub } = claims;
  if (trust.subject !== undefined && (typeof sub !== 'string' || !fitsGlob(trust.subject, sub))) {
    return { check: 'subject', claim: 'sub', reason: 'its subject is another' };
  }
  if (isSpiffe(trust.issuer) && !isSpiffeId(trust.issuer, sub)) {
    return { check: 'subject', claim: 'sub', reason: 'its subject is no SPIFFE ID of the trust domain' };
  }
  for (const [claim, values] of Object.entries(trust.claims)) {
    const found = claimAt(claims, claim);
    if (found === undefined) return { check: 'claims', claim, reason: `the claim ${claim} is missing` };
    if (![found].flat().some((each) => values.some((value) => fitsValue(value, each)))) {
      return { check: 'claims', claim, reason: `the claim ${claim} has another value` };
    }
  }
  return undefined;
}

/** Whether `sub` is a SPIFFE ID of the trust domain with a path. */
function isSpiffeId(domain: string, sub: unknown): boolean {
  if (typeof sub !== 'string' || sub.length > 2048 || !sub.startsWith(`${domain}/`)) return false;
  const segments = sub.slice(domain.length + 1).split('/');
  return segments.every((segment) => /^[A-Za-z0-9._-]+$/.test(segment) && segment !== '.' && segment !== '..');
}

/** A claim by its name or, with a slash in front, by its JSON pointer (RFC 6901). */
function claimAt(claims: JsonObject, claim: string): unknown {
  if (!claim.startsWith('/')) return Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  let value: unknown = claims;
  for (const part of claim.slice(1).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

function fitsValue(wanted: string, found: unknown): boolean {
  if (typeof found === 'string') return fitsGlob(wanted, found);
  // Larger integers are rounded when they are read.
  return (Number.isSafeInteger(found) || typeof found === 'boolean') && String(found) === wanted;
}

/** Characters of a text that a glob is compared with. */
const longestCompared = 2048;
/** Stars in a glob. */
const mostStars = 8;

/** `*` stands for any characters but a slash, `**` for any at all. */
export function fitsGlob(glob: string, text: string): boolean {
  if (!glob.includes('*')) return glob === text;
  if (text.length > longestCompared) return false;
  const parts = glob.split(/(\*\*?)/);
  // Places in the text that are reached after each part: no backtracking, whatever the glob.
  let places = new Set([0]);
  for (const part of parts) {
    const next = new Set<number>();
    if (part === '*' || part === '**') {
      let reached = false;
      for (let at = 0; at <= text.length; at++) {
        if (places.has(at)) reached = true;
        if (reached) next.add(at);
        if (part === '*' && text[at] === '/') reached = false;
      }
    } else {
      for (const at of places) if (text.startsWith(part, at)) next.add(at + part.length);
    }
    places = next;
  }
  return places.has(text.length);
}
