// Actions are what the activity log says was asked for. The names that the appliance records itself are its own: no
// client may store a record under one, however it is spelt.
import { isKnownFlag, plainActions, ringActions } from './flags.ts';

/** Beside those that are flags without the ring. `none` stands where a path does not take the method. */
const withoutFlag = [
  'session.create',
  'session.refresh',
  'session.end',
  'session.read',
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
  'transit.restore',
  'tang.recover',
  'asset.signing-keys',
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
export const ownActions: ReadonlySet<string> = new Set([...plainActions, ...ringActions, ...withoutFlag]);

export const maxActionLength = 256;
/** What a record says that was stored without an action. */
export const unnamedAction = 'validated';

/**
 * Whether a name is one of the appliance's own, or reads like one: case, width, spaces and what cannot be seen do not
 * count.
 */
export function isOwnAction(name: string): boolean {
  const read = name
    .normalize('NFKC')
    .replace(/[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/gu, '')
    .toLowerCase();
  return ownActions.has(read) || isKnownFlag(read);
}
