// Permission flags: the closed table, and what a set of flags grants, names and covers. Names compare in lower case and
// only `true` grants; names outside the table may be stored and grant nothing here.
import { invalidField } from '../errors.ts';
import { type ChangeOp, isJsonObject, type JsonObject } from './json.ts';
import { isRingName } from './names.ts';
import { nearest } from './nearest.ts';

export interface FlagEntry {
  /** The flag, with `<ringname>` for a ring's name. */
  readonly flag: string;
  readonly grants: string;
}

export const flagTable: readonly FlagEntry[] = [
  { flag: '*', grants: 'everything' },
  { flag: 'keyring.create', grants: 'make keyrings' },
  { flag: 'keyring.list', grants: 'list keyrings' },
  {
    flag: 'keyring.<ringname>.read',
    grants: 'read the keyring, its keys and its config, resolve a hash or header of it',
  },
  { flag: 'keyring.<ringname>.encrypt', grants: 'encrypt with the keyring, and make and update Assets that way' },
  { flag: 'keyring.<ringname>.decrypt', grants: 'decrypt what the keyring encrypted' },
  { flag: 'keyring.<ringname>.rotate', grants: 'give the keyring a new active key' },
  { flag: 'keyring.<ringname>.config', grants: "change the keyring's config, and wrap its keys again" },
  { flag: 'keyring.<ringname>.delete', grants: 'delete the keyring, and restore it' },
  { flag: 'asym.create', grants: 'make asym keyrings' },
  { flag: 'asym.<ringname>.read', grants: "read the asym keyring's keys" },
  { flag: 'asym.<ringname>.rotate', grants: 'give the asym keyring a new active key' },
  { flag: 'key.create', grants: 'make managed keys, which the appliance holds' },
  { flag: 'key.list', grants: 'list managed keys' },
  { flag: 'key.<ringname>.read', grants: 'read the managed key, its versions, its public keys and who uses it' },
  { flag: 'key.<ringname>.encrypt', grants: 'have messages encrypted with the managed key' },
  { flag: 'key.<ringname>.decrypt', grants: 'have messages decrypted with the managed key' },
  { flag: 'key.<ringname>.rewrap', grants: 'have messages brought under a newer version of the managed key' },
  { flag: 'key.<ringname>.datakey', grants: 'get new data keys, in clear and encrypted with the managed key' },
  { flag: 'key.<ringname>.datakey-wrapped', grants: 'get new data keys, only encrypted with the managed key' },
  { flag: 'key.<ringname>.sign', grants: 'have messages signed with the managed key' },
  { flag: 'key.<ringname>.verify', grants: "have the managed key's signatures and MACs verified" },
  { flag: 'key.<ringname>.mac', grants: 'get MACs of messages by the managed key' },
  { flag: 'key.<ringname>.wrap', grants: 'have keys wrapped with the managed key' },
  { flag: 'key.<ringname>.unwrap', grants: 'have keys unwrapped with the managed key' },
  { flag: 'key.<ringname>.derive', grants: 'get bytes derived from the managed key' },
  { flag: 'key.<ringname>.rotate', grants: 'give the managed key a new version' },
  { flag: 'key.<ringname>.config', grants: "change the managed key's config and aliases" },
  {
    flag: 'key.<ringname>.state',
    grants: 'activate, suspend and deactivate the managed key, or mark it as compromised',
  },
  { flag: 'key.<ringname>.import', grants: 'import the managed key, or a version of it' },
  { flag: 'key.<ringname>.export', grants: 'export the managed key, where it may leave the appliance' },
  { flag: 'key.<ringname>.delete', grants: 'delete the managed key, restore it, and destroy old versions' },
  { flag: 'kmip.create', grants: 'make and register objects over KMIP, which are then its own' },
  { flag: 'kmip.read', grants: 'find its own objects of KMIP, and read their attributes' },
  { flag: 'kmip.get', grants: 'get the values of its own objects of KMIP' },
  { flag: 'kmip.use', grants: 'encrypt, decrypt, sign, verify, wrap and derive with its own objects of KMIP' },
  { flag: 'kmip.change', grants: 'change attributes of its own objects of KMIP' },
  { flag: 'kmip.state', grants: 'activate, revoke and archive its own objects of KMIP' },
  { flag: 'kmip.destroy', grants: 'destroy its own objects of KMIP' },
  { flag: 'tang.read', grants: 'list Tang key pairs' },
  { flag: 'tang.rotate', grants: 'make a new Tang key pair, which is advertised' },
  { flag: 'tang.delete', grants: 'delete Tang key pairs that are no longer advertised' },
  { flag: 'asset.read', grants: 'read Assets, and the public keys that verify their signatures' },
  { flag: 'asset.search', grants: 'search Assets' },
  { flag: 'asset.delete', grants: 'delete Assets' },
  { flag: 'user.read', grants: 'read and list Users' },
  { flag: 'user.create', grants: 'make Users' },
  { flag: 'user.update', grants: 'change Users' },
  { flag: 'user.delete', grants: 'delete Users' },
  { flag: 'user.invite', grants: 'invite Users' },
  { flag: 'account.read', grants: 'read and list Accounts' },
  { flag: 'account.create', grants: 'make Accounts' },
  { flag: 'account.update', grants: 'change Accounts' },
  { flag: 'account.delete', grants: 'delete Accounts and their API keys' },
  { flag: 'apikey.read', grants: 'read API keys and list them: all, by Account, by KeyRing' },
  { flag: 'apikey.create', grants: 'make API keys' },
  { flag: 'apikey.update', grants: 'change API keys' },
  { flag: 'apikey.delete', grants: 'delete API keys' },
  { flag: 'apikey.validate', grants: 'ask whether an API key is valid' },
  { flag: 'approval.rule', grants: 'make, change and delete approval rules, and acknowledge broken glass' },
  { flag: 'approval.read', grants: 'read all approval rules and requests' },
  { flag: 'approval.give', grants: 'approve requests, if rules name this flag' },
  { flag: 'activity.read', grants: 'read and search activity' },
  { flag: 'system.metrics', grants: 'read metrics, in the operator tenant' },
  { flag: 'system.backup', grants: 'take an online backup of all tenants, in the operator tenant' },
  { flag: 'system.seal', grants: 'seal the appliance, in the operator tenant' },
];

