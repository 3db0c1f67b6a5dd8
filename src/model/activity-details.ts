// ActivityDetails is an activity record's account of what was done: to which object, which fields changed, which
// permission flags were gained and lost. Names only, never values: no secret, password or token gets into a record this
// way.

import type { Custody } from './custody.ts';
import { type Flags, maxFlags } from './flags.ts';
import { isJsonObject, type JsonObject, sameJson } from './json.ts';

/** Types of things with a name and keys, each of which has its own names. */
export const ringTypes = ['keyring', 'asym-keyring', 'managed-key'] as const;
export type RingType = (typeof ringTypes)[number];

/** An object that was made, changed or removed. */
export interface ResourceRef {
  readonly type:
    | 'account'
    | 'apikey'
    | 'approval'
    | 'approval-rule'
    | 'asset'
    | 'asym-keyring'
    | 'broken-glass'
    | 'custodian'
    | 'key'
    | 'keyring'
    | 'second-factor'
    | 'session'
    | 'tang-pair'
    | 'tenant'
    | 'managed-key'
    | 'proof'
    | 'user';
  readonly id: string;
  /** Display name; absent if it has none. */
  readonly name?: string | undefined;
}

export interface ActivityDetails {
  readonly object?: ResourceRef;
  /** Other objects affected: all of them, or some of `objectCount`. */
  readonly objects?: readonly ResourceRef[];
  /** Number of other objects affected, if more than `mostNamed`. */
  readonly objectCount?: number;
  /** For a new ring: who can use its keys. */
  readonly custody?: Custody;
  /** For an encrypt or decrypt: the appliance gave its share of the file's key, not the ring's key. */
  readonly recipient?: boolean;
  /** For use of a managed key's key: the key's version; for a rewrap, the new version. */
  readonly keyVersion?: number;
  /** For a rewrap: the version that it read. */
  readonly fromKeyVersion?: number;
  /** For a change of state: the new one. */
  readonly state?: string;
  /** For a proof of an API key: what was done to it. */
  readonly proofChange?: string;
  /** For a proof of an API key: by what it is known. */
  readonly trust?: JsonObject;
  /** For a managed key that came in or went out: how it was. */
  readonly transfer?: 'wrapped' | 'plaintext' | 'public';
  /** For a rule of approvals: what it says afterwards. */
  readonly rule?: JsonObject;
  /** For approvals: what a verifier needs of a request, a word, or an act that was approved. */
  readonly approval?: JsonObject;
  /** Names of fields. */
  readonly changed?: readonly string[];
  /** Names of flags, in lower case. */
  readonly granted?: readonly string[];
  readonly revoked?: readonly string[];
}

/** Maximum of affected objects that are named. */
export const mostNamed = 100;
/** Things that one act does something to besides its own, as rules of approvals look at them. */
export const mostTouched = 10_000;
/** Maximum length of a name, in characters. */
const longestName = 256;

/** The deed as `props` of a record. Empty fields are left out. */
export function detailsProps({
  object,
  objects = [],
  objectCount = 0,
  custody,
  recipient,
  keyVersion,
  fromKeyVersion,
  state,
  transfer,
  proofChange,
  trust,
  rule,
  approval,
  ...lists
}: ActivityDetails): JsonObject {
  const props: Record<string, unknown> = {};
  if (object) props.object = named(object);
  if (objects.length > 0) props.objects = objects.slice(0, mostNamed).map(named);
  if (objectCount > mostNamed) props.objectCount = objectCount;
  if (custody) props.custody = custody;
  if (recipient) props.recipient = true;
  if (keyVersion !== undefined) props.keyVersion = keyVersion;
  if (fromKeyVersion !== undefined) props.fromKeyVersion = fromKeyVersion;
  if (state !== undefined) props.state = state;
  if (proofChange !== undefined) props.proofChange = proofChange;
  if (trust !== undefined) props.trust = trust;
  if (transfer !== undefined) props.transfer = transfer;
  if (rule !== undefined) props.rule = rule;
  if (approval !== undefined) props.approval = approval;
  for (const [name, list] of Object.entries(lists)) if (list.length > 0) props[name] = list;
  return props;
}

