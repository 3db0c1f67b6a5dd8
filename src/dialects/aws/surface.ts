// The appliance as AWS KMS, and as the part of AWS's token service that programs without a stored secret use: POST /,
// JSON 1.1 and forms. A request is decoded into calls of our endpoints, which authorize, operate and record.

import type { Bearer, Proven } from '../../core/credential.ts';
import { lookUpManagedKey } from '../../core/managed-key-names.ts';
import { WrittenItems } from '../../core/pages.ts';
import { sessionKeyId, sessionSecret } from '../../core/proofs/aws-sessions.ts';
import { toHex } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import { sealedError } from '../../http/admission.ts';
import type { AppliancePort, OpenState } from '../../http/appliance-port.ts';
import { publicBodyLimit } from '../../http/body.ts';
import { type ApiRequest, emptyBody, headerOf } from '../../http/request.ts';
import type { Answer, Reply } from '../../http/request-log.ts';
import { type Outcome, refused } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import type { Tables } from '../../store/port.ts';
import type { ManagedKey } from '../../store/tables/managed-keys.ts';
import { type AwsCaller, AwsCallers } from './callers.ts';
import { AwsRefusal, type Failure, failed, failure, failureOf } from './errors.ts';
import { checkFields, textOf } from './fields.ts';
import { keyOperations } from './keys.ts';
import { messageOperations } from './messages.ts';
import { accountOf, keyRefOf, type Place } from './names.ts';
import type { AwsOperation, Call, FoundKey, Work } from './operation.ts';
import { signatureOperations } from './signatures.ts';
import { assumedAnswer, assumedRole, callerAnswer, type StsFailure, stsError } from './sts.ts';

const operations: Readonly<Record<string, AwsOperation>> = {
  ...messageOperations,
  ...signatureOperations,
  ...keyOperations,
};
const target = 'TrentService.';
const json = 'application/x-amz-json-1.1';
const noParams: Readonly<Record<string, string>> = Object.freeze({});

export function awsSurface(appliance: AppliancePort, ways: Ways): Answer {
  const surface = new AwsSurface(appliance, ways);
  return (request) => surface.handle(request);
}

class AwsSurface {
  readonly #appliance: AppliancePort;
  readonly #ways: Ways;
  readonly #callers: AwsCallers;

  constructor(appliance: AppliancePort, ways: Ways) {
    this.#appliance = appliance;
    this.#ways = ways;
    this.#callers = new AwsCallers(appliance.world);
  }

  /** Never rejects. */
  async handle(request: ApiRequest): Promise<Reply> {
    const id = this.#uuid();
    const isSts = headerOf(request, 'content-type')?.startsWith('application/x-www-form-urlencoded') === true;
    try {
      const { state } = this.#appliance;
      if (state.sealed) throw sealedError;
      if (request.method !== 'POST' || request.path !== '/') {
        return { outcome: told(failed('UnknownOperationException', 'requests are POST /'), id) };
      }
      const body = await request.body.read(publicBodyLimit, undefined);
      if (!body) throw failure('ValidationException', 'the request is too long');
      return { outcome: isSts ? await this.#sts(state, request, body, id) : await this.#kms(state, request, body, id) };
    } catch (error) {
      const outcome = error instanceof KmsError ? refused(error) : { status: 500, body: {}, cause: error };
      if (outcome.status >= 500 && outcome.cause !== undefined) {
        this.#appliance.logger.error({ err: error, route: 'aws' }, 'request failed');
      }
      const why = error instanceof AwsRefusal ? error.failure : failureOf(outcome);
      return { outcome: isSts ? toldXml(stsFailureOf(why), id) : told(why, id) };
    }
  }

  async #kms(open: OpenState, request: ApiRequest, body: Uint8Array, id: string): Promise<Outcome> {
    const caller = await this.#callers.callerOf(open, request, body);
    if ('type' in caller) return told(caller, id);
    const named = headerOf(request, 'x-amz-target') ?? '';
    const name = named.startsWith(target) ? named.slice(target.length) : '';
    const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
    if (!operation) return told(failed('UnknownOperationException'), id);
    try {
      const given = objectIn(body);
      checkFields(given, operation.fields);
      refuseGrantTokens(given);
      const work = await this.#workOf(caller, request, operation, given);
      const answer = await operation.run(given, work);
      if (given.DryRun === true)
        throw failure('DryRunOperationException', 'The request would have succeeded, but the DryRun option is set.');
      return answered(answer, id);
    } catch (error) {
      if (error instanceof AwsRefusal) return told(error.failure, id);
      if (error instanceof EndpointRefusal) return told(failureOf(error.outcome, operation), id);
      throw error;
    }
  }

