// Wording of records of the activity log: their actions (`encrypted with`, or `encrypt with` for attempts that did not
// succeed), their changes, and why a request failed. Actions of other programs have no wording: they are shown as they
// are.
import { type ActivityDetails, provedIn } from '../../model/activity-details.ts';
import { resourceNames } from '../text.ts';
import { approvalWordsFor, waitsForApproval } from './approval-words.ts';
import { refusalOf } from './proof-words.ts';
import { type ActivityRecord, deedOfRecord } from './records.ts';

interface Words {
  /** Past tense of a completed action: `deleted`. */
  readonly past: string;
  /** Base form, for an attempt: `delete`. */
  readonly base: string;
  /** Object for records that name none: `users`. Empty if the wording needs no object. */
  readonly things: string;
}

/** Operations that several resources share: past tense and base form. */
const operations: ReadonlyMap<string, readonly [past: string, base: string]> = new Map(
  Object.entries({
    create: ['created', 'create'],
    list: ['listed', 'list'],
    read: ['looked at', 'look at'],
    search: ['searched', 'search'],
    update: ['changed', 'change'],
    delete: ['deleted', 'delete'],
    invite: ['invited', 'invite'],
    validate: ['checked', 'check'],
    encrypt: ['encrypted with', 'encrypt with'],
    decrypt: ['decrypted with', 'decrypt with'],
    rewrap: ['rewrapped messages with', 'rewrap messages with'],
    datakey: ['got a data key with', 'get a data key with'],
    'datakey-wrapped': ['got an encrypted data key with', 'get an encrypted data key with'],
    sign: ['signed with', 'sign with'],
    verify: ['verified signatures with', 'verify signatures with'],
    mac: ['made MACs with', 'make MACs with'],
    wrap: ['wrapped a key with', 'wrap a key with'],
    unwrap: ['unwrapped a key with', 'unwrap a key with'],
    derive: ['derived bytes with', 'derive bytes with'],
    state: ['changed the state of', 'change the state of'],
    import: ['imported', 'import'],
    export: ['exported', 'export'],
    rotate: ['rotated', 'rotate'],
    config: ['changed the settings of', 'change the settings of'],
    'erase-material': ['erased the bytes of', 'erase the bytes of'],
    restore: ['restored', 'restore'],
    recover: ['recovered with', 'recover with'],
  }),
);

/** Single actions whose wording needs no object: past tense and base form. */
const wholes: ReadonlyMap<string, readonly [past: string, base: string]> = new Map(
  Object.entries({
    'activity.read': ['read the activity log', 'read the activity log'],
    'kmip.query': ['asked what KMIP serves', 'ask what KMIP serves'],
    'key.random': ['got random bytes', 'get random bytes'],
    'key.hash': ['had bytes hashed', 'have bytes hashed'],
    'key.wrapping-key': ['read the wrapping key for imports', 'read the wrapping key for imports'],
    'asset.signing-keys': ['read the keys that verify assets', 'read the keys that verify assets'],
    'system.metrics': ['read the metrics', 'read the metrics'],
    'system.backup': ['backed up the appliance', 'back up the appliance'],
    'system.seal': ['sealed the appliance', 'seal the appliance'],
    'system.unseal': ['unsealed the appliance', 'unseal the appliance'],
    'system.master': ['changed how the master key is kept', 'change how the master key is kept'],
    'system.tenant': ['changed the tenant', 'change the tenant'],
    'system.restore': ['restored the appliance from a backup', 'restore the appliance from a backup'],
    'system.retention': ['dropped old activity', 'drop old activity'],
    'system.accept-older': ['accepted an older state of the appliance', 'accept an older state of the appliance'],
    'system.take-back': ['took the appliance back from a standby', 'take the appliance back from a standby'],
    'session.create': ['logged in', 'log in'],
    'session.refresh': ['renewed their session', 'renew their session'],
    'session.end': ['ended a session', 'end a session'],
    'session.watch': ['kept the console open', 'keep the console open'],
    'system.overview': ['looked at the overview', 'look at the overview'],
    'system.names': ['looked up names', 'look up names'],
    'session.read': ['looked at their sessions', 'look at their sessions'],
    'user.password': ['changed their password', 'change their password'],
    'user.invited': ['accepted their invitation', 'accept their invitation'],
    'user.reset': ['set a new password through a link', 'set a new password through a link'],
    'user.list-second-factors': ['looked at their second factors', 'look at their second factors'],
    'user.begin-second-factor': ['began to add a second factor', 'begin to add a second factor'],
    'user.add-second-factor': ['added a second factor', 'add a second factor'],
    'user.remove-second-factor': ['removed a second factor', 'remove a second factor'],
    'user.new-recovery-codes': ['created new recovery codes', 'create new recovery codes'],
    'approval.give': ['gave an approval', 'give an approval'],
    'admin.make': ['made somebody an administrator', 'make somebody an administrator'],
    'approval.list': ['looked at approval requests', 'look at approval requests'],
    'approval.list-rules': ['looked at approval rules', 'look at approval rules'],
    none: ['used a method that the path does not take', 'use a method that the path does not take'],
  }),
);

