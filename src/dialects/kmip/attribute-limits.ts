// Limits of attributes: each value is checked where it is read, and an object with all of its own where it is stored.
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import { encodeItem, fieldOf, type Item } from './ttlv.ts';

export const attributeLimits = {
  /** Values that clients give, links apart. */
  ofObject: 200,
  /** Further ones, of the server's own. */
  ofServer: 32,
  links: 200,
  custom: 50,
  valueBytes: 4096,
  customBytes: 1024,
  nameBytes: 255,
  /** All of an object's together. */
  bytes: 262_144,
} as const;

/** The last second of the year 9999. */
const latest = 253_402_300_799n;

/** Attributes of the client's own (`x-`) and of others' servers (`y-`). */
export function isCustom(name: string): boolean {
  return /^[xy]-/.test(name);
}

interface Values {
  readonly names: readonly string[];
  get(name: string): ReadonlyMap<number, Item>;
}

/** Throws `Refusal` for a value that is too long, or has numbers that mean nothing. */
export function checkValue(name: string, value: Item): void {
  const length = encodeItem(value).length;
  const most = isCustom(name) ? attributeLimits.customBytes : attributeLimits.valueBytes;
  if (length > most) throw new Refusal(reasons.invalidField, `an attribute has at most ${most} bytes`);
  if (name.length > attributeLimits.nameBytes) throw new Refusal(reasons.invalidField, 'the attribute has a long name');
  checkNumbers(name, value);
}

/** Throws `Refusal` for a date that no clock has, or a limit below nothing. */
function checkNumbers(name: string, item: Item): void {
  if (item.type === 'structure') {
    for (const each of item.value) checkNumbers(name, each);
    if (name !== 'Usage Limits') return;
    const counts = [tags.usageLimitsTotal, tags.usageLimitsCount].map((tag) => fieldOf(item, tag, 'long') ?? 0n);
    if (counts.some((count) => count < 0n)) throw new Refusal(reasons.invalidField, `${name} are below nothing`);
  }
  if (item.type === 'date' && (item.value < 0n || item.value > latest)) {
    throw new Refusal(reasons.invalidField, `${name} is no date`);
  }
}

/** Throws `Refusal` if a client gave an object too many. */
export function checkCount(set: Values): void {
  const { others, links, custom } = counted(set);
  const { ofObject, links: mostLinks, custom: mostCustom } = attributeLimits;
  if (others > ofObject || links > mostLinks || custom > mostCustom) throw tooMany();
}

/** Throws `Refusal` if an object grows beyond its limits. One that is too large already may shrink or stay so. */
export function checkGrowth(before: Values, after: Values): void {
  const { ofObject, ofServer, links, custom, bytes } = attributeLimits;
  const [old, now] = [counted(before), counted(after)];
  const most = { others: ofObject + ofServer, links, custom, bytes };
  for (const each of ['others', 'links', 'custom', 'bytes'] as const) {
    if (now[each] > most[each] && now[each] > old[each]) throw tooMany();
  }
  for (const name of after.names) {
    const known = before.get(name);
    for (const [index, value] of after.get(name)) if (known.get(index) !== value) checkValue(name, value);
  }
}

function tooMany(): Refusal {
  return new Refusal(reasons.invalidField, 'the object has as many attributes as it may');
}

function counted(set: Values) {
  const sum = { others: 0, links: 0, custom: 0, bytes: 0 };
  for (const name of set.names) {
    const values = set.get(name);
    if (name === 'Link') sum.links += values.size;
    else sum.others += values.size;
    if (isCustom(name)) sum.custom += values.size;
    for (const value of values.values()) sum.bytes += name.length + encodeItem(value).length;
  }
  return sum;
}
