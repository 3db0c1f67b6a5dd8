// Requests that are held while they wait for approval, where the rules want that: for a minute at most, and so many at
// most, since each holds a connection.
import { setTimeout as pause } from 'node:timers/promises';
import type { ApprovalRequestTable } from '../store/tables/approval-requests.ts';
import type { TenantHandle } from './tenant-directory.ts';

const mostHeld = 64;
/** Milliseconds. */
const heldFor = 60_000;
const betweenLooks = 200;
/** Looks at the state in memory until one in a transaction, which knows what other nodes did. */
const quickLooks = 5;

let holding = 0;

/** Waits until the request is decided; false if it was not in time, or there is no room, or the client is gone. */
export async function holdUntilDecided(id: string, { store }: TenantHandle, isGone: () => boolean): Promise<boolean> {
  if (holding >= mostHeld) return false;
  holding++;
  const end = performance.now() + heldFor;
  const look = ({ approvalRequests }: { approvalRequests: ApprovalRequestTable }) => isDecided(approvalRequests, id);
  try {
    for (let looks = 1; performance.now() < end && !isGone(); looks++) {
      await pause(betweenLooks, undefined, { ref: false });
      if (looks % quickLooks === 0 ? await store.transaction(look) : store.read(look)) return true;
    }
    return false;
  } finally {
    holding--;
  }
}

function isDecided(requests: ApprovalRequestTable, id: string): boolean {
  const request = requests.byId(id);
  return request?.endedAt !== undefined || request?.grantedAt !== undefined;
}
