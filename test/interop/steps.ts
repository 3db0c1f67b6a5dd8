// A step is one request to OpenBao and to the appliance. Text after a `$` stands for a value of an earlier answer.
export interface Step {
  readonly ask: string;
  readonly body?: unknown;
  /** A raw body, sent unchanged. */
  readonly raw?: string;
  readonly type?: string;
  /** Absent: the root token. */
  readonly token?: 'none' | 'wrong';
  /** The name under which the ciphertext, signature, MAC or public key of the answer is kept. */
  readonly keep?: string;
  /** Bytes of a key, in hex, that are wrapped first to the public key kept as `wrapping`, and kept as `wrapped`. */
  readonly wraps?: string;
  /** The reason why the two answer differently. */
  readonly differs?: string;
}
