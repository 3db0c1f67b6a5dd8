// One operation of AWS KMS: its fields, the key that it is about, and the endpoint of ours that serves it.
import type { EndpointId } from '../../api/endpoints.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Place } from './names.ts';

/**
 * A field: the kind of its value, `!` for a compulsory one, and the least and most of it: characters of a text, bytes
 * of a blob, the number itself, items of a list. Such as `blob! 1-4096`.
 */
export type FieldRule = string;

/** A call of one of our endpoints. */
export interface Call {
  readonly id: EndpointId;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** The key that a request is about, as far as it was found. */
export interface FoundKey {
  /** The native endpoints take it. */
  readonly ref: string;
  /** Undefined if there is no such key. */
  readonly id: string | undefined;
  readonly type: string | undefined;
  /** The number of its newest version. */
  readonly versions: number | undefined;
}

export interface Work {
  readonly place: Place;
  /** The keys of `keys`, in that order. */
  readonly keys: readonly FoundKey[];
  /** A new name for a key that is given none. */
  newName(): string;
  /** The key of that name or alias; undefined if there is none. */
  findNamed(name: string): Promise<FoundKey | undefined>;
  /** The key with one of these ids; undefined if there is none. */
  find(ids: readonly string[]): Promise<FoundKey | undefined>;
  /** Runs one of our endpoints and returns its answer. Rejects with its refusal. */
  call(call: Call): Promise<JsonObject>;
}

export interface AwsOperation {
  readonly fields: Readonly<Record<string, FieldRule>>;
  /** Fields that name keys; `*` before one that takes an alias too, `?` before one that may be absent. */
  readonly keys?: readonly string[];
  /** Whether what fails is the ciphertext, where nothing else is said. */
  readonly decrypts?: boolean;
  /** The answer; undefined for an empty one. Throws `AwsRefusal`. */
  readonly run: (given: JsonObject, work: Work) => Promise<object | undefined>;
}
