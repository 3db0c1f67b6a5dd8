// The appliance as AWS KMS, and as the part of AWS's token service that programs without a stored secret use: POST /,
// JSON 1.1 and forms. Both are answered by the same listener, and told apart by the content type.
import { KmsError } from '../../errors.ts';
import { sealedError } from '../../http/admission.ts';
import type { AppliancePort, OpenState } from '../../http/appliance-port.ts';
import { type ApiRequest, headerOf } from '../../http/request.ts';
import type { Answer, Reply } from '../../http/request-log.ts';
import { type Outcome, refused } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import { AwsCallers } from './callers.ts';
import { AwsRefusal, type Failure, failed, failureOf } from './errors.ts';
import { KmsRequests } from './kms-requests.ts';
import { uuidFrom } from './names.ts';
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

  constructor(appliance: AppliancePort, ways: Ways) {
    this.#appliance = appliance;
    this.#callers = new AwsCallers(appliance.world);
    this.#kms = new KmsRequests(appliance, ways);
    this.#sts = new StsRequests(this.#callers, ways);
  }

  /** Never rejects. */
  async handle(request: ApiRequest): Promise<Reply> {
    const id = uuidFrom(this.#appliance.world.random(16));
    const isSts = headerOf(request, 'content-type')?.startsWith(form) === true;
    try {
      const { state } = this.#appliance;
      if (state.sealed) throw sealedError;
      const body = await bodyOf(request);
      const region = request.awsRegion ?? usualRegion;
      if (!isSts) return { outcome: await this.#answerKms(state, request, region, body, id) };
      const { status, text } = await this.#sts.answerTo(state, request, region, body, id);
      return { outcome: xml(status, text, id) };
    } catch (error) {
      const why = this.#failureOf(error);
      return { outcome: isSts ? xmlFailure(why, id) : told(why, id) };
    }
  }

  async #answerKms(
    open: OpenState,
    request: ApiRequest,
    region: string,
    body: Uint8Array,
    id: string,
  ): Promise<Outcome> {
    const caller = await this.#callers.callerOf(open, request, body, { region, service: 'kms' });
    if ('type' in caller) return told(caller, id);
    const result = await this.#kms.answerTo(request, caller, region, body);
    return 'failure' in result ? told(result.failure, id) : answered(result.answer, id);
  }

  #failureOf(error: unknown): Failure {
    if (error instanceof AwsRefusal) return error.failure;
    const outcome = error instanceof KmsError ? refused(error) : { status: 500, body: {}, cause: error };
    if (outcome.status >= 500 && outcome.cause !== undefined) {
      this.#appliance.logger.error({ err: error, route: 'aws' }, 'request failed');
    }
    return failureOf(outcome);
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
