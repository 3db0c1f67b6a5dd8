// Limits of attributes: the length of each value, and all that clients give an object. The server's own (dates, state,
// reasons, the links that it makes) count for nothing there, so that no client can fill an object up to where it is no
// longer revoked, archived or replaced.
import { isCustom, ruleNamed } from './attribute-rules.ts';
import { Refusal, reasons } from './reasons.ts';
import { encodeItem, type Item } from './ttlv.ts';

export const attributeLimits = {
  /** Values that clients give, links apart. */
  ofObject: 200,
  links: 200,
  custom: 50,
  valueBytes: 4096,
  customBytes: 1024,
  nameBytes: 255,
  /** All that clients give an object together. */
  bytes: 262_144,
} as const;

interface Values {
  readonly names: readonly string[];
  get(name: string): ReadonlyMap<number, Item>;
}

/** Throws `Refusal` for a value or name that is too long. */
export function checkLength(name: string, value: Item): void {
  const { length } = encodeItem(value);
  const most = isCustom(name) ? attributeLimits.customBytes : attributeLimits.valueBytes;
  if (length > most) throw new Refusal(reasons.invalidField, `an attribute has at most ${most} bytes`);
  if (name.length > attributeLimits.nameBytes) throw new Refusal(reasons.invalidField, 'the attribute has a long name');
}

/**
 * Throws `Refusal` if a client lets an object grow beyond its limits. One that is too large already may shrink or stay
 * so, and its successor may be as large.
 */
export function checkGrowth(before: Values | undefined, after: Values): void {
  const { ofObject: others, links, custom, bytes } = attributeLimits;
  const [old, now] = [before ? counted(before) : nothing, counted(after)];
  const most = { others, links, custom, bytes };
  for (const each of ['others', 'links', 'custom', 'bytes'] as const) {
    if (now[each] <= most[each] || now[each] <= old[each]) continue;
    throw new Refusal(reasons.invalidField, 'the object has as many attributes as it may');
  }
}

const nothing = { others: 0, links: 0, custom: 0, bytes: 0 };

/** Whether clients can fill an object with it. Others are few and short, and some of them the server gives anyway. */
function isFilling(name: string): boolean {
  return isCustom(name) || ruleNamed(name)?.changes === 'free' || name === 'Operation Policy Name';
}

function counted(set: Values) {
  const sum = { ...nothing };
  for (const name of set.names) {
    if (!isFilling(name)) continue;
    const values = set.get(name);
    if (name === 'Link') sum.links += values.size;
    else sum.others += values.size;
    if (isCustom(name)) sum.custom += values.size;
    for (const value of values.values()) sum.bytes += name.length + encodeItem(value).length;
  }
  return sum;
}
