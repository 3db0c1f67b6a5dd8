// Hostile bodies of nearly a megabyte: JSON that is as expensive as possible to parse, check, store, sign, search or
// quote in an error.
import { z } from 'zod';
import type { Endpoint } from '../../src/api/endpoint.ts';

/** Together with the rest of the body they stay below its size limit. */
const length = 1024 * 1024 - 8192;

function repeated(piece: (n: number) => string): string {
  const pieces: string[] = [];
  let total = 0;
  for (let n = 0; ; n++) {
    const next = piece(n);
    total += next.length + 1;
    if (total > length) return pieces.join(',');
    pieces.push(next);
  }
}

const nested = (open: string, inner: string, close: string, levels: number) =>
  open.repeat(levels) + inner + close.repeat(levels);
const list = (piece: (n: number) => string) => () => `[${repeated(piece)}]`;
const object = (piece: (n: number) => string) => () => `{${repeated(piece)}}`;
const within = (make: () => string) => () => `{"a":${make()}}`;

/** Contents of objects and arrays, as JSON. */
const innards: Readonly<Record<string, () => string>> = {
  numbers: list(() => '1'),
  'empty objects': list(() => '{}'),
  'empty texts': list(() => '""'),
  'objects of many shapes': list((n) => `{"${n.toString(36)}":1,"x":2}`),
  'unordered objects': list(() => '{"b":0,"a":0}'),
  'flags and more': list((n) => `{"keyring.r${n}.read":true}`),
  'nested arrays': list(() => nested('[', '', ']', 27)),
  'nested unordered objects': list(() => nested('[', '{"b":0,"a":0}', ']', 26)),
  'nested objects': list(() => nested('{"a":', '1', '}', 27)),
  'sixteen digits that are kept': list(() => '9007199254740992'),
  'sixteen digits that are not kept': list(() => '9007199254740993'),
  'fifteen digits': list(() => '123456789012345'),
  'small fractions': list(() => '1e-300'),
  'long fractions': list((n) => `0.${String(n).padStart(18, '7')}`),
  'escaped text': () => `"${'\\u0001'.repeat(length / 6)}"`,
  'escaped quotes': () => `"${'\\"'.repeat(length / 2)}"`,
  'wide text': () => `"${'\u4e2d'.repeat(length / 3)}"`,
  'arrays deeper than any stack': () => nested('[', '', ']', length / 2),
  'objects deeper than any stack': () => nested('{"a":', '1', '}', length / 6 - 1),
  'a number of a million digits': () => '9'.repeat(length),
  'a zero of a million digits': () => `0.${'0'.repeat(length)}`,
};

const outer: Readonly<Record<string, () => string>> = {
  'many names': object((n) => `"${n.toString(36)}":true`),
  'many names, last first': object((n) => `"k${999_999 - n}":true`),
  'many names that are numbers': object((n) => `"${(n * 7919) % 16_777_213}":true`),
  'one name again and again': object(() => '"a":true'),
};

export interface HostileValue {
  readonly name: string;
  /** JSON. */
  make(): string;
}

const values = (all: Readonly<Record<string, () => string>>): HostileValue[] =>
  Object.entries(all).map(([name, make]) => ({ name, make: once(make) }));

function once(make: () => string): () => string {
  let made: string | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Values for places where an object is expected, and for anywhere. */
export const hostileObjects: readonly HostileValue[] = [
  ...values(outer),
  ...values(innards).map(({ name, make }) => ({ name, make: within(make) })),
];
export const hostileAnything: readonly HostileValue[] = [...values(innards), ...values(outer)];

/** A field of a body, as a path, and whether it may hold any object. */
export interface Place {
  readonly path: readonly string[];
  readonly isFree: boolean;
}

/** Every field of a body, including nested ones, and an unknown one. */
export function placesOf({ body }: Endpoint): readonly Place[] {
  const places: Place[] = [{ path: ['unknown'], isFree: false }];
  const walk = (schema: z.ZodObject, path: readonly string[]): void => {
    for (const [name, field] of Object.entries(schema.shape)) {
      let inner: unknown = field;
      while (inner instanceof z.ZodOptional || inner instanceof z.ZodExactOptional) inner = inner.unwrap();
      places.push({ path: [...path, name], isFree: inner instanceof z.ZodCustom });
      if (inner instanceof z.ZodObject) walk(inner, [...path, name]);
    }
  };
  if (body) walk(body, []);
  return places;
}

/** `body` with the JSON `value` at a path. */
export function bodyWith(body: Readonly<Record<string, unknown>>, path: readonly string[], value: string): string {
  const [name = '', ...rest] = path;
  const { [name]: old, ...others } = body;
  const inner = typeof old === 'object' && old !== null && !Array.isArray(old) ? { ...old } : {};
  const entries = Object.entries(others).map(([key, each]) => `${JSON.stringify(key)}:${JSON.stringify(each)}`);
  return `{${[...entries, `${JSON.stringify(name)}:${rest.length > 0 ? bodyWith(inner, rest, value) : value}`].join(',')}}`;
}
