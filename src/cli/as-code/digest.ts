// Digests of plans and of the state of objects, over their JSON with the keys of every object in order.
import { createHash } from 'node:crypto';
import { isJsonObject } from '../../model/json.ts';
import type { Found } from './kind.ts';

/** Digest of an object's state, by which a change since is noticed. */
export function stateDigest({ id, fields, managedBy }: Found): string {
  return digestOf({ id, fields, managedBy });
}

/** SHA-256 of JSON with the keys of every object in order, in hex. */
export function digestOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(ordered(value)))
    .digest('hex');
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isJsonObject(value)) return value;
  // Pairs, so that no name has a meaning of its own.
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, each]) => [name, ordered(each)]);
}
