// What stands behind an endpoint: an operation of the core in the request's transaction, with work before and after
// where it has some.
import type { AnswerOf, BodyOf, EndpointId, EndpointOf, ParamsOf, QueryOf, Sent } from '../api/endpoints.ts';
import type { Context, PublicContext } from '../core/context.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { AppDeps } from './deps.ts';
import type { TenantHandle } from './tenants.ts';

interface Input<E> {
  readonly params: ParamsOf<E>;
  readonly query: QueryOf<E>;
  readonly body: BodyOf<E>;
  /** For lists. */
  readonly page: PageRequest;
  /** The credential as it came, for what exchanges or ends one. Never to be logged or stored. */
  readonly bearer: string | undefined;
  readonly remoteAddress: string | undefined;
}

type ItemOf<Answer> = Answer extends { readonly data: readonly (infer Item)[] } ? Item : never;

/** What a route answers: the body of status 200, or for lists a page of items. */
type Result<E> = E extends { readonly paginated: true } ? Page<Sent<ItemOf<AnswerOf<E>>>> : Sent<AnswerOf<E>>;

type ContextOf<E> = E extends { readonly access: { readonly kind: 'public' } } ? PublicContext : Context;

/** What work outside the transaction has. */
export interface Outside {
  readonly deps: AppDeps;
  readonly handle: TenantHandle;
}

/** Where a request comes from. */
export interface Origin {
  readonly remoteAddress: string | undefined;
}

/** An operation with work around it. `P` is what goes from `prepare` to `run`, `R` what comes of `run`. */
interface StagedRoute<E, P, R> {
  /**
   * Throws where whoever comes from there has to wait, before a byte of the body is read. It may only look, and costs
   * next to nothing.
   */
  brake?(from: Origin, outside: Outside): void;
  /**
   * Slow work before the transaction (hashing a password, reading closed segments), once a look at the state says that
   * the caller will be let in. What it throws counts as thrown by `run`.
   */
  prepare(input: Input<E>, outside: Outside): Promise<P>;
  /** The operation. Nothing is awaited but the store. */
  run(ctx: ContextOf<E>, input: Input<E>, prepared: P): Promise<R>;
  /** What of it the client is told. */
  answer(result: R): Result<E>;
  /**
   * Work that must not be done unless what `run` did is durable, and that the answer waits for: what it throws is the
   * answer.
   */
  conclude?(result: R, input: Input<E>, outside: Outside): Promise<void>;
  /**
   * Work that must not be done unless what `run` did is durable, such as sending mail. No answer waits for it; what it
   * throws is logged.
   */
  after?(result: R, input: Input<E>, outside: Outside): Promise<void>;
}

/** A route that is its operation alone. */
type Operation<E> = (ctx: ContextOf<E>, input: Input<E>) => Promise<Result<E>>;

/** A staged route whose `P` and `R` are its own business. */
type AnyStagedRoute<E> = StagedRoute<E, never, never>;

/** The routes of some endpoints, by their ids. */
export type RoutesOf<Id extends EndpointId> = {
  readonly [I in Id]: Operation<EndpointOf<I>> | AnyStagedRoute<EndpointOf<I>>;
};

/** Checks that the stages of a route fit each other, then forgets what goes between them. */
export function staged<Id extends EndpointId, P, R>(
  _id: Id,
  route: StagedRoute<EndpointOf<Id>, P, R>,
): AnyStagedRoute<EndpointOf<Id>> {
  // Only the pipeline calls the stages, and it hands each what the one before made.
  return route as unknown as AnyStagedRoute<EndpointOf<Id>>;
}
