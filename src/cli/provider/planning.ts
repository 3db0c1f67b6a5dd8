// Plans of changes: what the attributes of a resource will be once its configuration is applied.
import { isDeepStrictEqual } from 'node:util';
import type { Attribute, Attributes } from './attributes.ts';
import { hasUnknown, mapped, type ObjectValue, unknown, type Value } from './values.ts';

interface Plan {
  readonly state: ObjectValue;
  /** Names of changed attributes for which a new object is made. */
  readonly replaced: readonly string[];
}

/**
 * Values of the configuration count, unknown or not. Values that the provider gives stay as they are, and are unknown
 * for a new object.
 */
export function planned(attributes: Attributes, prior: ObjectValue | null, config: ObjectValue): Plan {
  const state = mapped(attributes, (attribute, name) => plannedValue(attribute, prior?.[name], config[name] ?? null));
  const replaced = Object.entries(attributes).filter(
    ([name, { replaces }]) => prior && replaces && !isDeepStrictEqual(prior[name] ?? null, state[name]),
  );
  return { state, replaced: replaced.map(([name]) => name) };
}

function plannedValue({ origin }: Attribute, prior: Value | undefined, given: Value): Value {
  if (given !== null || origin === 'required' || origin === 'optional') return given;
  return prior === undefined ? unknown : prior;
}

/** The values that were planned, and for those that were unknown then, the ones that the object was made with. */
export function completed(made: ObjectValue, plan: ObjectValue): ObjectValue {
  return mapped(made, (value, name) => {
    const wanted = plan[name] ?? null;
    return hasUnknown(wanted) ? value : wanted;
  });
}
