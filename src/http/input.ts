// What a request carries, checked against its endpoint's declaration: path and query parameters, body, and the page that a
// list is asked for.
import type { Endpoint } from '../api/endpoint.ts';
import { defaultLimit } from '../api/page.ts';
import { openCursor } from '../core/cursor.ts';
import { invalidField, type KmsError } from '../errors.ts';
import type { PageRequest } from '../store/sql.ts';
import type { BodyRead } from './body.ts';
import type { AppContext, TenantHandle } from './deps.ts';
import { invalidInput } from './problems.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A request's parts as they came: text from path and query, any JSON from the body. */
export interface RawInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Undefined where the endpoint takes none. */
  readonly body: BodyRead | undefined;
}

/** The same, checked. */
export interface CheckedInput {
  readonly params: Fields;
  readonly query: Fields;
  readonly body: Fields;
  readonly page: PageRequest;
}

export type Checked = { readonly input: CheckedInput; readonly error?: undefined } | { readonly error: KmsError };

const none: Readonly<Record<string, never>> = Object.freeze({});

/** Path and query of a request; work is done only for endpoints that have them. */
export function rawInput(endpoint: Endpoint, c: AppContext, body: BodyRead | undefined): RawInput {
  const hasQuery = endpoint.query !== undefined && c.req.url.includes('?');
  return { params: endpoint.params ? c.req.param() : none, query: hasQuery ? c.req.query() : none, body };
}

export function checkInput(endpoint: Endpoint, handle: TenantHandle, raw: RawInput): Checked {
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
    body = parsed.data;
  }
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

/** What a cursor is bound to. */
export function cursorScope(
  endpoint: Endpoint,
  { tenant }: TenantHandle,
  params: Fields,
  filters: Fields,
  body: Fields,
): readonly unknown[] {
  return [tenant.id, endpoint.id, params, filters, body];
}