/**
 * The tenant whose `system.*` flags concern the whole appliance; in other tenants they have no effect. It cannot be
 * renamed, and no other tenant can get its name while it exists.
 */
export const operatorTenant = 'default';
/** Refusal of a change to it that would take the flags of the whole appliance away. */
export const operatorTenantStays = (name: string, what: string): string =>
  `the tenant ${name} ${what}: its flags system.* concern the whole appliance`;

/** Message when such a flag is refused in another tenant. */
export const outsideOperator = `concerns the whole appliance, and counts in the tenant ${operatorTenant} alone`;

/** Placeholder for a ring's name in messages and descriptions. */
export const ringPlaceholder = '<ringname>';

/** Every flag of the table, with the placeholder for the ring's name. */
export const knownFlags: readonly string[] = flagTable.map(({ flag }) => flag);

/** Actions whose flag names a ring, such as `keyring.encrypt`. */
export const ringActions: ReadonlySet<string> = new Set(
  knownFlags.filter((flag) => flag.includes(ringPlaceholder)).map((flag) => flag.replace(`${ringPlaceholder}.`, '')),
);

/** Actions not tied to one ring; their names are their flags. */
export const plainActions: ReadonlySet<string> = new Set(
  knownFlags.filter((flag) => flag !== '*' && !flag.includes(ringPlaceholder)),
);

const resources: ReadonlySet<string> = new Set([...plainActions].map((action) => action.slice(0, action.indexOf('.'))));

/** Whether the table, with its wildcards, has this flag. Programs warn about others. */
export function isKnownFlag(name: string): boolean {
  const lower = name.toLowerCase();
  if (lower === '*' || plainActions.has(lower)) return true;
  const flag = splitFlag(lower);
  if (!flag) return false;
  const { resource, ring, operation } = flag;
  if (ring === undefined) return operation === '*' && resources.has(resource);
  if (ring !== '*' && !isRingName(ring)) return false;
  return operation === '*' || ringActions.has(`${resource}.${operation}`);
}

/** The flag of the table that an unknown name probably meant, on the ring in that name. */
export function likelyFlag(name: string): string | undefined {
  const lower = name.toLowerCase();
  // Everything between the first dot and the last, however the resource is spelt.
  const ring = lower.split('.').slice(1, -1).join('.');
  const ofRing = ring === '' ? [] : [...ringActions].map((action) => flagName(action, ring));
  return nearest(lower, [...ofRing, ...plainActions].filter(isKnownFlag));
}

