// Admission is the decision who a request comes from and whether it may go on: credential, ring and flag, in that
// order. The same decision serves the look before a transaction and the transaction itself.
import type { Access, Endpoint, RingSource } from '../api/endpoint.ts';
import { authorize, type RingSubject, refusalOutside } from '../core/authorization.ts';
import type { Caller, SealedInput } from '../core/context.ts';
import { authenticate, Bearer, knownApiKey, localCaller, type Origin } from '../core/credential.ts';
import { type RingAsked, type RingSource as RingValue, ringSubject } from '../core/ring-subject.ts';
import { enrolmentRefusal } from '../core/second-factors.ts';
import { refersToSelf } from '../core/users.ts';
import { KmsError } from '../errors.ts';
import { isRingName } from '../model/names.ts';
import type { Tables } from '../store/port.ts';
import type { Soon } from '../store/sql.ts';
import type { BodyRead } from './body.ts';
import type { RawInput } from './input.ts';
import { type AppContext, headerOf } from './request.ts';
import { type TenantDirectory, type TenantHandle, tenantOf } from './tenants.ts';

/**
 * What a request is told whose tenant was deleted while it was on its way: what the next one will be. Undefined while
 * the tenant is served.
 */
export function goneMeanwhile(
  open: { readonly tenants: TenantDirectory },
  c: AppContext,
  { tenant }: TenantHandle,
): KmsError | undefined {
  try {
    return tenantOf(open, c).tenant.id === tenant.id ? undefined : unknownCredential;
  } catch (error) {
    if (error instanceof KmsError) return error;
    throw error;
  }
}

