// Reading hashes and headers. A request's hash or header is read twice, for the decision who may and for the operation: the
// last answer is kept for each tenant, so that the arithmetic is done once.
import { type DecodedHeader, decodeHeader } from '../crypto/header.ts';
import { type KeyReference, openKeyHash } from '../crypto/key-hash.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';

/** Ring and key behind a hash; undefined when this tenant cannot read it. */
export const readHash: (keys: TenantKeys, text: string) => KeyReference | undefined = rememberLast(openKeyHash);

/** What a header says; undefined when it has not the form of one. */
export const readHeader: (keys: TenantKeys, text: string) => DecodedHeader | undefined = rememberLast(decodeHeader);

function rememberLast<T>(read: (keys: TenantKeys, text: string) => T): (keys: TenantKeys, text: string) => T {
  const last = new WeakMap<TenantKeys, { readonly text: string; readonly answer: T }>();
  return (keys, text) => {
    const known = last.get(keys);
    if (known?.text === text) return known.answer;
    const answer = read(keys, text);
    last.set(keys, { text, answer });
    return answer;
  };
}