  async #workOf(
    { handle, credential }: AwsCaller,
    request: ApiRequest,
    { keys = [] }: AwsOperation,
    given: JsonObject,
  ): Promise<Work> {
    const place = { account: accountOf(handle.tenant.id), region: 'us-east-1' };
    const { store } = handle;
    const found: FoundKey[] = [];
    for (const rule of keys) {
      const [, optional = '', alias = '', field = ''] = /^(\??)(\*?)(\w+)$/.exec(rule) ?? [];
      const text = textOf(given, field);
      if (text === undefined) {
        if (optional === '') throw failure('ValidationException', `${field} is missing`);
        continue;
      }
      found.push(await store.transaction((tables) => keyNamed(tables, text, place, alias !== '')));
    }
    return {
      place,
      keys: found,
      newName: () => this.#uuid(),
      find: (ids) => store.transaction((tables) => firstOf(tables, ids)),
      findNamed: (name) => store.transaction((tables) => foundKey(lookUpManagedKey(tables, name))),
      call: (call) => this.#call(request, handle, credential, call),
    };
  }

  /** Runs one of our endpoints. Rejects with `EndpointRefusal`. */
  async #call(
    request: ApiRequest,
    handle: TenantHandle,
    credential: Bearer | Proven | undefined,
    { id, params = noParams, query = noParams, body }: Call,
  ): Promise<JsonObject> {
    const way = this.#ways.endpoints.get(id);
    if (!way) throw new KmsError('internal', 'expected an endpoint that is served');
    let ours: JsonObject | undefined;
    const codec = {
      ...(body && { decode: () => ({ value: body, came: {} }) }),
      encode: (answer: JsonObject) => {
        ours = answer.data instanceof WrittenItems ? { ...answer, data: answer.data.parsed() } : answer;
        return { status: 200 };
      },
    };
    const ofTenant = { ...request, tenant: handle.tenant.name, body: emptyBody, room: undefined };
    const { outcome } = await way(ofTenant, { credential, params, query, codec, dialect: 'aws' });
    if (ours && outcome.status === 200) return ours;
    throw new EndpointRefusal(outcome);
  }

  async #sts(open: OpenState, request: ApiRequest, body: Uint8Array, id: string): Promise<Outcome> {
    const form = new URLSearchParams(new TextDecoder().decode(body));
    switch (form.get('Action')) {
      case 'AssumeRoleWithWebIdentity':
        return this.#assumeRole(open, request, form, id);
      case 'GetCallerIdentity': {
        const caller = await this.#callers.callerOf(open, request, body);
        if ('type' in caller) return toldXml(stsFailureOf(caller), id);
        const { keyid } = await this.#whoIs(caller);
        return xml(200, callerAnswer(accountOf(caller.handle.tenant.id), keyid, id), id);
      }
      default:
        return toldXml({ code: 'InvalidAction', message: 'the action is not supported here', status: 400 }, id);
    }
  }

  async #whoIs({ handle, credential }: AwsCaller): Promise<{ readonly keyid: string }> {
    return handle.store.transaction(({ proofs, workloadSessions }) => {
      const keyid =
        'proof' in credential
          ? proofs.byId(credential.proof)?.apikeyId
          : workloadSessions.byTokenHash(credential.tokenHash)?.apikeyId;
      return { keyid: keyid ?? '' };
    });
  }

  async #assumeRole(open: OpenState, request: ApiRequest, form: URLSearchParams, id: string): Promise<Outcome> {
    const asked = assumedRole(form);
    if ('code' in asked) return toldXml(asked, id);
    const { tenants } = open;
    const handle = tenants
      .names()
      .flatMap((name) => tenants.byName(name) ?? [])
      .find(({ tenant }) => accountOf(tenant.id) === asked.account);
    if (!handle) return toldXml({ code: 'AccessDenied', message: notAuthorized, status: 403 }, id);
    const { token, role, seconds } = asked;
    try {
      const body = { token, role, ...(seconds !== undefined && { seconds }) };
      const session = await this.#call(request, handle, undefined, { id: 'workloadLogin', body });
      const accessToken = String(session.accessToken);
      const credentials = {
        accessKeyId: sessionKeyId(accessToken),
        secretAccessKey: sessionSecret(handle.tenant.keys, accessToken),
      };
      return xml(200, assumedAnswer(asked, credentials, session, id), id);
    } catch (error) {
      if (error instanceof EndpointRefusal) return toldXml(loginFailureOf(error.outcome), id);
      throw error;
    }
  }

  #uuid(): string {
    return toHex(this.#appliance.world.random(16)).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }
}

