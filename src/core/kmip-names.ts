// Names by which clients of KMIP know a managed key: told to those who manage it, and needed free when it is restored.
import { KmsError } from '../errors.ts';
import { type KmipType, kmipTypes } from '../model/kmip-types.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';

interface KmipFields {
  readonly type: KmipType;
  readonly names: string[];
  readonly owner?: string;
  readonly lastGet?: { readonly caller: string; readonly at: string };
}

/** Undefined for a key that KMIP does not know by more than its id. */
export function kmipFieldsOf(
  { kmipObjects, managedKeyUses }: Pick<Tables, 'kmipObjects' | 'managedKeyUses'>,
  keyId: string,
): KmipFields | undefined {
  const object = kmipObjects.byKey(keyId);
  if (!object) return undefined;
  const { objectType, owner } = object;
  // Cast: the column has one of the numbers.
  const type = kmipTypes[objectType as keyof typeof kmipTypes];
  const got = managedKeyUses.last(keyId, 'kmip', 'export');
  return {
    type,
    names: kmipObjects.names(keyId),
    ...(owner !== '' && { owner }),
    ...(got && { lastGet: { caller: got.caller, at: timestamp(got.usedAt) } }),
  };
}

/**
 * Throws `conflict` for an object that KMIP made or registered: its clients know one value by its id, and everything
 * that they wrote with it needs that value. A key made otherwise has versions, whatever attributes it was given.
 */
export function needManyValues(tables: Pick<Tables, 'kmipObjects'>, keyId: string): void {
  if (!hasOneValue(tables, keyId)) return;
  throw new KmsError(
    'conflict',
    'a client of KMIP made this object, which has one value: replace it by Re-key or Register, which make another',
  );
}

export function hasOneValue({ kmipObjects }: Pick<Tables, 'kmipObjects'>, keyId: string): boolean {
  return (kmipObjects.byKey(keyId)?.owner ?? '') !== '';
}

/** Throws `conflict` if a client of KMIP gave one of the key's names to another object meanwhile. */
export function needFreeKmipNames({ kmipObjects }: Pick<Tables, 'kmipObjects'>, id: string): void {
  const object = kmipObjects.byKey(id);
  if (!object || !kmipObjects.names(id).some((name) => kmipObjects.isTaken(object, name))) return;
  throw new KmsError('conflict', 'another object of KMIP has the name of this one: rename that one first');
}
