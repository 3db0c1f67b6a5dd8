// Locate: the objects that have all of the attributes named. It goes through them in slices, by what it looks at and
// compares, and no message has more of both than its effort allows.
import { type KmipObject, searchedObjects } from '../../core/kmip-objects.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Slices } from '../../store/sql.ts';
import { attributeLimits } from './attribute-limits.ts';
import {
  type Attribute,
  type AttributeSet,
  isSearchField,
  nameText,
  readAttribute,
  readAttributes,
} from './attributes.ts';
import type { Effort } from './effort.ts';
import { states, storage } from './enumerations.ts';
import { allAttributes, attributesOf } from './objects.ts';
import type { Operation, Work } from './operation.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import { all, fieldOf, type Item, integer, isSameValue, type Structure, structure, text } from './ttlv.ts';

/** Objects told by one search. */
const mostLocated = 1000;

interface Range {
  readonly low: bigint;
  readonly high: bigint;
}

/** An attribute that objects must have. */
interface Condition {
  readonly name: string;
  readonly value: Item;
  /** Two dates of one name are a range, and both have it. */
  readonly range: Range | undefined;
}

interface Search {
  readonly wanted: readonly Condition[];
  readonly storage: number;
  /** Object Group Member: which members of groups are meant. Undefined for all objects. */
  readonly member: number | undefined;
  /** Whether destroyed objects are meant. */
  readonly isOfDestroyed: boolean;
}

export const locate: Operation = {
  code: 0x08,
  name: 'Locate',
  since: 10,
  action: 'key.list',
  *slices(work, payload): Slices<Structure> {
    const { version, effort } = work;
    effort.beginSearch();
    const given = readWanted(work, payload);
    const most = Math.min(countIn(payload, tags.maximumItems) ?? mostLocated, mostLocated);
    const skipped = countIn(payload, tags.offsetItems);
    const search: Search = {
      wanted: conditionsOf(given),
      storage: fieldOf(payload, tags.storageStatusMask, 'integer') ?? storage.online,
      member: memberIn(payload),
      isOfDestroyed: given.some(({ name, value }) => name === 'State' && Number(value.value) >= states.destroyed),
    };
    const name = given.find((each) => each.name === 'Name');
    const found: string[] = [];
    let count = 0;
    for (const object of searchedObjects(work.ctx, nameText(name?.value))) {
      effort.look(object ? storedLength(object.row?.attributes) : 0);
      if (effort.isTurnOver()) yield;
      if (!object || !(yield* isWanted(effort, object, search))) continue;
      const isTold = count++ >= (skipped ?? 0) && found.length < most;
      if (isTold) found.push(object.id);
      else if (skipped === undefined && found.length >= most) break;
    }
    work.placeholder = found.length === 1 ? found[0] : undefined;
    return structure(
      tags.responsePayload,
      skipped !== undefined && version >= 13 ? integer(tags.locatedItems, count) : undefined,
      found.map((id) => text(tags.uniqueIdentifier, id)),
    );
  },
};

/** The attributes to look for. Throws `Refusal` for more of them than an object has. */
function readWanted({ version, isSecond }: Work, payload: Structure): readonly Attribute[] {
  const own = isSecond ? [] : all(payload, tags.attribute).filter((item) => !isSearchField(item));
  // Some clients of 1.x put the attributes in a Template-Attribute.
  const others = readAttributes(version, payload, tags.templateAttribute, tags.attributes, true);
  if (own.length + others.length > attributeLimits.ofObject) {
    throw new Refusal(reasons.invalidField, `expected at most ${attributeLimits.ofObject} attributes to look for`);
  }
  return [...own.map((item) => readAttribute(version, item, true)), ...others];
}

/** The conditions that attributes stand for, each once, with the ranges of dates. */
function conditionsOf(given: readonly Attribute[]): readonly Condition[] {
  const distinct: Attribute[] = [];
  for (const each of given) {
    if (!distinct.some(({ name, value }) => name === each.name && isSameValue(value, each.value))) distinct.push(each);
  }
  return distinct.map(({ name, value }) => ({ name, value, range: rangeOf(name, distinct) }));
}

function rangeOf(name: string, wanted: readonly Attribute[]): Range | undefined {
  const dates = wanted.flatMap((each) => (each.name === name && each.value.type === 'date' ? [each.value.value] : []));
  if (dates.length !== 2) return undefined;
  const [low = 0n, high = 0n] = dates.toSorted((a, b) => (a < b ? -1 : 1));
  return { low, high };
}

/** Characters of stored attributes: what reading them costs. */
function storedLength(attributes: JsonObject = {}): number {
  // Cast: the column has lists of an index and a text.
  const lists = Object.values(attributes) as (readonly (readonly [number, string])[])[];
  return lists.reduce((sum, list) => list.reduce((inner, [, value]) => inner + value.length, sum), 0);
}

function countIn(payload: Structure, tag: number): number | undefined {
  const count = fieldOf(payload, tag, 'integer');
  if (count !== undefined && count < 0) throw new Refusal(reasons.invalidField, 'a negative number of items');
  return count;
}

const members = { fresh: 1, any: 2 } as const;

function memberIn(payload: Structure): number | undefined {
  const member = fieldOf(payload, tags.objectGroupMember, 'enumeration');
  if (member === undefined || member === members.fresh || member === members.any) return member;
  throw new Refusal(reasons.invalidField, 'there is no such member of a group');
}

/** A fresh one was not handed out yet. */
function isMember(object: KmipObject, member: number | undefined): boolean {
  if (member === undefined) return true;
  const set = attributesOf(object);
  if (!set.first('Object Group')) return false;
  return member !== members.fresh || set.first('Fresh')?.value === true;
}

function* isWanted(
  effort: Effort,
  object: KmipObject,
  { wanted, storage: where, member, isOfDestroyed }: Search,
): Slices<boolean> {
  if (!isMember(object, member)) return false;
  if (object.isDestroyed !== isOfDestroyed) return false;
  const isArchived = attributesOf(object).first('Archive Date') !== undefined;
  if ((where & (isArchived ? storage.archived : storage.online)) === 0) return false;
  const set = allAttributes(object);
  for (const condition of wanted) {
    if (!fits(effort, set, condition)) return false;
    if (effort.isTurnOver()) yield;
  }
  return true;
}

/** Whether one of the values that the object has is as the condition wants it. */
function fits(effort: Effort, set: AttributeSet, condition: Condition): boolean {
  for (const there of set.get(condition.name).values()) {
    effort.compare(comparisonsOf(there, condition.value));
    if (isFit(there, condition)) return true;
  }
  return false;
}

function isFit(there: Item, { name, value, range }: Condition): boolean {
  if (range) return there.type === 'date' && there.value >= range.low && there.value <= range.high;
  if (name === 'Cryptographic Usage Mask' && value.type === 'integer') {
    return there.type === 'integer' && (there.value & value.value) === value.value;
  }
  if (there.type !== 'structure' || value.type !== 'structure') return isSameValue(there, value);
  // Fields that are left out may have any value.
  return value.value.every((field) => there.value.some((its) => its.tag === field.tag && isSameValue(its, field)));
}

const bytesAtOnce = 64;

/** Comparisons that two values take at most: of each field with each, and of long bytes in parts. */
function comparisonsOf(there: Item, value: Item): number {
  if (there.type === 'structure' && value.type === 'structure') {
    return 1 + there.value.length * value.value.length;
  }
  return there.value instanceof Uint8Array ? 1 + there.value.length / bytesAtOnce : 1;
}
