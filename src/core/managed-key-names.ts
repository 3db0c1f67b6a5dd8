// How managed keys are named: by their names, ids and aliases, and by the UUIDs that clients of AWS know them by.
import type { Tables } from '../store/port.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import { idsOfUuid, isUuid } from './aws-names.ts';

const keyId = /^(?:mkey|ring)_[0-9a-hjkmnp-tv-z]{26}$/;

export function isKeyId(text: string): boolean {
  return keyId.test(text);
}

/** Whether a text has the form of a key's id, here or for clients of AWS: no client chooses such a name. */
export function isIdOfKeys(text: string): boolean {
  return isKeyId(text) || isUuid(text);
}

/** The key whose id a UUID stands for, deleted and destroyed ones too. */
export function keyOfUuid({ managedKeys }: Pick<Tables, 'managedKeys'>, text: string): ManagedKey | undefined {
  for (const id of idsOfUuid(text)) {
    const key = managedKeys.byId(id);
    if (key) return key;
  }
  return undefined;
}

/**
 * The managed key of that name, id or alias; a deleted one if no other has its name. Undefined for a destroyed one but
 * by its id.
 */
export function lookUpManagedKey({ managedKeys }: Pick<Tables, 'managedKeys'>, ref: string): ManagedKey | undefined {
  // An id first: as a name it is not found, and that costs a statement each time. New keys get no such name.
  if (isKeyId(ref)) return managedKeys.byId(ref) ?? managedKeys.byName(ref);
  const lower = ref.toLowerCase();
  const ofUuid = isUuid(lower) ? keyOfUuid({ managedKeys }, lower) : undefined;
  if (ofUuid) return ofUuid;
  const named = managedKeys.byName(lower);
  if (named) return named;
  const aliased = managedKeys.aliasOf(lower);
  return aliased === undefined ? managedKeys.deletedByName(lower) : managedKeys.byId(aliased);
}
