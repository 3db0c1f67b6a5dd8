// Local endpoints are for the administrator at the machine: served on the local socket and in process, unknown
// elsewhere. They work while sealed, and write their own activity records, in the log of each tenant concerned.
import type { LocalEndpoint } from '../api/endpoint.ts';
import type { LocalId } from '../api/local-endpoints.ts';
import { localCaller } from '../core/credential.ts';
import { KmsError, systemError } from '../errors.ts';
import { tenantHeader } from '../model/names.ts';
import { sealedError } from './admission.ts';
import type { AppliancePort, State } from './appliance-port.ts';
import { readJsonBody } from './body.ts';
import { checkParts, rawInput } from './input.ts';
import { approveLocal, type LocalApproval } from './local-approvals.ts';
import { type ApiRequest, headerOf, planOf } from './request.ts';
import { brokenOff } from './request-log.ts';
import { answered, type Outcome, type RequestResult, refused, streamed, unknownPath } from './respond.ts';
import type { PathParams, RequestScope, ServedPath, TenantRoutes } from './route.ts';
import { chainRoutes } from './routes/activity.ts';
import { oidcAdminRoutes } from './routes/oidc.ts';
import { linkRoutes } from './routes/people.ts';
import { localTenant } from './tenant-directory.ts';

const ofTenant: TenantRoutes = { ...chainRoutes, ...linkRoutes, ...oidcAdminRoutes };

/** A handler with its types erased: ids have bound handlers to their endpoints. */
type Handler = (input: object) => Promise<object>;

/** Adds the hint: the administrator at the machine may be the only one who can follow it. */
function withHint(outcome: Outcome, error: unknown): Outcome {
  if (!(error instanceof KmsError) || error.hint === undefined || outcome.status === 500) return outcome;
  return { ...outcome, body: { ...outcome.body, hint: error.hint } };
}

/** A refusal by the machine, such as a full disk, is not a defect: it becomes `unavailable`, to be retried. */
function ofMachine(cause: unknown): unknown {
  const error = systemError(cause, 'a file of the appliance');
  if (!(error instanceof KmsError) || error.code !== 'refused') return error;
  const { message, hint } = error;
  return new KmsError('unavailable', message, { cause: error.cause, ...(hint !== undefined && { hint }) });
}

/** Does an act, and tells its approval how it ended. */
async function approved<R>(approval: LocalApproval | undefined, act: () => Promise<R>): Promise<R> {
  if (!approval) return act();
  try {
    const done = await act();
    approval.done();
    return done;
  } catch (cause) {
    const { status } = refused(ofMachine(cause));
    // Otherwise a part of it may have been done.
    if (status < 500) await approval.undone(status);
    else approval.done();
    throw cause;
  }
}

export function serveLocal(appliance: AppliancePort, endpoint: LocalEndpoint & { readonly id: LocalId }): ServedPath {
  const { id, method, path, access, changes = method !== 'GET' } = endpoint;
  const type = endpoint.binary ? 'application/octet-stream' : endpoint.text;

  /** Throws `sealed` if only an open appliance has an answer. */
  function handlerOf(state: State, request: ApiRequest): Handler {
    const handlers: Readonly<Partial<Record<LocalId, unknown>>> = access.of === 'tenant' ? ofTenant : state.local;
    const handle = handlers[id] as Handler | undefined;
    if (handle && access.of === 'appliance') return handle;
    if (!handle || state.sealed) throw sealedError;
    const handled = localTenant(state.tenants, headerOf(request, tenantHeader));
    const around: RequestScope = { appliance, open: state, handle: handled };
    return (input) => handle({ ...input, ...around });
  }

  async function serve(request: ApiRequest, state: State, params: PathParams): Promise<RequestResult> {
    if (!request.local) return { outcome: refused(unknownPath) };
    try {
      const handle = handlerOf(state, request);
      const refusal = changes && !state.sealed ? state.refuseWrites() : undefined;
      if (refusal) throw refusal;
      const limit = appliance.bodyLimit;
      const body = endpoint.body && (await readJsonBody(request, { limit, kept: 'all', holder: localCaller.id }));
      const checked = checkParts(endpoint, { ...rawInput(endpoint, request, params), body });
      if (checked.error) throw checked.error;
      const plan = planOf(request);
      const approval = state.sealed ? undefined : await approveLocal(appliance, state, id, request, checked.input);
      const answer = await approved(approval, () => handle({ ...checked.input, ...(plan !== undefined && { plan }) }));
      if (type === undefined) return { outcome: answered(answer) };
      // Cast: the types of the handlers ensure that these endpoints answer pieces.
      const pieces = answer as AsyncIterable<string | Uint8Array>;
      return { outcome: streamed(type, pieces, brokenOff(appliance.logger, path, request.room)) };
    } catch (cause) {
      const error = ofMachine(cause);
      return { outcome: withHint(refused(error), error) };
    }
  }

  return { method, path, local: true, serve };
}
