// Approvals for what the administrator at the machine does through local endpoints. These write their own records,
// outside of a request's transaction, so an approval is used up just before.
import type { LocalId } from '../api/local-endpoints.ts';
import {
  askFor,
  decideAct,
  lookBefore,
  NeedsWords,
  needWords,
  type PlannedAct,
  unbreak,
  type Wait,
} from '../core/approval-decision.ts';
import { namesOf } from '../core/approval-objects.ts';
import { shownFields } from '../core/approval-statement.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { userThing } from '../core/users.ts';
import { KmsError } from '../errors.ts';
import type { ResourceRef } from '../model/activity-details.ts';
import { furtherActions } from '../model/approval-rules.ts';
import { flagsOfText, operatorTenant } from '../model/flags.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { reasonHeader, tenantHeader } from '../model/names.ts';
import type { Transaction } from '../store/port.ts';
import type { User } from '../store/tables/users.ts';
import type { AppliancePort, OpenState } from './appliance-port.ts';
import { tell } from './approval-notices.ts';
import { breakingOf, waitError, wordsIn } from './approval-stage.ts';
import { type ApiRequest, headerOf } from './request.ts';
import { localTenant, type TenantHandle } from './tenant-directory.ts';

const administrator = furtherActions.makeAdministrator;

