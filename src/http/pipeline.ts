// The way of every request to a declared endpoint: tenant, credential, flag, validated input, operation. All that reads
// or writes the tenant's data happens in one transaction with the activity record, and the answer waits until it is
// durable.

import { actionOf, type Endpoint } from '../api/endpoint.ts';
import { byOperator } from '../core/authorization.ts';
import type { Context, PublicContext } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { KmsError } from '../errors.ts';
import { ownRecordHeader } from '../model/names.ts';
import type { Transaction } from '../store/port.ts';
import type { Page } from '../store/sql.ts';
import {
  type Admission,
  admit,
  admitByHeaders,
  type Credential,
  credentialOf,
  noCredential,
  sealedError,
  unknownCredential,
} from './admission.ts';
import type { AppDeps } from './deps.ts';
import { type Checked, type CheckedInput, checkInput, pageBody, type RawInput, rawInput } from './input.ts';
import {
  type AppContext,
  type BodyRead,
  defaultBodyLimit,
  keptNumbers,
  publicBodyLimit,
  readJsonBody,
} from './request.ts';
import { reported, type Served } from './request-log.ts';
import { answered, failed, type Outcome, refused, streamed } from './respond.ts';
import type { Origin, Outside } from './route.ts';
import { type TenantHandle, tenantOf } from './tenants.ts';

const changedMeanwhile = new KmsError('unavailable', 'the credential changed meanwhile; try again');

/** A route with its types forgotten: `app.ts` has bound each to the endpoint that it was written for. */
export interface PlainRoute {
  brake?(from: Origin, outside: Outside): void;
  prepare?(input: PlainInput, outside: Outside): Promise<unknown>;
  run(ctx: PublicContext, input: PlainInput, prepared: unknown): Promise<unknown>;
  answer?(result: unknown): unknown;
  conclude?(result: unknown, input: PlainInput, outside: Outside): Promise<void>;
  after?(result: unknown, input: PlainInput, outside: Outside): Promise<void>;
}

interface PlainInput extends CheckedInput {
  readonly bearer: string | undefined;
  readonly remoteAddress: string | undefined;
}

/** What one request has become so far. */
interface Exchange {
  readonly handle: TenantHandle;
  /** Absent where the endpoint is public and none came. */
  readonly credential: Credential | undefined;
  /** Its body is looked at when the caller may ask. */
  raw: RawInput;
  checked: Checked | undefined;
  readonly remoteAddress: string | undefined;
  prepared: Prepared | undefined;
  input: PlainInput | undefined;
  /** What `run` gave; absent while it has not. */
  result: { readonly value: unknown } | undefined;
}

type Prepared = { readonly value: unknown } | { readonly thrown: unknown };

