// Admission decides who a request comes from and whether it may proceed: credential, ring and flag, in that order. The
// check before a transaction and the one inside it make the same decision.
import type { Endpoint, RingSource } from '../api/endpoint.ts';
import { authorize, isAllowed, type RingSubject, refusalOutside } from '../core/authorization.ts';
import type { Caller, SealedInput } from '../core/context.ts';
import { authenticate, authenticateCertificate, Bearer, localCaller, type Origin } from '../core/credential.ts';
import { presentedProblem } from '../core/proofs/client-certificates.ts';
import { type RingSource as RingValue, ringSubject } from '../core/ring-subject.ts';
import { enrolmentRefusal } from '../core/second-factors.ts';
import { refersToSelf } from '../core/users.ts';
import { KmsError } from '../errors.ts';
import { isRingName } from '../model/names.ts';
import type { Tables } from '../store/port.ts';
import type { BodyRead } from './body.ts';
import type { RawInput } from './input.ts';
import { type ApiRequest, type Credential, headerOf, programsCertificate } from './request.ts';
import { resolveTenant, type TenantDirectory, type TenantHandle } from './tenant-directory.ts';

/**
 * The error for a request whose tenant was deleted mid-flight; the next request gets the same. Undefined while the
 * tenant is served.
 */
export function goneMeanwhile(
  open: { readonly tenants: TenantDirectory },
  request: ApiRequest,
  { tenant }: TenantHandle,
): KmsError | undefined {
  try {
    return resolveTenant(open, request).tenant.id === tenant.id ? undefined : unknownCredential;
  } catch (error) {
    if (error instanceof KmsError) return error;
    throw error;
  }
}

export interface Admission {
  readonly caller: Caller;
  /** For the activity log: the ring's name in lower case, or empty. */
  readonly ringname: string;
  /** Contents of a hash or header that were decoded to find the ring. */
  readonly sealed?: SealedInput | undefined;
  /** Why the request is refused; absent if it is allowed. */
  readonly refusal?: KmsError;
}

export const sealedError = new KmsError('sealed', 'the appliance is sealed');
export const noCredential = new KmsError('unauthenticated', 'expected the header Authorization: Bearer and an API key');
const unknownCredential = new KmsError(
  'unauthenticated',
  'the credential is not known, no longer valid, or not for requests from this address',
);

/** The refusal of a credential that is not known: of a certificate that can be no proof, it says why. */
export function unknownOf(credential: Credential | undefined, { certificate }: Origin): KmsError {
  const problem = credential === 'certificate' && certificate ? presentedProblem(certificate) : undefined;
  if (problem === undefined) return unknownCredential;
  return new KmsError('unauthenticated', `the client certificate can be no proof of an API key: ${problem}`);
}

/**
 * The credential that a request carries. A local request without one acts as the local administrator; one that names a
 * credential acts as its holder. A certificate counts if nothing else does.
 */
export function credentialOf(request: ApiRequest): Credential | undefined {
  const header = headerOf(request, 'authorization');
  if (header === undefined && request.local) return 'local';
  const token = bearerToken(header);
  if (token !== undefined) return new Bearer(token);
  return header === undefined ? certificateOf(request) : undefined;
}

/** The credential of a request that came with a certificate, from a program and without a token. */
export function certificateOf(request: ApiRequest): 'certificate' | undefined {
  if (headerOf(request, 'x-vault-token') !== undefined) return undefined;
  return programsCertificate(request) && 'certificate';
}

/** In characters. */
export const longestCredential = 512;

/** The bearer token; undefined if there is none or it cannot be one. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > longestCredential) return undefined;
  if (!header.startsWith('Bearer ') && header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  const token = header.slice(7).trim();
  return token === '' ? undefined : token;
}

/**
 * The holder of the credential; undefined if it is unknown. A known credential may have lost its validity (`usable`).
 */
export function identify(tables: Tables, credential: Credential, from: Origin, now: number): Identified | undefined {
  if (credential === 'local') return { caller: localCaller, usable: true };
  if (credential === 'certificate') return authenticateCertificate(tables, from, now);
  return authenticate(tables, credential, from, now);
}

/** The request to decide on. */
interface Asking {
  readonly handle: TenantHandle;
  readonly credential: Credential | undefined;
  readonly request: Origin;
  readonly raw: RawInput;
}

/** The decision; undefined if the credential is missing or unknown. */
export function admit(endpoint: Endpoint, asking: Asking, tables: Tables, now: number): Admission | undefined {
  const { credential, request } = asking;
  const found = credential && identify(tables, credential, request, now);
  const { handle, raw } = asking;
  return found && decide({ endpoint, handle, tables, raw }, found);
}

interface AdmissionRequest extends Pick<Asking, 'handle' | 'raw'> {
  readonly endpoint: Endpoint;
  readonly tables: Tables;
}

interface Identified {
  readonly caller: Caller;
  readonly usable: boolean;
}

interface About {
  /** The ring that the flag is checked against, if the endpoint's flag names one. */
  readonly subject?: RingSubject | undefined;
  readonly ringname: string;
  readonly sealed?: SealedInput | undefined;
}

const aboutNoRing: About = { ringname: '' };

