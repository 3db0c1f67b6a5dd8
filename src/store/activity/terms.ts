// Terms are 32-bit hashes of everything about a record that a search can ask for. Bloom filters over them tell in a few
// hundred bytes of a segment's summary which terms it may have. Terms only lead to candidates: a search checks each
// candidate itself, so that two terms with one hash cost time but never give a wrong answer.

import { fromBase64Url, toBase64Url } from '../../crypto/bytes.ts';
import { canonicalJson } from '../../crypto/canonical-json.ts';
import { detailsIn } from '../../model/activity-details.ts';
import { canonicalBlock } from '../../model/addresses.ts';
import { isJsonObject } from '../../model/json.ts';

type Props = Readonly<Record<string, unknown>>;

/** A 32-bit hash of a text: FNV-1a over code units with the final mix of MurmurHash3. */
function hashTerm(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export const keyTerm = (keyid: string): number => hashTerm(`k${keyid}`);
export const actionTerm = (action: string): number => hashTerm(`a${action}`);
export const ringTerm = (ringname: string): number => hashTerm(`r${ringname}`);
export const validTerm = (valid: boolean): number => hashTerm(valid ? 'v1' : 'v0');

const addressTerm = (address: string): number => hashTerm(`n${address}`);
/** The id or the name of the object that something was done to. */
export const objectTerm = (text: string): number => hashTerm(`o${text.toLowerCase()}`);
/** A flag that was granted; none = any. */
export const grantedTerm = (flag = ''): number => hashTerm(`+${flag}`);
export const revokedTerm = (flag = ''): number => hashTerm(`-${flag}`);

/** The terms for the deed in one of the appliance's own records. */
export function deedTerms(props: Props): number[] {
  const { object, objects = [], granted = [], revoked = [] } = detailsIn(props);
  const terms: number[] = [];
  for (const { id, name } of object ? [object, ...objects] : objects) {
    terms.push(objectTerm(id));
    if (name !== undefined) terms.push(objectTerm(name));
  }
  if (granted.length > 0) terms.push(grantedTerm(), ...granted.map(grantedTerm));
  if (revoked.length > 0) terms.push(revokedTerm(), ...revoked.map(revokedTerm));
  return terms;
}

/** Prefixes of the networks in a summary, by the number of bits of an address. */
const networkPrefixes: Readonly<Record<number, readonly number[]>> = { 32: [24, 16, 8], 128: [64, 48, 32] };

/**
 * The terms of an address and of the networks around it; they include the `blockTerm` of every block around the
 * address.
 */
export function networkTerms(address: string): number[] {
  const prefixes = networkPrefixes[address.includes(':') ? 128 : 32] ?? [];
  return [address, ...prefixes.map((prefix) => canonicalBlock(`${address}/${prefix}`) ?? '')].map(addressTerm);
}

/** A term that every address of the block has among its `networkTerms`; undefined if the block is too large. */
export function blockTerm(block: string): number | undefined {
  const [address = '', prefix] = block.split('/');
  if (prefix === undefined) return addressTerm(block);
  const prefixes = networkPrefixes[address.includes(':') ? 128 : 32] ?? [];
  const around = prefixes.find((each) => each <= Number(prefix));
  return around === undefined ? undefined : addressTerm(canonicalBlock(`${address}/${around}`) ?? '');
}

/**
 * Stands for all props terms of a record with more than `maxPropsTerms`: the record is a candidate for every search by
 * props.
 */
export const wideTerm = hashTerm('w');
export const maxPropsTerms = 256;

/**
 * One term for each path in `props` with the value at its end: whole for scalars and arrays, "is an object" for
 * objects; at most `limit`. The terms of an object contained in another are a subset of the other's. Throws `invalid`
 * for values that JSON cannot represent.
 */
export function propsTerms(props: Props, limit: number): number[] {
  const terms: number[] = [];
  const walk = (object: Props, path: string): void => {
    for (const key of Object.keys(object)) {
      if (terms.length >= limit) return;
      const value = object[key];
      const at = `${path}${canonicalJson(key)}:`;
      terms.push(hashTerm(at + (isJsonObject(value) ? '{' : canonicalJson(value))));
      if (isJsonObject(value)) walk(value, at);
    }
  };
  walk(props, 'p');
  return terms;
}

/**
 * Texts that occur in the canonical line of every record whose props contain `props`: the ends of paths, at most
 * `limit`.
 */
export function propsNeedles(props: Props, limit: number): string[] {
  const needles: string[] = [];
  const walk = (object: Props): void => {
    for (const key of Object.keys(object)) {
      if (needles.length >= limit) return;
      const value = object[key];
      const name = `${canonicalJson(key)}:`;
      if (!isJsonObject(value)) needles.push(name + canonicalJson(value));
      else if (Object.keys(value).length === 0) needles.push(`${name}{`);
      else walk(value);
    }
  };
  walk(props);
  return needles;
}

const probes = 4;

function bitOf(term: number, probe: number, bits: number): number {
  let hash = Math.imul(term ^ (probe * 0x9e3779b9), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % bits;
}

/** A filter of at most `maxBytes`; null (which may hold anything) if there are too many terms for a useful one. */
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

type Bloom = (term: number) => boolean;

/** A test whether a term may be in the filter; false is certain. */
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
