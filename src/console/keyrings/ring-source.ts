// RingSource is where rings of one kind come from, and what can be done with each: the same for keyrings and managed
// keys, so that one kind of list shows either.
import type { Dependent } from '../../api/managed-keys.ts';
import type { Client } from '../../client/client.ts';
import type { KeyState } from '../../model/key-states.ts';
import type { KeyUse } from '../../model/key-types.ts';
import type { LoadPage } from '../parts/state.ts';
import type { RingTraits } from '../text.ts';
import { type RingKind, ringKinds } from './ring-page.tsx';
import { type RingUsers, ringUsers } from './ring-users.ts';

/** A ring as lists show it. */
export interface ListedRing extends RingTraits {
  readonly id: string;
  readonly name: string;
  readonly displayName: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly deletedAt?: string;
  readonly restorableUntil?: string;
  /** Present for managed keys only, like all below. */
  readonly type?: string;
  readonly derived?: boolean;
  readonly uses?: readonly KeyUse[];
  readonly state?: KeyState;
  readonly primaryVersion?: number | null;
  readonly deletionAllowed?: boolean;
  readonly tags?: Readonly<Record<string, unknown>>;
}

export interface RingSource {
  readonly kind: RingKind;
  readonly load: LoadPage<ListedRing>;
  readonly loadDeleted: LoadPage<ListedRing>;
  /** The ring of this name. */
  readonly read: (name: string, signal: AbortSignal) => Promise<ListedRing>;
  readonly rotate: (name: string) => Promise<unknown>;
  readonly remove: (name: string) => Promise<unknown>;
  /** Its uses; absent where those are not recorded. */
  readonly dependents?: (name: string, signal: AbortSignal) => Promise<readonly Dependent[]>;
  /** The API keys that may use it; absent if the user may not see them, and for managed keys. */
  readonly users?: (name: string, signal: AbortSignal) => Promise<RingUsers>;
  readonly restore: (id: string) => Promise<{ readonly ring: ListedRing }>;
}

/** `seesUsers`: whether the user may see API keys. */
export function keyringSource(api: Client, seesUsers: boolean): RingSource {
  return {
    kind: ringKinds.keyring,
    load: (page, signal) => api.listKeyrings(page, { signal }),
    loadDeleted: (page, signal) => api.listKeyrings({ deleted: true, ...page }, { signal }),
    read: async (ringname, signal) => (await api.getKeyring({ ringname }, { signal })).ring,
    rotate: (ringname) => api.rotateKeyring({ ringname }),
    remove: (name) => api.deleteKeyring({ name }),
    ...(seesUsers && { users: (name: string, signal: AbortSignal) => ringUsers(api, name, signal) }),
    restore: (id) => api.restoreKeyring({ id }),
  };
}

export function managedKeySource(api: Client): RingSource {
  return {
    kind: ringKinds.managedKey,
    load: (page, signal) => api.listManagedKeys(page, { signal }),
    loadDeleted: (page, signal) => api.listManagedKeys({ deleted: true, ...page }, { signal }),
    read: async (key, signal) => (await api.getManagedKey({ key }, { signal })).key,
    rotate: (key) => api.rotateManagedKey({ key }),
    // The dialog has shown who uses the keys.
    remove: (key) => api.deleteManagedKey({ key, used: true }),
    dependents: async (key, signal) => (await api.listManagedKeyDependents({ key }, { signal })).dependents,
    restore: async (id) => ({ ring: (await api.restoreManagedKey({ id })).key }),
  };
}
