// The input of a request to an endpoint: tenant, credential, path, query and body, checked against the endpoint's
// declaration. Faults are reported field by field, in words that never repeat a value. It never changes once made.
import type { z } from 'zod';
import type { Endpoint } from '../api/endpoint.ts';
import { inexactNumber } from '../api/exact-json.ts';
import { problemOf, valueAt } from '../api/input-problems.ts';
import { defaultLimit, type PageInfo } from '../api/page.ts';
import type { World } from '../core/context.ts';
import { openCursor, sealCursor } from '../core/cursors.ts';
import { WrittenItems, type WrittenPage } from '../core/pages.ts';
import type { PresentedCertificate } from '../core/proofs/client-certificates.ts';
import { invalidField, KmsError } from '../errors.ts';
import type { JsonObject } from '../model/json.ts';
import type { Tables } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { AppliancePort, OpenState } from './appliance-port.ts';
import type { BodyRead } from './body.ts';
import type { Codec } from './codec.ts';
import { type ConsoleCookie, originOf } from './console-cookie.ts';
import { type ApiRequest, type Credential, planOf, programsCertificate, queryOf } from './request.ts';
import { mostFields, StaleCall } from './respond.ts';
import type { Input, PathParams } from './route.ts';
import { baseUrlOf, type TenantHandle } from './tenant-directory.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A request's parts as sent: text from path and query, any JSON from the body. */
export interface RawInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Undefined if the endpoint takes none, or it is not read yet. */
  readonly body: BodyRead | undefined;
}

interface Parts {
  readonly params: Fields;
  readonly query: Fields;
  readonly body: Fields;
}

/** The parts after validation. */
interface CheckedInput extends Parts {
  readonly page: PageRequest;
}

type Checked = { readonly input: CheckedInput; readonly error?: undefined } | { readonly error: KmsError };

/** A request before its body is read. */
export interface KnownRequest {
  readonly request: ApiRequest;
  readonly open: OpenState;
  readonly handle: TenantHandle;
  /** Absent if the endpoint is public and none was sent. */
  readonly credential: Credential | undefined;
  /** Present if a page of the console asks. */
  readonly cookie: ConsoleCookie | undefined;
  /** Absent if the request uses the appliance's own API. */
  readonly codec: Codec | undefined;
  /** Absent in the same case. */
  readonly dialect: string | undefined;
  /** Facts for the record that the surface knows. */
  readonly props: JsonObject | undefined;
  /** Absent in the same case, or if the surface shows all that there is. */
  readonly isHidden: ((tables: Tables) => boolean) | undefined;
  /** Absent in the same case, or if the surface planned on nothing that could change. */
  readonly isStale: ((tables: Tables) => boolean) | undefined;
  /** Without the body. */
  readonly raw: RawInput;
}

export class EndpointInput implements Input<unknown>, CheckedInput {
  readonly appliance: AppliancePort;
  readonly endpoint: Endpoint;
  readonly known: KnownRequest;
  readonly raw: RawInput;
  /** Made on demand: validation takes longer than most operations. */
  #checked: Checked | undefined = undefined;

  constructor(appliance: AppliancePort, endpoint: Endpoint, known: KnownRequest, body: BodyRead | undefined) {
    this.appliance = appliance;
    this.endpoint = endpoint;
    this.known = known;
    this.raw = body ? { params: known.raw.params, query: known.raw.query, body } : known.raw;
  }

  /** Throws `not-found` for what the surface does not show. */
  needShown(tables: Tables): void {
    if (this.known.isHidden?.(tables)) throw new KmsError('not-found', 'there is no such thing in this dialect');
  }

  /** Throws `StaleCall` if the surface planned the call on data that does not hold. */
  needFresh(tables: Tables): void {
    if (this.known.isStale?.(tables)) throw new StaleCall();
  }

  get open(): OpenState {
    return this.known.open;
  }

  get handle(): TenantHandle {
    return this.known.handle;
  }

  get request(): ApiRequest {
    return this.known.request;
  }

  get credential(): Credential | undefined {
    return this.known.credential;
  }

  /** The first fault of the input. Ask for it only once the caller is admitted, and before reading the parts below. */
  get problem(): KmsError | undefined {
    this.#checked ??= this.#check();
    return this.#checked.error;
  }

  #check(): Checked {
    try {
      // A surface of another system has no plans.
      if (this.known.dialect === undefined) planOf(this.request);
      return checkInput(this.endpoint, this.handle, this.raw);
    } catch (error) {
      if (error instanceof KmsError && error.code === 'invalid') return { error };
      throw error;
    }
  }

  get #input(): CheckedInput {
    if (this.#checked && !this.#checked.error) return this.#checked.input;
    throw new KmsError('internal', 'expected input that was checked');
  }

  get params(): Fields {
    return this.#input.params;
  }

  get query(): Fields {
    return this.#input.query;
  }

  get body(): Fields {
    return this.#input.body;
  }

  get page(): PageRequest {
    return this.#input.page;
  }

  get item(): Codec['item'] {
    return this.known.codec?.item;
  }

  get dialect(): string | undefined {
    return this.known.dialect;
  }

  get isLocal(): boolean {
    return this.request.local === true;
  }

  get address(): string {
    return this.request.remoteAddress ?? 'local';
  }

  get certificate(): PresentedCertificate | undefined {
    return programsCertificate(this.request);
  }

  get origin(): string {
    return originOf(this.request, baseUrlOf(this));
  }

  get isConsole(): boolean {
    return this.known.cookie !== undefined;
  }

  get path(): string {
    return this.endpoint.path;
  }
}

