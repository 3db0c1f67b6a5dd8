// The filters of an activity search as people fill them in, in the address of the page, and as the API takes them.
import { parseObject } from '../json-text.ts';
import type { ActivityFilters } from './newest.ts';

/** As typed: every field a text, empty where nothing is asked. Times are in UTC, in the form of `datetime-local`. */
export interface FilterFields {
  readonly accountUid: string;
  readonly accountId: string;
  readonly action: string;
  readonly ring: string;
  readonly keyid: string;
  readonly valid: string;
  readonly start: string;
  readonly end: string;
  readonly props: string;
}

export const emptyFields: FilterFields = {
  accountUid: '',
  accountId: '',
  action: '',
  ring: '',
  keyid: '',
  valid: '',
  start: '',
  end: '',
  props: '',
};

const names = Object.keys(emptyFields) as (keyof FilterFields)[]; // the keys of an object that nothing adds to

export function fieldsOfQuery(query: URLSearchParams): FilterFields {
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as unknown as FilterFields; // of every name
}

/** Without what is empty, so that a bookmark says no more than it must. */
export function queryOfFields(fields: FilterFields): URLSearchParams {
  return new URLSearchParams(names.filter((name) => fields[name] !== '').map((name) => [name, fields[name]]));
}

export type FilterResult =
  | { readonly filters: ActivityFilters }
  | { readonly problems: Readonly<Partial<Record<keyof FilterFields, string>>> };

export function filtersOf(fields: FilterFields): FilterResult {
  const problems: Partial<Record<keyof FilterFields, string>> = {};
  const filters: { -readonly [Name in keyof ActivityFilters]: ActivityFilters[Name] } = {};
  for (const name of ['accountUid', 'accountId', 'action', 'ring', 'keyid'] as const) {
    const text = fields[name].trim();
    if (text !== '') filters[name] = text;
  }
  if (fields.valid !== '') filters.valid = fields.valid === 'true';
  for (const name of ['start', 'end'] as const) {
    if (fields[name] === '') continue;
    const time = timeOf(fields[name]);
    if (time === undefined) problems[name] = 'Give a date and a time, such as 2026-01-31T08:00.';
    else filters[name] = name === 'end' && isWholeMinute(fields[name]) ? time + 59_999 : time;
  }
  if (filters.start !== undefined && filters.end !== undefined && filters.start > filters.end) {
    problems.end = 'This is before the start.';
  }
  if (fields.props.trim() !== '') {
    const { value, problem } = parseObject(fields.props);
    if (problem === undefined) filters.props = value;
    else problems.props = problem;
  }
  return Object.keys(problems).length > 0 ? { problems } : { filters };
}

/** In UTC, so that a bookmark means the same to everybody. */
function timeOf(text: string): number | undefined {
  const time = new Date(`${text}Z`).getTime();
  return Number.isFinite(time) ? time : undefined;
}

/** A minute that something ends with is meant whole. */
function isWholeMinute(text: string): boolean {
  return /T\d\d:\d\d$/.test(text);
}
