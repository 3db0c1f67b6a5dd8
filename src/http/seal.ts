// Sealing and unsealing over HTTP. Its state and the steps to open it are there for whoever holds a share, without a credential, since
// while it is sealed there are none; sealing goes the way of every other request, flag and activity record included.
import { type SealStatus, sealEndpoints, unsealBody } from '../api/seal.ts';
import { KmsError } from '../errors.ts';
import { defaultBodyLimit, readJsonBody } from './body.ts';
import type { AppContext, AppDeps, Sealing } from './deps.ts';
import { type PlainRoute, serveEndpoint } from './pipeline.ts';
import { invalidInput } from './problems.ts';
import type { Served } from './request-log.ts';
import { answered, refused } from './respond.ts';

export interface SealRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly serve: (c: AppContext) => Promise<Served>;
}

/** None where the appliance cannot be sealed from outside. */
export function sealRoutes(deps: AppDeps): readonly SealRoute[] {
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
    const body = await readJsonBody(c, Math.min(deps.bodyLimit ?? defaultBodyLimit, longestBody));
    if (body.problem) return { outcome: refused(body.problem) };
    const step = unsealBody.safeParse(body.value);
    if (!step.success) return { outcome: refused(invalidInput(step.error.issues, body.value, 'body')) };
    return { outcome: answered(await sealing.unseal(step.data, c.env ?? {})) };
  } catch (error) {
    return { outcome: refused(wireError(error)) };
  }
}

const longestBody = 64 * 1024;

/** A key, share or passphrase that does not fit, or is no such thing, is input that breaks a rule. */
function wireError(error: unknown): unknown {
  if (!(error instanceof KmsError) || !['refused', 'corrupt', 'invalid'].includes(error.code)) return error;
  // Whoever types it in from elsewhere sees the message alone.
  const { message, hint } = error;
  return new KmsError('invalid', hint === undefined ? message : `${message}; ${hint}`);
}

function sealRoute(sealing: Sealing): PlainRoute {
  const sealed: SealStatus = { sealed: true, kinds: [] };
  return {
    run: async () => undefined,
    answer: () => ({ ...sealed, kinds: sealing.status().kinds }),
    // Nothing is sealed before the record of it is durable.
    after: async () => sealing.seal(),
  };
}
