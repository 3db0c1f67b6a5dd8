// Requests to operations of AWS KMS: a request names an operation, its fields are checked, its keys looked up, and one
// endpoint of ours is called, which authorizes, operates and records. A refusal of the input goes through the same
// endpoint, so that it is told only to those whom that would serve, and recorded like any other.
import { endpoints } from '../../api/endpoints.ts';
import { nameAskedFor } from '../../core/approval-names.ts';
import { isAllowed } from '../../core/authorization.ts';
import { accountOf, newUuidName } from '../../core/aws-names.ts';
import { lookUpManagedKey } from '../../core/managed-key-names.ts';
import { WrittenItems } from '../../core/pages.ts';
import { KmsError } from '../../errors.ts';
import { identify } from '../../http/admission.ts';
import type { AppliancePort } from '../../http/appliance-port.ts';
import type { Codec } from '../../http/codec.ts';
import { type ApiRequest, emptyBody, headerOf } from '../../http/request.ts';
import { type Outcome, refused, staleCall } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import { isJsonObject, type JsonObject, nestsWithin } from '../../model/json.ts';
import type { Tables } from '../../store/port.ts';
import type { AwsCaller, AwsCallers } from './callers.ts';
import {
  AwsRefusal,
  type Failure,
  failed,
  failure,
  failureOf,
  messageOf,
  ownFailure,
  unknownCaller,
} from './errors.ts';
import { fieldsOf, type OperationName } from './field-table.ts';
import { checkFields, textOf } from './fields.ts';
import { type FoundKey, foundKey, keyNamed, keyWithId, Looks, lookAt, missing, useRefusal } from './found-keys.ts';
import type { Place } from './names.ts';
import type { AwsOperation, Call, Work } from './operation.ts';
import { isOperation, operations } from './operations.ts';

/** A request whose caller is known. */
interface Unplanned {
  readonly request: ApiRequest;
  readonly caller: AwsCaller;
}

/** A request that is being planned. */
interface KmsRequest extends Unplanned {
  readonly place: Place;
  /** The looks on which its answer depends. */
  readonly looks: Looks;
}

interface KmsWork extends KmsRequest {
  readonly operation: AwsOperation;
  readonly work: Work;
  /** Whether all is to be done but the doing. */
  readonly isDry: boolean;
}

/** The answer to a request: an object, or undefined for an empty one; or why it is refused. */
type KmsAnswer = { readonly answer: object | undefined } | { readonly failure: Failure };

/** A native call, as the endpoint's way takes it. */
interface NativeCall {
  readonly id: Call['id'];
  readonly params?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** The key that it is about, if it is about one. */
  readonly key?: FoundKey | undefined;
  readonly codec: Codec;
  /** Whether all is done but the doing. */
  readonly isDry?: boolean;
}

const target = 'TrentService.';

/** Plans of one request: each but the first follows a change of what the one before had seen. */
const mostPlans = 5;

/** Thrown for a call whose plan no longer held in its transaction: nothing was done. */
class StalePlan extends Error {}

const nothing: Readonly<Record<string, string>> = Object.freeze({});

export class KmsRequests {
  readonly #appliance: AppliancePort;
  readonly #ways: Ways;
  readonly #callers: AwsCallers;
  readonly #accounts = new WeakMap<TenantHandle, string>();

  constructor(appliance: AppliancePort, ways: Ways, callers: AwsCallers) {
    this.#appliance = appliance;
    this.#ways = ways;
    this.#callers = callers;
  }

