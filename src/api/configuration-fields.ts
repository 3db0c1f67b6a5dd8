// The fields of the kinds of configuration as code for programs that have no zod: as JSON Schemas, and checked one by
// one.
import { z } from 'zod';
import { configurationKinds, type KindName } from './configuration.ts';

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

export interface FieldSchemas {
  readonly properties: Readonly<Record<string, FieldSchema>>;
  /** Schemas that references name. */
  readonly definitions: Readonly<Record<string, FieldSchema>>;
}

export function fieldSchemas(kind: KindName): FieldSchemas {
  const { fields } = configurationKinds[kind];
  // Cast: the declarations of the API use no more of JSON Schema.
  const { properties = {}, $defs = {} } = z.toJSONSchema(fields, { io: 'input', unrepresentable: 'any' }) as {
    properties?: Readonly<Record<string, FieldSchema>>;
    $defs?: Readonly<Record<string, FieldSchema>>;
  };
  return { properties, definitions: $defs };
}

/** A problem of one field of the kind, or of `name`; undefined if it is valid. */
export function fieldProblem(kind: KindName, field: string, value: unknown): string | undefined {
  const { name, fields } = configurationKinds[kind];
  const shape: Readonly<Record<string, z.ZodType>> = fields.shape;
  const { error } = (field === 'name' ? name : shape[field])?.safeParse(value) ?? {};
  const [issue] = error?.issues ?? [];
  return issue && [...issue.path.map(String), issue.message].join(': ');
}
