// Deed is what a record of the appliance's own says was done: to what, which of its fields changed, which permission
// flags it gained and lost. Names alone, never a value: no secret, no password, no token gets into a record this way.
import { type Flags, maxFlags } from './flags.ts';
import { isJsonObject, type JsonObject, sameJson } from './json.ts';
import type { Custody } from './transit.ts';

/** What was made, changed or removed. */
export interface Thing {
  readonly type:
    | 'account'
    | 'apikey'
    | 'asset'
    | 'asym-keyring'
    | 'custodian'
    | 'key'
    | 'keyring'
    | 'second-factor'
    | 'session'
    | 'tang-pair'
    | 'tenant'
    | 'transit-ring'
    | 'user';
  readonly id: string;
  /** What people call it; absent where it has no name. */
  readonly name?: string | undefined;
}

export interface Deed {
  readonly object?: Thing;
  /** What was touched along with it: all, or some of `objectCount`. */
  readonly objects?: readonly Thing[];
  /** How many were touched along with it, where they are more than `mostNamed`. */
  readonly objectCount?: number;
  /** Of a ring that was made: who can use its keys. */
  readonly custody?: Custody;
  /** Of an encrypt or a decrypt: that the appliance gave its share of the file's key, not the ring's key. */
  readonly recipient?: boolean;
  /** Of what the appliance did with a key of a transit ring: the key's version; of a rewrap the one that it made. */
  readonly keyVersion?: number;
  /** Of a rewrap: the version that it read. */
  readonly fromKeyVersion?: number;
  /** Names of fields. */
  readonly changed?: readonly string[];
  /** Names of flags, in lower case. */
  readonly granted?: readonly string[];
  readonly revoked?: readonly string[];
}

/** Of the things that were touched along with another, so many are named. */
export const mostNamed = 100;
/** Characters of a name. */
const longestName = 256;

/** The deed as a record has it in its `props`. What is empty is left out. */
export function deedProps({
  object,
  objects = [],
  objectCount = 0,
  custody,
  recipient,
  keyVersion,
  fromKeyVersion,
  ...lists
}: Deed): JsonObject {
  const props: Record<string, unknown> = {};
  if (object) props.object = named(object);
  if (objects.length > 0) props.objects = objects.slice(0, mostNamed).map(named);
  if (objectCount > mostNamed) props.objectCount = objectCount;
  if (custody) props.custody = custody;
  if (recipient) props.recipient = true;
  if (keyVersion !== undefined) props.keyVersion = keyVersion;
  if (fromKeyVersion !== undefined) props.fromKeyVersion = fromKeyVersion;
  for (const [name, list] of Object.entries(lists)) if (list.length > 0) props[name] = list;
  return props;
}

function named({ type, id, name = '' }: Thing): Thing {
  if (name === '') return { type, id };
  return { type, id, name: name.length > longestName ? `${name.slice(0, longestName - 1).toWellFormed()}…` : name };
}

/** The names of those fields of `after` that `before` has otherwise. */
export function changedFields(before: JsonObject, after: JsonObject): string[] {
  return Object.keys(after).filter((name) => !sameJson(before[name], after[name]));
}

/** What a holder of `before` gains and loses by `after`. */
export function changedRights(before: Flags | undefined, after: Flags | undefined): Pick<Deed, 'granted' | 'revoked'> {
  if (before === after) return {};
  const had = new Set(before?.names);
  const has = new Set(after?.names);
  return {
    granted: [...has].filter((name) => !had.has(name)),
    revoked: [...had].filter((name) => !has.has(name)),
  };
}

/** What a key that is put out of use, or back into it, loses or gains; otherwise what its flags do. */
export function changedUse(
  before: { readonly active: boolean; readonly flags: Flags },
  after: { readonly active: boolean; readonly flags: Flags },
): Pick<Deed, 'granted' | 'revoked'> {
  if (before.active === after.active) return changedRights(before.flags, after.flags);
  return changedRights(before.active ? before.flags : undefined, after.active ? after.flags : undefined);
}

/** Collects the names of many holders' flags, each once, and no more of them than one set of flags may have. */
export class FlagNames {
  readonly #names = new Set<string>();

  add(flags: Flags): void {
    for (const name of flags.names) if (this.#names.size < maxFlags) this.#names.add(name);
  }

  get list(): string[] {
    return [...this.#names];
  }
}

/** What the `props` of a record say was done. Those of reported records are another's words and say nothing of it. */
export function deedOf(props: JsonObject): Deed {
  const { object, objects, objectCount, keyVersion, fromKeyVersion, changed, granted, revoked } = props;
  return {
    ...(isThing(object) && { object }),
    ...(Array.isArray(objects) && { objects: objects.filter(isThing) }),
    ...(typeof objectCount === 'number' && { objectCount }),
    ...(typeof keyVersion === 'number' && { keyVersion }),
    ...(typeof fromKeyVersion === 'number' && { fromKeyVersion }),
    changed: textsOf(changed),
    granted: textsOf(granted),
    revoked: textsOf(revoked),
  };
}

function isThing(value: unknown): value is Thing {
  return isJsonObject(value) && typeof value.type === 'string' && typeof value.id === 'string';
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
