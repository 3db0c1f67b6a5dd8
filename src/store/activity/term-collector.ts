// Collects what a segment's searches need of its records: postings of all terms, and the terms of each kind for the summary.
import type { ActivityRecord } from '../port.ts';
import { actionTerm, keyTerm, maxPropsTerms, propsTerms, ringTerm, validTerm, wideTerm } from './terms.ts';

export class TermCollector {
  /** Positions by term, ascending. */
  readonly postings = new Map<number, number[]>();
  readonly keys = new Set<number>();
  readonly actions = new Set<number>();
  readonly rings = new Set<number>();
  readonly props = new Set<number>();

  /** Takes in the record at a position; positions ascend from call to call. */
  add(record: ActivityRecord, position: number): void {
    this.#post(this.keys, keyTerm(record.keyid), position);
    this.#post(this.actions, actionTerm(record.action), position);
    this.#post(this.rings, ringTerm(record.ringname), position);
    this.#post(undefined, validTerm(record.validAction), position);
    const terms = propsTerms(record.props, maxPropsTerms + 1);
    for (const term of terms.length > maxPropsTerms ? [wideTerm] : terms) this.#post(this.props, term, position);
  }

  #post(kind: Set<number> | undefined, term: number, position: number): void {
    kind?.add(term);
    const positions = this.postings.get(term);
    if (!positions) this.postings.set(term, [position]);
    else if (positions.at(-1) !== position) positions.push(position);
  }
}
