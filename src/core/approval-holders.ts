// Holders: the identities whose requests for approval are counted together, so that no caller gets more places by
// making further API keys and Users.
import type { Caller, Context } from './context.ts';

type Asking = Pick<Context, 'tx' | 'caller'>;

/** Whether the last places are kept for the caller. */
export function isAdministrator({ kind, flags }: Caller): boolean {
  return kind === 'local' || flags.allows('approval.rule');
}

/** With whom the caller's requests are counted: who made it, unless that is an administrator; its owner; or itself. */
export function holderOf({ tx, caller }: Asking): string {
  return tx.approvalRequests.holderOf(caller.id) ?? caller.userId ?? caller.id;
}

/** Notes that the caller made an API key or a User. */
export function noteMade(ctx: Asking, id: string): void {
  if (!isAdministrator(ctx.caller)) ctx.tx.approvalRequests.noteHolder(id, holderOf(ctx));
}