export interface Flags {
  /** Names of the true flags, in lower case. */
  readonly names: readonly string[];
  /**
   * Whether the action is granted, on that ring if it concerns one. Without a ring, the ring is unknown: only a
   * wildcard grants.
   */
  allows(action: string, ring?: string | null): boolean;
  /** Whether the action is granted on any ring at all. */
  allowsSome(action: string): boolean;
  /** Whether the flag, with its wildcards, adds nothing to this set. */
  covers(flag: string): boolean;
  /** Whether this set grants any part of the flag; for `*` that means all of it. */
  touches(flag: string): boolean;
  /** The first flag of `others` that this set does not cover; undefined if it covers all. */
  lacks(others: Flags): string | undefined;
}

/** Maximum length of a flag in code points. */
export const maxFlagLength = 256;
/** Names in one set. */
export const maxFlags = 5000;

/** The flag that grants an action: with the ring's name, or its placeholder. */
export function flagName(action: string, ring?: string): string {
  if (!ringActions.has(action)) return action;
  const dot = action.indexOf('.');
  return `${action.slice(0, dot)}.${ring ?? ringPlaceholder}${action.slice(dot)}`;
}

export function parseFlags(raw: JsonObject): Flags {
  const names = new Set<string>();
  for (const [name, granted] of Object.entries(raw)) if (granted === true) names.add(name.toLowerCase());
  return compile(names);
}

const compiled = new Map<string, Flags>();
/** Bounds of the cache: number of sets, and characters of one set's text. */
const mostCompiled = 4096;
const longestCompiled = 4096;

/** The flags of a stored JSON text. The compiled form is cached by the text. */
export function flagsOfText(text: string): Flags {
  let flags = compiled.get(text);
  if (!flags) {
    flags = parseFlags(JSON.parse(text));
    if (compiled.size >= mostCompiled) compiled.clear();
    if (text.length <= longestCompiled) compiled.set(text, flags);
  }
  return flags;
}

export function isLongFlag(name: string): boolean {
  return name.length > maxFlagLength && (name.length > 2 * maxFlagLength || [...name].length > maxFlagLength);
}

/** Throws `invalid` unless the value is a flat object of flag names to booleans. */
export function checkFlags(value: unknown, field = 'flags'): JsonObject {
  if (!isJsonObject(value)) throw invalidField(field, 'expected an object of flag names to booleans');
  const entries = Object.entries(value);
  if (entries.length > maxFlags) throw invalidField(field, `expected at most ${maxFlags} names`);
  for (const [name, granted] of entries) {
    if (isLongFlag(name)) throw invalidField(field, `a flag name has at most ${maxFlagLength} characters`);
    if (typeof granted !== 'boolean') throw invalidField(field, 'expected true or false for every flag');
  }
  return value;
}

/** `flags` after a change. Names compare in lower case: a given name replaces all that differ only in case. */
export function changedFlags(op: ChangeOp, flags: JsonObject, given: JsonObject): JsonObject {
  if (op === 'replace') return given;
  const names = new Set(Object.keys(given).map((name) => name.toLowerCase()));
  const kept = Object.entries(flags).filter(([name]) => !names.has(name.toLowerCase()));
  return Object.fromEntries(op === 'merge' ? [...kept, ...Object.entries(given)] : kept);
}

/** The rings that a key's flags name, in lower case; `*` if a wildcard allows every ring. */
export function ringsNamed(flags: Flags): string[] {
  const rings = new Set<string>();
  for (const name of flags.names) {
    const flag = splitFlag(name);
    if (name === '*' || name === 'keyring.*') rings.add('*');
    if (flag?.resource !== 'keyring' || flag.ring === undefined) continue;
    if (flag.ring !== '*') rings.add(flag.ring);
    else if (flag.operation === '*' || ringActions.has(`keyring.${flag.operation}`)) rings.add('*');
  }
  return [...rings];
}

/** Resources whose flags name a ring. */
const ringResources: ReadonlySet<string> = new Set(['keyring', 'asym', 'key']);

