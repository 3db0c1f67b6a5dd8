// Finding a ring by its name or its id. A deleted ring is none.
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { Ring, RingService } from '../store/tables/rings.ts';

export type RingRef = { readonly name: string } | { readonly id: string };

/** The ring. Throws `not-found`. */
export async function findRing(tables: Pick<Tables, 'rings'>, service: RingService, ref: RingRef): Promise<Ring> {
  const ring = await lookUp(tables, service, ref);
  if (!ring) throw unknownRing();
  return ring;
}

export function unknownRing(): KmsError {
  return new KmsError('not-found', 'there is no such keyring');
}

async function lookUp(tables: Pick<Tables, 'rings'>, service: RingService, ref: RingRef): Promise<Ring | undefined> {
  if ('name' in ref) return tables.rings.byName(service, ref.name.toLowerCase());
  const ring = await tables.rings.byId(service, ref.id);
  return ring?.deletedAt === undefined ? ring : undefined;
}
