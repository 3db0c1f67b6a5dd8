// Nobody grants what they lack, and nobody touches what is stronger than they are; oneself aside.

import { KmsError } from '../errors.ts';
import type { Caller } from './context.ts';
import type { Flags } from './flags.ts';

/** Throws `forbidden` when the caller would give a flag that it lacks. */
export function mayGrant(caller: Caller, flags: Flags): void {
  const missing = caller.flags.lacks(flags);
  if (missing === undefined) return;
  throw new KmsError('forbidden', `the permission flag ${missing} is missing, so it cannot be granted`);
}

/** Throws `forbidden` when the target, another than the caller, has a flag that the caller lacks. */
export function mayTouch(caller: Caller, target: { readonly id: string; readonly flags: Flags }): void {
  const missing = target.id === caller.id ? undefined : caller.flags.lacks(target.flags);
  if (missing === undefined) return;
  throw new KmsError('forbidden', `the permission flag ${missing} is missing, which the target has`);
}
