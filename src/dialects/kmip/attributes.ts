// Attributes of KMIP: the table of those that are kept, their two encodings (1.x has names, 2.x has tags), and an
// object's set of them.
import { fromBase64, toBase64 } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { attributeLimits, checkValue, isCustom } from './attribute-limits.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  all,
  decodeItem,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  type ItemType,
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

/**
 * Changes of an attribute: by the server alone; by a client where the object is made; by a client at any time, which
 * may (`free`) or may not (`kept`) take it away again.
 */
type Changes = 'server' | 'once' | 'kept' | 'free';

interface AttributeRule {
  readonly name: string;
  readonly tag: number;
  readonly type: ItemType;
  readonly since: Version;
  /** The first version that has it no more. */
  readonly until?: Version;
  readonly changes: Changes;
  /** Whether an object may have several. */
  readonly isMany?: boolean;
}

export const attributeRules: readonly AttributeRule[] = [
  { name: 'Unique Identifier', tag: tags.uniqueIdentifier, type: 'text', since: 10, changes: 'server' },
  { name: 'Name', tag: tags.name, type: 'structure', since: 10, changes: 'free', isMany: true },
  { name: 'Object Type', tag: tags.objectType, type: 'enumeration', since: 10, changes: 'server' },
  {
    name: 'Cryptographic Algorithm',
    tag: tags.cryptographicAlgorithm,
    type: 'enumeration',
    since: 10,
    changes: 'once',
  },
  { name: 'Cryptographic Length', tag: tags.cryptographicLength, type: 'integer', since: 10, changes: 'once' },
  {
    ...{ name: 'Cryptographic Parameters', tag: tags.cryptographicParameters, type: 'structure' },
    ...{ since: 10, changes: 'free', isMany: true },
  },
  {
    ...{ name: 'Cryptographic Domain Parameters', tag: tags.cryptographicDomainParameters, type: 'structure' },
    ...{ since: 10, changes: 'once' },
  },
  { name: 'Certificate Type', tag: tags.certificateType, type: 'enumeration', since: 10, changes: 'server' },
  { name: 'Certificate Length', tag: tags.certificateLength, type: 'integer', since: 11, changes: 'server' },
  { name: 'Digest', tag: tags.digest, type: 'structure', since: 10, changes: 'server', isMany: true },
  { name: 'Operation Policy Name', tag: tags.operationPolicyName, type: 'text', since: 10, until: 20, changes: 'kept' },
  { name: 'Cryptographic Usage Mask', tag: tags.cryptographicUsageMask, type: 'integer', since: 10, changes: 'once' },
  { name: 'Lease Time', tag: tags.leaseTime, type: 'interval', since: 10, changes: 'server' },
  { name: 'Usage Limits', tag: tags.usageLimits, type: 'structure', since: 10, changes: 'free' },
  { name: 'State', tag: tags.state, type: 'enumeration', since: 10, changes: 'server' },
  { name: 'Initial Date', tag: tags.initialDate, type: 'date', since: 10, changes: 'server' },
  { name: 'Activation Date', tag: tags.activationDate, type: 'date', since: 10, changes: 'kept' },
  { name: 'Process Start Date', tag: tags.processStartDate, type: 'date', since: 10, changes: 'kept' },
  { name: 'Protect Stop Date', tag: tags.protectStopDate, type: 'date', since: 10, changes: 'kept' },
  { name: 'Deactivation Date', tag: tags.deactivationDate, type: 'date', since: 10, changes: 'kept' },
  { name: 'Destroy Date', tag: tags.destroyDate, type: 'date', since: 10, changes: 'server' },
  {
    ...{ name: 'Compromise Occurrence Date', tag: tags.compromiseOccurrenceDate, type: 'date' },
    ...{ since: 10, changes: 'server' },
  },
  { name: 'Compromise Date', tag: tags.compromiseDate, type: 'date', since: 10, changes: 'server' },
  { name: 'Revocation Reason', tag: tags.revocationReason, type: 'structure', since: 10, changes: 'server' },
  { name: 'Archive Date', tag: tags.archiveDate, type: 'date', since: 10, changes: 'server' },
  { name: 'Object Group', tag: tags.objectGroup, type: 'text', since: 10, changes: 'free', isMany: true },
  { name: 'Fresh', tag: tags.fresh, type: 'boolean', since: 11, changes: 'once' },
  { name: 'Link', tag: tags.link, type: 'structure', since: 10, changes: 'free', isMany: true },
  {
    ...{ name: 'Application Specific Information', tag: tags.applicationSpecificInformation, type: 'structure' },
    ...{ since: 10, changes: 'free', isMany: true },
  },
  { name: 'Contact Information', tag: tags.contactInformation, type: 'text', since: 10, changes: 'free' },
  { name: 'Last Change Date', tag: tags.lastChangeDate, type: 'date', since: 10, changes: 'server' },
  {
    ...{ name: 'Alternative Name', tag: tags.alternativeName, type: 'structure' },
    ...{ since: 12, changes: 'free', isMany: true },
  },
  { name: 'Original Creation Date', tag: tags.originalCreationDate, type: 'date', since: 12, changes: 'once' },
  { name: 'PKCS#12 Friendly Name', tag: tags.pkcs12FriendlyName, type: 'text', since: 14, changes: 'free' },
  { name: 'Description', tag: tags.description, type: 'text', since: 14, changes: 'free' },
  { name: 'Comment', tag: tags.comment, type: 'text', since: 14, changes: 'free' },
  { name: 'Sensitive', tag: tags.sensitive, type: 'boolean', since: 14, changes: 'kept' },
  { name: 'Always Sensitive', tag: tags.alwaysSensitive, type: 'boolean', since: 14, changes: 'server' },
  { name: 'Extractable', tag: tags.extractable, type: 'boolean', since: 14, changes: 'kept' },
  { name: 'Never Extractable', tag: tags.neverExtractable, type: 'boolean', since: 14, changes: 'server' },
];

