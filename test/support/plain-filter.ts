// A plain implementation of the activity log's search filters, to check the stores against.
import { addressSet } from '../../src/model/addresses.ts';
import type { ActivityFilter, ActivityRecord } from '../../src/store/port.ts';
import type { AnyJson } from './appliance.ts';

/** The part of a filter on what was done, the address and exclusions. */
export function isAudited(record: Omit<ActivityRecord, 'seq' | 'id'>, filter: ActivityFilter): boolean {
  const { address, exclude } = filter;
  const { keyid = record.keyid, action = record.action } = exclude ?? {};
  return (
    (!filter.actions || filter.actions.includes(record.action)) &&
    (!address || (record.address !== undefined && addressSet([address]).has(record.address))) &&
    says(record.reporter === undefined ? record.props : {}, filter) &&
    !filter.withoutActions?.has(record.action) &&
    !(record.validAction && filter.withoutGranted?.has(record.action)) &&
    !(exclude && keyid === record.keyid && action === record.action)
  );
}

function says(props: AnyJson, { object, objectType, granted, revoked }: ActivityFilter): boolean {
  const named = [props.object ?? [], props.objects ?? []]
    .flat()
    .filter(({ type }: { type: string }) => objectType === undefined || type === objectType)
    .flatMap(({ id, name }: { id: string; name?: string }) => [id, name?.toLowerCase()]);
  const has = (list: string[] = [], asked?: readonly string[]): boolean =>
    !asked || list.some((flag) => asked.length === 0 || asked.includes(flag));
  return (
    (!object || named.includes(object.toLowerCase())) && has(props.granted, granted) && has(props.revoked, revoked)
  );
}
