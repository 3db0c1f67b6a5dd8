// Which ring a request is about, for the decision whether its caller may make it: from a name, an id, a hash or a header.
import type { Tables } from '../store/port.ts';
import type { RingService } from '../store/tables/rings.ts';
import type { RingSubject } from './authorize.ts';
import type { Tenant } from './context.ts';
import { readHash, readHeader } from './sealed.ts';

/** Where a request says its ring; values are as they came, unchecked. An id finds deleted rings too. */
export type RingSource =
  | { readonly name: unknown }
  | { readonly id: unknown }
  | { readonly hash: unknown }
  | { readonly header: unknown }
  | { readonly sealed: { readonly hash?: unknown; readonly header?: unknown } };

export interface SubjectContext {
  readonly tx: Pick<Tables, 'rings'>;
  readonly tenant: Pick<Tenant, 'keys'>;
}

/** `action` tells the service: `asym.` or another. */
export function ringSubject(
  ctx: SubjectContext,
  action: string,
  source: RingSource,
): RingSubject | Promise<RingSubject> {
  if ('name' in source) {
    return isText(source.name) ? { kind: 'named', name: source.name.toLowerCase() } : { kind: 'none' };
  }
  if ('id' in source) return isText(source.id) ? hidden(ctx, serviceOf(action), source.id) : { kind: 'none' };
  const ringId = sealedRing(ctx, 'sealed' in source ? source.sealed : source);
  return ringId === undefined ? { kind: 'none' } : hidden(ctx, 'ks', ringId);
}

async function hidden(ctx: SubjectContext, service: RingService, id: string): Promise<RingSubject> {
  return { kind: 'hidden', name: (await ctx.tx.rings.byId(service, id))?.name };
}

/** The ring that hash and header stand for; none when one cannot be read or the two differ. */
function sealedRing(ctx: SubjectContext, sealed: { hash?: unknown; header?: unknown }): string | undefined {
  const { hash, header } = sealed;
  if (header === undefined) return isText(hash) ? readHash(ctx.tenant.keys, hash)?.ringId : undefined;
  if (!isText(header)) return undefined;
  const decoded = readHeader(ctx.tenant.keys, header);
  if (!decoded || (hash !== undefined && hash !== decoded.hash)) return undefined;
  return readHash(ctx.tenant.keys, decoded.hash)?.ringId;
}

function serviceOf(action: string): RingService {
  return action.startsWith('asym.') ? 'asym' : 'ks';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