  async answerTo(request: ApiRequest, caller: AwsCaller, region: string, body: Uint8Array): Promise<KmsAnswer> {
    const named = headerOf(request, 'x-amz-target') ?? '';
    const name = named.startsWith(target) ? named.slice(target.length) : '';
    const { handle } = caller;
    const place = { account: this.#accountOf(handle), region };
    const unplanned = { request, caller };
    if (!isOperation(name)) return this.#tell(unplanned, { failure: failed('UnknownOperationException') });
    for (let plans = 0; ; plans++) {
      if (plans === mostPlans) return this.#tell(unplanned, { failure: changing }, operations[name].about);
      // Cached data first; once it was old, what the transaction sees.
      const asked: KmsRequest = { ...unplanned, place, looks: new Looks(handle.store, plans === 0) };
      try {
        return await this.#answerOnce(asked, name, body);
      } catch (error) {
        if (error instanceof StalePlan) continue;
        return this.#fail(unplanned, operations[name], error);
      }
    }
  }

  async #answerOnce(asked: KmsRequest, name: OperationName, body: Uint8Array): Promise<KmsAnswer> {
    const operation = operations[name];
    let work: Work | undefined;
    try {
      const given = objectIn(body);
      checkFields(given, fieldsOf(name));
      work = await this.#workOf(asked, operation, given);
      for (const { refusal } of work.keys) if (refusal) throw refusal;
      // The first key's flag before all else, so that words and their order never say whether a key is there.
      const { about, second } = operation;
      const action = about && actions.get(about);
      if (second && action && (await this.#isDenied(asked, action, work.keys[0]))) throw flagMissing;
      refuseGrantTokens(given, name);
      const plan = await operation.plan(given, work);
      if ('told' in plan) return await this.#tell(asked, { answer: plan.told });
      const isDry = given.DryRun === true && 'DryRun' in fieldsOf(name);
      return await this.#carryOut({ ...asked, operation, work, isDry }, plan);
    } catch (error) {
      if (!(error instanceof AwsRefusal)) throw error;
      return this.#refuse(asked, operation, work?.keys ?? [], error);
    }
  }

  /** Records a request that failed unexpectedly. Throws the error if the store does not serve. */
  #fail(asked: Unplanned, { about }: AwsOperation, error: unknown): Promise<KmsAnswer> {
    const outcome = refused(error);
    if (outcome.status === 503) throw error;
    return this.#tell(asked, { failure: failureOf(outcome) }, about, outcome.cause);
  }

  #accountOf(handle: TenantHandle): string {
    const account = this.#accounts.get(handle) ?? accountOf(handle.tenant.id);
    this.#accounts.set(handle, account);
    return account;
  }

