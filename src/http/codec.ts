// Codec translates an endpoint's input and answer for another system's clients. The appliance's own API has none.
import type { JsonObject } from '../model/json.ts';

export interface Codec {
  /** Decodes the bytes into an endpoint's body. Absent if no body is read. Throws `invalid`. */
  decode?(bytes: Uint8Array): { readonly value: unknown; readonly came: JsonObject };
  /**
   * Encodes an endpoint's answer. `came` is the body that `decode` kept, empty without one. A list's items are in
   * `data`, already written. Throws `invalid`, with which the endpoint's operation fails.
   */
  encode(answer: JsonObject, came: JsonObject): Encoded;
  /** The part of a list's item to write. Default: all of it. */
  item?(item: never): unknown;
}

interface Encoded {
  readonly status: number;
  /** Absent if the answer has no body. */
  readonly text?: string | undefined;
}
