// Routes of the appliance as a whole: health, backup, metrics, and its seal. Health, seal status and the unseal steps
// need no credential, since there are none while sealed; sealing is an ordinary request, with flag and activity record.
import { publicEndpoints, sealEndpoints, type systemEndpoints, unsealBody } from '../../api/system.ts';
import { refusalOutside } from '../../core/authorization.ts';
import type { Caller } from '../../core/context.ts';
import { namesFor, storedOverview } from '../../core/overview.ts';
import { KmsError } from '../../errors.ts';
import type { AppliancePort, State } from '../appliance-port.ts';
import { publicBodyLimit, readJsonBody } from '../body.ts';
import { invalidInput } from '../input.ts';
import type { ApiRequest } from '../request.ts';
import { answered, type Outcome, refused } from '../respond.ts';
import { beside, type Operation, type RoutesOf, type ServedPath } from '../route.ts';

export const systemRoutes: RoutesOf<(typeof systemEndpoints)[number]['id']> = {
  createBackup(ctx, { open, handle }) {
    ctx.afterCommit(() => open.recordInOthers('system.backup', handle));
    // Nothing is made before the answer is read, which is after its record is durable.
    return open.backup();
  },
  getOverview: {
    async prepare({ appliance, open, handle, query }, caller) {
      const { world } = appliance;
      const stored = await storedOverview({ store: handle.store, world }, caller, query.range ?? 'day');
      return (ctx) => {
        needSameFlags(ctx.caller, caller);
        const { ok, reason = 'not ready', details = {} } = open.readiness();
        const { epoch: _, disk: __, ...told } = details;
        const { label } = appliance;
        const isOperator = caller.kind === 'local' || refusalOutside(handle.tenant, 'system.metrics') === undefined;
        const seesAppliance = isOperator && caller.flags.allows('system.metrics');
        return {
          tenant: handle.tenant.name,
          readiness: { ready: ok, ...(!ok && { message: reason }), ...told, ...(label && { label }) },
          ...(query.flags && {
            flags: Object.fromEntries(caller.flags.names.map((name) => [name, true])),
            caller: caller.id,
          }),
          ...stored,
          ...(seesAppliance && { backups: open.backups(), log: open.logNumbers(handle) }),
        };
      };
    },
  },
  getNames: {
    async prepare({ appliance: { world }, handle }, caller) {
      const names = await namesFor({ store: handle.store, world }, caller);
      return (ctx) => {
        needSameFlags(ctx.caller, caller);
        return names;
      };
    },
  },
  getBackups: beside(async ({ open }) => open.backups()),
  startBackup(ctx, { open, handle }) {
    const before = open.backups();
    if (!before.configured) {
      throw new KmsError('invalid', 'there is no directory for backups: start the server with --backup-to');
    }
    ctx.afterCommit(async () => {
      await open.recordInOthers('system.backup', handle);
      open.startBackup();
    });
    return { ...before, running: true };
  },
  getMetrics: beside(({ open, handle }) => open.metrics(handle)),
};

/** Throws `unavailable` if flags were lost since the answer was read. */
function needSameFlags(now: Caller, before: Caller): void {
  if (now.flags.lacks(before.flags) === undefined) return;
  throw new KmsError('unavailable', 'the permissions changed meanwhile; try again');
}

export const sealRoute: Operation<typeof sealEndpoints.seal> = (ctx, { appliance, open, handle }) => {
  const { sealing } = appliance;
  // Nothing is sealed before the record of it is durable.
  ctx.afterCommit(async () => {
    await open.recordInOthers('system.seal', handle);
    await sealing.seal();
  });
  return { sealed: true, kinds: sealing.status().kinds };
};

/** Paths served both sealed and open, without a tenant: for monitoring, and for unsealing. */
export function alwaysServed(appliance: AppliancePort): readonly ServedPath[] {
  const { health, readiness } = publicEndpoints;
  const { status, unseal } = sealEndpoints;
  const at = (
    { method, path }: Pick<ServedPath, 'method' | 'path'>,
    answer: (state: State, request: ApiRequest) => Promise<Outcome>,
  ): ServedPath => ({
    method,
    path,
    serve: async (request, state) => ({ outcome: await answer(state, request) }),
  });
  return [
    at(health, async () => answered({ status: 'ok' })),
    at(readiness, async (state) => readinessOf(appliance, state)),
    at(status, async () => answered(appliance.sealing.status())),
    at(unseal, (_state, request) => unsealStep(appliance, request)),
  ];
}

function readinessOf({ label }: AppliancePort, state: State): Outcome {
  const labelled = label ? { label } : {};
  if (state.sealed) return { status: 503, body: { message: 'the appliance is sealed', sealed: true, ...labelled } };
  const { ok, reason, details } = state.readiness();
  if (ok) return answered({ status: 'ready', ...details, ...labelled });
  return { status: 503, body: { message: reason ?? 'not ready', ...details, ...labelled } };
}

async function unsealStep({ sealing, bodyLimit }: AppliancePort, request: ApiRequest): Promise<Outcome> {
  try {
    const refusal = sealing.refusal(request);
    if (refusal) throw refusal;
    const body = await readJsonBody(request, { limit: Math.min(bodyLimit, publicBodyLimit), kept: new Map() });
    if (body.problem) return refused(body.problem);
    const step = unsealBody.safeParse(body.value);
    if (!step.success) return refused(invalidInput(step.error.issues, body.value, 'body'));
    return answered(await sealing.unseal(step.data, request));
  } catch (error) {
    return refused(wireError(error));
  }
}

/** A key, share or passphrase that is wrong or malformed becomes invalid input. */
function wireError(error: unknown): unknown {
  if (!(error instanceof KmsError) || !['refused', 'corrupt', 'invalid'].includes(error.code)) return error;
  // Remote callers see only the message, so the hint is appended to it.
  const { message, hint } = error;
  return new KmsError('invalid', hint === undefined ? message : `${message}; ${hint}`);
}
