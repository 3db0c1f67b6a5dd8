// Actions: the names under which the activity log records requests. The appliance's own names are reserved: no client
// may store a record under one, however it is spelt.
import { isKnownFlag, plainActions, ringActions } from './flags.ts';

/** Actions besides those that are flags without the ring. `none` is for a path that does not take the method. */
const withoutFlag = [
  'session.create',
  'session.refresh',
  'session.end',
  'session.read',
  'session.watch',
  'user.password',
  'user.list-second-factors',
  'user.begin-second-factor',
  'user.add-second-factor',
  'user.remove-second-factor',
  'user.new-recovery-codes',
  'user.reset-second-factor',
  'user.invited',
  'user.reset',
  'keyring.restore',
  'keyring.rewrap',
  'key.restore',
  'key.erase-material',
  'key.wrapping-key',
  'key.random',
  'key.hash',
  'kmip.query',
  'tang.recover',
  'asset.signing-keys',
  'approval.list-rules',
  'approval.list',
  'approval.request',
  'approval.approve',
  'approval.deny',
  'approval.withdraw',
  'approval.expire',
  'approval.vouch',
  'approval.break-glass',
  'approval.acknowledge',
  'admin.make',
  'system.overview',
  'system.names',
  'system.unseal',
  'system.master',
  'system.tenant',
  'system.restore',
  'system.retention',
  'system.accept-older',
  'system.take-back',
  'none',
] as const;

/** Every name that the appliance records itself. */
export const ownActions: ReadonlySet<string> = new Set([
  // Flags for one's own objects of KMIP: what is done with them is recorded as with any managed key.
  ...[...plainActions].filter((action) => !action.startsWith('kmip.')),
  ...ringActions,
  ...withoutFlag,
]);

/** Own actions that only look, or keep a session alive; reading a key to encrypt or decrypt with is none. */
export const readActions: ReadonlySet<string> = new Set([
  ...[...ownActions].filter((action) =>
    /\.(read|list|search|watch|overview|names|metrics|validate|query)$/.test(action),
  ),
  'session.refresh',
  'user.list-second-factors',
  'asset.signing-keys',
  'approval.list-rules',
]);

export const maxActionLength = 256;
/** Action of a reported record that names none. */
export const unnamedAction = 'validated';

/**
 * Whether a name is one of the appliance's own, or reads like one: case, width, spaces and invisible characters are
 * ignored.
 */
export function isOwnAction(name: string): boolean {
  const read = name
    .normalize('NFKC')
    .replace(/[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/gu, '')
    .toLowerCase();
  return ownActions.has(read) || isKnownFlag(read);
}
