// Admission is the decision who a request comes from and whether it may go on: credential, ring and flag, in that
// order. The same decision serves the look before a transaction and the transaction itself.
import type { Endpoint, RingSource } from '../api/endpoint.ts';
import { authorize, type RingSubject, refusalOutside } from '../core/authorization.ts';
import type { Caller, SealedInput } from '../core/context.ts';
import { authenticate, Bearer, localCaller, type Origin } from '../core/credential.ts';
import { type RingSource as RingValue, ringSubject } from '../core/ring-subject.ts';
import { enrolmentRefusal } from '../core/second-factors.ts';
import { refersToSelf } from '../core/users.ts';
import { KmsError } from '../errors.ts';
import { isRingName } from '../model/names.ts';
import type { Tables } from '../store/port.ts';
import type { BodyRead } from './body.ts';
import type { RawInput } from './input.ts';
import { type ApiRequest, type Credential, headerOf } from './request.ts';
import { resolveTenant, type TenantDirectory, type TenantHandle } from './tenant-directory.ts';

/**
 * What a request is told whose tenant was deleted while it was on its way: what the next one will be. Undefined while
 * the tenant is served.
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
  /** What was read of a hash or header on the way. */
  readonly sealed?: SealedInput | undefined;
  /** Why the caller may not; absent when it may. */
  readonly refusal?: KmsError;
}

export const sealedError = new KmsError('sealed', 'the appliance is sealed; the administrator has to unseal it');
export const noCredential = new KmsError('unauthenticated', 'expected the header Authorization: Bearer and an API key');
export const unknownCredential = new KmsError(
  'unauthenticated',
  'the credential is not known, no longer valid, or not for requests from this address',
);

/** The credential that a request carries. One from the machine itself needs none, but acts as the one that it names. */
export function credentialOf(request: ApiRequest): Credential | undefined {
  const header = headerOf(request, 'authorization');
  if (header === undefined && request.local) return 'local';
  const token = bearerToken(header);
  return token === undefined ? undefined : new Bearer(token);
}

/** Characters. */
export const longestCredential = 512;

/** The bearer token; undefined when there is none or it cannot be one. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > longestCredential) return undefined;
  if (!header.startsWith('Bearer ') && header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  const token = header.slice(7).trim();
  return token === '' ? undefined : token;
}

/** The one who holds the credential; undefined when nobody does. A known one may be of no use any more. */
export function identify(tables: Tables, credential: Credential, from: Origin, now: number): Identified | undefined {
  if (credential === 'local') return { caller: localCaller, usable: true };
  return authenticate(tables, credential, from, now);
}

/** The request that is decided about. */
interface Asking {
  readonly handle: TenantHandle;
  readonly credential: Credential | undefined;
  readonly request: Origin;
  readonly raw: RawInput;
}

/** Undefined for no credential, and for an unknown one. */
export function admit(endpoint: Endpoint, asking: Asking, tables: Tables, now: number): Admission | undefined {
  const { credential, request } = asking;
  const found = credential && identify(tables, credential, request, now);
  const { handle, raw } = asking;
  return found && decide({ endpoint, handle, tables, raw }, found);
}

interface Asked extends Pick<Asking, 'handle' | 'raw'> {
  readonly endpoint: Endpoint;
  readonly tables: Tables;
}

interface Identified {
  readonly caller: Caller;
  readonly usable: boolean;
}

interface About {
  /** What the flag is about, where it names a ring. */
  readonly subject?: RingSubject | undefined;
  readonly ringname: string;
  readonly sealed?: SealedInput | undefined;
}

const aboutNoRing: About = { ringname: '' };

function decide(asked: Asked, { caller, usable }: Identified): Admission {
  const { endpoint, handle, tables } = asked;
  const { access } = endpoint;
  const { ringname, sealed, subject } = aboutOf(asked);
  if (!usable) return { caller, ringname, refusal: unknownCredential };
  if (access.kind !== 'flag') return { caller, ringname, sealed };
  const needsSecondFactor = caller.session !== undefined && handle.tenant.secondFactorFor?.length;
  const enrolment = needsSecondFactor ? enrolmentRefusal(tables, handle.tenant, caller) : undefined;
  if (enrolment) return { caller, ringname, refusal: enrolment };
  const refusal = refusalOf(asked, caller, subject);
  return !refusal || isAboutSelf(asked, caller) ? { caller, ringname, sealed } : { caller, ringname, refusal };
}

function aboutOf({ endpoint, handle, tables, raw }: Asked): About {
  const { access } = endpoint;
  const source = access.kind === 'flag' ? (access.ring ?? access.about) : undefined;
  if (access.kind !== 'flag' || !source) return aboutNoRing;
  const context = { tx: tables, tenant: handle.tenant };
  const { subject, sealed } = ringSubject(context, serviceAction(endpoint.path), ringValue(source, raw));
  return { subject: access.ring && subject, ringname: recordedName(subject), sealed };
}

/** Whether the flag names a ring of the body, so that headers and path tell no more than who asks. */
function isAboutRingInBody({ access }: Endpoint): boolean {
  return access.kind === 'flag' && (access.ring?.from === 'body' || access.ring?.from === 'sealed-body');
}

/** The id of the caller whose credential lets in; undefined for any other, or where this cannot be told at once. */
export function knownAsker({ store }: TenantHandle, credential: Bearer, from: Origin, now: number): string | undefined {
  try {
    const found = store.read((tables) => identify(tables, credential, from, now));
    return found?.usable ? found.caller.id : undefined;
  } catch (error) {
    if (error instanceof KmsError && error.code === 'unavailable') return undefined;
    throw error;
  }
}

/** As `admit`, as far as headers and path tell: where the flag names a ring of the body, the flag is left for later. */
export function admitByHeaders(endpoint: Endpoint, asking: Asking, tables: Tables, now: number): Admission | undefined {
  if (!isAboutRingInBody(endpoint)) return admit(endpoint, asking, tables, now);
  const { credential, request } = asking;
  const found = credential && identify(tables, credential, request, now);
  return found && { caller: found.caller, ringname: '', ...(!found.usable && { refusal: unknownCredential }) };
}

/** Whether the request is about the user who makes it, at an endpoint that lets one do it to oneself. */
function isAboutSelf({ endpoint: { access }, tables, raw }: Asked, caller: Caller): boolean {
  if (access.kind !== 'flag' || access.orSelf === undefined) return false;
  const text = raw.params[access.orSelf] ?? '';
  return refersToSelf(tables, caller, { text, is: raw.query.email === 'true' ? 'email' : 'username' });
}

function refusalOf({ endpoint, handle }: Asked, caller: Caller, subject?: RingSubject): KmsError | undefined {
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
    if (error instanceof KmsError) return error;
    throw error;
  }
}

/** Any action of the service that the path belongs to: it tells which rings an id is looked up among. */
function serviceAction(path: string): string {
  if (path.startsWith('/transit/')) return 'transit.read';
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
