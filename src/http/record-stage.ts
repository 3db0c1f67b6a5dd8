// The stage of a request that writes its records in the activity log, in the transaction of what it did.
import { actionOf, type Endpoint } from '../api/endpoint.ts';
import { activityRecord } from '../core/activity.ts';
import { byOperator } from '../core/authorization.ts';
import { proofProps } from '../core/proofs/proof-answers.ts';
import type { ActivityDetails } from '../model/activity-details.ts';
import { ownRecordHeader } from '../model/names.ts';
import type { ActivityInput } from '../store/port.ts';
import type { Admission } from './admission.ts';
import type { OperationContext } from './operation-context.ts';
import type { Outcome, RequestResult } from './respond.ts';
import type { Watch } from './watches.ts';

type Recorded = Pick<ActivityInput, 'keyid' | 'ringname' | 'validAction'> & Partial<Pick<ActivityInput, 'props'>>;

/** Records an outcome, as one act or as several. */
export function recordOutcome(
  ctx: OperationContext,
  endpoint: Endpoint,
  admission: Admission,
  outcome: Outcome,
): RequestResult {
  const { tx, handedOut, isDenied, statuses: did, deeds, tenant, world, dialect } = ctx;
  const { ringname, caller, refusal } = admission;
  const granted = refusal === undefined && !isDenied;
  // Counted here, since a refusal may hand out a key too, while its other effects are rolled back.
  if (handedOut) tx.keyUses.count(handedOut.kind, handedOut.id, { at: world.now(), by: caller.id });
  const by = proofProps(caller);
  const recorded = { keyid: caller.id, ringname, validAction: granted, ...(by && { props: by }) };
  let id = '';
  const statuses = ctx.watch && granted ? recordWatch(ctx, ctx.watch, recorded, outcome) : did;
  for (const [n, status] of (statuses ?? [outcome.status]).entries()) {
    id = record(ctx, endpoint, recorded, status, deeds[n]);
  }
  const tellsRecord = endpoint.id === 'searchActivity';
  const told = tellsRecord ? { ...outcome, headers: { ...outcome.headers, [ownRecordHeader]: id } } : outcome;
  const action = actionOf(endpoint.access);
  return { outcome: told, action, keyid: caller.id, tenant: tenant.id, granted, ringname, dialect, did };
}

/** Writes one record; returns its id. */
export function record(
  ctx: OperationContext,
  { access }: Endpoint,
  recorded: Recorded,
  status: number,
  one?: ActivityDetails,
): string {
  const { deed = one, address, identified, world } = ctx;
  const how = identified?.how;
  const isActOfOperator = access.kind === 'flag' && access.operator === 'act';
  const own = isActOfOperator && recorded.validAction ? byOperator : how && { ...how };
  const approved = ctx.approval && { approval: ctx.approval };
  const told = recorded.props || approved ? { ...recorded.props, ...approved, ...own } : own;
  const props = ctx.recorded(told);
  const made = activityRecord(world, { ...recorded, action: actionOf(access), status, props, deed, address });
  ctx.tx.record(made);
  return made.id;
}

/** Records a poll as one, if it is due; returns the statuses of the records that any other request gets. */
function recordWatch(ctx: OperationContext, watch: Watch, recorded: Recorded, { status }: Outcome): readonly number[] {
  if (!watch.isDue) return [];
  watch.noteRecord();
  if (!watch.polls) return [status];
  const { world, address } = ctx;
  ctx.tx.record(activityRecord(world, { ...recorded, action: 'session.watch', status, address }));
  return [];
}
