// Validation of answers before use: anything may answer at an address, and names, ids, keys and times from it end up in
// files, paths and other programs. The shapes come from the endpoints' declarations, so that a program that bundles the
// client carries no other validator.
import type { ClientEndpointId } from '../api/paths.ts';
import { isJsonObject } from '../model/json.ts';
import { answerShapes, things } from './answer-shapes.ts';
import { unexpected } from './failure.ts';

const ulid = '[0-9a-hjkmnp-tv-z]{26}';

/** Patterns by kind of text, as the shapes name them; an id's kind is its prefix, such as `ring_`. */
export const textKinds: Readonly<Record<string, RegExp>> = {
  appliance: /^[0-9a-f]{32}$/,
  base32: /^[A-Z2-7]+$/,
  base64: /^[A-Za-z0-9+/]+={0,2}$/,
  /** Empty if the console's browser keeps the token. */
  accessToken: /^[!-~]*$/,
  base64url: /^[A-Za-z0-9_-]+$/,
  caller: new RegExp(`^(?:(?:apik|user)_${ulid}|[a-z-]+)$`),
  day: /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/,
  /** One line. */
  line: /^[^\p{Cc}\p{Zl}\p{Zp}\p{Cs}]*$/u,
  /** A managed key's id; those made as transit rings kept theirs. */
  managedKey: new RegExp(`^(?:mkey|ring)_${ulid}$`),
  ring: /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
  /** A ring's name, or empty. */
  ringOrNone: /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$/,
  /** RFC 3339, UTC. */
  time: /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z$/,
  uri: /^[a-z][a-z0-9+.-]*:[!-~]+$/,
  /** A secret, a ciphertext, a signature. */
  token: /^[!-~]+$/,
  /** One of a fixed set of words, to which a later version may add. */
  word: /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
};

const valueKinds: Readonly<Record<string, (value: unknown) => boolean>> = {
  boolean: (value) => typeof value === 'boolean',
  count: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  integer: Number.isSafeInteger,
  object: isJsonObject,
  /** A word, or a number in its place. */
  wordOrCount: (value) =>
    typeof value === 'string'
      ? textKinds.word?.test(value) === true
      : Number.isSafeInteger(value) && Number(value) >= 0,
  text: (value) => typeof value === 'string' && value.isWellFormed(),
};

/** Path of the first invalid part of a value, empty for the value itself; undefined if it is valid. */
type Check = (value: unknown) => string | undefined;

/** Cached by kind. */
const checks = new Map<string, Check>();

/**
 * Returns the endpoint's answer unchanged. Fields that its shape does not name are ignored, since a later version may
 * add some. Throws `unavailable`, without repeating the content, if no appliance would answer this.
 */
export function checkedAnswer(id: ClientEndpointId, answer: object): object {
  const place = checkOf(answerShapes[id])(answer);
  if (place === undefined) return answer;
  throw unexpected(place === '' ? 'it has another form' : `its ${place} has another form`);
}

/** `kind` is a kind of text or value, the name of an object, or a list of fields. */
function checkOf(kind: string): Check {
  const known = checks.get(kind);
  if (known) return known;
  const made = /^[A-Z]|:|^$/.test(kind) ? objectCheck(things[kind] ?? kind) : valueCheck(kind);
  checks.set(kind, made);
  return made;
}

function valueCheck(kind: string): Check {
  const pattern = kind.endsWith('_') ? new RegExp(`^${kind}${ulid}$`) : textKinds[kind];
  const fits = pattern ? (value: unknown) => typeof value === 'string' && pattern.test(value) : valueKinds[kind];
  if (!fits) throw new TypeError(`there is no kind ${kind}`);
  return (value) => (fits(value) ? undefined : '');
}

/** `shape` lists fields such as `id:ring_`, separated by blanks; `?`, `[]` and `|null` as in answer-shapes.ts. */
function objectCheck(shape: string): Check {
  const fields = [...shape.matchAll(/(\w+)(\?)?:(\w+)(\[\])?(\|null)?/g)].map(
    ([, name = '', optional, kind = '', list, nullable]) => {
      const check = list === undefined ? checkOf(kind) : listCheck(checkOf(kind));
      return { name, check, isOptional: optional !== undefined, isNullable: nullable !== undefined };
    },
  );
  return (value) => {
    if (!isJsonObject(value)) return '';
    for (const { name, check, isOptional, isNullable } of fields) {
      // Inherited properties are not fields.
      const field = Object.hasOwn(value, name) ? value[name] : undefined;
      if ((field === undefined && isOptional) || (field === null && isNullable)) continue;
      const place = check(field);
      if (place !== undefined) return place === '' ? name : `${name}.${place}`;
    }
    return undefined;
  };
}

function listCheck(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return '';
    for (const [index, item] of value.entries()) {
      const place = check(item);
      if (place !== undefined) return place === '' ? `${index}` : `${index}.${place}`;
    }
    return undefined;
  };
}
