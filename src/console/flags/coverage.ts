// Which permission flags a set of flags covers, by the rules of the table: what somebody may grant to others is what they have themselves.
// The appliance decides; this only tells beforehand what it would say.

export interface Coverage {
  /** Whether the flag, wildcards and all, is covered. */
  covers(flag: string): boolean;
  /** Whether the operation, such as `keyring.rotate`, is allowed on the ring, or on every ring where none is named. */
  allows(action: string, ring?: string): boolean;
  /** Whether the operation is allowed on any ring at all. */
  allowsSome(action: string): boolean;
}

export function coverageOf(flags: Readonly<Record<string, unknown>>): Coverage {
  const set = new Set(
    Object.entries(flags)
      .filter(([, granted]) => granted === true)
      .map(([name]) => name.toLowerCase()),
  );

  function covers(flag: string): boolean {
    const name = flag.toLowerCase();
    if (set.has('*') || set.has(name)) return true;
    const first = name.indexOf('.');
    if (first < 0) return false;
    const resource = name.slice(0, first);
    if (set.has(`${resource}.*`)) return true;
    const last = name.lastIndexOf('.');
    if (last === first || !hasRings(resource)) return false;
    const ring = name.slice(first + 1, last);
    const operation = name.slice(last + 1);
    return set.has(`${resource}.*.*`) || set.has(`${resource}.*.${operation}`) || set.has(`${resource}.${ring}.*`);
  }

  function flagOf(action: string, ring: string): string {
    const dot = action.indexOf('.');
    return isRingAction(action) ? `${action.slice(0, dot)}.${ring}${action.slice(dot)}` : action;
  }

  return {
    covers,
    allows: (action, ring = '*') => covers(flagOf(action, ring)),
    allowsSome(action) {
      if (covers(flagOf(action, '*'))) return true;
      if (!isRingAction(action)) return false;
      const [resource, operation] = action.split('.');
      return [...set].some((name) => {
        const isOfResource = name.startsWith(`${resource}.`) && name.split('.').length > 2;
        return isOfResource && (name.endsWith(`.${operation}`) || name.endsWith('.*'));
      });
    },
  };
}

/** Flags of these have a ring's name between resource and operation. */
function hasRings(resource: string): boolean {
  return resource === 'keyring' || resource === 'asym';
}

function isRingAction(action: string): boolean {
  return /^(?:keyring|asym)\./.test(action) && !/\.(?:create|list)$/.test(action);
}
