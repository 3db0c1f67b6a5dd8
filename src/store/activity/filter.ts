// A search's filter made ready: the test of one record, and the terms by which segments find candidates.
import { containsJson } from '../contains.ts';
import type { ActivityFilter, ActivityRecord } from '../port.ts';
import { actionTerm, keyTerm, propsNeedles, propsTerms, ringTerm, validTerm, wideTerm } from './terms.ts';

/** Which part of a segment's summary knows about a term. */
export type TermKind = 'keys' | 'actions' | 'rings' | 'valid' | 'props';

/** A record must have at least one of these terms. */
export interface TermGroup {
  readonly kind: TermKind;
  readonly anyOf: readonly number[];
}

export interface PreparedFilter {
  readonly filter: ActivityFilter;
  readonly keyids: ReadonlySet<string> | undefined;
  /** Every group must hold. */
  readonly groups: readonly TermGroup[];
  /** Texts that a matching line has in it. */
  readonly needles: readonly string[];
  /** Inclusive bounds of `createdAt`. */
  readonly start: number;
  readonly end: number;
  matches(record: ActivityRecord): boolean;
}

/** So many paths of a filter's props lead to candidates; all of them count for the answer. */
const propsUsed = 16;

/** Throws `invalid` for props that JSON cannot say. */
export function prepareFilter(filter: ActivityFilter): PreparedFilter {
  const keyids = filter.keyids && new Set(filter.keyids);
  const { action, ringname, valid, props } = filter;
  const start = filter.start ?? Number.NEGATIVE_INFINITY;
  const end = filter.end ?? Number.POSITIVE_INFINITY;
  const groups: TermGroup[] = [];
  if (keyids) groups.push({ kind: 'keys', anyOf: Array.from(keyids, keyTerm) });
  if (action !== undefined) groups.push({ kind: 'actions', anyOf: [actionTerm(action)] });
  if (ringname !== undefined) groups.push({ kind: 'rings', anyOf: [ringTerm(ringname)] });
  if (valid !== undefined) groups.push({ kind: 'valid', anyOf: [validTerm(valid)] });
  for (const term of props ? propsTerms(props, propsUsed) : []) groups.push({ kind: 'props', anyOf: [term, wideTerm] });
  return {
    filter,
    keyids,
    groups,
    needles: props ? propsNeedles(props, propsUsed) : [],
    start,
    end,
    matches: (record) =>
      (keyids === undefined || keyids.has(record.keyid)) &&
      (action === undefined || action === record.action) &&
      (ringname === undefined || ringname === record.ringname) &&
      (valid === undefined || valid === record.validAction) &&
      start <= record.createdAt &&
      record.createdAt <= end &&
      (props === undefined || containsJson(record.props, props)),
  };
}