function decide(asked: AdmissionRequest, { caller, usable }: Identified): Admission {
  const { endpoint, handle, tables } = asked;
  const { access } = endpoint;
  const { ringname, sealed, subject } = aboutOf(asked);
  if (!usable) return { caller, ringname, refusal: unknownCredential };
  if (access.kind !== 'flag' && !endpoint.watchable) return { caller, ringname, sealed };
  const needsSecondFactor = caller.session !== undefined && handle.tenant.secondFactorFor?.length;
  const enrolment = needsSecondFactor ? enrolmentRefusal(tables, handle.tenant, caller) : undefined;
  if (enrolment) return { caller, ringname, refusal: enrolment };
  const refusal = refusalOf(asked, caller, subject);
  return !refusal || isAboutSelf(asked, caller) ? { caller, ringname, sealed } : { caller, ringname, refusal };
}

function aboutOf({ endpoint, handle, tables, raw }: AdmissionRequest): About {
  const { access } = endpoint;
  const source = access.kind === 'flag' ? (access.ring ?? access.about) : undefined;
  if (access.kind !== 'flag' || !source) return aboutNoRing;
  const context = { tx: tables, tenant: handle.tenant };
  const { subject, sealed } = ringSubject(context, serviceAction(endpoint.path), ringValue(source, raw));
  return { subject: access.ring && subject, ringname: recordedName(subject), sealed };
}

/** Whether the flag names a ring from the body, so that headers and path identify only the caller. */
function isAboutRingInBody({ access }: Endpoint): boolean {
  return access.kind === 'flag' && (access.ring?.from === 'body' || access.ring?.from === 'sealed-body');
}

/** The id of the caller, if the credential is valid; undefined if it isn't, or if the store cannot tell at once. */
export function knownAsker(
  { store }: TenantHandle,
  credential: Credential,
  from: Origin,
  now: number,
): string | undefined {
  try {
    const found = store.read((tables) => identify(tables, credential, from, now));
    return found?.usable ? found.caller.id : undefined;
  } catch (error) {
    if (error instanceof KmsError && error.code === 'unavailable') return undefined;
    throw error;
  }
}

/** `admit` by headers and path alone: if the flag names a ring from the body, only the credential is checked. */
export function admitByHeaders(endpoint: Endpoint, asking: Asking, tables: Tables, now: number): Admission | undefined {
  if (!isAboutRingInBody(endpoint)) return admit(endpoint, asking, tables, now);
  const { credential, request } = asking;
  const found = credential && identify(tables, credential, request, now);
  return found && { caller: found.caller, ringname: '', ...(!found.usable && { refusal: unknownCredential }) };
}

/** Whether a user asks about themselves, at an endpoint that allows this without the flag. */
function isAboutSelf({ endpoint: { access }, tables, raw }: AdmissionRequest, caller: Caller): boolean {
  if (access.kind !== 'flag' || access.orSelf === undefined) return false;
  const text = raw.params[access.orSelf] ?? '';
  return refersToSelf(tables, caller, { text, is: raw.query.email === 'true' ? 'email' : 'username' });
}

function refusalOf(
  { endpoint, handle }: AdmissionRequest,
  caller: Caller,
  subject?: RingSubject,
): KmsError | undefined {
  const { access } = endpoint;
  if (access.kind !== 'flag') return undefined;
  if (access.operator && caller.kind !== 'local') {
    const outside = refusalOutside(handle.tenant, access.action);
    if (outside) return outside;
  }
  try {
    authorize(caller, access.action, subject);
    return undefined;
  } catch (error) {
    if (error instanceof KmsError) return mayDoBoth(access.orBoth, caller, subject) ? undefined : error;
    throw error;
  }
}

function mayDoBoth(actions: readonly string[] | undefined, caller: Caller, subject?: RingSubject): boolean {
  return actions?.every((action) => isAllowed(caller, action, subject)) ?? false;
}

/** Any action of the service that the path belongs to: it decides in which rings an id is looked up. */
function serviceAction(path: string): string {
  if (path.startsWith('/managed-keys')) return 'key.read';
  return path.startsWith('/asym/') ? 'asym.read' : 'keyring.read';
}

function recordedName(subject: RingSubject): string {
  const name = subject.kind === 'none' ? undefined : subject.name;
  return name !== undefined && isRingName(name) ? name : '';
}

function ringValue(source: RingSource, raw: RawInput): RingValue {
  switch (source.from) {
    case 'body':
      return { name: bodyField(raw.body, source.field) };
    case 'path': {
      const value = raw.params[source.param];
      return source.byId && raw.query.id === 'true' ? { id: value } : { name: value };
    }
    case 'query':
      return { name: raw.query[source.param] };
    case 'key':
      return { key: raw.params[source.param] };
    case 'secret':
      return { secret: raw.params[source.param] };
    case 'deleted-id':
      return { id: raw.params[source.param] };
    case 'hash':
      return { hash: raw.params[source.param] };
    case 'header':
      return { header: raw.params[source.param] };
    case 'sealed-body':
      return { sealed: { hash: bodyField(raw.body, 'hash'), header: bodyField(raw.body, 'header') } };
  }
}

function bodyField(body: BodyRead | undefined, field: string): unknown {
  if (!body || body.problem) return undefined;
  const { value } = body;
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, field)) return undefined;
  return Reflect.get(value, field);
}
