// Answers checked before anything is done with them: what answers at an address may be anything, and what it says of
// names, ids, keys and times ends up in files, paths and other programs. The shapes come from the declarations of the
// endpoints, so that a program with the client in it carries no other validator.
import type { ClientEndpointId } from '../api/paths.ts';
import { isJsonObject } from '../model/json.ts';
import { answerShapes, things } from './answer-shapes.ts';
import { unexpected } from './failure.ts';

const ulid = '[0-9a-hjkmnp-tv-z]{26}';

/** Texts by the names that the shapes give their kinds; that of an id is its prefix, such as `ring_`. */
export const textKinds: Readonly<Record<string, RegExp>> = {
  base32: /^[A-Z2-7]+$/,
  base64: /^[A-Za-z0-9+/]+={0,2}$/,
  base64url: /^[A-Za-z0-9_-]+$/,
  caller: new RegExp(`^(?:(?:apik|user)_${ulid}|[a-z-]+)$`),
  day: /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/,
  /** One line. */
  line: /^[^\p{Cc}\p{Zl}\p{Zp}\p{Cs}]*$/u,
  ring: /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
  /** A ring's name, or nothing. */
  ringOrNone: /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$/,
  /** RFC 3339, UTC. */
  time: /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z$/,
  uri: /^[a-z][a-z0-9+.-]*:[!-~]+$/,
  /** A secret, a ciphertext, a signature. */
  token: /^[!-~]+$/,
  /** One of a few, of which a later appliance may know more. */
  word: /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
};

const valueKinds: Readonly<Record<string, (value: unknown) => boolean>> = {
  boolean: (value) => typeof value === 'boolean',
  count: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  integer: Number.isSafeInteger,
  object: isJsonObject,
  text: (value) => typeof value === 'string' && value.isWellFormed(),
};

/** The place of what is wrong in a value, empty for the value itself; undefined where nothing is. */
type Check = (value: unknown) => string | undefined;

/** By kind, made when one is first needed. */
const checks = new Map<string, Check>();

/**
 * The answer of that endpoint, as it came. Fields that its shape does not name are passed over, since a later appliance
 * may answer more. Throws `unavailable` for what no appliance answers, and repeats nothing of it.
 */
export function checkedAnswer(id: ClientEndpointId, answer: object): object {
  const place = checkOf(answerShapes[id])(answer);
  if (place === undefined) return answer;
  throw unexpected(place === '' ? 'it has another form' : `its ${place} has another form`);
}

/** `kind` is that of a text or a value, a thing, or fields. */
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

/** `shape` has fields such as `id:ring_`, apart by blanks; `?`, `[]` and `|null` say what else may be there. */
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
      // What every object inherits is no field.
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