/** Actions of each endpoint; those that are missing only look, or are harmless. */
export const localActions: Readonly<Partial<Record<LocalId, readonly string[]>>> = {
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

/** Acts by which somebody could get at any User, so that a rule for some of them covers them. */
const forAll: ReadonlySet<LocalId> = new Set(['makeSetUpLink', 'setOidc', 'removeOidc']);

interface Given {
  readonly params: JsonObject;
  readonly query: JsonObject;
  readonly body: JsonObject;
}

/** An approval that was used up in one tenant. */
interface Used {
  readonly handle: TenantHandle;
  /** The glass that was broken for it, or else the request. */
  readonly glass: string | undefined;
  readonly request: string | undefined;
}

/** The approvals of an act that is about to be done; how it ended is to be told. */
export interface LocalApproval {
  /** It was done, or perhaps a part of it. */
  done(): void;
  /** It was refused with this status, and nothing was done: what was used up is given back. */
  undone(status: number): Promise<void>;
}

type Appliance = Pick<AppliancePort, 'world' | 'logger'>;

/**
 * Lets an act pass that needs no approval or has it, in all tenants that are concerned; before that is known, nothing
 * is used up in any. Throws `forbidden` for one that waits.
 */
export async function approveLocal(
  appliance: Appliance,
  open: OpenState,
  id: LocalId,
  request: ApiRequest,
  given: Given,
): Promise<LocalApproval | undefined> {
  const acts = localActions[id];
  if (!acts) return undefined;
  const { world } = appliance;
  const named = tenantNamed(open.tenants, id, given);
  const there = named?.tenant ?? (await restored(open, id, given));
  const tenant = there && ({ type: 'tenant', id: there.id, name: there.name } as const);
  const asked = { id, acts, request, given, tenant };
  const tenants = concerned(open.tenants, id, request, named);
  let first: Wait | undefined;
  for (const handle of tenants) {
    const { waits } = await decide(world, handle, asked, needWords);
    if (waits?.isNew) tell({ appliance, open, handle }, { kind: 'request', id: waits.id });
    first ??= waits;
  }
  if (first) throw waitError(first);
  const used: Used[] = [];
  for (const handle of tenants) {
    const { waits, approval } = await decide(world, handle, asked, decideAct);
    if (waits) {
      await giveBack(world, used, 403);
      throw waitError(waits);
    }
    const [glass, request] = [approval?.glass, approval?.id].map((each) =>
      typeof each === 'string' ? each : undefined,
    );
    if (approval) used.push({ handle, glass, request });
  }
  return {
    done() {
      for (const { handle, glass } of used) if (glass) tell({ appliance, open, handle }, { kind: 'glass', id: glass });
    },
    undone: (status) => giveBack(world, used, status),
  };
}

interface Asked {
  readonly id: LocalId;
  readonly acts: readonly string[];
  readonly request: ApiRequest;
  readonly given: Given;
  /** The tenant that the act is about, if it is there. */
  readonly tenant: ResourceRef | undefined;
}

/** The decision in one tenant, or the request that waits there. */
function decide(
  world: World,
  { store, tenant }: TenantHandle,
  asked: Asked,
  decision: typeof decideAct | typeof needWords,
): Promise<{ readonly approval?: JsonObject | undefined; readonly waits?: Wait }> {
  return store.transaction((tx) => {
    const ctx = { tx, tenant, world, caller: localCaller, address: undefined };
    const before = lookBefore(ctx);
    if (!before) return {};
    try {
      const approval = decision(ctx, plannedAct(tx, asked, tenant.keys), before);
      return { approval: approval ?? undefined };
    } catch (error) {
      if (!(error instanceof NeedsWords)) throw error;
      return { waits: askFor(ctx, error) };
    }
  });
}

async function giveBack(world: World, used: readonly Used[], status: number): Promise<void> {
  for (const { handle, glass, request } of used) {
    await handle.store.transaction((tx) => {
      if (glass !== undefined) unbreak({ tx, world }, glass, status);
      else if (request !== undefined) tx.approvalRequests.giveBack(request);
    });
  }
}

/** The tenants whose rules hold: the one that the act is about, or the operator's. */
function concerned(
  tenants: OpenState['tenants'],
  id: LocalId,
  request: ApiRequest,
  named: TenantHandle | undefined,
): TenantHandle[] {
  if (/Tenant$/.test(id)) {
    const operator = tenants.byName(operatorTenant);
    return [...new Set([named, operator])].filter((each) => each !== undefined);
  }
  if (/(?:Link|Factor|Oidc)$/.test(id)) return [localTenant(tenants, headerOf(request, tenantHeader))];
  const operator = tenants.byName(operatorTenant);
  return operator ? [operator] : [];
}

/** The tenant that the act is about, by its name or id, if it is served. */
function tenantNamed(tenants: OpenState['tenants'], id: LocalId, { params }: Given): TenantHandle | undefined {
  if (!/Tenant$/.test(id) || typeof params.name !== 'string') return undefined;
  const wanted = params.name.toLowerCase();
  return tenants.byName(wanted) ?? tenants.handles().find(({ tenant }) => tenant.id === wanted);
}

/** The deleted tenant that is to be restored, if there is one. */
async function restored({ local }: OpenState, id: LocalId, { params }: Given) {
  if (id !== 'restoreTenant' || typeof params.id !== 'string') return undefined;
  try {
    return await local.getTenant({ params: { name: params.id }, query: {}, body: {} });
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}

function plannedAct(
  tx: Transaction,
  { id, acts, request, given: { params, query, body }, tenant }: Asked,
  keys: Parameters<typeof shownFields>[0],
): PlannedAct {
  const user = userIn(tx, body);
  const isAdministrators = user && flagsOfText(user.flagsText).covers('*');
  const object = user ? userThing(user) : (tenant ?? null);
  const newName = /Tenant$/.test(id) ? body.name : undefined;
  const names = [...Object.values(params), newName].filter((each) => typeof each === 'string');
  const [recorded = ''] = acts;
  return {
    actions: isAdministrators && !acts.includes(administrator) ? [...acts, administrator] : acts,
    objects: [...names, ...namesOf(tx, object)],
    isForAll: forAll.has(id),
    renamed:
      tenant && typeof newName === 'string' ? { from: namesOf(tx, tenant), to: [tenant.id, newName] } : undefined,
    itself: [],
    recorded,
    ringname: '',
    operation: `local:${id}`,
    object,
    parameters: shownFields(keys, { ...params, ...query }),
    body: id === 'addCustodian' ? lastingOf(body) : body,
    isUse: false,
    deed: undefined,
    after: () => undefined,
    reason: wordsIn(request, reasonHeader),
    breaking: () => breakingOf({ caller: localCaller }, request),
  };
}

/** Parameters of custodians that are new at each try. */
const passing: ReadonlySet<string> = new Set(['salt', 'set', 'made']);

/** A new custodian without its keys, which its maker makes at each try: kind and lasting parameters count. */
function lastingOf({ kind, params }: JsonObject): JsonObject {
  const lasting = Object.entries(isJsonObject(params) ? params : {}).filter(([name]) => !passing.has(name));
  return { kind, params: Object.fromEntries(lasting) };
}

/** The User that a link or a reset is for. */
function userIn({ users }: Transaction, { username, email }: JsonObject): User | undefined {
  if (typeof username !== 'string') return undefined;
  return email === true ? users.byEmail(username) : users.byUsername(username);
}