/** The wording of a record, as `wordsOf`. Only the first user is created by themselves. */
export function wordsOfRecord(record: ActivityRecord): Words | undefined {
  const { action, keyid } = record;
  if (action === 'user.create' && deedOfRecord(record).object?.id === keyid) {
    return { past: 'set up the first user', base: 'set up the first user', things: '' };
  }
  return wordsOf(action);
}

/** The wording of an action; undefined if it is not one of the appliance's own. */
export function wordsOf(action: string): Words | undefined {
  const whole = wholes.get(action);
  if (whole) return { past: whole[0], base: whole[1], things: '' };
  if (action === 'user.reset-second-factor') {
    return { past: 'removed the second factors of', base: 'remove the second factors of', things: 'a user' };
  }
  const ofApproval = approvalWordsFor(action);
  if (ofApproval) return ofApproval;
  const [resource = '', operation = ''] = action.split('.');
  const verbs = operations.get(operation);
  // Managed keys were called transit rings.
  const what = resourceNames.get(resource === 'transit' ? 'key' : resource);
  return verbs && what !== undefined ? { past: verbs[0], base: verbs[1], things: what } : undefined;
}

export type Outcome = 'done' | 'denied' | 'failed' | 'waiting';

export function outcomeOf(record: ActivityRecord): Outcome {
  const { validAction, status } = record;
  if (!validAction) return waitsForApproval(record) ? 'waiting' : 'denied';
  return status < 400 ? 'done' : 'failed';
}

const statusTexts: ReadonlyMap<number, string> = new Map([
  [304, 'nothing had changed'],
  [400, 'the request was not valid'],
  [401, 'the credential is disabled or has expired'],
  [403, 'not allowed, or a limit is reached'],
  [404, 'not found'],
  [405, 'the path does not take this method'],
  [413, 'the request was too large'],
  [415, 'the request was not JSON'],
  [422, 'an asset does not verify'],
  [429, 'too many attempts: it had to wait'],
  [503, 'the service was unavailable'],
]);

/** Why the service answered with this status. A refused login or password change was a valid request. */
export function statusText(record: ActivityRecord): string {
  const { status, validAction, reporter } = record;
  if (waitsForApproval(record)) return 'it needs approval first';
  if (status === 400 && !validAction && reporter === undefined) {
    const text = refusalText(record);
    if (text !== undefined) return text;
  }
  const text = statusTexts.get(status);
  if (text !== undefined) return text;
  if (status < 400) return 'done';
  return status < 500 ? 'the request was refused' : 'the service failed';
}

function refusalText({ action, keyid, props }: ActivityRecord): string | undefined {
  if (action === 'session.create') {
    const { refusedBy } = provedIn(props);
    if (refusedBy !== undefined) return refusalOf(refusedBy);
    // Software logs in with a role and its secret.
    if (keyid.startsWith('apik_')) return 'wrong secret';
    if (props.secondFactor === 'missing') return 'the password was right, the second factor was missing';
    if (props.secondFactor === 'wrong') return 'the password was right, the second factor was wrong';
    return 'wrong password or passkey';
  }
  if (action === 'user.password') return 'the current password was wrong';
  return action.endsWith('-second-factor') || action === 'user.new-recovery-codes'
    ? 'the current password or the code was wrong'
    : undefined;
}

const mostDetails = 4;

/** Changes in words: the first few names of fields and flags. */
export function detailTexts(deed: ActivityDetails): string[] {
  const state = stateText(deed);
  const { granted = [], revoked = [] } = deed;
  // Flags of a key that is disabled have no effect, but it keeps them.
  const flags: readonly Names[] = [
    ['flags granted', granted],
    ['flags revoked', revoked],
  ];
  const lists: readonly Names[] = [['changed', otherChanges(deed)], ...(state === undefined ? flags : [])];
  const texts = lists
    .filter(([, names]) => names.length > 0)
    .map(([title, names]) => {
      const rest = names.length - mostDetails;
      return `${title}: ${names.slice(0, mostDetails).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
    });
  return state === undefined ? texts : [state, ...texts];
}

type Names = readonly [title: string, names: readonly string[]];

/** `disabled` or `enabled`, if that was done. Only the flags that had effect before or after tell which. */
export function stateText({ changed = [], granted = [], revoked = [] }: ActivityDetails): string | undefined {
  if (!changed.includes('active')) return undefined;
  if (revoked.length > 0) return 'disabled';
  return granted.length > 0 ? 'enabled' : 'disabled or enabled';
}

/** Names of the changed fields, without the one that `stateText` has words for. */
export function otherChanges({ changed = [] }: ActivityDetails): string[] {
  return changed.filter((name) => name !== 'active');
}
