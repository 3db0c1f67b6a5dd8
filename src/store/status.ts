// The status of a store in service, and of one that never served.
import type { ActivityLog } from './activity/activity-log.ts';
import type { Served } from './journal.ts';
import type { StoreStatus } from './port.ts';

/** The part of a store's status that does not come from checking its segments. */
export type ServiceStatus = Omit<StoreStatus, 'activityFaults' | 'activityVerified' | 'activityVerifiedAt'>;

export function statusOf({
  log,
  snapshot,
  activity,
}: Pick<Served, 'log' | 'snapshot'> & { readonly activity: ActivityLog }): ServiceStatus {
  return {
    writable: true,
    logBytes: log.bytes,
    snapshotBytes: snapshot.bytes,
    activityBytes: activity.bytes,
    sequence: log.sequence,
    lastCheckpointAt: snapshot.generation === 0 ? undefined : snapshot.savedAt,
    activityCount: activity.count,
    activityDropped: activity.dropped,
    activitySegments: activity.segments.length,
  };
}

/** The status of a store that never served. */
export const emptyStatus: ServiceStatus = {
  writable: false,
  logBytes: 0,
  snapshotBytes: 0,
  activityBytes: 0,
  sequence: 0,
  lastCheckpointAt: undefined,
  activityCount: 0,
  activityDropped: undefined,
  activitySegments: 0,
};
