// Approval rules: which acts a rule covers, its limits, and the presets. Pure; whose approval counts is decided in the
// core.
import type { ResourceRef } from './activity-details.ts';
import { type Flags, flagName, isKnownFlag, likelyFlag, parseFlags, ringActions } from './flags.ts';
import { nearest } from './nearest.ts';

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
/** Users whom a rule can vouch for. */
export const mostVouched = 500;
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

/** Acts that no flag names: they are what several operations come to, or a part of what a flag grants. */
export const furtherActions = {
  /** Anybody gets `*`, or gets at a key or user that has it. */
  makeAdministrator: 'admin.make',
  /** A backup is restored: told of as broken glass, since the appliance that could ask is the one to come. */
  restore: 'system.restore',
  /** The bytes of a managed key that was imported are erased, which takes the flag to import them. */
  eraseMaterial: 'key.erase-material',
} as const;

/**
 * Acts that no flag has the name of: of the administrator at the machine, of KMIP, and what is recorded under a name of
 * its own. Restoring is no part of what the flag to delete is asked for.
 */
const unflagged: readonly string[] = [
  ...['create', 'update', 'delete', 'restore', 'rekey'].map((act) => `tenant.${act}`),
  ...['keyring.restore', 'key.restore', 'system.master', 'asset.signing-keys', 'key.random', 'key.hash', 'kmip.query'],
  ...Object.values(furtherActions),
];
/** Acts on a ring or managed key, whose name stands in theirs as in a flag's. */
const recordedOfRings: ReadonlySet<string> = new Set([furtherActions.eraseMaterial, 'keyring.rewrap']);

/** The name of an act, with that of its ring. */
export function actName(action: string, ring?: string): string {
  if (!recordedOfRings.has(action) || ring === undefined) return flagName(action, ring);
  const dot = action.indexOf('.');
  return `${action.slice(0, dot)}.${ring}${action.slice(dot)}`;
}

const plainActs: ReadonlySet<string> = new Set(
  unflagged.flatMap((act) => [act, `${act.slice(0, act.indexOf('.'))}.*`]),
);

/** Whether an entry of a rule can cover any act of the appliance. */
function isKnownAct(name: string): boolean {
  const lower = name.toLowerCase();
  if (isKnownFlag(lower) || plainActs.has(lower)) return true;
  const [resource = '', ...rest] = lower.split('.');
  const operation = rest.pop() ?? '';
  const isOfRing = rest.length > 0 && recordedOfRings.has(`${resource}.${operation}`);
  return isOfRing && isKnownFlag([resource, ...rest, '*'].join('.'));
}

/** Why an entry of a rule covers nothing, and what was probably meant; undefined for one that can cover something. */
export function actProblem(name: string): string | undefined {
  if (isKnownAct(name)) return undefined;
  const meant = likelyAct(name);
  const question = meant === undefined ? '' : `; did you mean ${meant}?`;
  return `"${name.slice(0, longestRuleName)}" covers no action${question}`;
}

/** The entry of a rule that was probably meant; undefined if nothing is near. */
function likelyAct(name: string): string | undefined {
  const lower = name.trim().toLowerCase();
  if (isKnownAct(lower)) return lower;
  const [resource = '', operation = '', ...more] = lower.split('.');
  const action = `${resource}.${operation}`;
  const isWithoutRing = more.length === 0 && (ringActions.has(action) || recordedOfRings.has(action));
  return isWithoutRing ? `${resource}.*.${operation}` : (likelyFlag(lower) ?? nearest(lower, unflagged));
}

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
    title: 'Deleting a keyring, a managed key or a tenant',
    actions: ['keyring.*.delete', 'key.*.delete', 'key.*.erase-material', 'tang.delete', 'tenant.delete'],
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
  /** Whether it concerns any thing, whichever a rule means. */
  readonly isForAll?: boolean;
  /** Names of the thing before and after the act, if it loses some. */
  readonly renamed?: Renamed | undefined;
  /** Acts on further things, which take flags of their own. */
  readonly further?: readonly FurtherAct[];
}

interface Renamed {
  readonly from: readonly string[];
  readonly to: readonly string[];
}

/** An act on a further thing. */
export interface FurtherAct extends Act {
  /** The thing, if it was there. */
  readonly object?: ResourceRef | undefined;
}

/** Acts on further things as people are told of them: the flag that each takes, and the thing. */
export function furtherTold(further: readonly FurtherAct[] = []) {
  return further.map(({ actions: [action = ''], ring, object = null }) => ({ action: actName(action, ring), object }));
}

interface Pattern {
  readonly actions: readonly string[];
  readonly objects: readonly string[];
}

/** Whether a rule covers the act. */
export function covers(pattern: Pattern, act: Act): boolean {
  const { actions, objects, isForAll = false, further = [] } = act;
  const flags = flagsOf(pattern.actions);
  const isCovered =
    actions.some((action) => flags.covers(actName(action, act.ring))) && (isForAll || means(pattern, objects));
  return isCovered || further.some((each) => covers(pattern, each));
}

/**
 * Whether the act takes from a thing the last name by which the rule means it: renaming it would get round the rule.
 */
export function losesSome(pattern: Pattern, act: Act): boolean {
  const { actions, renamed, further = [] } = act;
  const isLost = renamed !== undefined && means(pattern, renamed.from) && !means(pattern, renamed.to);
  const resources = new Set(pattern.actions.map(resourceOf));
  const concerns = (action: string): boolean =>
    resources.has('*') ||
    resources.has(resourceOf(action)) ||
    (resources.has('admin') && /^(?:user|apikey)\./.test(action));
  return (isLost && actions.some(concerns)) || further.some((each) => losesSome(pattern, each));
}

/** The kind of thing that an act is about: `key` for `key.pay.delete`, and for acts of KMIP. */
function resourceOf(action: string): string {
  const resource = action.slice(0, `${action}.`.indexOf('.')).toLowerCase();
  return resource === 'kmip' ? 'key' : resource;
}

/** How names of keys begin where clients of AWS write them in full. */
const ofAws = /^(?:arn:aws:kms:[^/]*:(?:key|alias)|alias)\//i;

function means({ objects }: Pattern, names: readonly string[]): boolean {
  return objects.some((wanted) => {
    const short = wanted.replace(ofAws, '');
    return wanted === '*' || names.some((name) => matches(wanted, name) || (short !== wanted && matches(short, name)));
  });
}

const compiled = new WeakMap<readonly string[], Flags>();

function flagsOf(actions: readonly string[]): Flags {
  const known = compiled.get(actions);
  if (known) return known;
  const flags = parseFlags(Object.fromEntries(actions.map((action) => [action, true])));
  compiled.set(actions, flags);
  return flags;
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
    .concat('keyring.read', 'key.read')
    // It keeps what the caller sends: other wrappings than those that were asked for are another act.
    .filter((use) => use !== 'keyring.rewrap'),
);

/** Whether an action uses a key: the same caller may do it with any input while a window is open. */
export function isKeyUse(action: string): boolean {
  return keyUses.has(action);
}
