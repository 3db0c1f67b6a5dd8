// Changes that wait for approval during an apply: the ids of their requests, and the progress of a change that takes
// several requests, some of them done and the next one pending.
import type { ApprovalRequest } from '../../api/approvals.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';

/** Ids of the requests as which a refused change waits for approval; empty for other errors. */
export function waitsAs(error: unknown): readonly string[] {
  if (!(error instanceof KmsError)) return [];
  if (error instanceof ManyWait) return error.requests;
  const { approval } = Object(error.body);
  return typeof approval?.id === 'string' ? [approval.id] : [];
}

/** The appliance's words on pending requests that too few can approve now. */
export function lacksOf(error: unknown): readonly string[] {
  if (error instanceof ManyWait) return error.lacks;
  const [, words] = error instanceof KmsError ? (/ is pending; (.+)$/.exec(error.message) ?? []) : [];
  return words === undefined || /^try again\b/.test(words) ? [] : [words];
}

class ManyWait extends KmsError {
  readonly requests: readonly string[];
  readonly lacks: readonly string[];

  constructor(requests: readonly string[], lacks: readonly string[]) {
    super(
      'forbidden',
      `this needs approval: requests ${requests.join(', ')} are pending; try again once they are approved`,
    );
    this.requests = requests;
    this.lacks = lacks;
  }
}

/** Does acts one after another. One that waits for approval holds up none of the others, and is thrown at the end. */
export async function eachOrWaiting<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const waiting: unknown[] = [];
  for (const item of items) {
    try {
      await act(item);
    } catch (error) {
      if (waitsAs(error).length === 0) throw error;
      waiting.push(error);
    }
  }
  throwWaiting(waiting);
}

/** Throws what waits for approval, as one error, if anything does. */
export function throwWaiting(waiting: readonly unknown[]): void {
  const [requests, lacks] = [waitsAs, lacksOf].map((of) => [...new Set(waiting.flatMap(of))]);
  if (waiting.length > 1) throw new ManyWait(requests ?? [], lacks ?? []);
  if (waiting.length === 1) throw waiting[0];
}

/** Requests that the caller made, and that wait for approval or have it. */
export async function openRequests(client: Client, caller: string): Promise<readonly ApprovalRequest[]> {
  const open: ApprovalRequest[] = [];
  for (const state of ['pending', 'granted'] as const) {
    let cursor: string | undefined;
    do {
      const filters = { state, mine: true, requester: caller, ...(cursor !== undefined && { cursor }) };
      const { requests, nextCursor } = await client.listApprovalRequests(filters);
      open.push(...requests);
      cursor = nextCursor;
    } while (cursor !== undefined);
  }
  return open;
}
