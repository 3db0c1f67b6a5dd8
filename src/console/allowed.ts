// A wrapper of the session's client that applies the user's flags. Requests for data that the user may not see are not
// sent, so that pages can show what is permitted and the console adds no denials to the activity log. Deliberate
// actions are always sent, and the appliance refuses them if need be.
import type { ClientEndpointId } from '../api/paths.ts';
import type { Client } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { flagName } from '../model/flags.ts';
import type { Session, SessionClient } from './session.ts';

interface Need {
  readonly action: string;
  /** Input field that names the ring in the flag. */
  readonly ring?: string;
  /** Input field that names a user; users may read about themselves without the flag. */
  readonly self?: string;
}

/** Flags that reads need, by client method. The appliance decides; a test compares this with its declarations. */
export const lookNeeds: Readonly<Partial<Record<ClientEndpointId, Need>>> = {
  listKeyrings: { action: 'keyring.list' },
  getKeyring: { action: 'keyring.read', ring: 'ringname' },
  listKeys: { action: 'keyring.read', ring: 'ringname' },
  getKey: { action: 'keyring.read', ring: 'ringname' },
  getConfig: { action: 'keyring.read', ring: 'ringname' },
  getAsymKey: { action: 'asym.read', ring: 'ringname' },
  listManagedKeys: { action: 'key.list' },
  getManagedKey: { action: 'key.read', ring: 'key' },
  listManagedKeyDependents: { action: 'key.read', ring: 'key' },
  listSecrets: { action: 'key.list' },
  readSecret: { action: 'key.export', ring: 'path' },
  getSecretMetadata: { action: 'key.read', ring: 'path' },
  listTangPairs: { action: 'tang.read' },
  listSigningKeys: { action: 'asset.read' },
  getAsset: { action: 'asset.read' },
  searchAssets: { action: 'asset.search' },
  listUsers: { action: 'user.read' },
  getUser: { action: 'user.read', self: 'username' },
  listAccounts: { action: 'account.read' },
  getAccount: { action: 'account.read' },
  listAccountApiKeys: { action: 'apikey.read' },
  listApiKeys: { action: 'apikey.read' },
  getApiKey: { action: 'apikey.read' },
  getApiKeyProps: { action: 'apikey.read' },
  searchKeyringApiKeys: { action: 'apikey.read' },
  listProofs: { action: 'apikey.read' },
  testProof: { action: 'apikey.read' },
  searchActivity: { action: 'activity.read' },
  getActivityHead: { action: 'activity.read' },
  getActivity: { action: 'activity.read' },
  getBackups: { action: 'system.metrics' },
};

/** Why a read would be refused; undefined if it would not. */
export function lookRefusal(session: Session, id: string, input: Readonly<Record<string, unknown>> = {}) {
  // Cast: an unknown id has no entry.
  const need = lookNeeds[id as ClientEndpointId];
  if (!need) return undefined;
  const { action, ring, self } = need;
  if (self !== undefined && isSelf(session, input[self])) return undefined;
  if (ring === undefined) return refusal(session, action);
  // An id may stand for any ring.
  const isId = String(input.id) === 'true';
  const name = isId ? undefined : String(input[ring]);
  if (isId ? session.may.allowsSome(action) : session.may.allows(action, name)) return undefined;
  return missing(flagName(action, name));
}

function refusal({ may }: Session, action: string): KmsError | undefined {
  return may.allows(action) ? undefined : missing(action);
}

function missing(flag: string): KmsError {
  return new KmsError('forbidden', `the permission flag ${flag} is missing`);
}

function isSelf({ user }: Session, name: unknown): boolean {
  return user !== undefined && String(name).toLowerCase() === user.username.toLowerCase();
}

export function allowed(client: SessionClient, session: Session): Pick<SessionClient, 'api' | 'polls' | 'stream'> {
  const { api, polls, stream } = client;
  const methods = Object.entries(api).map(([id, ask]) => [
    id,
    (input: Readonly<Record<string, unknown>>, options: object) => {
      const refused = lookRefusal(session, id, input);
      // Cast: the input is that of the wrapped method.
      return refused ? Promise.reject(refused) : (ask as (...given: unknown[]) => unknown)(input, options);
    },
  ]);
  return {
    // Cast: there is one method for each of the client's.
    api: Object.fromEntries(methods) as Client,
    polls,
    stream,
  };
}