  async #workOf(
    { request, caller, place, looks }: KmsRequest,
    { keys = [] }: AwsOperation,
    given: JsonObject,
  ): Promise<Work> {
    const { world } = this.#appliance;
    const { tenant } = caller.handle;
    // Ciphertexts and tokens may be of an epoch that another node has just begun.
    await looks.at(() => tenant.keys.epochs);
    const found: FoundKey[] = [];
    for (const rule of keys) {
      const isOptional = rule.startsWith('?');
      const takesAlias = rule.includes('*');
      const field = rule.slice(Number(isOptional) + Number(takesAlias));
      const text = textOf(given, field);
      if (text === undefined && !isOptional) throw failure('ValidationException', `${field} is missing`);
      if (text === undefined) continue;
      found.push(await looks.at((tables) => keyNamed(tables, text, { place, takesAlias, now: world.now() })));
    }
    return {
      place,
      keys: found,
      tenantKeys: tenant.keys,
      now: () => world.now(),
      random: (length) => world.random(length),
      newName: async (fields) => {
        const asked = await looks.at((tables) => {
          const id = identify(tables, caller.credential, request, world.now())?.caller.id;
          return id === undefined ? undefined : nameAskedFor(tables, tenant, { caller: id, fields });
        });
        return asked ?? newUuidName((length) => world.random(length));
      },
      find: (ids) => looks.at((tables) => keyWithId(tables, ids, place, world.now())),
      findNamed: (name) => looks.at((tables) => foundKey(tables, lookUpManagedKey(tables, name), place, world.now())),
    };
  }

  /** The planned call. Its answer is translated before it is done for good, so that a refusal of that undoes it. */
  async #carryOut(asked: KmsWork, call: Call): Promise<KmsAnswer> {
    const { isDry, operation, work } = asked;
    let answer: object | undefined;
    const codec: Codec = {
      ...(call.body && { decode: () => ({ value: call.body, came: {} }) }),
      encode: (ours) => {
        const parsed = ours.data instanceof WrittenItems ? { ...ours, data: ours.data.parsed() } : ours;
        answer = call.answer(parsed);
        if (isDry) throw failure('DryRunOperationException', wouldSucceed);
        return { status: 200 };
      },
    };
    const outcome = await this.#run(asked, { ...call, key: call.key ?? work.keys[0], codec, isDry });
    if (outcome.status === 200) return { answer: answer && call.finish ? await call.finish(answer) : answer };
    return { failure: await this.#explained(asked.caller.handle, operation, call, outcome, work) };
  }

  /** A refusal by its own type, or by one that the key's purpose and state give it. */
  async #explained(
    { store }: TenantHandle,
    operation: AwsOperation,
    call: Call,
    outcome: Outcome,
    { place, keys }: Work,
  ): Promise<Failure> {
    const key = call.key ?? keys[0];
    const own = ownFailure(outcome);
    if (own && own.type !== operation.otherwise) return own;
    if (outcome.status === 404 && key && !key.known)
      return key.refusal?.failure ?? failed('NotFoundException', missing(key));
    const told = operation.typeOf?.(messageOf(outcome));
    if (told !== undefined) return failed(told, messageOf(outcome));
    const id = key?.known?.id;
    if (outcome.status !== 400 || id === undefined) return failureOf(outcome, operation.otherwise);
    const use = call.id === 'decryptWithKey' ? 'decrypt' : operation.use;
    const now = this.#appliance.world.now();
    const found = await lookAt(store, (tables) => keyWithId(tables, [id], place, now));
    // All but uses works in most states: where it does not, the refusal says so. A key that waits for its bytes
    // is in its right state for them.
    const isOfState = /^the key is /.test(messageOf(outcome) ?? '') && found?.known?.state !== 'active';
    const isInState = use === undefined && !isOfState;
    const refusal = found && !isInState ? useRefusal(found, use) : undefined;
    return refusal?.failure ?? failureOf(outcome, operation.otherwise);
  }

  /**
   * Lets the operation's endpoint decide whether its caller learns of the refusal, or the endpoint that a second key
   * takes, if the caller lacks the flag for that one.
   */
  async #refuse(
    asked: KmsRequest,
    operation: AwsOperation,
    keys: readonly FoundKey[],
    refusal: AwsRefusal,
  ): Promise<KmsAnswer> {
    const refuse = () => {
      throw refusal;
    };
    const codec = { decode: refuse, encode: refuse };
    const { second } = operation;
    // Such a name is no key's here, which is no secret.
    if (keys.some((key) => key.refusal === refusal)) {
      return this.#tell(asked, { failure: refusal.failure }, operation.about);
    }
    const isOfSecond =
      second !== undefined && refusal !== flagMissing && (await this.#isDenied(asked, second.action, keys[1]));
    const about = isOfSecond ? second.about : operation.about;
    const key = isOfSecond ? keys[1] : keys[0];
    const way = about && this.#ways.endpoints.get(about);
    const isOfKey = about !== undefined && !withoutKey.has(about);
    if (!way || (isOfKey && !key)) return this.#tell(asked, { failure: refusal.failure }, about);
    const ref = key?.ref ?? '';
    const params = about === 'restoreManagedKey' ? { id: ref } : { key: ref, alias: ref };
    const outcome = await this.#run(asked, { id: about, params: isOfKey ? params : undefined, key, codec });
    if (outcome.status === 404 && key && !key.known) {
      return { failure: failed('NotFoundException', missing(key)) };
    }
    const isTold = outcome.status === 400 || outcome.status === 404 || outcome.status === 200;
    return { failure: isTold ? refusal.failure : failureOf(outcome) };
  }

  /** Whether the caller lacks the flag for a key. */
  async #isDenied({ request, caller, looks }: KmsRequest, action: string, key: FoundKey | undefined): Promise<boolean> {
    if (!key) return false;
    const name = key.known?.name ?? key.ref.toLowerCase();
    return looks.at((tables) => {
      const found = identify(tables, caller.credential, request, this.#appliance.world.now());
      return found?.usable === true && !isAllowed(found.caller, action, { kind: 'named', name });
    });
  }

  /** Throws `StalePlan`. */
  async #run(
    { request, caller, looks }: KmsRequest,
    { id, params, query, key, codec, isDry }: NativeCall,
  ): Promise<Outcome> {
    const way = this.#ways.endpoints.get(id);
    if (!way) throw new KmsError('internal', 'expected an endpoint that is served');
    const { handle, credential } = caller;
    const ofTenant = { ...request, tenant: handle.tenant.name, body: emptyBody, room: undefined };
    const props = isDry ? { ...caller.props, dryRun: true } : caller.props;
    const isStale = (tables: Tables): boolean => looks.isStale(tables);
    // No endpoint works with a key that the plan knows nothing of, by whatever name it would find it.
    const isHidden = key && !key.known && (() => true);
    const call = { credential, params: params ?? nothing, query: query ?? nothing, codec, dialect: 'aws', props };
    const { outcome } = await way(ofTenant, { ...call, isStale, ...(isHidden && { isHidden }) });
    if (outcome === staleCall) throw new StalePlan();
    return outcome;
  }

  /** Answers any caller, and records that. Throws `StalePlan` if what was looked at has changed. */
  async #tell(
    { request, caller, looks }: Unplanned & Partial<KmsRequest>,
    answer: KmsAnswer,
    about?: Call['id'],
    cause?: unknown,
  ): Promise<KmsAnswer> {
    const status = 'failure' in answer ? answer.failure.status : 200;
    const action = about && actions.get(about);
    const needFresh = (tables: Tables): void => {
      if (looks?.isStale(tables)) throw new StalePlan();
    };
    const answered = { status, ...(action && { action }), cause, needFresh };
    const keyid = await this.#callers.recordAnswer(caller, request, answered);
    return keyid === undefined ? { failure: unknownCaller } : answer;
  }
}

