// Codec is how another system's clients put what an endpoint takes and answers. The appliance's own API has none.
import type { JsonObject } from '../model/json.ts';

export interface Codec {
  /** Makes an endpoint's body of the bytes that came. Absent where none is read. Throws `invalid`. */
  decode?(bytes: Uint8Array): { readonly value: unknown; readonly came: JsonObject };
  /**
   * Makes the answer of an endpoint's. `came` is what `decode` left, empty without a body. A list's items are in
   * `data`, as they were written. Throws `invalid`, with which the endpoint's operation fails.
   */
  encode(answer: JsonObject, came: JsonObject): Encoded;
  /** The part of a list's item that is written. Default: all of it. */
  item?(item: never): unknown;
}

interface Encoded {
  readonly status: number;
  /** Absent where the answer has no body. */
  readonly text?: string | undefined;
}
