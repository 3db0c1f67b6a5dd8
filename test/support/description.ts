// The API description as a judge: whether it describes an answer, to the last field.
import assert from 'node:assert/strict';
import { Ajv2020, type AnySchemaObject, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import type { OpenApiDocument, Operation } from '../../src/description/openapi.ts';

export interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function operationsOf(document: OpenApiDocument): readonly Described[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

export interface Given {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export interface Judge {
  /** Problems with an answer, a line each. */
  answer(id: string, given: Given): readonly string[];
  /** Problems with a value, by the schema at a place in the document. */
  at(pointer: readonly string[], value: unknown): readonly string[];
}

export function judgeOf(document: OpenApiDocument): Judge {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true });
  // The package's types are not usable in this module system.
  (ajvFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  for (const [name, schema] of Object.entries(document.components.schemas)) ajv.addSchema(closed(schema), idOf(name));
  const compiled = new Map<string, ValidateFunction>();
  const operations = new Map(operationsOf(document).map((each) => [each.operation.operationId, each]));

  function at(pointer: readonly string[], value: unknown): readonly string[] {
    const key = JSON.stringify(pointer);
    const validate = compiled.get(key) ?? ajv.compile(closed(partOf(document, pointer)));
    compiled.set(key, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  function answer(id: string, { status, headers, body }: Given): readonly string[] {
    const { path, method, operation } = operations.get(id) ?? assert.fail(`${id} is not described`);
    const response = operation.responses[status];
    if (!response) return [`${id} answers ${status}, which is not described`];
    const name = '$ref' in response ? response.$ref.slice(response.$ref.lastIndexOf('/') + 1) : undefined;
    const place =
      name === undefined
        ? ['paths', path, method.toLowerCase(), 'responses', String(status)]
        : ['components', 'responses', name];
    const described = '$ref' in response ? document.components.responses[name ?? ''] : response;
    const problems = Object.keys(described?.headers ?? {})
      .filter((header) => header !== 'Kms-State' && !headers.has(header))
      .map((header) => `${id} ${status} lacks the header ${header}`);
    const type = headers.get('content-type')?.split(';')[0] ?? '';
    if (!described?.content?.[type]) return [...problems, `${id} ${status} answers ${type}, which is not described`];
    return [...problems, ...at([...place, 'content', type, 'schema'], body)];
  }

  return { answer, at };
}

function partOf(document: object, pointer: readonly string[]): unknown {
  return pointer.reduce<unknown>((value, part) => {
    assert.ok(typeof value === 'object' && value !== null && Object.hasOwn(value, part), pointer.join(' '));
    return Reflect.get(value, part);
  }, document);
}

const idOf = (name: string): string => `https://kms.test/${name}`;

/**
 * A schema that allows no fields beyond those described: clients are told to ignore such fields, but the server must
 * not send them. References are resolved by name.
 */
function closed(schema: unknown): AnySchemaObject {
  const made = Object.fromEntries(
    Object.entries(schema ?? {}).map(([key, item]) => {
      if (key === 'example' || key === 'examples' || key === 'enum' || key === 'required') return [key, item];
      if (key === '$ref') return [key, idOf(item.slice(item.lastIndexOf('/') + 1))];
      return [key, Array.isArray(item) ? item.map(closedPart) : closedPart(item)];
    }),
  );
  const isOpen = made.type === 'object' && made.properties !== undefined && made.additionalProperties !== false;
  return isOpen ? { ...made, additionalProperties: false } : made;
}

function closedPart(item: unknown): unknown {
  return typeof item === 'object' && item !== null ? closed(item) : item;
}
