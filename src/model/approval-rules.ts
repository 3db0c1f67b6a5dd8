// Rules of approvals: which acts a rule covers, its limits, and the presets. Pure; whose word counts is decided in the
// core.
import { flagName, parseFlags } from './flags.ts';

export const approvalModes = ['ask', 'hold'] as const;
type ApprovalMode = (typeof approvalModes)[number];

export const requestStates = ['pending', 'granted', 'done', 'denied', 'withdrawn', 'expired'] as const;
export type RequestState = (typeof requestStates)[number];

/** Words about a request. */
export const verdicts = ['approve', 'deny', 'break-glass'] as const;
export type Verdict = (typeof verdicts)[number];

/** Characters. */
export const longestRuleName = 128;
export const longestReason = 1024;
/** Entries of one rule. */
export const mostActions = 50;
export const mostObjects = 100;
export const mostApprovers = 100;
/** Words that a rule may need. */
export const mostWords = 10;
/** Rules of a tenant. */
export const mostRules = 200;
/** Seconds. */
export const shortestWindow = 300;
export const longestWindow = 86_400;
/** Any thing, and acts on none. */
export const defaultObjects = ['*'];

/** Milliseconds for which a request waits for words, and for which it may be done once it has them. */
export const requestLasts = 86_400_000;
/** Milliseconds for which a second factor counts as fresh. */
export const factorFreshFor = 300_000;

/**
 * The text whose SHA-256 a passkey signs to deny a request, or to break the glass for it, in canonical JSON. Approving
 * signs the digest of the request itself.
 */
export function wordText(verdict: Exclude<Verdict, 'approve'>, digest: string): string {
  return JSON.stringify({ digest, v: 'kms/approval-word/1', verdict });
}

/** Acts that no flag names: they are what several operations come to. */
export const furtherActions = {
  /** Anybody gets `*`, or gets at a key or user that has it. */
  makeAdministrator: 'admin.make',
  /** A backup is restored: told of as broken glass, since the appliance that could ask is the one to come. */
  restore: 'system.restore',
} as const;

export const presetNames = [
  'delete-keys',
  'export-keys',
  'make-administrators',
  'restore-backups',
  'change-rules',
] as const;
type PresetName = (typeof presetNames)[number];

interface Preset {
  readonly name: PresetName;
  readonly title: string;
  readonly actions: readonly string[];
}

export const presets: readonly Preset[] = [
  {
    name: 'delete-keys',
    title: 'Deleting a keyring or a managed key',
    actions: ['keyring.*.delete', 'key.*.delete', 'tang.delete'],
  },
  { name: 'export-keys', title: 'Exporting a key', actions: ['key.*.export'] },
  { name: 'make-administrators', title: 'Making an administrator', actions: [furtherActions.makeAdministrator] },
  { name: 'restore-backups', title: 'Restoring a backup', actions: [furtherActions.restore] },
  { name: 'change-rules', title: 'Changing a rule', actions: ['approval.rule'] },
];

/** The fields of a rule that say what it asks for. */
export interface ApprovalTerms {
  readonly actions: readonly string[];
  readonly objects: readonly string[];
  /** Ids of Users, or a flag. */
  readonly approvers: { readonly users: readonly string[] } | { readonly flag: string };
  readonly count: number;
  readonly mode: ApprovalMode;
  /** In seconds. */
  readonly window: 'once' | number;
  /** Ids of Users who may break the glass. */
  readonly breakers: readonly string[];
}

/** An act, as rules look at it. */
export interface Act {
  /** Actions without a ring's name, such as `key.delete`; more than one where an act comes to several. */
  readonly actions: readonly string[];
  /** The ring or managed key that the action is about, in lower case; undefined if it is about none. */
  readonly ring?: string | undefined;
  /** Names and ids of what is concerned. */
  readonly objects: readonly string[];
}

interface Pattern {
  readonly actions: readonly string[];
  readonly objects: readonly string[];
}

/** Whether a rule covers the act. */
export function covers({ actions, objects }: Pattern, act: Act): boolean {
  const flags = parseFlags(Object.fromEntries(actions.map((action) => [action, true])));
  if (!act.actions.some((action) => flags.covers(flagName(action, act.ring)))) return false;
  return objects.some((pattern) => pattern === '*' || act.objects.some((object) => matches(pattern, object)));
}

/** `*` stands for any letters; case does not count. */
function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.toLowerCase().split('*');
  const lower = text.toLowerCase();
  if (rest.length === 0) return lower === first;
  if (!lower.startsWith(first)) return false;
  const last = rest.pop() ?? '';
  let at = first.length;
  for (const part of rest) {
    const found = lower.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return lower.length - last.length >= at && lower.endsWith(last);
}

const keyUses: ReadonlySet<string> = new Set(
  ['encrypt', 'decrypt', 'rewrap', 'datakey', 'datakey-wrapped', 'sign', 'verify', 'mac', 'wrap', 'unwrap', 'derive']
    .flatMap((use) => [`key.${use}`, `keyring.${use}`])
    .concat('keyring.read', 'key.read'),
);

/** Whether an action uses a key: the same caller may do it with any input while a window is open. */
export function isKeyUse(action: string): boolean {
  return keyUses.has(action);
}
