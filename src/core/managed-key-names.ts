// How managed keys are named: by their names, ids and aliases.
import type { Tables } from '../store/port.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';

const keyId = /^(?:mkey|ring)_[0-9a-hjkmnp-tv-z]{26}$/;

export function isKeyId(text: string): boolean {
  return keyId.test(text);
}

/**
 * The managed key of that name, id or alias; a deleted one if no other has its name. Undefined for a destroyed one but
 * by its id.
 */
export function lookUpManagedKey({ managedKeys }: Pick<Tables, 'managedKeys'>, ref: string): ManagedKey | undefined {
  // An id first: as a name it is not found, and that costs a statement each time. New keys get no such name.
  if (isKeyId(ref)) return managedKeys.byId(ref) ?? managedKeys.byName(ref);
  const lower = ref.toLowerCase();
  const named = managedKeys.byName(lower);
  if (named) return named;
  const aliased = managedKeys.aliasOf(lower);
  return aliased === undefined ? managedKeys.deletedByName(lower) : managedKeys.byId(aliased);
}
