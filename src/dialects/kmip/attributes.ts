// Attributes of KMIP as they are sent, in two encodings (1.x has names, 2.x has tags), and an object's set of them.
import { fromBase64, toBase64, utf8 } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { attributeLimits, checkLength } from './attribute-limits.ts';
import { ruleNamed, ruleOf, ruleTagged } from './attribute-rules.ts';
import { checkFields } from './field-rules.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  all,
  decodeItem,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  isSameValue,
  one,
  type Structure,
  structure,
  structureIn,
  text,
  valueIn,
} from './ttlv.ts';
import { isSecond, type Version } from './versions.ts';

/** An attribute as sent. */
export interface Attribute {
  readonly name: string;
  /** Undefined if none was sent. */
  readonly index: number | undefined;
  readonly value: Item;
}

/**
 * Throws `Refusal` for an unknown attribute, or a value that is none of it. In a search fields of a value may be left
 * out.
 */
export function readAttribute(version: Version, item: Item, isSearch = false): Attribute {
  const { name, index, value } = isSecond(version) ? readByTag(item) : readByName(item);
  const rule = ruleOf(name, version);
  if (rule && value.type !== rule.type) {
    throw new Refusal(reasons.invalidField, `${name} has the type ${rule.type}, not ${value.type}`);
  }
  if (isSearch) checkLength(name, value);
  else checkValue(name, value);
  return { name, index, value: { ...value, tag: tags.attributeValue } as Item };
}

function readByName(item: Item): Attribute {
  const from: Structure = { tag: item.tag, type: 'structure', value: valueIn(item, 'structure') };
  const name = fieldOf(from, tags.attributeName, 'text');
  const value = one(from, tags.attributeValue);
  if (name === undefined || !value) throw new Refusal(reasons.invalidField, 'an attribute lacks its name or value');
  const index = fieldOf(from, tags.attributeIndex, 'integer');
  if (index !== undefined && index < 0) throw new Refusal(reasons.invalidField, 'an attribute has a negative index');
  return { name, index, value };
}

function readByTag(item: Item): Attribute {
  if (item.tag !== tags.attribute) {
    const rule = ruleTagged(item.tag);
    if (!rule) throw new Refusal(reasons.invalidField, 'the attribute is unknown');
    return { name: rule.name, index: undefined, value: item };
  }
  const from: Structure = { tag: item.tag, type: 'structure', value: valueIn(item, 'structure') };
  const value = one(from, tags.attributeValue);
  if (!value) throw new Refusal(reasons.invalidField, 'an attribute lacks its value');
  const name = customName(from);
  if (name !== undefined) return { name, index: undefined, value };
  throw new Refusal(reasons.invalidField, 'a vendor has letters, digits, "_", "." and "-" alone; "x" has no colon');
}

/**
 * The name in 1.x of a vendor's attribute in 2.x; undefined for a vendor with other characters than
 * vendors have, and for a name that would come back as another vendor's.
 */
function customName(from: Structure): string | undefined {
  const vendor = fieldOf(from, tags.vendorIdentification, 'text');
  const name = fieldOf(from, tags.attributeName, 'text');
  if (vendor === undefined || name === undefined) {
    throw new Refusal(reasons.invalidField, 'an attribute lacks its vendor or name');
  }
  const whole = vendor === 'x' || vendor === 'y' ? `${vendor}-${name}` : `x-${vendor}:${name}`;
  const [sameVendor, sameName] = vendorParts(whole);
  return sameVendor === vendor && sameName === name ? whole : undefined;
}

function vendorParts(name: string): readonly [vendor: string, name: string] {
  const [, vendor, rest] = /^x-(?![xy]:)([A-Za-z0-9_.-]+):(.*)$/s.exec(name) ?? [];
  return vendor !== undefined && rest !== undefined ? [vendor, rest] : [name.slice(0, 1), name.slice(2)];
}

/** Throws `Refusal` for a value that the attribute cannot have. */
export function checkValue(name: string, value: Item): void {
  checkLength(name, value);
  checkFields(name, value);
  if (name !== 'Name') return;
  const { length } = utf8(nameText(value) ?? '');
  if (length < 1 || length > attributeLimits.nameBytes) {
    throw new Refusal(reasons.invalidField, `a name has 1 to ${attributeLimits.nameBytes} bytes`);
  }
}

/** The text of a Name; undefined for a value without one. */
export function nameText(value: Item | undefined): string | undefined {
  return value?.type === 'structure' ? fieldOf(value, tags.nameValue, 'text') : undefined;
}

export function writeAttribute(version: Version, { name, index = 0, value }: Attribute): Item {
  if (!isSecond(version)) {
    return structure(
      tags.attribute,
      text(tags.attributeName, name),
      index > 0 ? integer(tags.attributeIndex, index) : undefined,
      { ...value, tag: tags.attributeValue } as Item,
    );
  }
  const rule = ruleNamed(name);
  // Cast: the value keeps its type under another tag.
  if (rule) return { ...value, tag: rule.tag } as Item;
  const [vendor, rest] = vendorParts(name);
  return structure(tags.attribute, text(tags.vendorIdentification, vendor), text(tags.attributeName, rest), {
    ...value,
    tag: tags.attributeValue,
  } as Item);
}

/** The attribute's name as a list of names has it. */
export function writeReference(version: Version, name: string): Item {
  if (!isSecond(version)) return text(tags.attributeName, name);
  const rule = ruleNamed(name);
  if (rule) return enumeration(tags.attributeReference, rule.tag);
  const [vendor, rest] = vendorParts(name);
  return structure(tags.attributeReference, text(tags.vendorIdentification, vendor), text(tags.attributeName, rest));
}

