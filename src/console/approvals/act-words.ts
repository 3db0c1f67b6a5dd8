// Wording of approval requests: a request as a sentence, the consequences of the gravest operations, and the state of a
// request. Pure.
import type { ApprovalRequest } from '../../api/approvals.ts';
import { furtherActions, type RequestState } from '../../model/approval-rules.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { typeNames } from '../activity/type-names.ts';
import { wordsOf } from '../activity/words.ts';
import { countedText, shortId, spanText, upperFirst } from '../text.ts';

/** The parts of a request that say what it asks for. */
type AskedAct = Pick<
  ApprovalRequest,
  'action' | 'actions' | 'operation' | 'object' | 'statement' | 'shown' | 'effects'
>;

/** `Delete the managed key payroll`. */
export function actText({ action, operation, object, statement, shown }: AskedAct): string {
  const { recorded, ring } = recordedIn(statement);
  const words = singleActs.get(operation) ?? wordsOf(recorded ?? '');
  if (!words) return `Use the permission ${action}`;
  const verb = upperFirst(words.base);
  if (words.things === '') return verb;
  if (object) return `${verb} the ${typeNames[object.type] ?? object.type} ${object.name ?? shortId(object.id)}`;
  if (ring !== undefined) return `${verb} ${ring}`;
  const name = nameIn(shown.body);
  const thing = singular.get(words.things) ?? words.things;
  return name === undefined ? `${verb} ${thing}` : `${verb} ${thing}, ${name}`;
}

interface ActWords {
  readonly base: string;
  readonly things: string;
}

/** Operations whose id says more than the action under which they are recorded. */
const singleActs: ReadonlyMap<string, ActWords> = new Map([
  ['createApprovalRule', { base: 'make', things: 'approval rules' }],
  ['updateApprovalRule', { base: 'change', things: 'approval rules' }],
  ['deleteApprovalRule', { base: 'delete', things: 'approval rules' }],
  ['acknowledgeBrokenGlass', { base: 'acknowledge that the glass was broken', things: '' }],
  ['restoreKeyring', { base: 'restore', things: 'keyrings' }],
  ['restoreManagedKey', { base: 'restore', things: 'managed keys' }],
  ['trimManagedKey', { base: 'destroy old versions of', things: 'managed keys' }],
  ['addManagedKeyAlias', { base: 'give an alias to', things: 'managed keys' }],
  ['removeManagedKeyAlias', { base: 'take an alias from', things: 'managed keys' }],
  ['addProof', { base: 'add a proof to', things: 'API keys' }],
  ['updateProof', { base: 'change a proof of', things: 'API keys' }],
  ['removeProof', { base: 'remove a proof from', things: 'API keys' }],
  ['local:makeResetLink', { base: 'make a link that resets the password of', things: 'users' }],
]);

const singular: ReadonlyMap<string, string> = new Map([
  ['keyrings', 'a keyring'],
  ['asymmetric keyrings', 'an asymmetric keyring'],
  ['managed keys', 'a managed key'],
  ['objects of KMIP', 'an object of KMIP'],
  ['Tang key pairs', 'a Tang key pair'],
  ['assets', 'an asset'],
  ['users', 'a user'],
  ['accounts', 'an account'],
  ['API keys', 'an API key'],
  ['approval rules', 'an approval rule'],
]);

function recordedIn(statement: string): { readonly recorded?: string | undefined; readonly ring?: string | undefined } {
  const parsed = parsedStatement(statement);
  const { recorded, ring } = parsed;
  return {
    recorded: typeof recorded === 'string' ? recorded : undefined,
    ring: typeof ring === 'string' && ring !== '' ? ring : undefined,
  };
}

function parsedStatement(statement: string): JsonObject {
  try {
    const parsed: unknown = JSON.parse(statement);
    return isJsonObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

function nameIn(body: ApprovalRequest['shown']['body']): string | undefined {
  const names = [body?.name, body?.username, body?.uid];
  return names.find((name): name is string => typeof name === 'string' && name !== '');
}

/** Consequences of operations that are hard to undo. */
const consequences: ReadonlyMap<string, string> = new Map([
  ['deleteKeyring', 'Its keys stop working at once. What they encrypted can no longer be read.'],
  [
    'deleteManagedKey',
    'It stops working at once, and is destroyed after a waiting time; until then it can be restored. After that, what it encrypted is lost.',
  ],
  ['exportManagedKey', 'The key leaves the service, which can then no longer see or stop its use.'],
  ['trimManagedKey', 'The old versions are destroyed. What only they can open is lost.'],
  ['eraseKeyMaterial', 'Its bytes are erased. It does not work until they are imported again.'],
  ['deleteTangPair', 'Clients that are bound to this pair alone can no longer recover their keys.'],
  ['deleteAccount', 'Its API keys go with it, and programs that use them are refused.'],
  ['deleteApiKey', 'Programs that use it will be refused.'],
  ['deleteApiKeyById', 'Programs that use it will be refused.'],
  ['deleteUser', 'They can no longer log in. Their API keys are disabled, unless they are handed on.'],
  ['updateApprovalRule', 'From then on, only the approvals that the changed rule asks for are needed.'],
  ['deleteApprovalRule', 'From then on, nothing needs approval because of this rule.'],
  ['kmip:Destroy', 'The object is destroyed. What it encrypted is lost.'],
]);

export function consequenceText({
  operation,
  actions,
  effects,
}: Pick<AskedAct, 'operation' | 'actions' | 'effects'>): readonly string[] {
  const usual = consequences.get(operation);
  return [
    ...(effects.granted.includes('*')
      ? ['Somebody gets every permission: they can then do everything, now and in future, and grant it to others.']
      : actions.includes(furtherActions.makeAdministrator)
        ? ['Somebody may get into a user or API key that has every permission, and could then do everything.']
        : []),
    ...(usual === undefined ? [] : [usual]),
  ];
}

interface StateWords {
  readonly label: string;
  readonly tone?: 'good' | 'warn' | 'bad';
}

const states: Readonly<Record<RequestState, StateWords>> = {
  pending: { label: 'waiting', tone: 'warn' },
  granted: { label: 'approved', tone: 'good' },
  done: { label: 'done' },
  denied: { label: 'denied', tone: 'bad' },
  withdrawn: { label: 'withdrawn' },
  expired: { label: 'expired' },
};

export function stateWords({ state, broken }: Pick<ApprovalRequest, 'state' | 'broken'>): StateWords {
  return state === 'granted' && broken ? { label: 'may be done', tone: 'warn' } : states[state];
}

export function isOpen({ state }: Pick<ApprovalRequest, 'state'>): boolean {
  return state === 'pending' || state === 'granted';
}

/** `once`, or `as often as they like for 1 hour`. */
export function windowText(window: 'once' | number): string {
  return window === 'once' ? 'once' : `as often as needed for ${spanText(window)}`;
}

/** The narrowest window of the rules: each of them bounds what was approved. */
export function narrowestWindow(rules: ApprovalRequest['rules']): 'once' | number {
  const windows = rules.map(({ window }) => window);
  const spans = windows.filter((window) => window !== 'once');
  return spans.length < windows.length || spans.length === 0 ? 'once' : Math.min(...spans);
}

/** `1 more approval` */
export function missingText({ needed, given }: Pick<ApprovalRequest, 'needed' | 'given'>): string {
  return countedText(Math.max(0, needed - given), 'more approval');
}