function named({ type, id, name = '' }: ResourceRef): ResourceRef {
  if (name === '') return { type, id };
  return { type, id, name: name.length > longestName ? `${name.slice(0, longestName - 1).toWellFormed()}…` : name };
}

/** Names of the fields of `after` that differ in `before`. */
export function changedFields(before: JsonObject, after: JsonObject): string[] {
  return Object.keys(after).filter((name) => !sameJson(before[name], after[name]));
}

/** Flags that a holder of `before` gains and loses by `after`. */
export function changedRights(
  before: Flags | undefined,
  after: Flags | undefined,
): Pick<ActivityDetails, 'granted' | 'revoked'> {
  if (before === after) return {};
  const had = new Set(before?.names);
  const has = new Set(after?.names);
  return {
    granted: [...has].filter((name) => !had.has(name)),
    revoked: [...had].filter((name) => !has.has(name)),
  };
}

/** Flags gained or lost when a key is disabled or enabled; otherwise the change of its flags. */
export function changedUse(
  before: { readonly active: boolean; readonly flags: Flags },
  after: { readonly active: boolean; readonly flags: Flags },
): Pick<ActivityDetails, 'granted' | 'revoked'> {
  if (before.active === after.active) return changedRights(before.flags, after.flags);
  return changedRights(before.active ? before.flags : undefined, after.active ? after.flags : undefined);
}

/** Collects the names of many holders' flags, each once, up to `maxFlags`. */
export class FlagNames {
  readonly #names = new Set<string>();

  add(flags: Flags): void {
    for (const name of flags.names) if (this.#names.size < maxFlags) this.#names.add(name);
  }

  get list(): string[] {
    return [...this.#names];
  }
}

/** The deed in a record's `props`. In a reported record they are the reporter's own words, not a deed. */
export function detailsIn(props: JsonObject): ActivityDetails {
  const { object, objects, objectCount, keyVersion, fromKeyVersion, proofChange, changed, granted, revoked } = props;
  return {
    ...(isThing(object) && { object }),
    ...(Array.isArray(objects) && { objects: objects.filter(isThing) }),
    ...(typeof objectCount === 'number' && { objectCount }),
    ...(typeof keyVersion === 'number' && { keyVersion }),
    ...(typeof fromKeyVersion === 'number' && { fromKeyVersion }),
    ...(typeof proofChange === 'string' && { proofChange }),
    changed: textsOf(changed),
    granted: textsOf(granted),
    revoked: textsOf(revoked),
  };
}

const proofChanges: ReadonlyMap<string, string> = new Map([
  ['add', 'added'],
  ['renew', 'renewed'],
  ['remove', 'removed'],
  ['enable', 'enabled'],
  ['disable', 'disabled'],
]);

/** Past tense of what was done to a proof. */
export function proofChangeText(change: string): string {
  return proofChanges.get(change) ?? change;
}

/** How the caller of a record was proved, if it is an API key that was proved by other means than its secret. */
interface ProvedBy {
  /** Id of the proof. */
  readonly proof?: string;
  /** The program, in the words of its proof. */
  readonly subject?: string;
  /** The check that refused its token. */
  readonly refusedBy?: string;
  /** The older proof that its certificate is, and the API key of that. */
  readonly olderProof?: string;
  readonly olderProofOf?: string;
}

/** How the caller was proved, in a record's `props`. In a reported record they are the reporter's own words. */
export function provedIn({ proof, subject, refusedBy, olderProof, olderProofOf }: JsonObject): ProvedBy {
  return {
    ...(typeof proof === 'string' && { proof }),
    ...(typeof subject === 'string' && subject !== '' && { subject }),
    ...(typeof refusedBy === 'string' && { refusedBy }),
    ...(typeof olderProof === 'string' && { olderProof }),
    ...(typeof olderProofOf === 'string' && { olderProofOf }),
  };
}

function isThing(value: unknown): value is ResourceRef {
  return isJsonObject(value) && typeof value.type === 'string' && typeof value.id === 'string';
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
