// Authorization: whether a caller may do an action, on a ring where it concerns one; and the rules that nobody grants
// what they lack, touches what is stronger, or takes the last holder of everything away. What a refusal says never
// tells whether a ring exists to a caller that may not know.

import { KmsError } from '../errors.ts';
import {
  checkFlags,
  type Flags,
  flagName,
  flagsOfText,
  operatorTenant,
  outsideOperator,
  parseFlags,
} from '../model/flags.ts';
import type { JsonObject } from '../model/json.ts';
import { isRingName } from '../model/names.ts';
import type { Slices } from '../store/sql.ts';
import type { Holding } from '../store/tables/api-keys.ts';
import type { Caller, Context } from './context.ts';

/** Which ring a request is about, as far as that decides who may make it. */
export type RingSubject =
  /** Named by the caller, lower case, existing or not: the refusal repeats the name. */
  | { readonly kind: 'named'; readonly name: string }
  /** Behind an id, a hash or a header; no name when there is no such ring. The refusal is the same either way. */
  | { readonly kind: 'hidden'; readonly name: string | undefined }
  /**
   * The request says nothing that stands for a ring. Whoever holds the flag for some ring is let on, to its 400 or 404.
   */
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

/** An API key or a user. */
interface Target {
  readonly id: string;
  readonly flagsText: string;
}

/** Whether the caller is that API key, or that user logged in; an API key that a user owns is not the user. */
export function isSelf(caller: Caller, target: { readonly id: string }): boolean {
  return caller.id === target.id;
}

/** Throws `forbidden` when the caller would give a flag that it lacks. */
export function mayGrant(caller: Caller, flags: Flags): void {
  const missing = caller.flags.lacks(flags);
  if (missing === undefined) return;
  throw new KmsError('forbidden', `the permission flag ${missing} is missing, so it cannot be granted`);
}

/** The flags as text to store. Throws `invalid` for what is no flags, `forbidden` for a flag that the caller lacks. */
export function grantableFlags(caller: Caller, flags: JsonObject): string {
  mayGrant(caller, parseFlags(checkFlags(flags)));
  return JSON.stringify(flags);
}

/** Throws `forbidden` when the target, another than the caller, has a true flag that the caller lacks. */
export function mayTouch(caller: Caller, target: Target): void {
  if (!isSelf(caller, target)) mayTouchFlags(caller, target.flagsText);
}

/** The same for many, none of them the caller, by the texts of their flags. Who holds `*` spares the look at them. */
export function* mayTouchAll(
  caller: Caller,
  lookAtAll: (look: (flagsText: string) => void) => Slices<void>,
): Slices<void> {
  if (caller.flags.covers('*')) return;
  yield* lookAtAll((text) => mayTouchFlags(caller, text));
}

function mayTouchFlags(caller: Caller, flagsText: string): void {
  const missing = caller.flags.lacks(flagsOfText(flagsText));
  if (missing === undefined) return;
  throw new KmsError('forbidden', `the permission flag ${missing} is missing, which the target has`);
}

/**
 * Answers the check to be made after a change: somebody must still hold `*`, and for good if somebody did before. It
 * throws `conflict`, which takes the change back. The administrator at the machine may do without.
 */
export function holderNeeded({ tx, caller, world }: Context): () => void {
  const before = caller.kind === 'local' ? 'not' : holding(tx, world.now());
  return () => {
    if (before !== 'not') needHolding(before, holding(tx, world.now()));
  };
}

function needHolding(before: Holding, after: Holding): void {
  if (after === 'for good' || after === before) return;
  throw new KmsError(
    'conflict',
    'no active API key without an end or a limit to addresses and no user who can log in would hold * any more: give it to another first, or use kms on the appliance itself',
  );
}

/**
 * How `*` is held: for good by a user who can log in, or by an API key that lets in from anywhere and never expires;
 * otherwise by keys that all expire or are bound to addresses, from which perhaps nobody can call, or not. Each look-up
 * goes by an index of the holders alone.
 */
function holding({ apiKeys, users }: Context['tx'], now: number): Holding {
  return users.hasHolder() ? 'for good' : apiKeys.holding(now);
}

/** What the record of an act on the whole appliance says, in every tenant's log. */
export const byOperator = { by: 'operator' } as const;

export function isOperatorTenant(tenant: { readonly name: string }): boolean {
  return tenant.name === operatorTenant;
}

/** Why a flag counts for nothing in a tenant; undefined where it counts. */
export function refusalOutside(tenant: { readonly name: string }, flag: string): KmsError | undefined {
  if (isOperatorTenant(tenant)) return undefined;
  return new KmsError('forbidden', `the permission flag ${flag} ${outsideOperator}`);
}
