// Declaration of a command in the grammar: its name, its help text, and its arguments and options with the kind of
// each. Help, manual page, completion and the types that commands read are all derived from it.
import { type ExactJson, numberProblemIn, parseExactly } from '../../api/exact-json.ts';
import { KmsError } from '../../errors.ts';
import { canonicalBlock } from '../../model/addresses.ts';
import { ageText, parseAge } from '../../model/ages.ts';
import { isJsonObject } from '../../model/json.ts';
import { isLabel, longestLabel } from '../../model/label.ts';
import { nearest } from '../../model/nearest.ts';
import { type Io, pathFrom } from '../io.ts';
import { isWritable, longestAge, readPastTime, readTime } from './time-text.ts';

/** Kinds of names that an appliance or this machine knows. */
const nameKinds = [
  'account',
  'action',
  'api-key',
  'custodian',
  'flag',
  'profile',
  'ring',
  'secret',
  'tang-pair',
  'tenant',
  'managed-key',
  'user',
] as const;
export type NameKind = (typeof nameKinds)[number];

export function isNameKind(completes: Completes): completes is NameKind {
  return nameKinds.some((kind) => kind === completes);
}

/** Completions of a value: a few words, a path, a kind of name, or undefined for anything. */
export type Completes = readonly string[] | 'file' | 'directory' | NameKind | undefined;

/** Context of a value, for error messages. */
interface Place {
  readonly name: string;
  /** The directory in which relative paths begin. */
  readonly io: Pick<Io, 'cwd'>;
  readonly seeHelp: string;
}

/** Kind of an argument or option; commands read a T. */
export interface Kind<T> {
  /** Placeholder of an option's value; a switch has none. */
  readonly placeholder?: string;
  readonly about: string;
  /** Short form, such as `-o`. */
  readonly short?: string;
  readonly isRepeated?: true;
  readonly isRequired?: true;
  /** Its value may be omitted. */
  readonly isOptional?: true;
  readonly completes?: Completes;
  /** Whether it is a moment, which may be given as an age from now. */
  readonly isMoment?: true;
  /** Heading in the help. */
  readonly group?: string;
  /** The default, as it would be typed. */
  readonly usual?: string;
  /**
   * Whether a running server takes a new value. `replaced`: a value can replace another, but setting the first one or
   * removing it needs a restart.
   */
  readonly isLive?: boolean | 'replaced';
  /**
   * `given` is the raw value from the command line, environment or file: text, texts, whether a switch is on, or
   * undefined.
   */
  read(given: unknown, place: Place): T;
}

/** Kinds by name: `--ring`, `<NAME>`, `[FILE]`, `[WORD...]`. */
export type Kinds<V> = { readonly [N in keyof V]: Kind<V[N]> };

export interface Declared<V> {
  readonly name: string;
  readonly about: string;
  /** Example lines as typed. */
  readonly examples: readonly string[];
  /** Exit code of wrong usage, where the usual one says something else. */
  readonly usageCode?: number;
  readonly kinds: Kinds<V>;
}

/** Commands by the names of their functions. */
export type Commands<S> = { readonly [N in keyof S]: Declared<S[N]> };

