// Pages as the wire has them: items, counts, and a cursor where there is more.
import type { Endpoint } from '../api/endpoint.ts';
import type { PageInfo } from '../api/page.ts';
import type { World } from '../core/context.ts';
import { sealCursor } from '../core/cursor.ts';
import type { Page } from '../store/sql.ts';
import type { TenantHandle } from './deps.ts';
import { type CheckedInput, cursorScope } from './input.ts';

export function pageBody(
  endpoint: Endpoint,
  handle: TenantHandle,
  world: World,
  { params, query, body, page }: CheckedInput,
  { items, next }: Page<unknown>,
): { data: unknown[]; pagination: PageInfo } {
  const counts = { limit: page.limit, count: items.length };
  if (next === undefined) return { data: items, pagination: { ...counts, hasMore: false } };
  const scope = cursorScope(endpoint, handle, params, query, body);
  const nextCursor = sealCursor(handle.tenant.keys, scope, next, world);
  return { data: items, pagination: { ...counts, hasMore: true, nextCursor } };
}
