// The appliance as AWS KMS, and as the part of AWS's token service that programs without a stored secret use: POST /,
// JSON 1.1 and forms. Both are answered by the same listener, and told apart by the content type.
import { uuidFrom } from '../../core/aws-names.ts';
import { KmsError } from '../../errors.ts';
import { sealedError } from '../../http/admission.ts';
import type { AppliancePort, OpenState } from '../../http/appliance-port.ts';
import { type ApiRequest, headerOf } from '../../http/request.ts';
import type { Answer, Handler, Reply } from '../../http/request-log.ts';
import { type Outcome, type RequestResult, refused } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import { resolveTenant } from '../../http/tenant-directory.ts';
import { AwsCallers, passedOn, type RefusedCaller } from './callers.ts';
import { AwsRefusal, type Failure, failed, failureOf } from './errors.ts';
import { KmsRequests } from './kms-requests.ts';
import { stsError, stsFailureOf } from './sts.ts';
import { StsRequests } from './sts-requests.ts';

const json = 'application/x-amz-json-1.1';
const form = 'application/x-www-form-urlencoded';
/** Longest body in bytes: a ciphertext with two encryption contexts, or a policy, in JSON. */
const longestBody = 128 * 1024;
const usualRegion = 'us-east-1';

export function awsSurface(appliance: AppliancePort, ways: Ways): Answer {
  const surface = new AwsSurface(appliance, ways);
  return (request) => surface.handle(request);
}

class AwsSurface {
  readonly #appliance: AppliancePort;
  readonly #callers: AwsCallers;
  readonly #kms: KmsRequests;
  readonly #sts: StsRequests;
  readonly #ways: Ways;
  /** Ways of requests that are refused before an endpoint is called, by their name in the metrics. */
  readonly #refusals = new Map<string, Handler<RequestResult>>();

  constructor(appliance: AppliancePort, ways: Ways) {
    this.#appliance = appliance;
    this.#callers = new AwsCallers(appliance.world, ways);
    this.#kms = new KmsRequests(appliance, ways, this.#callers);
    this.#sts = new StsRequests(appliance.world, this.#callers, ways);
    this.#ways = ways;
  }

  /** Never rejects. */
  async handle(sent: ApiRequest): Promise<Reply> {
    const id = uuidFrom(this.#appliance.world.random(16));
    const request = { ...sent, requestId: id };
    const isSts = headerOf(request, 'content-type')?.startsWith(form) === true;
    const { state } = this.#appliance;
    try {
      if (state.sealed) throw sealedError;
      const body = await bodyOf(request);
      const region = request.awsRegion ?? usualRegion;
      const answer = isSts
        ? await this.#answerSts(state, request, region, body, id)
        : await this.#answerKms(state, request, region, body, id);
      return 'check' in answer ? await this.#refuse(state, request, answer, isSts) : { outcome: answer };
    } catch (error) {
      if (!state.sealed && error instanceof AwsRefusal) return this.#refuse(state, request, malformed(error), isSts);
      return this.#fail(request, error, isSts);
    }
  }

  async #answerKms(
    open: OpenState,
    request: ApiRequest,
    region: string,
    body: Uint8Array,
    id: string,
  ): Promise<Outcome | RefusedCaller> {
    const caller = await this.#callers.callerOf(open, request, body, { region, service: 'kms' }, id);
    if ('check' in caller) return caller;
    const result = await this.#kms.answerTo(request, caller, region, body);
    return 'failure' in result ? told(result.failure, id) : answered(result.answer, id);
  }

  async #answerSts(
    open: OpenState,
    request: ApiRequest,
    region: string,
    body: Uint8Array,
    id: string,
  ): Promise<Outcome | RefusedCaller> {
    const answer = await this.#sts.answerTo(open, request, region, body, id);
    return 'check' in answer ? answer : xml(answer.status, answer.text, id);
  }

  /** Answers, logs and counts a request that no endpoint sees. */
  #refuse(open: OpenState, request: ApiRequest, refusal: RefusedCaller, isSts: boolean): Promise<Reply> {
    const { check, failure, keyid, reason, tenant = tenantOfHost(open, request) } = refusal;
    const { requestId: id = '' } = request;
    const action = `aws.${check}`;
    const why = `refused by ${check}${reason === undefined ? '' : `: ${reason}`}`;
    const outcome = { ...(isSts ? xmlFailure(failure, id) : told(failure, id)), reason: why };
    return this.#logged(action)(request, {
      outcome,
      action,
      granted: false,
      ...(tenant !== undefined && { tenant }),
      ...(keyid !== undefined && { keyid }),
    });
  }

  /** Answers, logs and counts a request that fails before an endpoint sees it. */
  #fail(request: ApiRequest, error: unknown, isSts: boolean): Promise<Reply> {
    const { requestId: id = '' } = request;
    const ours: Outcome = error instanceof KmsError ? refused(error) : { status: 500, body: {}, cause: error };
    const failure = failureOf(ours);
    const outcome = { ...(isSts ? xmlFailure(failure, id) : told(failure, id)), cause: ours.cause };
    return this.#logged('aws.failed')(request, { outcome, action: 'aws.failed' });
  }

  #logged(action: string): Handler<RequestResult> {
    const way = this.#refusals.get(action) ?? this.#ways.logged({ path: 'aws', counted: action }, passedOn);
    this.#refusals.set(action, way);
    return way;
  }
}

/** A request that is none of these services, or too long; who sent it is not known. */
function malformed({ failure }: AwsRefusal): RefusedCaller {
  return { failure, check: 'form', reason: failure.message ?? failure.type };
}

/** The tenant in whose metrics a request counts that names none. */
function tenantOfHost(open: OpenState, request: ApiRequest): string | undefined {
  try {
    return resolveTenant(open, request).tenant.id;
  } catch {
    return undefined;
  }
}

/** Throws `AwsRefusal` for a request that is none of these services. */
async function bodyOf(request: ApiRequest): Promise<Uint8Array> {
  const { method, path, search } = request;
  if (method !== 'POST' || path !== '/' || search !== '') {
    throw new AwsRefusal(failed('UnknownOperationException', 'Requests are POST /.'));
  }
  if ((headerOf(request, 'content-encoding') ?? 'identity') !== 'identity') {
    throw new AwsRefusal(failed('SerializationException', 'A body is taken as it is, not compressed.'));
  }
  const body = await request.body.read(longestBody, undefined);
  if (!body) throw new AwsRefusal(failed('ValidationException', 'The request is too long.'));
  return body;
}

function answered(answer: object | undefined, id: string): Outcome {
  const headers = { 'Content-Type': json, 'x-amzn-RequestId': id };
  return { status: 200, body: {}, content: answer === undefined ? '' : JSON.stringify(answer), headers };
}

function told({ type, message, status }: Failure, id: string): Outcome {
  const body = { __type: type, ...(message !== undefined && { message }) };
  return { status, body, content: JSON.stringify(body), headers: { 'Content-Type': json, 'x-amzn-RequestId': id } };
}

function xml(status: number, text: string, id: string): Outcome {
  const headers = { 'Content-Type': 'text/xml; charset=utf-8', 'x-amzn-RequestId': id };
  return { status, body: {}, content: text, headers };
}

function xmlFailure(why: Failure, id: string): Outcome {
  const failure = stsFailureOf(why);
  return xml(failure.status, stsError(failure, id), id);
}