/** Name of an option in a configuration file and of its value in code: `tlsCert` for `--tls-cert`. */
export function settingName(option: string): string {
  return option.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Values that a command reads. */
export type Values<D> = D extends Declared<infer V> ? V : D extends Kinds<infer V> ? V : never;

export function command(name: string, about: string, examples: readonly string[]): Declared<object>;
export function command<V>(name: string, about: string, examples: readonly string[], kinds: Kinds<V>): Declared<V>;
export function command(name: string, about: string, examples: readonly string[], kinds: Kinds<object> = {}) {
  return { name, about, examples, kinds };
}

/** The same options under a heading of the help. */
export function group<V>(heading: string, kinds: Kinds<V>): Kinds<V> {
  return mapped(kinds, (kind) => ({ ...kind, group: heading }));
}

/** The same options, marked as ones that a running server takes. */
export function live<V>(kinds: Kinds<V>, isLive: true | 'replaced' = true): Kinds<V> {
  return mapped(kinds, (kind) => ({ ...kind, isLive }));
}

function mapped<V>(kinds: Kinds<V>, change: <T>(kind: Kind<T>) => Kind<T>): Kinds<V> {
  const changed: { [N in keyof V]?: Kind<V[N]> } = {};
  for (const name in kinds) changed[name] = change(kinds[name]);
  // Every name has its kind by now.
  return changed as Kinds<V>;
}

/** A command for programs, not people: it is not in the help. */
export function hidden<V>(name: string, kinds: Kinds<V>): Declared<V> {
  return { name, about: '', examples: [], kinds };
}

/** Joins words like `a, b or c`. */
export function alternatives(words: readonly string[]): string {
  return words.length === 1 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

/** Joins words like `a, b and c`. */
export function enumeration(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** A required argument. */
export function argument(completes?: Completes): Kind<string> {
  return {
    about: '',
    completes,
    read(given, place) {
      if (typeof given === 'string') return completes === 'file' ? notNothing(given, place) : given;
      throw new KmsError('internal', `the grammar has no argument ${place.name}`);
    },
  };
}

export function optionalArgument(completes?: Completes): Kind<string | undefined> {
  return {
    about: '',
    completes,
    read(given, place) {
      const text = textOf(given);
      return completes === 'file' && text !== undefined ? notNothing(text, place) : text;
    },
  };
}

/** All remaining arguments. */
export function rest(): Kind<readonly string[]> {
  return { about: '', read: textsOf };
}

/** A switch; in the environment it has a value. */
export function toggle(about: string): Kind<boolean> {
  return {
    about,
    read(given, place) {
      if (typeof given !== 'string') return given === true;
      const value = truth(given);
      if (value !== undefined) return value;
      throw wrong(place, `expected true or false in the environment, got "${given}"`);
    },
  };
}

function truth(given: string): boolean | undefined {
  if (/^(?:1|true|yes|on)$/i.test(given)) return true;
  return /^(?:0|false|no|off)$/i.test(given) ? false : undefined;
}

/** An option that may be repeated. */
export function list(placeholder: string, about: string, completes?: Completes): Kind<readonly string[]> {
  const isPath = completes === 'file' || completes === 'directory';
  return {
    placeholder,
    about,
    completes,
    isRepeated: true,
    read: (given, place) => (isPath ? textsOf(given).map((each) => notNothing(each, place)) : textsOf(given)),
  };
}

/** Some of a few words, each by an option of its own. */
export function someOf<const W extends string>(
  placeholder: string,
  about: string,
  words: readonly W[],
): Kind<readonly W[]> {
  const kind = list(placeholder, about, words);
  return { ...kind, read: (given, place) => textsOf(given).map((each) => wordOf(each, words, place)) };
}

function wordOf<W extends string>(given: string, words: readonly W[], place: Place): W {
  const word = words.find((each) => each === given);
  if (word !== undefined) return word;
  throw wrong(place, notAmong(given, words));
}

/** The problem with a word that is none of these, with the one that was probably meant. */
export function notAmong(given: string, words: readonly string[]): string {
  const near = nearest(given, words);
  const question = near === undefined ? '' : `; did you mean ${near}?`;
  return `expected ${alternatives(words)}, got "${given}"${question}`;
}

/**
 * Texts by name, each by an option of its own; undefined is nothing given. A lone `none` is no text at all, unless
 * there have to be `some`.
 */
export function assignments(
  placeholder: string,
  about: string,
  some?: 'some',
): Kind<Readonly<Record<string, string>> | undefined> {
  return {
    ...list(placeholder, about),
    read(given, place) {
      const texts = textsOf(given);
      if (texts.length === 0) return undefined;
      if (texts.join() === 'none' && !some) return {};
      const values = new Map<string, string>();
      for (const each of texts) {
        const at = each.indexOf('=');
        if (at <= 0) throw wrong(place, `expected ${placeholder}, got "${each}"`);
        const name = each.slice(0, at);
        if (values.has(name)) throw wrong(place, `expected each name once, got "${name}" twice`);
        values.set(name, each.slice(at + 1));
      }
      return Object.fromEntries(values);
    },
  };
}

export const text = option((given) => given);

/** An IP address or CIDR block. */
export const block = option(readBlock);

/** Repeated IP addresses or CIDR blocks. */
export function blocks(placeholder: string, about: string): Kind<readonly string[]> {
  const kind = list(placeholder, about);
  return { ...kind, read: (given, place) => kind.read(given, place).map((each) => readBlock(each, place)) };
}

function readBlock(given: string, place: Place): string {
  if (canonicalBlock(given) !== undefined) return given;
  throw wrong(place, `expected an IPv4 or IPv6 address, or a block of them such as 192.0.2.0/24, got "${given}"`);
}

/** A file name as typed, if something else is allowed too, such as `-` for stdin or stdout. */
export const typedPath = option(notNothing, 'file');

/** A file name, relative to the current directory. */
export const path = option(pathOf, 'file');
export const directory = option(pathOf, 'directory');

/** The id of an appliance, as `kms status` and a recovery kit show it. */
export const applianceId = option((given, place) => {
  if (/^[0-9a-f]{32}$/.test(given)) return given;
  throw wrong(place, `expected the id of an appliance, 32 hex digits, got "${given}"`);
});

/** The label of an appliance. */
export const label = option((given, place) => {
  if (isLabel(given)) return given;
  throw wrong(place, `expected 1 to ${longestLabel} printable characters, got "${given}"`);
});

export const integer = option((given, place) => {
  if (/^[0-9]{1,15}$/.test(given)) return Number(given);
  throw wrong(place, `expected a whole number, got "${given}"`);
});

/** Whole numbers from 1 on, each by an option of its own. */
export function integers(placeholder: string, about: string): Kind<readonly number[]> {
  const kind = list(placeholder, about);
  return {
    ...kind,
    read: (given, place) =>
      kind.read(given, place).map((each) => {
        if (/^[1-9][0-9]{0,14}$/.test(each)) return Number(each);
        throw wrong(place, `expected a whole number of at least 1, got "${each}"`);
      }),
  };
}

/** An integer with a minimum. */
export function atLeast(least: number, kind: Kind<number | undefined>): Kind<number | undefined> {
  return {
    ...kind,
    read(given, place) {
      const value = kind.read(given, place);
      if (value === undefined || value >= least) return value;
      throw wrong(place, `expected at least ${least}, got ${value}`);
    },
  };
}

/** A limit; null for `none`. */
export const limit = option((given, place) => {
  if (given === 'none') return null;
  if (/^[0-9]{1,15}$/.test(given)) return Number(given);
  throw wrong(place, `expected a whole number or none, got "${given}"`);
});

/** A switch that may also be typed with `true` or `false` behind it. */
export function choice(about: string): Kind<boolean | undefined> {
  return {
    ...boolean('true|false', about),
    isOptional: true,
    read(given, place) {
      if (typeof given !== 'string') return given === true ? true : undefined;
      const value = truth(given);
      if (value !== undefined) return value;
      throw wrong(place, notAmong(given, ['true', 'false']));
    },
  };
}

export const boolean = option(
  (given, place) => {
    if (given === 'true' || given === 'false') return given === 'true';
    throw wrong(place, notAmong(given, ['true', 'false']));
  },
  ['true', 'false'],
);

/** A JSON object on the command line. */
export const object = option((given, place) => {
  const parsed = parsedExactly(given);
  if (!parsed || !isJsonObject(parsed.value)) throw wrong(place, `expected a JSON object such as '{"team": "blue"}'`);
  const problem = numberProblemIn(parsed);
  if (problem !== undefined) throw wrong(place, problem);
  return parsed.value;
});

/** A time in the past, in epoch milliseconds. */
export const time = option((given, { name }) => readPastTime(given, name));

/** A duration in milliseconds, written as `30s`, `15m`, `12h` or `7d`. */
export const duration = option(readDuration);

function readDuration(given: string, place: Place): number {
  const milliseconds = parseAge(given);
  if (milliseconds !== undefined && milliseconds <= longestAge) return milliseconds;
  throw wrong(place, `expected a duration such as 30s, 15m, 12h or 7d, got "${given}"`);
}

/** Timers count milliseconds in 31 bits, slightly more than this; a longer one would fire at once. */
const longestWait = 24 * 86_400_000;

/** A duration for a timer. */
export const wait = option((given, place) => {
  const milliseconds = readDuration(given, place);
  if (milliseconds <= longestWait) return milliseconds;
  throw wrong(place, `expected at most ${ageText(longestWait)}, got "${given}"`);
});

/** An end: a time, an age from now, or null for `never`. */
export function moment(placeholder: string, about: string): Kind<number | null | undefined> {
  return { ...readMoment(placeholder, about), isMoment: true };
}

const readMoment = option((given, place) => {
  if (given === 'never') return null;
  const age = parseAge(given);
  if (age === undefined) return readTime(given, place.name, ', an age such as 90d, or never');
  if (isWritable(Date.now() + age)) return Date.now() + age;
  throw wrong(place, `expected a time before the year 10000 or never, got "${given}"`);
});

/** Minimum age of a key before rotation. */
const leastAge = 3_600_000;

/** Age of a key at which its ring rotates, in milliseconds; null for `never`. */
export const age = option((given, place) => {
  if (given === 'never') return null;
  const milliseconds = parseAge(given);
  if (milliseconds !== undefined && milliseconds < leastAge) {
    throw wrong(place, `expected at least ${ageText(leastAge)}, got "${given}"`);
  }
  if (milliseconds !== undefined) return milliseconds;
  throw wrong(place, `expected an age such as 12h or 90d, or never, got "${given}"`);
});

/** One of a few words. */
export function oneOf<const W extends string>(placeholder: string, about: string, words: readonly W[]) {
  const known = option((given, place) => wordOf(given, words, place), words);
  return known(placeholder, about);
}

/** A required option. */
export function required<T>(kind: Kind<T | undefined>): Kind<T> {
  return {
    ...kind,
    isRequired: true,
    read(given, place) {
      const value = given === undefined ? undefined : kind.read(given, place);
      if (value !== undefined) return value;
      throw new KmsError('usage', `${place.name} is missing`, { hint: place.seeHelp });
    },
  };
}

/** An option with a default, written as it would be typed. */
export function usually<T>(usual: string, kind: Kind<T | undefined>): Kind<T> {
  return { ...kind, usual, read: (given, place) => required(kind).read(given ?? usual, place) };
}

/** An option whose value may be omitted: it is then `true`. */
export function optional<T>(kind: Kind<T>): Kind<T | true> {
  return { ...kind, isOptional: true, read: (given, place) => (given === true ? true : kind.read(given, place)) };
}

/** An option with a value, parsed by `read`. */
function option<T>(read: (given: string, place: Place) => T, usual?: Completes) {
  return (placeholder: string, about: string, completes: Completes = usual): Kind<T | undefined> => ({
    placeholder,
    about,
    completes,
    read: (given, place) => (typeof given === 'string' ? read(given, place) : undefined),
  });
}

function pathOf(given: string, place: Place): string {
  return pathFrom(place.io, notNothing(given, place));
}

/** Refuses an empty path, as from an unset shell variable: it would mean the current directory. */
function notNothing(given: string, place: Place): string {
  if (given !== '') return given;
  throw wrong({ ...place, name: place.name.replace(/[[\]<>]/g, '') }, 'expected a path, got nothing');
}

function parsedExactly(given: string): ExactJson | undefined {
  try {
    return parseExactly(given);
  } catch {
    return undefined;
  }
}

function textOf(given: unknown): string | undefined {
  return typeof given === 'string' ? given : undefined;
}

function textsOf(given: unknown): readonly string[] {
  return Array.isArray(given) ? given : [];
}

function wrong({ name, seeHelp }: Place, problem: string): KmsError {
  return new KmsError('usage', `${name}: ${problem}`, { hint: seeHelp });
}
