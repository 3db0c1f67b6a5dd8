// Logins of Vault's clients with a signed token or a certificate, by the methods jwt, kubernetes and cert, and what
// they do with the token that they get: operations of ours in the methods' own words, since programs know these.
import type { Body } from '../../api/endpoints.ts';
import { isWellFormedToken } from '../../crypto/secrets.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { done, found, invalid, type VaultResponse } from './answers.ts';
import type { Operation } from './operation.ts';

type TokenMethod = 'jwt' | 'kubernetes';
export type Method = TokenMethod | 'cert';

const methods = ['kubernetes', 'jwt', 'cert'] as const;

/** The method of a login's mount, which begins with its name; undefined for other methods. */
export function methodOf(mount: string): Method | undefined {
  return methods.find((method) => mount.startsWith(method));
}

const audience = 'invalid audience (aud) claim: audience claim does not match any expected audience';

function loginOf(method: TokenMethod): Operation {
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

const certificateLogin: Operation = {
  id: 'workloadLogin',
  body({ name }): Body<'workloadLogin'> {
    if (name !== undefined && name !== null && typeof name !== 'string') throw invalid('name: expected a text');
    return { certificate: true, ...(name && { role: name }) };
  },
  answer: (ours) => ({ status: 200, auth: authOf(ours, ours.accessToken) }),
  refusal: certificateRefusal,
};

export const tokenLogins: Readonly<Record<Method, Operation>> = {
  jwt: loginOf('jwt'),
  kubernetes: loginOf('kubernetes'),
  cert: certificateLogin,
};

export const noCertificate: VaultResponse = { status: 400, errors: ['no client certificate found'] };

const untrusted: VaultResponse = {
  status: 400,
  errors: ['invalid certificate or no client certificate supplied'],
};

function certificateRefusal({ check }: JsonObject): VaultResponse | undefined {
  switch (check) {
    case 'certificate':
      return noCertificate;
    case 'role':
    case 'authority':
      return untrusted;
    case 'name':
    case 'time':
      return {
        status: 400,
        errors: ['no chain matching all constraints could be found for this login certificate'],
      };
    case 'api-key':
      return { status: 403, errors: ['permission denied'] };
    default:
      return undefined;
  }
}

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
  if (method === 'cert') return untrusted;
  const shown = JSON.stringify(String(role).slice(0, 253));
  const text = method === 'jwt' ? `role ${shown} could not be found` : `invalid role name ${shown}`;
  return { status: 400, errors: [text] };
}

function refusalOf(method: TokenMethod, { check, claim, message, role }: JsonObject): VaultResponse | undefined {
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
    metadata: { ...more, ...metadataOf(ours) },
    lease_duration: ours.expiresIn,
    renewable: true,
    entity_id: ours.keyid,
    token_type: 'service',
    orphan: true,
    mfa_requirement: null,
    num_uses: 0,
  };
}

/** A service account of Kubernetes says who it is, and so does a certificate. */
function metadataOf({ subject: said, certificate }: JsonObject): object {
  if (isJsonObject(certificate)) {
    return {
      cert_name: certificate.name,
      common_name: certificate.commonName,
      serial_number: certificate.serialNumber,
      subject_key_id: withColons(certificate.subjectKeyId),
      authority_key_id: withColons(certificate.authorityKeyId),
    };
  }
  const subject = String(said);
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(subject) ?? [];
  if (namespace === undefined) return { subject };
  return { service_account_name: name, service_account_namespace: namespace, service_account_secret_name: '' };
}

function withColons(hex: unknown): string {
  return String(hex).match(/../g)?.join(':') ?? '';
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
    meta: metadataOf(ours),
    num_uses: 0,
    orphan: true,
    path: isJsonObject(ours.certificate) ? 'auth/cert/login' : 'auth/jwt/login',
    policies: ['default'],
    renewable: true,
    ttl: ours.expiresIn,
    type: 'service',
  };
}
