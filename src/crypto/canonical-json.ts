// Canonical JSON (RFC 8785): one text for each value, so that it can be signed.
import canonicalize from 'canonicalize';
import { KmsError } from '../errors.ts';

/** The canonical text. Throws `invalid` for what JSON cannot say: lone surrogates, NaN, infinities, cycles, undefined. */
export function canonicalJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch (cause) {
    throw new KmsError('invalid', 'expected a JSON value of well-formed text and finite numbers', { cause });
  }
  if (text === undefined) throw new KmsError('invalid', 'expected a JSON value, got none');
  return text;
}
