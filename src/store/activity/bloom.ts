// Bloom filters over 32-bit terms, as text: what a segment's summary knows about its terms in a few hundred bytes at most.
import { fromBase64Url, toBase64Url } from '../../crypto/encoding.ts';

const probes = 4;

function bitOf(term: number, probe: number, bits: number): number {
  let hash = Math.imul(term ^ (probe * 0x9e3779b9), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % bits;
}

/** A filter of at most `maxBytes`; null (which may hold anything) when the terms are too many for one of any use. */
export function makeBloom(terms: ReadonlySet<number>, maxBytes: number): string | null {
  const bytes = Math.min(Math.ceil((terms.size * 10) / 8), maxBytes);
  if (terms.size * 4 > bytes * 8) return null;
  const filter = new Uint8Array(bytes);
  for (const term of terms) {
    for (let probe = 0; probe < probes; probe++) {
      const bit = bitOf(term, probe, bytes * 8);
      filter[bit >>> 3] = (filter[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }
  return toBase64Url(filter);
}

export type Bloom = (term: number) => boolean;

/** The test whether a term may be among those of the filter; false is certain. */
export function readBloom(text: string | null): Bloom {
  const filter = text === null ? undefined : fromBase64Url(text);
  if (!filter) return () => true;
  if (filter.length === 0) return () => false;
  const bits = filter.length * 8;
  return (term) => {
    for (let probe = 0; probe < probes; probe++) {
      const bit = bitOf(term, probe, bits);
      if (((filter[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
    }
    return true;
  };
}
