// Operation is one of our endpoints in the transit engine's terms; Setting is a path of the engine that no endpoint of
// ours serves, since there is nothing to set.
import type { EndpointId } from '../../api/endpoints.ts';
import type { Kept } from '../../api/exact-json.ts';
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { JsonObject } from '../../model/json.ts';
import type { VaultResponse } from './answers.ts';

/** A request as far as it names an operation. */
export interface Asked {
  readonly method: string;
  /** The path's parts after /v1 and the tenant. */
  readonly path: readonly string[];
  readonly isList: boolean;
  readonly query: URLSearchParams;
}

export interface Operation {
  readonly id: EndpointId;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Translates the client's body into ours. Throws `invalid`. */
  readonly body?: (given: JsonObject) => object;
  /** Fields of the client's body whose numbers are stored, and refused if they would change. */
  readonly kept?: Kept;
  /** The part of a list item that is written. */
  readonly item?: (item: ManagedKey) => unknown;
  /** Translates our response into theirs. Throws `invalid`, with which the operation fails. */
  readonly answer: (ours: JsonObject, given: JsonObject) => VaultResponse;
  /** Translates a refusal by its body; undefined for refusals that all operations have. */
  readonly refusal?: (body: JsonObject) => VaultResponse | undefined;
  /** The error message if the key does not exist, or the whole answer. Default: 404 without messages. */
  readonly missing?: string | VaultResponse;
  /** Whether it makes the key that its path names: then a key that the engine does not show is in its way. */
  readonly makes?: true;
}

export interface Setting {
  /** For holders of a valid token. Throws `invalid`. */
  readonly setting: (given: JsonObject) => VaultResponse;
}

export function isWrite(method: string): boolean {
  return method === 'POST' || method === 'PUT';
}
