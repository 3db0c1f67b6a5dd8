// Logins of Vault's clients with a signed token, by the methods jwt and kubernetes, and what they do with the token
// that they get: operations of ours in the methods' own words, since programs and people know these.
import type { Body } from '../../api/endpoints.ts';
import { isWellFormedToken } from '../../crypto/secrets.ts';
import type { JsonObject } from '../../model/json.ts';
import { done, found, invalid, type VaultResponse } from './answers.ts';
import type { Operation } from './operation.ts';

type Method = 'jwt' | 'kubernetes';

/** The method of a login's mount, which begins with its name; undefined for other methods. */
export function methodOf(mount: string): Method | undefined {
  return mount.startsWith('kubernetes') ? 'kubernetes' : mount.startsWith('jwt') ? 'jwt' : undefined;
}

const audience = 'invalid audience (aud) claim: audience claim does not match any expected audience';

function loginOf(method: Method): Operation {
  return {
    id: 'workloadLogin',
    body({ role, jwt }): Body<'workloadLogin'> {
      if (typeof role !== 'string' || role === '') throw invalid('missing role');
      if (typeof jwt !== 'string' || jwt === '') throw invalid(method === 'jwt' ? 'missing token' : 'missing jwt');
      return { role, token: jwt };
    },
    answer: (ours, { role }) => ({ status: 200, auth: authOf(ours, ours.accessToken, { role }) }),
    refusal: (body) => refusalOf(method, body),
  };
}

export const tokenLogins: Readonly<Record<Method, Operation>> = {
  jwt: loginOf('jwt'),
  kubernetes: loginOf('kubernetes'),
};

/** The operations of a workload token's holder on it, by path and method; undefined for anything else. */
export function ownTokenOperation(path: string, method: string, token: string): Operation | undefined {
  if (!isWellFormedToken('workload', token)) return undefined;
  if (path === 'token/lookup-self') {
    return { id: 'getWorkloadSession', answer: (ours) => found(lookedUp(ours, token)) };
  }
  if (method !== 'POST' && method !== 'PUT') return undefined;
  if (path === 'token/revoke-self') return { id: 'endWorkloadSession', answer: () => done };
  if (path !== 'token/renew-self') return undefined;
  return {
    id: 'renewWorkloadSession',
    body: ({ increment }) => secondsOf(increment),
    answer: (ours) => ({ status: 200, auth: authOf(ours, token) }),
  };
}

/** A number of seconds, or a duration such as `120s`. */
function secondsOf(increment: unknown): { seconds?: number } {
  if (increment === undefined || increment === null || increment === '' || increment === 0) return {};
  const [, digits = '', unit = 's'] = /^(\d{1,9})([smh]?)$/.exec(String(increment)) ?? [];
  const seconds = Number(digits) * { s: 1, m: 60, h: 3600, '': 1 }[unit as 's' | 'm' | 'h' | ''];
  if (digits === '') throw invalid('error parsing increment');
  return seconds === 0 ? {} : { seconds };
}

export function unknownRole(method: Method, role: unknown): VaultResponse {
  const shown = JSON.stringify(String(role).slice(0, 253));
  const text = method === 'jwt' ? `role ${shown} could not be found` : `invalid role name ${shown}`;
  return { status: 400, errors: [text] };
}

function refusalOf(method: Method, { check, claim, message, role }: JsonObject): VaultResponse | undefined {
  if (typeof check !== 'string' || typeof message !== 'string') return undefined;
  if (check === 'role') return unknownRole(method, role);
  const reason = message.slice(message.indexOf(': ') + 2);
  const said = claimText(check, String(claim), reason);
  if (check === 'api-key') return { status: 403, errors: ['permission denied'] };
  if (method === 'kubernetes') {
    const isOther = check === 'subject' || check === 'claims';
    return { status: 403, errors: [isOther ? 'service account name not authorized' : (said ?? 'permission denied')] };
  }
  if (check === 'claims') return { status: 400, errors: [`error validating claims: ${said}`] };
  const text = said ?? `error verifying token signature: ${reason}`;
  return { status: 400, errors: [`error validating token: ${text}`] };
}

/** The words for a claim; undefined for the signature and the checks before it. */
function claimText(check: string, claim: string, reason: string): string | undefined {
  switch (check) {
    case 'audience':
      return audience;
    case 'issuer':
      return 'invalid issuer (iss) claim';
    case 'subject':
      return 'invalid subject (sub) claim';
    case 'time':
      return reason === 'it has expired'
        ? 'invalid expiration time (exp) claim: token is expired'
        : `invalid ${claim} claim: ${reason}`;
    case 'once':
      return `invalid ID (jti) claim: ${reason}`;
    case 'claims':
      return reason.endsWith('is missing')
        ? `claim ${JSON.stringify(claim)} is missing`
        : `claim ${JSON.stringify(claim)} does not match any associated bound claim values`;
    default:
      return undefined;
  }
}

function authOf(ours: JsonObject, token: unknown, more: object = {}): object {
  const policies = ['default'];
  return {
    client_token: token,
    accessor: ours.id,
    policies,
    token_policies: policies,
    metadata: { ...more, ...metadataOf(String(ours.subject)) },
    lease_duration: ours.expiresIn,
    renewable: true,
    entity_id: ours.keyid,
    token_type: 'service',
    orphan: true,
    mfa_requirement: null,
    num_uses: 0,
  };
}

/** A service account of Kubernetes says who it is. */
function metadataOf(subject: string): object {
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(subject) ?? [];
  if (namespace === undefined) return { subject };
  return { service_account_name: name, service_account_namespace: namespace, service_account_secret_name: '' };
}

function lookedUp(ours: JsonObject, token: string): object {
  const { id, keyid, createdAt, expiresAt, renewableUntil, subject } = ours;
  const created = Math.floor(Number(createdAt) / 1000);
  return {
    accessor: id,
    creation_time: created,
    creation_ttl: Math.floor((Number(expiresAt) - Number(createdAt)) / 1000),
    display_name: subject,
    entity_id: keyid,
    expire_time: new Date(Number(expiresAt)).toISOString(),
    explicit_max_ttl: Math.floor((Number(renewableUntil) - Number(createdAt)) / 1000),
    id: token,
    issue_time: new Date(Number(createdAt)).toISOString(),
    meta: metadataOf(String(subject)),
    num_uses: 0,
    orphan: true,
    path: 'auth/jwt/login',
    policies: ['default'],
    renewable: true,
    ttl: ours.expiresIn,
    type: 'service',
  };
}
