// Examples, put together from those of the fields, so that what is shown as a whole always fits its schema.
import type { Schemas } from './schemas.ts';
import { isFreeForm } from './schemas.ts';
import type { JsonSchema } from './types.ts';

/** Every field, the optional ones too. `place` is for the message where something has no example. */
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
