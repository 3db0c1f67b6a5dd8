// Names that the appliance makes up for new objects without one. The name in an open request is used again, so that
// what is done after approval is what was approved.
import { type JsonObject, sameJson } from '../model/json.ts';
import type { Tables } from '../store/port.ts';
import { shownFields } from './approval-statement.ts';
import type { Tenant } from './context.ts';

/** Open requests of the caller that are looked at. */
const mostLookedAt = 100;

interface Nameless {
  /** Id of the caller. */
  readonly caller: string;
  /** The body without the name. */
  readonly fields: JsonObject;
}

/** The name of a managed key in the caller's open request for one like it; undefined if there is none. */
export function nameAskedFor(
  { approvalRequests, managedKeys }: Pick<Tables, 'approvalRequests' | 'managedKeys'>,
  { keys }: Pick<Tenant, 'keys'>,
  { caller, fields }: Nameless,
): string | undefined {
  const { requests } = approvalRequests.page({ requester: caller, isOpen: true }, undefined, mostLookedAt);
  for (const { id } of requests) {
    const details = approvalRequests.detailsOf(id);
    if (details?.operation !== 'createManagedKey' || details.dialect !== 'aws') continue;
    const name = details.body?.name;
    if (typeof name !== 'string' || managedKeys.byName(name)) continue;
    if (sameJson(shownFields(keys, { name, ...fields }), details.body)) return name;
  }
  return undefined;
}