const byName = new Map(attributeRules.map((rule) => [rule.name, rule]));
const byTag = new Map(attributeRules.map((rule) => [rule.tag, rule]));

/** The rule of an attribute that the version has. Throws `Refusal`. */
export function ruleOf(name: string, version: Version): AttributeRule | undefined {
  const rule = byName.get(name);
  if (rule ? isOfVersion(rule, version) : isCustom(name)) return rule;
  throw new Refusal(reasons.invalidField, 'the attribute is unknown, or of another version');
}

/** Whether clients of the version know the attribute. */
export function isKnownTo(name: string, version: Version): boolean {
  const rule = byName.get(name);
  return rule ? isOfVersion(rule, version) : isCustom(name);
}

function isOfVersion({ since, until = Number.POSITIVE_INFINITY }: AttributeRule, version: Version): boolean {
  return version >= since && version < until;
}

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
  if (!isSearch) checkValue(name, value);
  if (value.type === 'structure' && !isSearch) checkFields(name, value);
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
    const rule = byTag.get(item.tag);
    if (!rule) throw new Refusal(reasons.invalidField, 'the attribute is unknown');
    return { name: rule.name, index: undefined, value: item };
  }
  const from: Structure = { tag: item.tag, type: 'structure', value: valueIn(item, 'structure') };
  const value = one(from, tags.attributeValue);
  if (!value) throw new Refusal(reasons.invalidField, 'an attribute lacks its value');
  return { name: customName(from), index: undefined, value };
}

/** The name in 1.x of a vendor's attribute in 2.x. */
function customName(from: Structure): string {
  const vendor = fieldOf(from, tags.vendorIdentification, 'text');
  const name = fieldOf(from, tags.attributeName, 'text');
  if (vendor === undefined || name === undefined) {
    throw new Refusal(reasons.invalidField, 'an attribute lacks its vendor or name');
  }
  return vendor === 'x' || vendor === 'y' ? `${vendor}-${name}` : `x-${vendor}:${name}`;
}

function vendorParts(name: string): readonly [vendor: string, name: string] {
  const [, vendor, rest] = /^x-([^:]+):(.*)$/s.exec(name) ?? [];
  return vendor !== undefined && rest !== undefined ? [vendor, rest] : [name.slice(0, 1), name.slice(2)];
}

function checkFields(name: string, value: Structure): void {
  if (name === 'Name') checkName(value);
  if (name === 'Link') {
    const isWhole =
      fieldOf(value, tags.linkType, 'enumeration') !== undefined &&
      one(value, tags.linkedObjectIdentifier) !== undefined;
    if (!isWhole) throw new Refusal(reasons.invalidField, 'a link lacks its type or object');
  }
  if (isCustom(name) && value.value.some(({ type }) => type === 'structure')) {
    throw new Refusal(reasons.invalidField, 'a structure in a structure is no custom attribute');
  }
}

function checkName(value: Structure): void {
  const given = fieldOf(value, tags.nameValue, 'text');
  if (given === undefined || fieldOf(value, tags.nameType, 'enumeration') === undefined) {
    throw new Refusal(reasons.invalidField, 'a name lacks its value or type');
  }
  const { length } = new TextEncoder().encode(given);
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
  const rule = byName.get(name);
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
  const rule = byName.get(name);
  if (rule) return enumeration(tags.attributeReference, rule.tag);
  const [vendor, rest] = vendorParts(name);
  return structure(tags.attributeReference, text(tags.vendorIdentification, vendor), text(tags.attributeName, rest));
}

/** Names of attributes that a payload asks for. Throws `Refusal` for a name that is there twice. */
export function readReferences(version: Version, payload: Structure): readonly string[] {
  const names = isSecond(version)
    ? all(payload, tags.attributeReference).map(referencedName)
    : all(payload, tags.attributeName).map((item) => valueIn(item, 'text'));
  if (new Set(names).size < names.length) throw new Refusal(reasons.invalidMessage, 'an attribute is named twice');
  return names;
}

/** Names of attributes that are wrapped with a key. */
export function readWrappedNames(specification: Structure): readonly string[] {
  return all(specification, tags.attributeName).map((item) => valueIn(item, 'text'));
}

/** The name that a payload of 2.x refers to. */
export function readReference(payload: Structure): string {
  const reference = one(payload, tags.attributeReference);
  if (reference) return referencedName(reference);
  throw new Refusal(reasons.missingData, 'the reference to the attribute is missing');
}

function referencedName(item: Item): string {
  if (item.type === 'structure') return customName(item);
  return byTag.get(valueIn(item, 'enumeration'))?.name ?? '';
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
    .filter((item) => !isOdd(item))
    .map((item) => {
      if (item.tag === tags.name && !isSecond(version)) {
        throw new Refusal(reasons.itemNotFound, 'there are no templates here');
      }
      return readAttribute(version, item, isSearch);
    });
}

/** Whether it is a field of Locate, which some clients send as an attribute: it says nothing of an object. */
function isOdd(item: Item): boolean {
  return item.type === 'structure' && item.value.some(({ value }) => value === 'Storage Status Mask');
}

/** The attributes in the structure of that tag, with one of them. */
export function readOne(version: Version, payload: Structure, second: number): Attribute {
  const holder = isSecond(version) ? structureIn(payload, second)?.value[0] : one(payload, tags.attribute);
  if (!holder) throw new Refusal(reasons.missingData, 'the attribute is missing');
  return readAttribute(version, holder);
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
