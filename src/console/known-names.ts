// Known names of accounts, rings, users and API keys: suggested in input fields, and shown instead of ids. Empty if the
// user may not list them.
import { createContext, useContext } from 'hono/jsx/dom';
import type { KeyRing } from '../api/keyrings.ts';
import type { Client } from '../client/client.ts';
import type { NamesByResource } from './flags/draft.ts';
import type { KeptNames, Names } from './kept-names.ts';
import { useAnswer } from './parts/state.ts';
import { useSession } from './session.ts';

/** The names that the session keeps. */
export const NamesContext = createContext<KeptNames>({ get: async () => ({}) });

/** Undefined until the response is there. */
function useAwaitedNames(): Names | undefined {
  const { may } = useSession();
  const kept = useContext(NamesContext);
  const answer = useAnswer(() => kept.get(may));
  return answer.is === 'ready' ? answer.value : undefined;
}

function useNames(): Names {
  return useAwaitedNames() ?? {};
}

export function useRingNames(): readonly string[] {
  return (useNames().keyrings ?? []).map(({ name }) => name);
}

/** Names of rings by the resource of their flags, for each kind that the user may list. */
export function useNamesByResource(): NamesByResource {
  const { keyrings, managedKeys } = useNames();
  return new Map([
    ...(keyrings ? [['keyring', keyrings.map(({ name }) => name)] as const] : []),
    ...(managedKeys ? [['key', managedKeys.map(({ name }) => name)] as const] : []),
  ]);
}

/** Maximum number of rings; no user looks through more. */
const limit = 500;

/** Rings with their public keys. */
export function useRings(api: Client): readonly KeyRing[] {
  const { may } = useSession();
  const answer = useAnswer(async (signal) =>
    may.allows('keyring.list')
      ? (await api.listKeyrings({ limit }, { signal }).catch(() => undefined))?.data
      : undefined,
  );
  return (answer.is === 'ready' ? answer.value : undefined) ?? [];
}

/** Names by id. */
export interface NamesById extends ReadonlyMap<string, string> {
  /** Whether the names have not been received yet: an id that is shown until then would be replaced at once. */
  readonly isAwaited: boolean;
}

function byId(names: Names | undefined, entries: (names: Names) => readonly (readonly [string, string])[]): NamesById {
  return Object.assign(new Map(entries(names ?? {})), { isAwaited: !names });
}

/** Account UIDs by account id. */
export function useAccountUids(): NamesById {
  return byId(useAwaitedNames(), ({ accounts = [] }) => accounts.map(({ id, uid }) => [id, uid]));
}

/** Names of users and API keys by their ids. */
export function useActorNames(): NamesById {
  return byId(useAwaitedNames(), ({ users = [], apikeys = [] }) => [
    ...users.map(({ id, username }) => [id, username] as const),
    ...apikeys.filter(({ name }) => name !== '').map(({ keyid, name }) => [keyid, name] as const),
  ]);
}

/** Users by their ids. */
export function useUsers(): ReadonlyMap<string, NonNullable<Names['users']>[number]> {
  return new Map((useNames().users ?? []).map((user) => [user.id, user]));
}
