// By which of its flags an API key may use a keyring.

/** The true flags that grant something on the ring, in lower case, sorted. */
export function ringFlags(flags: Readonly<Record<string, unknown>>, ring: string): string[] {
  return Object.entries(flags)
    .filter(([, granted]) => granted === true)
    .map(([flag]) => flag.toLowerCase())
    .filter((flag) => flag === '*' || flag === 'keyring.*' || isOf(flag, ring) || isOf(flag, '*'))
    .sort();
}

/** Whether one of the flags has the ring's own name in it: such a key is in the way of a deletion. */
export function namesRing(flags: readonly string[], ring: string): boolean {
  return flags.some((flag) => isOf(flag, ring));
}

function isOf(flag: string, ring: string): boolean {
  const start = `keyring.${ring}.`;
  return flag.startsWith(start) && flag.length > start.length && !flag.slice(start.length).includes('.');
}