/** Names of attributes that a payload asks for. Throws `Refusal` for a name that is there twice. */
export function readReferences(version: Version, payload: Structure): readonly string[] {
  if (!isSecond(version)) return readNames(payload);
  return distinct(all(payload, tags.attributeReference).map(referencedName));
}

/** Names of attributes as 1.x has them, and all versions those that are wrapped with a key. Throws as above. */
export function readNames(from: Structure): readonly string[] {
  return distinct(all(from, tags.attributeName).map((item) => valueIn(item, 'text')));
}

function distinct(names: readonly string[]): readonly string[] {
  if (new Set(names).size < names.length) throw new Refusal(reasons.invalidMessage, 'an attribute is named twice');
  return names;
}

/** The name that a payload of 2.x refers to. */
export function readReference(payload: Structure): string {
  const reference = one(payload, tags.attributeReference);
  if (reference) return referencedName(reference);
  throw new Refusal(reasons.missingData, 'the reference to the attribute is missing');
}

/** An attribute that is not known here has a name of its own, by which nothing is kept. */
function referencedName(item: Item): string {
  if (item.type === 'structure') return customName(item) ?? `unknown ${toBase64(encodeItem(item))}`;
  const tag = valueIn(item, 'enumeration');
  return ruleTagged(tag)?.name ?? `unknown ${tag}`;
}

/** The attributes in all structures of that field: a Template-Attribute, or Attributes from 2.0 on. */
export function readAttributes(
  version: Version,
  payload: Structure,
  first: number,
  second: number,
  isSearch = false,
): Attribute[] {
  const given = all(payload, isSecond(version) ? second : first).flatMap((item) => valueIn(item, 'structure'));
  if (given.length > attributeLimits.ofObject) throw new Refusal(reasons.invalidField, 'too many attributes');
  return given
    .filter((item) => !isSearch || !isSearchField(item))
    .map((item) => {
      if (item.tag === tags.name && !isSecond(version)) {
        throw new Refusal(reasons.itemNotFound, 'there are no templates here');
      }
      return readAttribute(version, item, isSearch);
    });
}

/** Whether it is a field of Locate that some clients send as an attribute to look for: it says nothing of an object. */
export function isSearchField(item: Item): boolean {
  return item.type === 'structure' && fieldOf(item, tags.attributeName, 'text') === 'Storage Status Mask';
}

/** The attribute in the structure of that tag, or of 1.x. Throws `Refusal` for none, and for several. */
export function readOne(version: Version, payload: Structure, second: number): Attribute {
  const held = isSecond(version) ? structureIn(payload, second)?.value : all(payload, tags.attribute);
  const [first, more] = held ?? [];
  if (!first) throw new Refusal(reasons.missingData, 'the attribute is missing');
  if (more) throw new Refusal(reasons.invalidMessage, 'expected one attribute, got several');
  return readAttribute(version, first);
}

type Values = ReadonlyMap<number, Item>;

/** The attributes of an object that are kept, by name; the values of one each have an index that stays theirs. */
export class AttributeSet {
  readonly #values: ReadonlyMap<string, Values>;

  constructor(values: ReadonlyMap<string, Values> = new Map()) {
    this.#values = values;
  }

  static stored(attributes: JsonObject): AttributeSet {
    let set = read.get(attributes);
    if (!set) {
      set = new AttributeSet(
        // Cast: `toJson` wrote the column.
        new Map(
          Object.entries(attributes as Record<string, [number, string][]>).map(([name, list]) => [
            name,
            new Map(list.map(([index, value]) => [index, storedItem(value)])),
          ]),
        ),
      );
      read.set(attributes, set);
    }
    return set;
  }

  toJson(): JsonObject {
    return Object.fromEntries(
      [...this.#values].map(([name, values]) => [
        name,
        [...values].map(([index, value]) => [index, toBase64(encodeItem(value))]),
      ]),
    );
  }

  get names(): readonly string[] {
    return [...this.#values.keys()];
  }

  get(name: string): Values {
    return this.#values.get(name) ?? none;
  }

  first(name: string): Item | undefined {
    const [value] = this.get(name).values();
    return value;
  }

  /** Replaces all values of the attribute; an empty list takes it away. */
  with(name: string, values: Values): AttributeSet {
    const all = new Map(this.#values);
    if (values.size > 0) all.set(name, values);
    else all.delete(name);
    return new AttributeSet(all);
  }

  withOne(name: string, value: Item | undefined): AttributeSet {
    return this.with(name, value ? new Map([[0, value]]) : none);
  }

  /** Adds a value behind the others. */
  withMore(name: string, value: Item): AttributeSet {
    const there = this.get(name);
    const index = Math.max(-1, ...there.keys()) + 1;
    return this.with(name, new Map([...there, [index, value]]));
  }

  has(name: string, value: Item): boolean {
    return [...this.get(name).values()].some((each) => isSameValue(each, value));
  }
}

const none: Values = new Map();
const read = new WeakMap<JsonObject, AttributeSet>();

function storedItem(text: string): Item {
  const bytes = fromBase64(text);
  if (bytes) return decodeItem(bytes);
  throw new KmsError('corrupt', 'a stored attribute of a KMIP object was altered');
}

export function numberIn(set: AttributeSet, name: string): number | undefined {
  const item = set.first(name);
  return typeof item?.value === 'number' ? item.value : undefined;
}

export function flagIn(set: AttributeSet, name: string): boolean | undefined {
  const item = set.first(name);
  return item?.type === 'boolean' ? item.value : undefined;
}

/** Epoch milliseconds of a date. */
export function timeIn(set: AttributeSet, name: string): number | undefined {
  const item = set.first(name);
  return item?.type === 'date' ? Number(item.value) * 1000 : undefined;
}
