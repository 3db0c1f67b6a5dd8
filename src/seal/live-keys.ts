// The keys of a tenant that is being served: one object for as long as it is, whose keys may become others while it is
// used.
import type { TenantKeys } from './tenant-keys.ts';

export interface LiveKeys extends TenantKeys {
  /**
   * From here on `next` is what is used. What was handed out before stays good until the wipe, since files are being
   * written with it.
   */
  replace(next: TenantKeys): void;
}

export function liveKeys(first: TenantKeys): LiveKeys {
  let current = first;
  const before: TenantKeys[] = [];
  return {
    get epoch() {
      return current.epoch;
    },
    get epochs() {
      return current.epochs;
    },
    key: (label, epoch) => current.key(label, epoch),
    replace(next) {
      before.push(current);
      current = next;
    },
    wipe() {
      current.wipe();
      for (const keys of before) keys.wipe();
    },
  };
}
