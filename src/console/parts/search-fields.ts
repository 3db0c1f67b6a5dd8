// Search filters in their three forms: as typed by the user, as kept in the page's address (so that a search can be
// bookmarked and shared), and as the API takes them.
import { parseTimestamp } from '../../model/timestamp.ts';
import { localForm, parseObject } from '../text.ts';

/**
 * `text` is taken as it is; `list` is separated by blanks or commas; `switch` is `true`, `false` or empty; `flag` is a
 * flag's name or `any`; `start` and `end` have the format of `datetime-local`, in UTC except in the input fields;
 * `object` is JSON.
 */
type FieldKind = 'text' | 'list' | 'switch' | 'flag' | 'start' | 'end' | 'object';

/** Empty values are not filtered by. */
export type Fields<Name extends string> = Readonly<Record<Name, string>>;

type FilterResult<Name extends string, Filters> =
  | { readonly filters: Filters }
  | { readonly problems: Readonly<Partial<Record<Name, string>>> };

export interface SearchFields<Name extends string, Filters> {
  readonly names: readonly Name[];
  readonly empty: Fields<Name>;
  /** Fields with the values that `textOf` returns. */
  of(textOf: (name: Name) => string): Fields<Name>;
  /** The same for user input, whose times are in local time. */
  typed(textOf: (name: Name) => string): Fields<Name>;
  fromQuery(query: URLSearchParams): Fields<Name>;
  /** Leaves out empty fields, which keeps addresses short. */
  toQuery(fields: Fields<Name>): Readonly<Record<string, string>>;
  filters(fields: Fields<Name>): FilterResult<Name, Filters>;
}

/** `kinds` lists every field of `Filters` under its API name, with a kind that fits. */
export function searchFields<Name extends string, Filters extends object>(
  kinds: Readonly<Record<Name, FieldKind>>,
): SearchFields<Name, Filters> {
  const names = Object.keys(kinds) as Name[]; // an object with these keys only
  const of = (textOf: (name: Name) => string): Fields<Name> =>
    Object.fromEntries(names.map((name) => [name, textOf(name)])) as Fields<Name>; // of every name
  return {
    names,
    of,
    typed: (textOf) =>
      of((name) => (kinds[name] === 'start' || kinds[name] === 'end' ? typedTime(textOf(name)) : textOf(name))),
    empty: of(() => ''),
    fromQuery: (query) => of((name) => query.get(name) ?? ''),
    toQuery: (fields) =>
      Object.fromEntries(names.filter((name) => fields[name] !== '').map((name) => [name, fields[name]])),
    filters(fields) {
      const problems: Partial<Record<Name, string>> = {};
      const values = new Map<Name, unknown>();
      for (const name of names) {
        if (fields[name].trim() === '') continue;
        const { value, problem } = read(kinds[name], fields[name].trim());
        if (problem === undefined) values.set(name, value);
        else problems[name] = problem;
      }
      const [start, end] = [timeOf('start'), timeOf('end')];
      if (start?.time !== undefined && end?.time !== undefined && start.time > end.time) {
        problems[end.name] = 'This is before the start.';
      }
      if (Object.keys(problems).length > 0) return { problems };
      return { filters: Object.fromEntries(values) as Filters }; // each kind gives what the API takes

      function timeOf(kind: FieldKind): { name: Name; time: number | undefined } | undefined {
        const name = names.find((each) => kinds[each] === kind);
        if (name === undefined) return undefined;
        const time = values.get(name);
        return { name, time: typeof time === 'number' ? time : undefined };
      }
    },
  };
}

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?$/;

/** Parses a time in UTC; undefined if it is not in the format of a time field. */
function timeIn(text: string): number | undefined {
  return timeForm.test(text) ? parseTimestamp(text) : undefined;
}

/**
 * Value for a time field, in the reader's time zone; empty for a malformed time, which browsers would complain about.
 */
export function shownTime(text: string): string {
  const time = timeIn(text);
  return time === undefined ? '' : localForm(new Date(time)).slice(0, text.length);
}

/** A time that the user typed into such a field, in milliseconds since 1970; undefined if it is malformed. */
export function typedMoment(text: string): number | undefined {
  // The only text that is read in the user's time zone; it is in the format of the browser's field.
  return timeIn(text) === undefined ? undefined : new Date(text).getTime();
}

/** The same time in UTC, as in the address; a malformed time stays as it was typed. */
function typedTime(text: string): string {
  const time = typedMoment(text);
  return time === undefined ? text : new Date(time).toISOString().slice(0, text.length);
}

interface Read {
  readonly value?: unknown;
  readonly problem?: string | undefined;
}

function read(kind: FieldKind, text: string): Read {
  switch (kind) {
    case 'text':
      return { value: text };
    case 'list':
      return { value: text.split(/[\s,]+/).filter((part) => part !== '') };
    case 'switch':
      return { value: text === 'true' };
    case 'flag':
      return { value: text.toLowerCase() === 'any' ? true : text };
    case 'object':
      return parseObject(text);
    case 'start':
    case 'end': {
      const time = parseTimestamp(text);
      if (time === undefined) return { problem: 'Enter a date and a time, such as 2026-01-31T08:00.' };
      // An end given as a minute includes that whole minute.
      return { value: kind === 'end' && /T\d\d:\d\d$/.test(text) ? time + 59_999 : time };
    }
  }
}
