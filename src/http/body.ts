// Body is a request's JSON body, read within a limit of bytes. A problem with it is returned, not thrown: a caller
// without the right to ask learns of that first.
import type { z } from 'zod';
import { type Kept, parseExactly } from '../api/exact-json.ts';
import { KmsError } from '../errors.ts';
import type { JsonObject } from '../model/json.ts';
import type { Codec } from './codec.ts';
import { type ApiRequest, headerOf } from './request.ts';

export const defaultBodyLimit = 1024 * 1024;

/** Limit of a body that needs no credential, in bytes. */
export const publicBodyLimit = 16 * 1024;

/** A body that was read, or why it was not. */
export type BodyRead =
  | {
      readonly value: unknown;
      readonly inexact: readonly string[];
      /** The body as it was sent, if a surface decoded `value` from it. */
      readonly came?: JsonObject;
      readonly problem?: undefined;
    }
  | { readonly problem: KmsError };

interface BodyRules {
  /** In bytes. */
  readonly limit: number;
  /** The numbers whose exact text is kept. */
  readonly kept: Kept;
  /** Id of the sender; absent if no credential is needed. */
  readonly holder?: string | undefined;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export async function readJsonBody(request: ApiRequest, rules: BodyRules): Promise<BodyRead> {
  const { limit, holder } = rules;
  const type = headerOf(request, 'content-type');
  const problem = codingProblem(request) ?? lengthProblem(request, limit);
  if (problem) return { problem };
  // Many clients send no body with DELETE; some name its type all the same.
  const mayBeNone = request.method === 'DELETE';
  const wrongType = typeProblem(type);
  if (wrongType && !mayBeNone) return { problem: wrongType };
  const read = (bytes: Uint8Array | undefined): BodyRead => {
    if (mayBeNone && bytes?.length === 0) return { value: {}, inexact: [] };
    return wrongType ? { problem: wrongType } : parsed(bytes, rules);
  };
  return request.body.read(limit, holder).then(read, unread);
}

/** Reads a body that a surface decodes; its Content-Type is not checked, since clients differ. */
export async function readDecodedBody(
  request: ApiRequest,
  { limit, holder }: Omit<BodyRules, 'kept'>,
  decode: NonNullable<Codec['decode']>,
): Promise<BodyRead> {
  const problem = codingProblem(request) ?? lengthProblem(request, limit);
  if (problem) return { problem };
  try {
    const bytes = await request.body.read(limit, holder);
    return bytes ? { ...decode(bytes), inexact: [] } : { problem: tooLarge(limit) };
  } catch (error) {
    return unread(error);
  }
}

function unread(error: unknown): BodyRead {
  if (error instanceof KmsError) return { problem: error };
  throw error;
}

/** The error of a body that breaks off: the sender's fault, not the server's. */
export function brokenBody(): KmsError {
  return new KmsError('invalid', 'the body could not be read to its end');
}

function parsed(bytes: Uint8Array | undefined, { limit, kept }: BodyRules): BodyRead {
  if (!bytes) return { problem: tooLarge(limit) };
  try {
    return parseExactly(utf8.decode(bytes), kept);
  } catch {
    return { problem: new KmsError('invalid', 'the body is not valid JSON in UTF-8') };
  }
}

export function tooLarge(limit: number): KmsError {
  return new KmsError('too-large', `the body is over the limit of ${limit} bytes`);
}

/** Checked before a byte is read: the HTTP parser holds a body to its declared length. */
function lengthProblem(request: ApiRequest, limit: number): KmsError | undefined {
  const declared = headerOf(request, 'content-length');
  return declared !== undefined && Number(declared) > limit ? tooLarge(limit) : undefined;
}

function codingProblem(request: ApiRequest): KmsError | undefined {
  const coding = headerOf(request, 'content-encoding');
  if (coding === undefined || coding.trim().toLowerCase() === 'identity') return undefined;
  return new KmsError('unsupported-media', 'the header Content-Encoding: a body is taken as it is, not compressed');
}

function typeProblem(contentType: string | undefined): KmsError | undefined {
  if (contentType === 'application/json') return undefined;
  const [type = '', ...parameters] = (contentType ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') {
    return new KmsError('invalid', 'the body needs the header Content-Type: application/json');
  }
  if (parameters.map(charsetOf).every((charset) => charset === undefined || /^utf-?8$/i.test(charset)))
    return undefined;
  return new KmsError('unsupported-media', 'the header Content-Type: a body is taken in the charset UTF-8 alone');
}

/** The charset in a parameter of a Content-Type; undefined for other parameters. */
function charsetOf(parameter: string): string | undefined {
  const equals = parameter.indexOf('=');
  if (equals < 0 || parameter.slice(0, equals).trim().toLowerCase() !== 'charset') return undefined;
  const value = parameter.slice(equals + 1).trim();
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/** The numbers of a body that its schema keeps: those that it declares, and all within its free-form objects. */
export function keptNumbers(schema: z.core.$ZodType): Kept | undefined {
  // Zod documents this access for libraries: https://zod.dev/packages/core.
  const { def } = schema._zod as z.core.$ZodTypes['_zod'];
  switch (def.type) {
    case 'number':
    case 'custom':
      return 'all';
    case 'optional':
    case 'nullable':
    case 'default':
      return keptNumbers(def.innerType);
    case 'object': {
      const fields = new Map<string, Kept>();
      for (const [name, field] of Object.entries(def.shape)) {
        const kept = keptNumbers(field);
        if (kept !== undefined) fields.set(name, kept);
      }
      return fields;
    }
    default:
      return undefined;
  }
}
