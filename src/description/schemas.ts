// JSON Schemas of the wire, generated from the zod schemas that the server validates with. A schema with an id becomes
// a component once and is referenced from then on. Every field must have a description. Examples are put together from
// those of the fields.

import { z } from 'zod';
import type { JsonSchema } from './openapi.ts';

const prefix = '#/components/schemas/';

export class Schemas {
  readonly #components = new Map<string, JsonSchema>();

  /**
   * The schema of a request part (`input`) or response (`output`). `place` names it in the error about a missing
   * description.
   */
  of(schema: z.ZodType, io: 'input' | 'output', place: string): JsonSchema {
    // Wrapped in an object, so that a schema with an id becomes a reference as everywhere else.
    const { properties, $defs = {} } = z.toJSONSchema(z.object({ it: schema }), { io, unrepresentable: 'any' });
    for (const [name, definition] of Object.entries($defs)) this.#add(name, plain(definition, io));
    const made = plain(properties?.it, io);
    needDescriptions(made, place);
    return made;
  }

  get components(): Readonly<Record<string, JsonSchema>> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The schema that a reference points to; any other schema itself. */
  resolve(schema: JsonSchema): JsonSchema {
    return resolved(schema, this.#components);
  }

  #add(name: string, schema: JsonSchema): void {
    const known = this.#components.get(name);
    if (known && JSON.stringify(known) !== JSON.stringify(schema)) throw new Error(`two schemas are named ${name}`);
    if (!known) needDescriptions(schema, name);
    this.#components.set(name, schema);
  }
}

function resolved(schema: JsonSchema, components: ReadonlyMap<string, JsonSchema>): JsonSchema {
  if (schema.$ref === undefined) return schema;
  const found = components.get(componentName(schema.$ref));
  if (!found) throw new Error(`nothing is at ${schema.$ref}`);
  return found;
}

/** The component's name in a reference, such as `KeyRing`. */
export function componentName(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** Whether an object schema has no described fields and allows any. */
function isFreeForm(schema: JsonSchema): boolean {
  return schema.additionalProperties === true && schema.properties === undefined;
}

/**
 * Adapts zod's output for the description. References point to components. Objects in responses are open, and marked
 * so, since clients must ignore fields that they do not know. Bounds that only restrict a number to safe integers are
 * dropped from responses.
 */
function plain(value: unknown, io: 'input' | 'output'): JsonSchema {
  if (typeof value !== 'object' || value === null) throw new Error('expected a schema');
  const made: Record<string, unknown> = {};
  for (const [keyword, item] of Object.entries(value)) {
    if (keyword === 'id' || keyword === '$schema') continue;
    if (keyword === '$ref') made.$ref = prefix + componentName(String(item));
    else if (keyword === 'additionalProperties' && item === false) made.additionalProperties = true;
    else if (typeof item === 'number' && Math.abs(item) === Number.MAX_SAFE_INTEGER) {
      made.format = 'int64';
      if (io === 'input') made[keyword] = item;
    } else if (keyword === 'properties') made.properties = mapped(item, io);
    else if (keyword === 'items' || isSchema(keyword, item)) made[keyword] = plain(item, io);
    else if (['anyOf', 'oneOf', 'allOf'].includes(keyword) && Array.isArray(item))
      made[keyword] = item.map((each) => plain(each, io));
    else made[keyword] = item;
  }
  return made;
}

function isSchema(keyword: string, item: unknown): boolean {
  return (keyword === 'additionalProperties' || keyword === 'propertyNames') && typeof item === 'object';
}

function mapped(properties: unknown, io: 'input' | 'output'): Record<string, JsonSchema> {
  return Object.fromEntries(Object.entries(properties ?? {}).map(([name, schema]) => [name, plain(schema, io)]));
}

function needDescriptions(schema: JsonSchema, place: string): void {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const where = `${place}.${name}`;
    if (property.description === undefined && property.$ref === undefined) throw new Error(`${where} is not described`);
    needDescriptions(property, where);
  }
  if (schema.items) needDescriptions(schema.items, `${place}[]`);
}

/** An example with every field, optional ones too. `place` names the schema in the error about a missing example. */
export function exampleOf(schema: JsonSchema, schemas: Schemas, place: string): unknown {
  const [first] = schema.examples ?? schema.enum ?? [];
  if (first !== undefined) return first;
  if (schema.$ref !== undefined) return exampleOf(schemas.resolve(schema), schemas, place);
  const [choice] = schema.anyOf ?? schema.oneOf ?? [];
  if (choice) return exampleOf(choice, schemas, place);
  if (schema.type === 'array' && schema.items) return [exampleOf(schema.items, schemas, `${place}[]`)];
  if (schema.type === 'object') {
    const { properties = {} } = schema;
    if (isFreeForm(schema)) return {};
    return Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, exampleOf(property, schemas, `${place}.${name}`)]),
    );
  }
  throw new Error(`${place} has no example`);
}
