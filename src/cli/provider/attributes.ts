// Attributes of resources, data sources and the provider's own settings: made from the JSON Schemas of the API's
// fields, and written as schemas of plugin protocol 6. Names are the API's in snake case, unless the language has taken
// them.
import { message } from '../../client/protobuf.ts';
import { KmsError } from '../../errors.ts';
import { fromPlain, jsonOf, mapped, type ObjectValue, objectOf, type Type, type Value } from './values.ts';

export interface Attribute {
  readonly about: string;
  /** The name in the API. */
  readonly field: string;
  /** Absent for an object with attributes of its own. */
  readonly type?: Type;
  readonly nested?: Nested;
  /** `computed`: the provider gives the value. `either`: it does where the configuration gives none. */
  readonly origin: 'required' | 'optional' | 'computed' | 'either';
  readonly isSensitive?: true;
  /** A text that is JSON: within lists, values cannot be of any type. */
  readonly isJson?: true;
  /** Whether the API's field may be null, for none: null in a configuration leaves it as it is, so it says -1. */
  readonly isNullable?: true;
  /** A change makes a new object in place of the old one. */
  readonly replaces?: true;
}

interface Nested {
  readonly mode: 'single' | 'list';
  readonly attributes: Attributes;
}

export type Attributes = Readonly<Record<string, Attribute>>;

/** The part of JSON Schema that the API's declarations use. */
export interface FieldSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly FieldSchema[];
  readonly items?: FieldSchema;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | FieldSchema;
}

/** Names for fields whose own mean something to OpenTofu in every resource: it never shows those to a provider. */
const otherNames: ReadonlyMap<string, string> = new Map([['count', 'approvals_needed']]);

/** `maxEncryptCount` as `max_encrypt_count`. */
function attributeName(field: string): string {
  return otherNames.get(field) ?? field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Attributes for the properties of a schema. Those of an object that the configuration gives may be left out. */
export function attributesOf(
  properties: Readonly<Record<string, FieldSchema>>,
  definitions: Readonly<Record<string, FieldSchema>>,
  origin: (name: string) => Attribute['origin'],
): Attributes {
  return Object.fromEntries(
    Object.entries(properties).map(([field, schema]) => [
      attributeName(field),
      { field, origin: origin(field), ...shapeOf(schema, definitions, origin(field) === 'computed') },
    ]),
  );
}

function shapeOf(
  given: FieldSchema,
  definitions: Readonly<Record<string, FieldSchema>>,
  isComputed: boolean,
): Pick<Attribute, 'about' | 'type' | 'nested' | 'isNullable'> {
  const schema = resolved(given, definitions);
  const isNullable = given.anyOf?.some(({ type }) => type === 'null');
  const about = given.description ?? schema.description ?? '';
  const items = schema.type === 'array' && schema.items && resolved(schema.items, definitions);
  const inner = items || schema;
  if (!inner.properties) return { about, type: typeOf(schema, definitions), ...(isNullable && { isNullable }) };
  const required = new Set(inner.required);
  const attributes = attributesOf(inner.properties, definitions, (name) =>
    isComputed ? 'computed' : required.has(name) ? 'required' : 'optional',
  );
  return {
    about,
    nested: items ? { mode: 'list', attributes: mapped(attributes, asText) } : { mode: 'single', attributes },
  };
}

/** An attribute of any type as a text of JSON. */
function asText(attribute: Attribute): Attribute {
  if (attribute.type !== 'dynamic') return attribute;
  return { ...attribute, type: 'string', about: `${attribute.about}; as JSON: \`jsonencode({…})\``, isJson: true };
}

/**
 * The schema itself instead of a reference, of a choice between it and null, or of a choice of forms the widest: any
 * type, if they differ.
 */
function resolved(schema: FieldSchema, definitions: Readonly<Record<string, FieldSchema>>): FieldSchema {
  const { $ref, anyOf } = schema;
  if ($ref !== undefined) {
    const found = definitions[$ref.slice($ref.lastIndexOf('/') + 1)];
    if (!found) throw new KmsError('internal', `nothing is at ${$ref}`);
    return resolved(found, definitions);
  }
  const choices = anyOf?.map((each) => resolved(each, definitions)).filter(({ type }) => type !== 'null');
  const kinds = new Set(choices?.map(primitive));
  const choice = choices?.find(({ type }) => type === 'array') ?? (kinds.size === 1 ? choices?.[0] : {});
  return choices && choice ? { ...choice, description: schema.description ?? choice.description ?? '' } : schema;
}

/** The type of a single value. */
function primitive({ type, const: only, enum: some }: FieldSchema): string {
  const [first = typeof (only ?? some?.[0])] = [type].flat();
  return first === 'integer' ? 'number' : first;
}

/** Lists of texts and numbers are sets: their order means nothing to the API. */
function typeOf(given: FieldSchema, definitions: Readonly<Record<string, FieldSchema>>): Type {
  const schema = resolved(given, definitions);
  const type = primitive(schema);
  if (type === 'string') return 'string';
  if (type === 'boolean') return 'bool';
  if (type === 'number') return 'number';
  if (type === 'array' && schema.items) return ['set', typeOf(schema.items, definitions)];
  const { additionalProperties } = schema;
  if (typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0) {
    return ['map', typeOf(additionalProperties, definitions)];
  }
  return 'dynamic';
}

function typeOfAttribute({ type, nested }: Pick<Attribute, 'type' | 'nested'>): Type {
  if (!nested) return type ?? 'dynamic';
  const of = typeOfAttributes(nested.attributes);
  return nested.mode === 'list' ? ['list', of] : of;
}

/** The type of objects with these attributes. */
export function typeOfAttributes(attributes: Attributes): Type {
  return ['object', mapped(attributes, typeOfAttribute)];
}

/** Stands for null in attributes of fields that may be null, which are all numbers from 0 on. */
const none = -1;

/** A value as the API has it: fields by the API's names, without those that are null. */
export function fieldOf(attribute: Attribute, value: Value): unknown {
  const { nested, isJson, isNullable } = attribute;
  if (isNullable && value === none) return null;
  if (isJson && typeof value === 'string') return parsedJson(value);
  if (!nested || value === null) return jsonOf(value);
  if (nested.mode === 'single') return fieldsOfObject(nested.attributes, objectOf(value));
  return Array.isArray(value) ? value.map((each) => fieldsOfObject(nested.attributes, objectOf(each))) : [];
}

function fieldsOfObject(attributes: Attributes, given: ObjectValue): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, attribute]) => {
      const value = given[name] ?? null;
      return value === null ? [] : [[attribute.field, fieldOf(attribute, value)]];
    }),
  );
}

