// Requests to AWS's token service: credentials for a signed token, and who a caller is.
import { accountOf } from '../../core/aws-names.ts';
import type { World } from '../../core/context.ts';
import { openAwsSession, sessionKeyId } from '../../core/proofs/aws-sessions.ts';
import { KmsError } from '../../errors.ts';
import type { OpenState } from '../../http/appliance-port.ts';
import { type ApiRequest, emptyBody, headerOf } from '../../http/request.ts';
import type { Outcome } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import type { JsonObject } from '../../model/json.ts';
import type { AwsCaller, AwsCallers, RefusedCaller } from './callers.ts';
import { type Failure, failed, failureOf, unknownCaller } from './errors.ts';
import { assumedAnswer, assumedRole, callerAnswer, type StsFailure, stsError, stsFailureOf } from './sts.ts';

/** An answer in XML. */
interface StsAnswer {
  readonly status: number;
  readonly text: string;
}

const notAuthorized = 'Not authorized to perform sts:AssumeRoleWithWebIdentity';

export class StsRequests {
  readonly #world: World;
  readonly #callers: AwsCallers;
  readonly #ways: Ways;

  constructor(world: World, callers: AwsCallers, ways: Ways) {
    this.#world = world;
    this.#callers = callers;
    this.#ways = ways;
  }

  async answerTo(
    open: OpenState,
    request: ApiRequest,
    region: string,
    body: Uint8Array,
    id: string,
  ): Promise<StsAnswer | RefusedCaller> {
    const form = new URLSearchParams(new TextDecoder().decode(body));
    const action = form.get('Action');
    if (action === 'AssumeRoleWithWebIdentity') return this.#assumeRole(open, request, form, id);
    const isKnown = action === 'GetCallerIdentity';
    // Without a signature, the refusal is about the action.
    if (!isKnown && headerOf(request, 'authorization') === undefined) return refusedForm(unknownAction);
    const caller = await this.#callers.callerOf(open, request, body, { region, service: 'sts' }, id);
    if ('check' in caller) return caller;
    return isKnown ? this.#identity(request, caller, id) : this.#refuseAction(request, caller, id);
  }

  async #refuseAction(request: ApiRequest, caller: AwsCaller, id: string): Promise<StsAnswer> {
    const keyid = await this.#callers.recordAnswer(caller, request, { status: unknownAction.status });
    return told(stsFailureOf(keyid === undefined ? unknownCaller : unknownAction), id);
  }

  async #identity(request: ApiRequest, caller: AwsCaller, id: string): Promise<StsAnswer> {
    const keyid = await this.#callers.recordAnswer(caller, request, { status: 200 });
    if (keyid === undefined) return told(stsFailureOf(unknownCaller), id);
    const account = accountOf(caller.handle.tenant.id);
    return { status: 200, text: callerAnswer(account, keyid, caller.session, id) };
  }

  async #assumeRole(
    open: OpenState,
    request: ApiRequest,
    form: URLSearchParams,
    id: string,
  ): Promise<StsAnswer | RefusedCaller> {
    const asked = assumedRole(form);
    if ('type' in asked) return refusedForm(asked);
    const handle = tenantOf(open, asked.account);
    if (!handle) {
      await brake(open, request, asked);
      return { failure: failed('AccessDeniedException', notAuthorized), check: 'account' };
    }
    const { token, role, sessionName: name, seconds } = asked;
    const session = await this.#logIn(
      request,
      handle,
      { token, role, ...(seconds !== undefined && { seconds }) },
      name,
    );
    if ('outcome' in session) return told(loginFailureOf(session.outcome), id);
    const accessToken = String(session.answer.accessToken);
    const secretAccessKey = await handle.store.transaction((tx) =>
      openAwsSession(tx, accessToken, { role, name }, (length) => this.#world.random(length)),
    );
    const credentials = { accessKeyId: sessionKeyId(accessToken), secretAccessKey };
    return { status: 200, text: assumedAnswer(asked, credentials, session.answer, id) };
  }

  async #logIn(
    request: ApiRequest,
    handle: TenantHandle,
    body: object,
    sessionName: string,
  ): Promise<{ readonly answer: JsonObject } | { readonly outcome: Outcome }> {
    const way = this.#ways.endpoints.get('workloadLogin');
    if (!way) throw new KmsError('internal', 'expected an endpoint that is served');
    let answer: JsonObject | undefined;
    const codec = {
      decode: () => ({ value: body, came: {} }),
      encode: (ours: JsonObject) => {
        answer = ours;
        return { status: 200 };
      },
    };
    const ofTenant = { ...request, tenant: handle.tenant.name, body: emptyBody, room: undefined };
    const call = { credential: undefined, params: {}, query: {}, dialect: 'aws' };
    const { outcome } = await way(ofTenant, { ...call, codec, props: { sessionName } });
    return answer && outcome.status === 200 ? { answer } : { outcome };
  }
}

const unknownAction = failed('UnknownOperationException', 'the action is not supported here');

/** A form that is none of the service's. It is in the log and the metrics; who sent it is not known. */
function refusedForm(failure: Failure): RefusedCaller {
  return { failure, check: 'form', reason: failure.message };
}

function told(why: StsFailure, id: string): StsAnswer {
  return { status: why.status, text: stsError(why, id) };
}

function tenantOf({ tenants }: OpenState, account: string): TenantHandle | undefined {
  return tenants.handles().find(({ tenant }) => accountOf(tenant.id) === account);
}

/** A login to an account that is not there is braked like one to a role that is not there. */
async function brake(
  { people }: OpenState,
  { remoteAddress: address = 'local' }: ApiRequest,
  { account, token }: { readonly account: string; readonly token: string },
): Promise<void> {
  await people.workloads.attempt(
    { tenant: `account ${account}`, address },
    { token, role: undefined },
    async () => ({}),
  );
}

/** The refusal of a login with a signed token. */
function loginFailureOf(outcome: Outcome): StsFailure {
  const { status, body, reason } = outcome;
  const check: unknown = Reflect.get(body, 'check');
  const message = String(Reflect.get(body, 'message') ?? notAuthorized);
  if (status === 429) {
    return { code: 'Throttling', message: reason === undefined ? message : `${reason}; ${message}`, status: 400 };
  }
  if (status === 503) return { code: 'IDPCommunicationError', message, status: 400 };
  if (status !== 400) return stsFailureOf(failureOf(outcome));
  if (check === 'time' && message.includes('expired')) return { code: 'ExpiredTokenException', message, status: 400 };
  if (check === 'form' || check === 'keys' || check === 'signature' || check === 'audience') {
    return { code: 'InvalidIdentityToken', message, status: 400 };
  }
  return { code: 'AccessDenied', message: notAuthorized, status: 403 };
}
