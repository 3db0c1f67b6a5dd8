// Terms: everything about a record that a search can ask for, as 32-bit hashes. They lead to candidates only: a search
// looks at each candidate itself, so that two terms with one hash cost time and never a wrong answer.
import { canonicalJson } from '../../crypto/canonical-json.ts';

type Props = Readonly<Record<string, unknown>>;

/** A 32-bit hash of a text: FNV-1a over code units with the final mix of MurmurHash3. */
export function hashTerm(text: string): number {
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

/** Stands for all terms of props in a record that has more than `maxPropsTerms`: it is a candidate for every search by props. */
export const wideTerm = hashTerm('w');
export const maxPropsTerms = 256;

function isObject(value: unknown): value is Props {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * One term for each path in `props` with the value at its end: whole for scalars and arrays, "is an object" for objects; at most
 * `limit`. The terms of an object that another contains are a subset of the other's. Throws `invalid` for what JSON cannot say.
 */
export function propsTerms(props: Props, limit: number): number[] {
  const terms: number[] = [];
  const walk = (object: Props, path: string): void => {
    for (const key of Object.keys(object)) {
      if (terms.length >= limit) return;
      const value = object[key];
      const at = `${path}${canonicalJson(key)}:`;
      terms.push(hashTerm(at + (isObject(value) ? '{' : canonicalJson(value))));
      if (isObject(value)) walk(value, at);
    }
  };
  walk(props, 'p');
  return terms;
}

/** Texts that the canonical line of every record whose props contain `props` has in it: the ends of paths, at most `limit`. */
export function propsNeedles(props: Props, limit: number): string[] {
  const needles: string[] = [];
  const walk = (object: Props): void => {
    for (const key of Object.keys(object)) {
      if (needles.length >= limit) return;
      const value = object[key];
      const name = `${canonicalJson(key)}:`;
      if (!isObject(value)) needles.push(name + canonicalJson(value));
      else if (Object.keys(value).length === 0) needles.push(`${name}{`);
      else walk(value);
    }
  };
  walk(props);
  return needles;
}
