// Authorization: whether a caller may do an action, on a ring if it concerns one; and the rules that no caller grants
// flags it lacks, changes a stronger key or user, or removes the last holder of `*`. A refusal never reveals whether a
// ring exists to a caller that may not know.

import { KmsError } from '../errors.ts';
import type { ResourceRef } from '../model/activity-details.ts';
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

/** The ring that a request is about, as far as authorization needs it. */
export type RingSubject =
  /** Named by the caller, lower case, existing or not: the refusal repeats the name. */
  | {
      readonly kind: 'named';
      readonly name: string;
      /** The id or alias that it was asked for by; the refusal repeats that. */
      readonly asked?: string;
    }
  /** Given by an id, a hash or a header; no name if there is no such ring. The refusal is the same either way. */
  | { readonly kind: 'hidden'; readonly name: string | undefined }
  /** The request names no ring. A caller with the flag for some ring is let on, to its 400 or 404. */
  | { readonly kind: 'none' };

/** Throws `forbidden`, naming the flag that is missing. `action` is the flag's name without the ring. */
export function authorize(caller: Caller, action: string, subject?: RingSubject): void {
  if (!isAllowed(caller, action, subject)) throw missingFlag(flagName(action, shownName(subject)));
}

/**
 * `authorize` for what an operation does to a further thing: rules of approvals hold for that, too.
 *
 * @param lost names that the thing loses by it.
 */
export function authorizeFurther(
  ctx: Pick<Context, 'caller' | 'touches'>,
  action: string,
  subject: RingSubject & { readonly kind: 'named' | 'hidden' },
  object: ResourceRef | undefined,
  lost?: readonly string[],
): void {
  authorize(ctx.caller, action, subject);
  ctx.touches({ actions: [action], ring: subject.name, object, lost });
}

export function missingFlag(flag: string): KmsError {
  return new KmsError('forbidden', `the permission flag ${flag} is missing`, { denies: true });
}

/** Whether the flag of the action, given without the ring, is granted. */
export function isAllowed({ flags }: Caller, action: string, subject: RingSubject | undefined): boolean {
  if (subject === undefined) return flags.allows(action);
  if (subject.kind === 'none') return flags.allowsSome(action);
  return flags.allows(action, subject.name ?? null);
}

function shownName(subject: RingSubject | undefined): string | undefined {
  if (subject?.kind !== 'named') return undefined;
  const { name, asked = name } = subject;
  return isRingName(asked) ? asked : undefined;
}

/** An API key or a user. */
interface Target {
  readonly id: string;
  readonly flagsText: string;
}

/** Whether the caller is that API key, or that user logged in. An API key owned by a user is not the user. */
export function isSelf(caller: Caller, target: { readonly id: string }): boolean {
  return caller.id === target.id;
}

/** Throws `forbidden` if the caller would grant a flag that it lacks. */
export function mayGrant(caller: Caller, flags: Flags): void {
  const missing = caller.flags.lacks(flags);
  if (missing === undefined) return;
  throw new KmsError('forbidden', `the permission flag ${missing} is missing, so it cannot be granted`);
}

/** The flags as text to store. Throws `invalid` for malformed flags, `forbidden` for a flag that the caller lacks. */
export function grantableFlags(caller: Caller, flags: JsonObject): string {
  mayGrant(caller, parseFlags(checkFlags(flags)));
  return JSON.stringify(flags);
}

/** Throws `forbidden` if the target is not the caller and has a true flag that the caller lacks. */
export function mayTouch(caller: Caller, target: Target): void {
  if (!isSelf(caller, target)) mayTouchFlags(caller, target.flagsText);
}

/** `mayTouch` for many targets, none of them the caller, by the texts of their flags. Skipped for a holder of `*`. */
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
  throw new KmsError('forbidden', `the target has the permission flag ${missing}, which the caller lacks`);
}

/**
 * Returns a check to run after a change: `*` must still be held, and held for good if it was before. It throws
 * `conflict`, which rolls the change back. The administrator at the machine may remove the last holder.
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
 * How `*` is held. For good: by a user who can log in, or by an API key without expiry or address restriction.
 * Otherwise: only by keys that expire or are bound to addresses, which perhaps cannot be used. Or not at all. Each
 * look-up uses an index of the holders alone.
 */
function holding({ apiKeys, users }: Context['tx'], now: number): Holding {
  return users.hasHolder() ? 'for good' : apiKeys.holding(now);
}

/** Marks, in every tenant's log, the record of an act on the whole appliance. */
export const byOperator = { by: 'operator' } as const;

export function isOperatorTenant(tenant: { readonly name: string }): boolean {
  return tenant.name === operatorTenant;
}

/** Why a flag has no effect in a tenant; undefined if it has. */
export function refusalOutside(tenant: { readonly name: string }, flag: string): KmsError | undefined {
  if (isOperatorTenant(tenant)) return undefined;
  return new KmsError('forbidden', `the permission flag ${flag} ${outsideOperator}`);
}