interface FlagParts {
  readonly resource: string;
  /** Present only if the resource has rings. */
  readonly ring: string | undefined;
  readonly operation: string;
}

/** Parses a flag's name. A ring's name may contain dots: it is everything between the first and the last. */
function splitFlag(name: string): FlagParts | undefined {
  const first = name.indexOf('.');
  if (first < 0) return undefined;
  const resource = name.slice(0, first);
  const last = name.lastIndexOf('.');
  const hasRing = last > first && ringResources.has(resource);
  return {
    resource,
    ring: hasRing ? name.slice(first + 1, last) : undefined,
    operation: name.slice(hasRing ? last + 1 : first + 1),
  };
}

/** All names that grant the whole flag: its own, in lower case, and wildcards. */
export function flagsCovering(flag: string): string[] {
  const name = flag.toLowerCase();
  const parts = splitFlag(name);
  if (!parts) return [...new Set([name, '*'])];
  const { resource, ring, operation } = parts;
  const ofRings = ring === undefined ? [] : [`${resource}.*.*`, `${resource}.*.${operation}`, `${resource}.${ring}.*`];
  return [...new Set([name, '*', `${resource}.*`, ...ofRings])];
}

/** Placeholder for any ring or any operation. */
const whichever = '?';

/**
 * The wildcards that overlap with one of these names, indexed so that a long policy is looked up. Overlaps that are
 * neither wider nor narrower, such as `keyring.payroll.*` and `keyring.*.rotate`, are entered with `whichever`.
 */
function wildcardsMet(names: readonly string[]): ReadonlySet<string> {
  const met = new Set<string>();
  for (const name of names) {
    const parts = splitFlag(name);
    if (!parts) continue;
    const { resource, ring, operation } = parts;
    met.add(`${resource}.*`);
    if (ring === undefined) continue;
    for (const wider of [`${ring}.*`, `*.${operation}`, '*.*']) met.add(`${resource}.${wider}`);
    if (operation === '*') met.add(`${resource}.*.${whichever}`);
    if (ring === '*') met.add(`${resource}.${whichever}.*`);
  }
  return met;
}

function compile(set: ReadonlySet<string>): Flags {
  const names = [...set];
  const all = set.has('*');
  let met: ReadonlySet<string> | undefined;

  function allowsAnyRing(resource: string, operation: string): boolean {
    return set.has(`${resource}.*.*`) || set.has(`${resource}.*.${operation}`);
  }

  function covers(name: string): boolean {
    if (all || set.has(name)) return true;
    const flag = splitFlag(name);
    if (!flag) return false;
    const { resource, ring, operation } = flag;
    if (set.has(`${resource}.*`)) return true;
    if (ring === undefined) return false;
    return allowsAnyRing(resource, operation) || set.has(`${resource}.${ring}.*`);
  }

  function allows(action: string, ring?: string | null): boolean {
    if (all) return true;
    const dot = action.indexOf('.');
    const resource = action.slice(0, dot);
    if (set.has(`${resource}.*`)) return true;
    if (!ringActions.has(action)) return set.has(action);
    const operation = action.slice(dot + 1);
    if (typeof ring === 'string') {
      const name = `${resource}.${ring.toLowerCase()}.`;
      if (set.has(name + operation) || set.has(`${name}*`)) return true;
    }
    return allowsAnyRing(resource, operation);
  }

  return {
    names,
    allows,
    covers: (flag) => covers(flag.toLowerCase()),
    touches(flag) {
      const lower = flag.toLowerCase();
      if (covers(lower)) return true;
      if (lower === '*') return false;
      met ??= wildcardsMet(names);
      const { resource, ring, operation } = splitFlag(lower) ?? {};
      return (
        met.has(lower) ||
        (ring === '*' && met.has(`${resource}.*.${whichever}`)) ||
        (ring !== undefined && operation === '*' && met.has(`${resource}.${whichever}.*`))
      );
    },
    allowsSome(action) {
      if (allows(action, null)) return true;
      if (!ringActions.has(action)) return false;
      return names.some((name) => {
        const flag = splitFlag(name);
        if (!flag?.ring) return false;
        return (
          action === `${flag.resource}.${flag.operation}` ||
          (flag.operation === '*' && action.startsWith(`${flag.resource}.`))
        );
      });
    },
    lacks(others) {
      return others.names.find((name) => !covers(name));
    },
  };
}