/** Text that is no JSON is left for the API to refuse. */
function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A field of the API as the value of its attribute. */
export function valueOfField(attribute: Attribute, field: unknown): Value {
  const { nested, isJson } = attribute;
  if (isJson) return field === undefined ? null : JSON.stringify(field);
  if (!nested || field === null || field === undefined) return fromPlain(field, typeOfAttribute(attribute));
  const object = (each: unknown): ObjectValue =>
    mapped(nested.attributes, (of) => valueOfField(of, Object(each)[of.field]));
  if (nested.mode === 'single') return object(field);
  return Array.isArray(field) ? field.map(object) : null;
}

/** Text is Markdown. */
const markdown = 1;

/** `tfplugin6.Schema`. */
export function schemaMessage(about: string, attributes: Attributes): Uint8Array {
  const block = message({ 1: 0, 2: attributeMessages(attributes), 4: about, 5: markdown });
  return message({ 1: 0, 2: [block] });
}

/** Texts of the API say what null means. */
function aboutOf({ about, isNullable, origin }: Attribute): string {
  if (!isNullable || origin === 'computed') return about;
  const told = about.replace(/`?null`?(?=:)/, `\`${none}\``);
  return told === about ? `${about}; \`${none}\`: none` : told;
}

function attributeMessages(attributes: Attributes): readonly Uint8Array[] {
  return Object.entries(attributes).map(([name, attribute]) => {
    const { nested, origin, isSensitive } = attribute;
    const nesting = nested?.mode === 'list' ? 2 : 1;
    return message({
      1: name,
      2: nested ? undefined : JSON.stringify(typeOfAttribute(attribute)),
      3: aboutOf(attribute),
      4: origin === 'required',
      5: origin === 'optional' || origin === 'either',
      6: origin === 'computed' || origin === 'either',
      7: isSensitive ?? false,
      8: markdown,
      10: nested && message({ 1: attributeMessages(nested.attributes), 3: nesting }),
    });
  });
}