const none: Readonly<Record<string, never>> = Object.freeze({});

/** Path and query of a request; parsed only for endpoints that have them. */
export function rawInput(
  endpoint: Pick<Endpoint, 'params' | 'query'>,
  request: Pick<ApiRequest, 'search'>,
  params: PathParams,
): RawInput {
  return {
    params: endpoint.params ? params : none,
    query: endpoint.query ? queryOf(request) : none,
    body: undefined,
  };
}

/** Path, query and body, each against its schema. */
export function checkParts(
  endpoint: Pick<Endpoint, 'params' | 'query' | 'body'>,
  raw: RawInput,
): { readonly input: Parts; readonly error?: undefined } | { readonly error: KmsError } {
  let params: Fields = none;
  let query: Fields = none;
  let body: Fields = none;
  if (endpoint.params) {
    const parsed = endpoint.params.safeParse(raw.params);
    if (!parsed.success) return { error: invalidInput(parsed.error.issues, raw.params, 'path') };
    params = parsed.data;
  }
  if (endpoint.query) {
    const parsed = endpoint.query.safeParse(raw.query);
    if (!parsed.success) return { error: invalidInput(parsed.error.issues, raw.query, 'query') };
    query = parsed.data;
  }
  if (endpoint.body && raw.body) {
    if (raw.body.problem) return { error: raw.body.problem };
    const parsed = endpoint.body.safeParse(raw.body.value);
    if (!parsed.success) return { error: invalidInput(parsed.error.issues, raw.body.value, 'body') };
    if (raw.body.inexact.length > 0) {
      return { error: wrongFields(new Map(raw.body.inexact.map((field) => [field, inexactNumber])), 'body') };
    }
    body = parsed.data;
  }
  return { input: { params, query, body } };
}

function checkInput(endpoint: Endpoint, handle: TenantHandle, raw: RawInput): Checked {
  const checked = checkParts(endpoint, raw);
  if (checked.error) return checked;
  const { params, query, body } = checked.input;
  if (!endpoint.paginated) return { input: { params, query, body, page: firstPage } };
  const { cursor, limit = defaultLimit, ...filters } = query;
  const scope = cursorScope(endpoint, handle, params, filters, body);
  const after = typeof cursor === 'string' ? openCursor(handle.tenant.keys, scope, cursor) : undefined;
  if (cursor !== undefined && after === undefined) {
    return { error: invalidField('cursor', 'is not one that this list gave out for these filters') };
  }
  const page = { limit: Number(limit), ...(after !== undefined && { after }) };
  return { input: { params, query: filters, body, page } };
}

const firstPage: PageRequest = Object.freeze({ limit: defaultLimit });

/** The values that a cursor is bound to. */
function cursorScope(
  endpoint: Endpoint,
  { tenant }: TenantHandle,
  params: Fields,
  filters: Fields,
  body: Fields,
): readonly unknown[] {
  return [tenant.id, endpoint.id, params, filters, body];
}

/** A page as sent: items, counts, and a cursor if there are more. */
export function pageBody(
  endpoint: Endpoint,
  handle: TenantHandle,
  world: World,
  { params, query, body, page }: CheckedInput,
  { items, next }: Page<unknown> | WrittenPage<unknown>,
): { data: unknown[] | WrittenItems<unknown>; pagination: PageInfo } {
  const counts = { limit: page.limit, count: items instanceof WrittenItems ? items.count : items.length };
  if (next === undefined) return { data: items, pagination: { ...counts, hasMore: false } };
  const scope = cursorScope(endpoint, handle, params, query, body);
  const nextCursor = sealCursor(handle.tenant.keys, scope, next, world);
  return { data: items, pagination: { ...counts, hasMore: true, nextCursor } };
}

type Issue = z.core.$ZodIssue;

/** The error for input that a schema refuses. `whole` names the input if the problem is not in one of its fields. */
export function invalidInput(issues: readonly Issue[], input: unknown, whole: string): KmsError {
  const fields = new Map<string, string>();
  for (const issue of issues) {
    if (fields.size === mostFields) break;
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) fields.set(key, issue.message);
      continue;
    }
    const field = issue.path.length === 0 ? whole : issue.path.join('.');
    if (!fields.has(field)) fields.set(field, problemOf(issue, valueAt(input, issue.path)));
  }
  return wrongFields(fields, whole);
}

/** The error for wrong fields; the message names the first of them. */
function wrongFields(fields: ReadonlyMap<string, string>, whole: string): KmsError {
  const [first] = fields;
  const message = first ? `${first[0]}: ${first[1]}` : `${whole}: not valid`;
  return new KmsError('invalid', message, { fields: Object.fromEntries(fields) });
}
