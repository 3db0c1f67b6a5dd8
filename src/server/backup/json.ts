// JSON that was read from a file: its shape is not known until it was looked at.
import { fromUtf8 } from '../../crypto/encoding.ts';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Undefined for bytes that are no JSON. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = fromUtf8(bytes);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