export function serveEndpoint(
  deps: AppDeps,
  endpoint: Endpoint,
  route: PlainRoute,
): (c: AppContext) => Promise<Served> {
  const { world } = deps;
  const { access, changes = endpoint.method !== 'GET' } = endpoint;
  const isPublic = access.kind === 'public';
  const action = actionOf(access);
  const tellsRecord = endpoint.id === 'searchActivity';
  const bodyLimit = Math.min(deps.bodyLimit ?? defaultBodyLimit, isPublic ? publicBodyLimit : Number.POSITIVE_INFINITY);
  const kept = (endpoint.body && keptNumbers(endpoint.body)) ?? new Map();

  async function serve(c: AppContext): Promise<Served> {
    if (deps.sealed?.()) return { outcome: refused(sealedError), action };
    let handle: TenantHandle;
    try {
      handle = tenantOf(deps, c);
    } catch (error) {
      return { outcome: refused(error), action };
    }
    const tenant = handle.tenant.id;
    const credential = credentialOf(c);
    if (!credential && !isPublic) return { outcome: refused(noCredential), action, tenant, granted: false };
    const refusal = changes ? deps.refuseWrites?.() : undefined;
    // Not recorded: what room is left is for the records of what is still done.
    if (refusal) return { outcome: { ...refused(refusal), cause: undefined }, action, tenant };
    const remoteAddress = c.env?.remoteAddress;
    try {
      route.brake?.({ remoteAddress }, { deps, handle });
    } catch (error) {
      return { outcome: refused(error), action, tenant };
    }
    const exchange: Exchange = {
      handle,
      credential,
      raw: rawInput(endpoint, c),
      checked: undefined,
      remoteAddress,
      prepared: undefined,
      input: undefined,
      result: undefined,
    };
    if (endpoint.body) {
      try {
        const body = await bodyOf(c, exchange);
        exchange.raw = { ...exchange.raw, body };
      } catch (error) {
        return { outcome: failed(error), action, tenant };
      }
    }
    const served = await transact(exchange);
    // Whoever has a credential learns how far the appliance is, so that one that was set back is noticed.
    if (served.keyid !== undefined) served.state = deps.stateOf?.(handle);
    return served;
  }

  /** Who has no known credential, or lacks a flag whatever the body says, is answered without it. */
  async function bodyOf(c: AppContext, { handle, credential, raw }: Exchange): Promise<BodyRead> {
    let holder: string | undefined;
    if (credential === 'local') holder = localCaller.id;
    else if (credential && !isPublic) {
      const admission = await handle.store.peek((tables) =>
        admitByHeaders(endpoint, handle, tables, credential, raw, world.now()),
      );
      // The transaction decides, and should it decide otherwise, there is nothing to do it with.
      if (!admission || admission.refusal) return { problem: changedMeanwhile };
      holder = admission.caller.id;
    }
    return readJsonBody(c, { limit: bodyLimit, kept, holder });
  }

  async function transact(exchange: Exchange): Promise<Served> {
    const { handle } = exchange;
    let served: Served;
    try {
      if (route.prepare) await prepare(exchange);
      served = await handle.store.transaction((tx) => (isPublic ? openly(exchange, tx) : recorded(exchange, tx)));
    } catch (error) {
      return { outcome: failed(error), action, tenant: handle.tenant.id };
    }
    if (route.conclude && exchange.result && exchange.input) {
      try {
        await route.conclude(exchange.result.value, exchange.input, { deps, handle });
      } catch (error) {
        return { ...served, outcome: refused(error) };
      }
    }
    // Not waited for: an answer must not tell by its time whether there was anything to do.
    if (route.after && exchange.result && exchange.input)
      void afterwards(exchange.result.value, exchange.input, handle);
    return served;
  }

  async function recorded(exchange: Exchange, tx: Transaction): Promise<Served> {
    const { handle, credential, raw } = exchange;
    const admission = credential && (await admit(endpoint, handle, tx, credential, raw, world.now()));
    const tenant = handle.tenant.id;
    if (!admission) return { outcome: refused(unknownCredential), action, tenant, granted: false };
    const { ringname, caller, refusal } = admission;
    const outcome = refusal ? refused(refusal) : await operate(exchange, tx, admission);
    const id = world.newId('act');
    tx.record({
      id,
      createdAt: world.now(),
      keyid: caller.id,
      action,
      ringname,
      validAction: refusal === undefined,
      status: outcome.status,
      props: access.kind === 'flag' && access.operator === 'act' && !refusal ? byOperator : {},
    });
    const told = tellsRecord ? { ...outcome, headers: { ...outcome.headers, [ownRecordHeader]: id } } : outcome;
    return { outcome: told, action, keyid: caller.id, tenant, granted: refusal === undefined, ringname };
  }

  async function openly(exchange: Exchange, tx: Transaction): Promise<Served> {
    return { outcome: await operate(exchange, tx, undefined), action, tenant: exchange.handle.tenant.id };
  }

  async function operate(exchange: Exchange, tx: Transaction, admitted: Admission | undefined): Promise<Outcome> {
    const { handle, prepared } = exchange;
    const checked = checkedInput(exchange);
    if (checked.error) return refused(checked.error, endpoint.silent400);
    const input = plainInput(exchange, checked.input);
    try {
      if (prepared && 'thrown' in prepared) throw prepared.thrown;
      if (route.prepare && !prepared) throw changedMeanwhile;
      const ctx: PublicContext | Context = admitted
        ? { tx, caller: admitted.caller, sealed: admitted.sealed, tenant: handle.tenant, world }
        : { tx, tenant: handle.tenant, world };
      const value = await tx.savepoint(() => route.run(ctx, input, prepared?.value));
      exchange.result = { value };
      const body = route.answer ? route.answer(value) : value;
      // The types of the routes see to it that lists answer pages and all others objects.
      if (endpoint.paginated) return answered(pageBody(endpoint, handle, world, input, body as Page<unknown>));
      if (endpoint.binary) return binaryAnswer(body as AsyncIterable<Uint8Array>);
      if (endpoint.text) return textAnswer(endpoint.text, body as string);
      return answered(body as object);
    } catch (error) {
      return refused(error, endpoint.silent400);
    }
  }

  function binaryAnswer(pieces: AsyncIterable<Uint8Array>): Outcome {
    return streamed('application/octet-stream', reported(deps.logger, endpoint.path, pieces));
  }

  function textAnswer(type: string, content: string): Outcome {
    return { status: 200, body: {}, headers: { 'Content-Type': type }, content };
  }

  /** Checked once, and not before it is known that the caller may ask. */
  function checkedInput(exchange: Exchange): Checked {
    exchange.checked ??= checkInput(endpoint, exchange.handle, exchange.raw);
    return exchange.checked;
  }

  function plainInput(exchange: Exchange, checked: CheckedInput): PlainInput {
    const { credential, remoteAddress } = exchange;
    const bearer = credential === undefined || credential === 'local' ? undefined : credential.token;
    exchange.input ??= { ...checked, bearer, remoteAddress };
    return exchange.input;
  }

  /** Runs the route's slow part, if a look at the state says that the caller will be let in. */
  async function prepare(exchange: Exchange): Promise<void> {
    const { handle, credential, raw } = exchange;
    if (!route.prepare) return;
    if (!isPublic) {
      if (!credential) return;
      const admission = await handle.store.peek((tables) =>
        admit(endpoint, handle, tables, credential, raw, world.now()),
      );
      if (!admission || admission.refusal) return;
    }
    const checked = checkedInput(exchange);
    if (checked.error) return;
    try {
      exchange.prepared = { value: await route.prepare(plainInput(exchange, checked.input), { deps, handle }) };
    } catch (thrown) {
      exchange.prepared = { thrown };
    }
  }

  async function afterwards(result: unknown, input: PlainInput, handle: TenantHandle): Promise<void> {
    try {
      await route.after?.(result, input, { deps, handle });
    } catch (err) {
      deps.logger.error({ err, route: endpoint.path }, 'work after the answer failed');
    }
  }

  return serve;
}