/** A credential as it came: the token, or that of whoever is at the machine. */
export type Credential = Bearer | 'local';

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
export function credentialOf(c: AppContext): Credential | undefined {
  const header = headerOf(c, 'authorization');
  if (header === undefined && c.env?.local) return 'local';
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
export function identify(
  tables: Tables,
  credential: Credential,
  from: Origin,
  now: number,
): Soon<Identified | undefined> {
  if (credential === 'local') return { caller: localCaller, usable: true };
  return authenticate(tables, credential, from, now);
}

/** Undefined when the credential is nobody's. */
export function admit(
  endpoint: Endpoint,
  handle: TenantHandle,
  tables: Tables,
  credential: Credential,
  from: Origin,
  raw: RawInput,
  now: number,
): Soon<Admission | undefined> {
  const asked: Asked = { endpoint, handle, tables, raw };
  const found = identify(tables, credential, from, now);
  return found instanceof Promise
    ? found.then((known) => known && decide(asked, known))
    : found && decide(asked, found);
}

/** What the decision about a request rests on, beside who makes it. */
interface Asked {
  readonly endpoint: Endpoint;
  readonly handle: TenantHandle;
  readonly tables: Tables;
  readonly raw: RawInput;
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

function decide(asked: Asked, identified: Identified): Soon<Admission> {
  const { endpoint, handle, tables, raw } = asked;
  const { access } = endpoint;
  const source = access.kind === 'flag' ? (access.ring ?? access.about) : undefined;
  if (access.kind !== 'flag' || !source) return verdict(asked, identified, aboutNoRing);
  const context = { tx: tables, tenant: handle.tenant };
  const told = ringSubject(context, serviceAction(endpoint.path), ringValue(source, raw));
  const about = ({ subject, sealed }: RingAsked): About => ({
    subject: access.ring && subject,
    ringname: recordedName(subject),
    sealed,
  });
  return told instanceof Promise
    ? told.then((ring) => verdict(asked, identified, about(ring)))
    : verdict(asked, identified, about(told));
}

function verdict(asked: Asked, { caller, usable }: Identified, about: About): Soon<Admission> {
  const { endpoint, handle } = asked;
  const { access } = endpoint;
  const { ringname, sealed, subject } = about;
  if (!usable) return { caller, ringname, refusal: unknownCredential };
  if (access.kind !== 'flag') return { caller, ringname, sealed };
  const { tenant } = handle;
  if (caller.session !== undefined && tenant.secondFactorFor?.length) return ofUser(asked, caller, about);
  const refusal = refusalOf(asked, caller, subject);
  if (!refusal) return { caller, ringname, sealed };
  return access.orSelf === undefined ? { caller, ringname, refusal } : ofSelf(asked, caller, about, refusal);
}

/** Where users need a second factor. */
async function ofUser(asked: Asked, caller: Caller, about: About): Promise<Admission> {
  const { ringname, sealed, subject } = about;
  const enrolment = await enrolmentRefusal(asked.tables, asked.handle.tenant, caller);
  if (enrolment) return { caller, ringname, refusal: enrolment };
  const refusal = refusalOf(asked, caller, subject);
  return refusal ? ofSelf(asked, caller, about, refusal) : { caller, ringname, sealed };
}

/** What is refused, unless it is about the caller itself at an endpoint that lets one do it to oneself. */
async function ofSelf(
  { endpoint, tables, raw }: Asked,
  caller: Caller,
  { ringname, sealed }: About,
  refusal: KmsError,
): Promise<Admission> {
  const isSelf = await isAboutSelf(endpoint.access, tables, caller, raw);
  return isSelf ? { caller, ringname, sealed } : { caller, ringname, refusal };
}

/** Whether the flag names a ring of the body, so that headers and path tell no more than who asks. */
function isAboutRingInBody({ access }: Endpoint): boolean {
  return access.kind === 'flag' && (access.ring?.from === 'body' || access.ring?.from === 'sealed-body');
}

/** The id of who asks, where it was looked up before; undefined where the store has to be asked. */
export function knownAsker({ store }: TenantHandle, credential: Bearer, from: Origin, now: number): string | undefined {
  return store.glance((tables) => knownApiKey(tables, credential, from, now));
}

/**
 * The same for who may make the request as far as headers and path tell, where nothing of that takes a look at the
 * store: an API key that was looked up before, and a flag that names no ring, or one by its name.
 */
export function knownToBeLetIn(
  endpoint: Endpoint,
  handle: TenantHandle,
  credential: Bearer,
  from: Origin,
  raw: RawInput,
  now: number,
): string | undefined {
  const asker = knownAsker(handle, credential, from, now);
  if (asker === undefined || isAboutRingInBody(endpoint)) return asker;
  const { access } = endpoint;
  if (access.kind !== 'flag' || access.orSelf !== undefined || !isByName(access.ring ?? access.about, raw)) {
    return undefined;
  }
  const admitted = handle.store.glance((tables) => admit(endpoint, handle, tables, credential, from, raw, now));
  return !admitted || admitted instanceof Promise || admitted.refusal ? undefined : admitted.caller.id;
}

function isByName(source: RingSource | undefined, raw: RawInput): boolean {
  if (source?.from === 'path') return !source.byId || raw.query.id !== 'true';
  return source === undefined || source.from === 'query' || source.from === 'body';
}

/** As `admit`, as far as headers and path tell: where the flag names a ring of the body, the flag is left for later. */
export function admitByHeaders(
  endpoint: Endpoint,
  handle: TenantHandle,
  tables: Tables,
  credential: Credential,
  from: Origin,
  raw: RawInput,
  now: number,
): Soon<Admission | undefined> {
  if (!isAboutRingInBody(endpoint)) return admit(endpoint, handle, tables, credential, from, raw, now);
  const asker = (found: Identified | undefined): Admission | undefined =>
    found && { caller: found.caller, ringname: '', ...(!found.usable && { refusal: unknownCredential }) };
  const found = identify(tables, credential, from, now);
  return found instanceof Promise ? found.then(asker) : asker(found);
}

/** Whether the request is about the user who makes it, at an endpoint that lets one do it to oneself. */
async function isAboutSelf(access: Access, tables: Tables, caller: Caller, raw: RawInput): Promise<boolean> {
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