/** Names in the activity log by endpoint. */
const actions: ReadonlyMap<string, string> = new Map(
  endpoints.flatMap(({ id, access }): [string, string][] => (access.kind === 'flag' ? [[id, access.action]] : [])),
);

/** Replaced by what the endpoint says to a caller without its flag. */
const flagMissing = failure('AccessDeniedException');

const wouldSucceed = 'The request would have succeeded, but the DryRun option is set.';

const changing = failed('ServiceUnavailableException', 'What the request names is being changed: try again.');

/** Endpoints that name no key in their path. */
const withoutKey: ReadonlySet<Call['id']> = new Set<Call['id']>([
  'createManagedKey',
  'listManagedKeys',
  'generateRandom',
]);

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Levels of a body's objects and lists: no operation takes as many. */
const deepestBody = 32;

/**
 * The object in a body. Throws `SerializationException` for anything else, for names that come twice, and for one that
 * nests deeper than code may recurse.
 */
function objectIn(bytes: Uint8Array): JsonObject {
  try {
    const text = decoder.decode(bytes);
    const value: unknown = JSON.parse(text);
    const isFit = isJsonObject(value) && nestsWithin(value, deepestBody) && countNames(text) === countKeys(value);
    if (isFit) return value;
  } catch {
    // Told below.
  }
  throw failure('SerializationException');
}

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];

/** Names of members in a text that is JSON: the colons outside its texts. */
function countNames(text: string): number {
  let count = 0;
  let isInText = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) isInText = !isInText;
    else if (!isInText && code === colon) count++;
    else if (isInText && code === backslash) at++;
  }
  return count;
}

function countKeys(value: object): number {
  let count = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const item = waiting.pop();
    if (typeof item !== 'object' || item === null) continue;
    const inner = Object.values(item);
    if (!Array.isArray(item)) count += inner.length;
    for (const each of inner) waiting.push(each);
  }
  return count;
}

function refuseGrantTokens({ GrantTokens: tokens }: JsonObject, name: OperationName): void {
  if ('GrantTokens' in fieldsOf(name) && Array.isArray(tokens) && tokens.length > 0) {
    throw failure(
      'InvalidGrantTokenException',
      'There are no grants here: permissions are given by flags of API keys.',
    );
  }
}
