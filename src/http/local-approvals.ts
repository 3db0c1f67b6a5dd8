// Approvals of what the administrator at the machine does by local endpoints. These write their own records, outside of
// a request's transaction, so that an approval is used up just before.
import type { LocalId } from '../api/local-endpoints.ts';
import { askFor, decideAct, lookBefore, NeedsWords, type PlannedAct } from '../core/approval-decision.ts';
import { shownFields } from '../core/approval-statement.ts';
import { localCaller } from '../core/credential.ts';
import { furtherActions } from '../model/approval-rules.ts';
import { flagsOfText, operatorTenant } from '../model/flags.ts';
import type { JsonObject } from '../model/json.ts';
import { reasonHeader, tenantHeader } from '../model/names.ts';
import type { Transaction } from '../store/port.ts';
import type { User } from '../store/tables/users.ts';
import type { AppliancePort, OpenState } from './appliance-port.ts';
import { tell } from './approval-notices.ts';
import { breakingOf, waitError, wordsIn } from './approval-stage.ts';
import { type ApiRequest, headerOf } from './request.ts';
import { localTenant, type TenantHandle } from './tenant-directory.ts';

const administrator = furtherActions.makeAdministrator;

/** Actions of each endpoint; those that are missing only look. */
const actions: Readonly<Partial<Record<LocalId, readonly string[]>>> = {
  makeSetUpLink: ['user.create', administrator],
  makeResetLink: ['user.update'],
  resetSecondFactor: ['user.update'],
  setOidc: ['user.update', administrator],
  removeOidc: ['user.update'],
  unlinkOidc: ['user.update'],
  createTenant: ['tenant.create'],
  updateTenant: ['tenant.update'],
  limitTenant: ['tenant.update'],
  deleteTenant: ['tenant.delete'],
  restoreTenant: ['tenant.restore'],
  rekeyTenant: ['tenant.rekey'],
  sealAppliance: ['system.seal'],
  streamBackup: ['system.backup'],
  rotateMaster: ['system.master'],
  addCustodian: ['system.master'],
  removeCustodian: ['system.master'],
};

interface Given {
  readonly params: JsonObject;
  readonly query: JsonObject;
  readonly body: JsonObject;
}

/** Lets an act pass that needs no approval or has it. Throws `forbidden` for one that waits. */
export async function approveLocal(
  appliance: Pick<AppliancePort, 'world' | 'logger'>,
  open: OpenState,
  id: LocalId,
  request: ApiRequest,
  given: Given,
): Promise<void> {
  const acts = actions[id];
  if (!acts) return;
  const { world } = appliance;
  for (const handle of concerned(open.tenants, id, request, given)) {
    const { store, tenant } = handle;
    const around = { appliance, open, handle };
    const decided = await store.transaction((tx) => {
      const ctx = { tx, tenant, world, caller: localCaller, address: undefined };
      const before = lookBefore(ctx);
      if (!before) return undefined;
      try {
        return { approval: decideAct(ctx, plannedAct(tx, id, acts, request, given, tenant.keys), before) };
      } catch (error) {
        if (!(error instanceof NeedsWords)) throw error;
        return { waits: askFor(ctx, error) };
      }
    });
    const glass = decided?.approval?.glass;
    if (typeof glass === 'string') tell(around, { kind: 'glass', id: glass });
    const waits = decided?.waits;
    if (waits?.isNew) tell(around, { kind: 'request', id: waits.id });
    if (waits) throw waitError(waits);
  }
}

/** The tenants whose rules hold: the one that the act is about, or the operator's. */
function concerned(tenants: OpenState['tenants'], id: LocalId, request: ApiRequest, { params }: Given): TenantHandle[] {
  if (/Tenant$/.test(id)) {
    const named = typeof params.name === 'string' ? tenants.byName(params.name.toLowerCase()) : undefined;
    const operator = tenants.byName(operatorTenant);
    return [...new Set([named, operator])].filter((each) => each !== undefined);
  }
  if (/(?:Link|Factor|Oidc)$/.test(id)) return [localTenant(tenants, headerOf(request, tenantHeader))];
  const operator = tenants.byName(operatorTenant);
  return operator ? [operator] : [];
}

function plannedAct(
  tx: Transaction,
  id: LocalId,
  acts: readonly string[],
  request: ApiRequest,
  { params, query, body }: Given,
  keys: Parameters<typeof shownFields>[0],
): PlannedAct {
  const user = userIn(tx, body);
  const isAdministrators = user && flagsOfText(user.flagsText).covers('*');
  const names = [...Object.values(params), user?.id, user?.username].filter((each) => typeof each === 'string');
  const [recorded = ''] = acts;
  return {
    actions: isAdministrators && !acts.includes(administrator) ? [...acts, administrator] : acts,
    objects: names,
    itself: [],
    recorded,
    ringname: '',
    operation: `local:${id}`,
    object: user ? { type: 'user', id: user.id, name: user.username } : null,
    parameters: shownFields(keys, { ...params, ...query }),
    body,
    isUse: false,
    deed: undefined,
    after: undefined,
    reason: wordsIn(request, reasonHeader),
    breaking: () => breakingOf({ caller: localCaller }, request),
  };
}

/** The User that a link or a reset is for. */
function userIn({ users }: Transaction, { username, email }: JsonObject): User | undefined {
  if (typeof username !== 'string') return undefined;
  return email === true ? users.byEmail(username) : users.byUsername(username);
}
