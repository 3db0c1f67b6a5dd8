// One operation of AWS KMS: the keys that it names, the endpoint of ours that serves it, and the plan of its one call.
// One call is one record in the activity log.
import type { EndpointId } from '../../api/endpoints.ts';
import type { JsonObject } from '../../model/json.ts';
import type { KeyUse } from '../../model/key-types.ts';
import type { TenantKeys } from '../../seal/tenant-keys.ts';
import type { FoundKey } from './found-keys.ts';
import type { Place } from './names.ts';

/** A call of one of our endpoints. */
export interface Call {
  readonly id: EndpointId;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** The key that it is about, if that is not the first of the operation. */
  readonly key?: FoundKey;
  /** The answer in AWS's terms; undefined for an empty one. Throws `AwsRefusal`, with which the call is undone. */
  readonly answer: (ours: JsonObject) => object | undefined;
  /** Completes the answer of a call that was done, if that takes more look-ups. */
  readonly finish?: (answer: object) => Promise<object>;
}

/** An answer for which no endpoint is needed. */
interface Told {
  readonly told: object;
}

export interface Work {
  readonly place: Place;
  /** The keys of `keys`, in that order. */
  readonly keys: readonly FoundKey[];
  /** Those of the tenant. */
  readonly tenantKeys: TenantKeys;
  now(): number;
  random(length: number): Uint8Array;
  /** A name for a new key that is given none: the one that was asked for, if the same waits for approval. */
  newName(fields: JsonObject): Promise<string>;
  /** The key of that name or alias; undefined if there is none. */
  findNamed(name: string): Promise<FoundKey | undefined>;
  /** The key with one of these ids; undefined if there is none. */
  find(ids: readonly string[]): Promise<FoundKey | undefined>;
}

export interface AwsOperation {
  /** Fields that name keys; `*` before one that takes an alias too, `?` before one that may be absent. */
  readonly keys?: readonly string[];
  /**
   * The endpoint that serves it. A refusal of the input is told to callers whom this endpoint would serve, and recorded
   * as its own. Absent: any caller is told.
   */
  readonly about?: EndpointId;
  /** The endpoint for the second key, and its flag: without it, the caller learns nothing of that key. */
  readonly second?: { readonly about: EndpointId; readonly action: string };
  /** The use that the first key is put to. */
  readonly use?: KeyUse;
  /** The type of refusals that neither the key nor its state explains. Default: `ValidationException`. */
  readonly otherwise?: string;
  /** The type of a refusal that its words tell apart. */
  readonly typeOf?: (message: string | undefined) => string | undefined;
  /** Throws `AwsRefusal`. */
  readonly plan: (given: JsonObject, work: Work) => Call | Told | Promise<Call | Told>;
}
