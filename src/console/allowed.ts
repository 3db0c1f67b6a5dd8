// Allowed is the client as far as the flags of the session go. A page shows what it can: what its reader may not see is
// not asked for, so that the console adds no denials of its own to the activity log. What somebody does on purpose is
// always asked for, and refused by the appliance.
import type { ClientEndpointId } from '../api/paths.ts';
import type { Client } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { flagName } from '../model/flags.ts';
import type { Session, SessionClient } from './session.ts';

interface Need {
  readonly action: string;
  /** What of the input names the ring that the flag names. */
  readonly ring?: string;
  /** What of the input names a user, who may ask about themselves without the flag. */
  readonly self?: string;
}

/** What looks take, by the method of the client. The appliance decides; a test holds this against its declarations. */
export const lookNeeds: Readonly<Partial<Record<ClientEndpointId, Need>>> = {
  listKeyrings: { action: 'keyring.list' },
  getKeyring: { action: 'keyring.read', ring: 'ringname' },
  listKeys: { action: 'keyring.read', ring: 'ringname' },
  getKey: { action: 'keyring.read', ring: 'ringname' },
  getConfig: { action: 'keyring.read', ring: 'ringname' },
  getAsymKey: { action: 'asym.read', ring: 'ringname' },
  listTransitRings: { action: 'transit.list' },
  getTransitRing: { action: 'transit.read', ring: 'ringname' },
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
  searchActivity: { action: 'activity.read' },
  getActivityHead: { action: 'activity.read' },
  getActivity: { action: 'activity.read' },
  getBackups: { action: 'system.metrics' },
};

/** Why a look is of no use; undefined where it is. */
export function lookRefusal(session: Session, id: string, input: Readonly<Record<string, unknown>> = {}) {
  // Cast: an id that is none has no entry.
  const need = lookNeeds[id as ClientEndpointId];
  if (!need) return undefined;
  const { action, ring, self } = need;
  if (self !== undefined && isSelf(session, input[self])) return undefined;
  if (ring === undefined) return refusal(session, action);
  // By an id, any ring may be meant.
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

export function allowed(client: SessionClient, session: Session): Pick<SessionClient, 'api' | 'text' | 'stream'> {
  const { api, text, stream } = client;
  const methods = Object.entries(api).map(([id, ask]) => [
    id,
    (input: Readonly<Record<string, unknown>>, options: object) => {
      const refused = lookRefusal(session, id, input);
      // Cast: the method takes what this one was given.
      return refused ? Promise.reject(refused) : (ask as (...given: unknown[]) => unknown)(input, options);
    },
  ]);
  return {
    // Cast: a method for each of the client's.
    api: Object.fromEntries(methods) as Client,
    async text(path, signal) {
      const refused = path === '/metrics' ? refusal(session, 'system.metrics') : undefined;
      if (refused) throw refused;
      return text(path, signal);
    },
    stream,
  };
}
