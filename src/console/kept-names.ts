// KeptNames are the names of all that a session may list, fetched with one request and kept for the whole session. They
// are fetched again once the console changed something, or after a while.
import type { AnswerTo, Client } from '../client/client.ts';
import type { Flags } from '../model/flags.ts';

export type Names = AnswerTo<'getNames'>;

export interface KeptNames {
  /** The names, as far as the flags allow; empty if they cannot be fetched. Never rejects. */
  readonly get: (may: Flags) => Promise<Names>;
}

/** Milliseconds after which names are fetched again when they are needed. */
const renewedAfter = 5 * 60_000;

const listing = ['keyring.list', 'key.list', 'apikey.read', 'user.read', 'account.read'];

/** @param changes counts the changes that this console made. */
export function keptNames(
  polls: Pick<Client, 'getNames'>,
  changes: () => number,
  now: () => number = Date.now,
): KeptNames {
  let kept: { readonly names: Promise<Names>; readonly at: number; readonly changes: number } | undefined;
  return {
    async get(may) {
      if (!listing.some((flag) => may.allows(flag))) return {};
      if (!kept || kept.changes !== changes() || now() - kept.at >= renewedAfter) {
        kept = { names: polls.getNames(), at: now(), changes: changes() };
      }
      const mine = kept;
      try {
        return await mine.names;
      } catch {
        if (kept === mine) kept = undefined;
        return {};
      }
    },
  };
}
