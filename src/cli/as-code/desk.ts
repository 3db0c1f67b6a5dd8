// Desk is the access of a plan or an apply to the appliance: client, caller and tenant, and the lists that several
// kinds need, each read once. Requests that change something name the digest of their plan.
import type { KindName } from '../../api/configuration.ts';
import { createClient } from '../../client/client.ts';
import { planHeader } from '../../model/names.ts';
import type { Cli } from '../command.ts';
import { type Connection, localOf, localUrl } from '../connect.ts';
import type { Desk, Found } from './kind.ts';
import { kinds } from './kind-table.ts';
import { openRequests } from './waiting.ts';

interface DeskOptions {
  readonly managedBy: string;
  readonly isUsedAllowed: boolean;
}

/** A desk, with the caller's flags. */
export interface SeatedDesk extends Desk {
  readonly tenant: string;
  readonly appliance: string | null;
  /** A desk whose requests name the plan of this digest, and which reads lists again. */
  withPlan(digest: string): Desk;
}

export async function deskAt(cli: Cli, connection: Connection, options: DeskOptions): Promise<SeatedDesk> {
  const { client } = connection;
  const { caller = '', flags = {}, tenant } = await client.getOverview({ flags: true });
  const isHere = connection.way !== 'network';
  const common = { ...options, caller, flags };
  const desk = withLists({ ...common, client, local: isHere ? localOf(cli, connection) : undefined });
  return {
    ...desk,
    tenant,
    appliance: (await connection.applianceId()) ?? null,
    withPlan(digest) {
      const header = { [planHeader]: digest };
      // A change whose answer is lost may have happened, so each is waited for.
      const { baseUrl, steadyFetch: fetch, headers, tenantHeaders } = connection;
      const named = { ...headers, ...tenantHeaders, ...header };
      const timeout = Number.POSITIVE_INFINITY;
      const retries = baseUrl === localUrl ? { retries: 0 } : {};
      const planned = { ...connection, fetch, tenantHeaders: { ...tenantHeaders, ...header } };
      return withLists({
        ...common,
        client: createClient({ baseUrl, fetch, headers: named, timeout, ...retries }),
        local: isHere ? localOf(cli, planned) : undefined,
      });
    },
  };
}

function withLists(desk: Omit<Desk, 'list' | 'asked'>): Desk {
  const lists = new Map<KindName, Promise<readonly Found[]>>();
  let requests: ReturnType<Desk['asked']> | undefined;
  const whole: Desk = {
    ...desk,
    list(name) {
      const known = lists.get(name) ?? kinds[name].list(whole);
      lists.set(name, known);
      return known;
    },
    asked() {
      requests ??= openRequests(desk.client, desk.caller);
      return requests;
    },
  };
  return whole;
}
