// Search fields are the filters of a search in their three forms: as people type them, in the address of the page, so
// that a search can be kept and passed on, and as the API takes them.
import { parseTimestamp } from '../../model/timestamp.ts';
import { localForm, parseObject } from '../text.ts';

/**
 * `text` as it is; `list` of texts apart by blanks or commas; `switch` is `true`, `false` or nothing; `flag` is the
 * name of one, or `any`; `start` and `end` are times in the form of `datetime-local`, in UTC but where they are typed
 * and shown; `object` is JSON.
 */
type FieldKind = 'text' | 'list' | 'switch' | 'flag' | 'start' | 'end' | 'object';

/** Empty where nothing is asked. */
export type Fields<Name extends string> = Readonly<Record<Name, string>>;

type FilterResult<Name extends string, Filters> =
  | { readonly filters: Filters }
  | { readonly problems: Readonly<Partial<Record<Name, string>>> };

export interface SearchFields<Name extends string, Filters> {
  readonly names: readonly Name[];
  readonly empty: Fields<Name>;
  /** What `textOf` gives for each name. */
  of(textOf: (name: Name) => string): Fields<Name>;
  /** The same of what somebody typed, who gives times of their own zone. */
  typed(textOf: (name: Name) => string): Fields<Name>;
  fromQuery(query: URLSearchParams): Fields<Name>;
  /** Without what is empty, so that an address says no more than it must. */
  toQuery(fields: Fields<Name>): Readonly<Record<string, string>>;
  filters(fields: Fields<Name>): FilterResult<Name, Filters>;
}

/** `kinds` has every field of `Filters` under the name that the API gives it, with a kind that fits. */
export function searchFields<Name extends string, Filters extends object>(
  kinds: Readonly<Record<Name, FieldKind>>,
): SearchFields<Name, Filters> {
  const names = Object.keys(kinds) as Name[]; // the keys of an object that nothing adds to
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

/** In UTC; undefined for what no field of times gives. */
function timeIn(text: string): number | undefined {
  return timeForm.test(text) ? parseTimestamp(text) : undefined;
}

/** For a field of times, in the time zone of whoever reads it: browsers complain of what is none. */
export function shownTime(text: string): string {
  const time = timeIn(text);
  return time === undefined ? '' : localForm(new Date(time)).slice(0, text.length);
}

/** The same time in UTC, as the address has it; what is none stays as it was typed. */
function typedTime(text: string): string {
  // The one text that is read in the zone of who typed it; it is a time as the browser's field gives one.
  return timeIn(text) === undefined ? text : new Date(text).toISOString().slice(0, text.length);
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
      if (time === undefined) return { problem: 'Give a date and a time, such as 2026-01-31T08:00.' };
      // A minute that something ends with is meant whole.
      return { value: kind === 'end' && /T\d\d:\d\d$/.test(text) ? time + 59_999 : time };
    }
  }
}
