// Permission flags: what a set of them grants, which rings it names, and whether it covers another set. The rules are
// in the table of flags; names compare lower-case and only `true` grants.
import { invalidField } from '../errors.ts';
import { ringActions, ringPlaceholder } from './flag-table.ts';
import type { JsonObject } from './json.ts';

export interface Flags {
  /** The names that grant, in lower case. */
  readonly names: readonly string[];
  /** Whether the action is granted, on that ring where the action concerns one. No ring = one that nobody knows: only a wildcard grants. */
  allows(action: string, ring?: string | null): boolean;
  /** Whether the action is granted on any ring at all. */
  allowsSome(action: string): boolean;
  /** The first flag of `others` that this set does not cover; undefined when it covers all. */
  lacks(others: Flags): string | undefined;
}

export const maxFlagLength = 256;

/** The flag that grants an action: with the ring's name put in, or its placeholder. */
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
/** Bounds of what is remembered: sets, and characters of one. */
const mostCompiled = 4096;
const longestCompiled = 4096;

/** The flags of a JSON text that the store keeps. The compiled form is remembered by the text. */
export function flagsOfText(text: string): Flags {
  let flags = compiled.get(text);
  if (!flags) {
    flags = parseFlags(JSON.parse(text));
    if (compiled.size >= mostCompiled) compiled.clear();
    if (text.length <= longestCompiled) compiled.set(text, flags);
  }
  return flags;
}

/** Throws `invalid` unless the value is a flat object of flag names to booleans. */
export function checkFlags(value: unknown, field = 'flags'): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidField(field, 'expected an object of flag names to booleans');
  }
  for (const [name, granted] of Object.entries(value)) {
    if (name.length > maxFlagLength) throw invalidField(field, `a flag name has at most ${maxFlagLength} characters`);
    if (typeof granted !== 'boolean') throw invalidField(field, 'expected true or false for every flag');
  }
  return value as JsonObject;
}

/** The rings that a key's flags name, in lower case; `*` where a wildcard lets it in on every ring. */
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

interface FlagParts {
  readonly resource: string;
  /** Only where the resource has rings. */
  readonly ring: string | undefined;
  readonly operation: string;
}

/** A name's parts. A ring's name may hold dots: it is all between the first and the last. */
function splitFlag(name: string): FlagParts | undefined {
  const first = name.indexOf('.');
  if (first < 0) return undefined;
  const resource = name.slice(0, first);
  const last = name.lastIndexOf('.');
  const hasRing = last > first && (resource === 'keyring' || resource === 'asym');
  return {
    resource,
    ring: hasRing ? name.slice(first + 1, last) : undefined,
    operation: name.slice(hasRing ? last + 1 : first + 1),
  };
}

function compile(set: ReadonlySet<string>): Flags {
  const names = [...set];
  const all = set.has('*');

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
