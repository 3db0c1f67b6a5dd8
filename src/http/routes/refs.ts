// What a path value refers to: the thing's name, or another property of it where the query says so.
import type { RingRef } from '../../core/ring-lookup.ts';

const on = 'true';

export function isOn(value: string | undefined): boolean {
  return value === on;
}

export function ringRef(value: string, byId: string | undefined): RingRef {
  return isOn(byId) ? { id: value } : { name: value };
}

export function accountRef(value: string, byUid: string | undefined): { id: string } | { uid: string } {
  return isOn(byUid) ? { uid: value } : { id: value };
}
