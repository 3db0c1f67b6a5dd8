// The one decision point: whether a caller may do an action, on a ring where the action concerns one. What a refusal says
// never tells whether a ring exists to a caller that may not know.
import { KmsError } from '../errors.ts';
import type { Caller } from './context.ts';
import { flagName } from './flags.ts';
import { isRingName } from './ring-name.ts';

/** Which ring a request is about, as far as that decides who may make it. */
export type RingSubject =
  /** Named by the caller, lower case, existing or not: the refusal repeats the name. */
  | { readonly kind: 'named'; readonly name: string }
  /** Behind an id, a hash or a header; no name when there is no such ring. The refusal is the same either way. */
  | { readonly kind: 'hidden'; readonly name: string | undefined }
  /** The request says nothing that stands for a ring. Whoever holds the flag for some ring is let on, to its 400 or 404. */
  | { readonly kind: 'none' };

/** Throws `forbidden`, naming the flag that is missing. `action` is the flag's name without the ring. */
export function authorize(caller: Caller, action: string, subject?: RingSubject): void {
  if (!isAllowed(caller, action, subject)) throw missingFlag(flagName(action, shownName(subject)));
}

export function missingFlag(flag: string): KmsError {
  return new KmsError('forbidden', `the permission flag ${flag} is missing`);
}

function isAllowed({ flags }: Caller, action: string, subject: RingSubject | undefined): boolean {
  if (subject === undefined) return flags.allows(action);
  if (subject.kind === 'none') return flags.allowsSome(action);
  return flags.allows(action, subject.name ?? null);
}

function shownName(subject: RingSubject | undefined): string | undefined {
  return subject?.kind === 'named' && isRingName(subject.name) ? subject.name : undefined;
}
