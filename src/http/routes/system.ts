// Routes of the appliance as a whole: health, backup, metrics, and its seal. Health, the seal's state and the steps to
// open it are there for everybody, since while it is sealed there are no credentials; sealing goes the way of every
// other request, flag and activity record included.
import { publicEndpoints, type SealStatus, sealEndpoints, type systemEndpoints, unsealBody } from '../../api/system.ts';
import { KmsError } from '../../errors.ts';
import type { AppDeps, Sealing } from '../deps.ts';
import { invalidInput } from '../input.ts';
import { type PlainRoute, serveEndpoint } from '../pipeline.ts';
import { type AppContext, defaultBodyLimit, publicBodyLimit, readJsonBody } from '../request.ts';
import type { Served, ServedPath } from '../request-log.ts';
import { answered, refused } from '../respond.ts';
import { beside, type RoutesOf } from '../route.ts';

export const systemRoutes: RoutesOf<(typeof systemEndpoints)[number]['id']> = {
  async createBackup(_ctx, input) {
    const { deps, handle } = input;
    if (!deps.backup) throw new KmsError('unavailable', 'this appliance cannot be backed up');
    input.afterCommit(async () => deps.recordInOthers?.('system.backup', handle));
    // Nothing of it is made before the answer is being read, which is after the record of it is durable.
    return deps.backup();
  },
  getMetrics: beside(async ({ deps, handle }) => {
    if (deps.metrics) return deps.metrics(handle);
    throw new KmsError('unavailable', 'this appliance keeps no metrics');
  }),
};

/** For whatever watches the process: alive, and able to serve. Both work while sealed and need no tenant. */
export function healthRoutes(deps: AppDeps): readonly ServedPath[] {
  const { health, readiness } = publicEndpoints;
  return [
    { method: health.method, path: health.path, serve: async () => ({ outcome: answered({ status: 'ok' }) }) },
    { method: readiness.method, path: readiness.path, serve: async () => readinessOf(deps) },
  ];
}

function readinessOf(deps: AppDeps): Served {
  const { ok, reason, details } = deps.ready();
  if (ok) return { outcome: answered({ status: 'ready', ...details }) };
  const message = reason ?? 'not ready';
  return { outcome: { status: 503, body: { message, ...details } } };
}

/** None where the appliance cannot be sealed from outside. */
export function sealRoutes(deps: AppDeps): readonly ServedPath[] {
  const { sealing } = deps;
  if (!sealing) return [];
  const { status, unseal, seal } = sealEndpoints;
  return [
    { method: status.method, path: status.path, serve: async () => ({ outcome: answered(sealing.status()) }) },
    { method: unseal.method, path: unseal.path, serve: (c) => serveUnseal(deps, sealing, c) },
    { method: seal.method, path: seal.path, serve: serveEndpoint(deps, seal, sealRoute(sealing)) },
  ];
}

async function serveUnseal(deps: AppDeps, sealing: Sealing, c: AppContext): Promise<Served> {
  try {
    const refusal = sealing.refusal(c.env ?? {});
    if (refusal) throw refusal;
    const limit = Math.min(deps.bodyLimit ?? defaultBodyLimit, publicBodyLimit);
    const body = await readJsonBody(c, { limit, kept: new Map() });
    if (body.problem) return { outcome: refused(body.problem) };
    const step = unsealBody.safeParse(body.value);
    if (!step.success) return { outcome: refused(invalidInput(step.error.issues, body.value, 'body')) };
    return { outcome: answered(await sealing.unseal(step.data, c.env ?? {})) };
  } catch (error) {
    return { outcome: refused(wireError(error)) };
  }
}

/** A key, share or passphrase that does not fit, or is no such thing, is input that breaks a rule. */
function wireError(error: unknown): unknown {
  if (!(error instanceof KmsError) || !['refused', 'corrupt', 'invalid'].includes(error.code)) return error;
  // Whoever types it in from elsewhere sees the message alone.
  const { message, hint } = error;
  return new KmsError('invalid', hint === undefined ? message : `${message}; ${hint}`);
}

function sealRoute(sealing: Sealing): PlainRoute {
  return async (_ctx, input): Promise<SealStatus> => {
    const { deps, handle } = input;
    // Nothing is sealed before the record of it is durable.
    input.afterCommit(async () => {
      await deps.recordInOthers?.('system.seal', handle);
      await sealing.seal();
    });
    return { sealed: true, kinds: sealing.status().kinds };
  };
}
