// A route is a path and what serves it. What serves a tenant's endpoint is an operation of the core in the request's
// transaction, and where something slow comes before that, what prepares the operation.
import type { AnswerOf, BodyOf, EndpointId, EndpointOf, ParamsOf, QueryOf, Sent } from '../api/endpoints.ts';
import type { LocalId, LocalOf } from '../api/local-endpoints.ts';
import type { Caller, Context, PublicContext } from '../core/context.ts';
import type { Reader, WrittenPage } from '../core/pages.ts';
import type { Page, PageRequest, Slices } from '../store/sql.ts';
import type { AppliancePort, LocalAnswer, LocalInput, OpenState, State } from './appliance-port.ts';
import type { ApiRequest } from './request.ts';
import type { Served } from './respond.ts';
import type { TenantHandle } from './tenant-directory.ts';

/** The values of a path's parameters by their names. */
export type PathParams = Readonly<Record<string, string>>;

/** A path of the app. */
export interface ServedPath {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for parameters. */
  readonly path: string;
  /** Under which name its requests are counted; those of others are not. */
  readonly counted?: string;
  /** Unknown to others than the administrator at the machine. */
  readonly local?: true;
  /** Changes something though it is asked for with GET: a HEAD, which must not, is another method here. */
  readonly noHead?: boolean;
  readonly serve: (request: ApiRequest, state: State, params: PathParams) => Promise<Served>;
}

/** What a request is in the midst of, whatever it asks. */
export interface Around {
  readonly appliance: AppliancePort;
  readonly open: OpenState;
  readonly handle: TenantHandle;
}

/** What a route is given of a request beside the transaction. */
export interface Input<E> extends Around {
  readonly params: ParamsOf<E>;
  readonly query: QueryOf<E>;
  readonly body: BodyOf<E>;
  /** For lists. */
  readonly page: PageRequest;
  /** The part of a list's item that a surface wants. Default: all of it. */
  readonly item: ((item: ItemOf<AnswerOf<E>>) => unknown) | undefined;
  /** Where it comes from; `local` where that is no place on the network. */
  readonly address: string;
  /** The address of the page that it comes from, of the tenant itself, without a path. */
  readonly origin: string;
  /** A page of the console asks: the browser keeps its token. */
  readonly isConsole: boolean;
  /** With `{name}` for parameters. */
  readonly path: string;
}

/** An addition of the routes to the context of the core's operations. */
export interface AfterCommit {
  /**
   * Has work done that must not be done unless what the operation did is durable. The answer waits for it, and what it
   * throws is the answer.
   */
  afterCommit(work: () => Promise<void>): void;
}

type ItemOf<Answer> = Answer extends { readonly data: readonly (infer Item)[] } ? Item : never;

/** What an operation answers: the body of status 200, or for lists a page of items. */
type Result<E> = E extends { readonly paginated: true } ? Listed<Sent<ItemOf<AnswerOf<E>>>> : Sent<AnswerOf<E>>;
type Listed<Item> = Page<Item> | WrittenPage<Item>;

type IsPublic<E, Yes, No> = E extends { readonly access: { readonly kind: 'public' } } ? Yes : No;
type ContextOf<E> = IsPublic<E, PublicContext, Context> & AfterCommit;

export type Operation<E> = (ctx: ContextOf<E>, input: Input<E>) => Result<E>;

/** An operation that is too long for one go. */
interface Sliced<E> {
  slices(ctx: ContextOf<E>, input: Input<E>): Slices<Result<E>>;
}

/**
 * Slow work before the transaction (hashing a password, reading closed segments), once a look at the state says that
 * the caller will be let in. It answers the operation; what it throws counts as thrown by that.
 */
interface Preparation<E> {
  prepare(input: Input<E>, caller: IsPublic<E, undefined, Caller>): Promise<(ctx: ContextOf<E>) => Result<E>>;
}

/** The routes of some endpoints, by their ids. */
export type RoutesOf<Id extends EndpointId> = {
  readonly [I in Id]: Operation<EndpointOf<I>> | Sliced<EndpointOf<I>> | Preparation<EndpointOf<I>>;
};

/**
 * What serves the local endpoints that are about a tenant: outside of any transaction, and recording for themselves
 * what they do.
 */
export type TenantRoutes = {
  readonly [Id in LocalId as LocalOf<Id>['access']['of'] extends 'tenant' ? Id : never]: (
    input: LocalInput<LocalOf<Id>> & Around,
  ) => Promise<LocalAnswer<LocalOf<Id>>>;
};

/** A route whose answer is read beside the transaction, in which the request is decided upon and recorded alone. */
export function beside<I, R>(read: (input: I) => Promise<R>): { prepare(input: I): Promise<() => R> } {
  return {
    async prepare(input) {
      const found = await read(input);
      return () => found;
    },
  };
}

/** The same of a list, which is read part by part, so that nobody waits for it. */
export function listed<I extends Around, R>(
  read: (reader: Reader, input: I) => Promise<R>,
): { prepare(input: I): Promise<() => R> } {
  return beside((input) => read(readerOf(input), input));
}

export function readerOf({ handle: { store }, appliance: { world } }: Around): Reader {
  return { store, world };
}