class EndpointRefusal extends Error {
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    super('refused');
    this.outcome = outcome;
  }
}

function keyNamed(tables: Tables, text: string, place: Place, takesAlias: boolean): FoundKey {
  const ref = keyRefOf(text, place, takesAlias);
  if ('error' in ref) throw failure(ref.error, ref.message);
  if ('ids' in ref) {
    const found = firstOf(tables, ref.ids);
    return found ?? { ref: ref.ids[0] ?? '', id: undefined, type: undefined, versions: undefined };
  }
  const found = foundKey(lookUpManagedKey(tables, ref.alias));
  return found ?? { ref: ref.alias, id: undefined, type: undefined, versions: undefined };
}

function firstOf({ managedKeys }: Pick<Tables, 'managedKeys'>, ids: readonly string[]): FoundKey | undefined {
  for (const id of ids) {
    const found = foundKey(managedKeys.byId(id));
    if (found) return found;
  }
  return undefined;
}

function foundKey(key: ManagedKey | undefined): FoundKey | undefined {
  return key && { ref: key.id, id: key.id, type: key.type, versions: key.latestVersion };
}

function objectIn(bytes: Uint8Array): JsonObject {
  try {
    const value: unknown =
      bytes.length === 0 ? {} : JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (isJsonObject(value)) return value;
  } catch {
    // Told below.
  }
  throw failure('SerializationException');
}

function refuseGrantTokens({ GrantTokens: tokens }: JsonObject): void {
  if (Array.isArray(tokens) && tokens.length > 0) throw failure('InvalidGrantTokenException');
}

function answered(answer: object | undefined, id: string): Outcome {
  const headers = { 'Content-Type': json, 'x-amzn-RequestId': id };
  return { status: 200, body: {}, content: answer === undefined ? '' : JSON.stringify(answer), headers };
}

function told({ type, message, status }: Failure, id: string): Outcome {
  const body = { __type: type, ...(message !== undefined && { message }) };
  const headers = { 'Content-Type': json, 'x-amzn-RequestId': id };
  return { status, body, content: JSON.stringify(body), headers };
}

function xml(status: number, text: string, id: string): Outcome {
  const headers = { 'Content-Type': 'text/xml; charset=utf-8', 'x-amzn-RequestId': id };
  return { status, body: {}, content: text, headers };
}

function toldXml(why: StsFailure, id: string): Outcome {
  return xml(why.status, stsError(why, id), id);
}

const notAuthorized = 'Not authorized to perform sts:AssumeRoleWithWebIdentity';

/** The names that the token service has for refusals of signed requests. */
const stsCodes: Readonly<Record<string, readonly [code: string, status: number]>> = {
  UnrecognizedClientException: ['InvalidClientTokenId', 403],
  InvalidSignatureException: ['SignatureDoesNotMatch', 403],
  MissingAuthenticationTokenException: ['MissingAuthenticationToken', 403],
  IncompleteSignatureException: ['IncompleteSignature', 400],
  ThrottlingException: ['Throttling', 400],
  ServiceUnavailableException: ['ServiceUnavailable', 503],
};

function stsFailureOf({ type, message = type }: Failure): StsFailure {
  const [code, status] = stsCodes[type] ?? ['ValidationError', 400];
  return { code, message, status };
}

/** The refusal of a login with a signed token. */
function loginFailureOf(outcome: Outcome): StsFailure {
  const { status, body } = outcome;
  const check: unknown = Reflect.get(body, 'check');
  const message = String(Reflect.get(body, 'message') ?? notAuthorized);
  if (status === 429) return { code: 'Throttling', message, status: 400 };
  if (status === 503) return { code: 'IDPCommunicationError', message, status: 400 };
  if (status !== 400) return stsFailureOf(failureOf(outcome));
  if (check === 'time' && message.includes('expired')) return { code: 'ExpiredTokenException', message, status: 400 };
  if (check === 'form' || check === 'keys' || check === 'signature' || check === 'audience') {
    return { code: 'InvalidIdentityToken', message, status: 400 };
  }
  return { code: 'AccessDenied', message: notAuthorized, status: 403 };
}
