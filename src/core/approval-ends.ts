// Ends requests for approval that have expired, or whose words belong to a state that is gone: a backup was restored, a
// copy took over, or the appliance continued from older files. What they allowed may have been done since.
import type { Transaction } from '../store/port.ts';
import type { ApprovalRequest } from '../store/tables/approval-requests.ts';
import { activityRecord } from './activity.ts';
import type { World } from './context.ts';

interface Ending {
  readonly tx: Transaction;
  readonly world: World;
}

export function expire({ tx, world }: Ending, { id, requester: keyid }: ApprovalRequest): void {
  tx.approvalRequests.end(id, 'expired', world.now());
  const deed = { object: { type: 'approval', id }, approval: { id } } as const;
  tx.record(activityRecord(world, { keyid, action: 'approval.expire', deed }));
}

/** Ends open requests that show codes: under another key the same act has other ones, and asks once more. */
export function expireCoded(ending: Ending): void {
  for (const request of ending.tx.approvalRequests.coded()) expire(ending, request);
}

/** Ends open requests about which words were said, or glass was broken. Others wait as before. */
export function expireAnswered(ending: Ending): void {
  for (const request of ending.tx.approvalRequests.answered()) expire(ending, request);
}
