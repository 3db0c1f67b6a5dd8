// A route is a path and its handler. An endpoint's handler is an operation of the core in the request's transaction,
// or, if something slow comes before it, a preparation that returns the operation.
import type { AnswerOf, BodyOf, EndpointId, EndpointOf, ParamsOf, QueryOf, Sent } from '../api/endpoints.ts';
import type { LocalId, LocalOf } from '../api/local-endpoints.ts';
import type { Caller, Context, PublicContext } from '../core/context.ts';
import type { Reader, WrittenPage } from '../core/pages.ts';
import type { PresentedCertificate } from '../core/proofs/client-certificates.ts';
import type { Page, PageRequest, Slices } from '../store/sql.ts';
import type { AppliancePort, LocalAnswer, LocalInput, OpenState, State } from './appliance-port.ts';
import type { ApiRequest } from './request.ts';
import type { RequestResult } from './respond.ts';
import type { TenantHandle } from './tenant-directory.ts';

/** Values of a path's parameters by name. */
export type PathParams = Readonly<Record<string, string>>;

/** A path of the app. */
export interface ServedPath {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for each parameter. */
  readonly path: string;
  /** The name under which its requests are counted. Absent: they are not. */
  readonly counted?: string;
  /** Unknown to all but the administrator at the machine. */
  readonly local?: true;
  /** A GET that changes something: HEAD must not, so it is not served. */
  readonly noHead?: boolean;
  readonly serve: (request: ApiRequest, state: State, params: PathParams) => Promise<RequestResult>;
}

/** Surroundings of a request, independent of its endpoint. */
export interface RequestScope {
  readonly appliance: AppliancePort;
  readonly open: OpenState;
  readonly handle: TenantHandle;
}

/** Input of a route, beside the transaction. */
export interface Input<E> extends RequestScope {
  readonly params: ParamsOf<E>;
  readonly query: QueryOf<E>;
  readonly body: BodyOf<E>;
  /** For lists. */
  readonly page: PageRequest;
  /** The part of a list's item that a surface wants. Default: all of it. */
  readonly item: ((item: ItemOf<AnswerOf<E>>) => unknown) | undefined;
  /** The client's address; `local` if it is not on the network. */
  readonly address: string;
  /** The client's certificate, if the request is not of a page. */
  readonly certificate: PresentedCertificate | undefined;
  /** The dialect that the request came in; undefined for the native interface. */
  readonly dialect: string | undefined;
  /** Whether it came over the local socket or in process. */
  readonly isLocal: boolean;
  /** Origin of the page that asks, or the tenant's own; without a path. */
  readonly origin: string;
  /** Whether a page of the console asks: its token stays in the browser's cookie. */
  readonly isConsole: boolean;
  /** With `{name}` for each parameter. */
  readonly path: string;
}

/** Additions by routes to the context of the core's operations. */
export interface AfterCommit {
  /**
   * Runs work that requires the operation to be durable. The answer waits for it; an error that it throws becomes the
   * answer.
   */
  afterCommit(work: () => Promise<void>): void;
}

type ItemOf<Answer> = Answer extends { readonly data: readonly (infer Item)[] } ? Item : never;

/** The result of an operation: the body of status 200, or for lists a page of items. */
type Result<E> = E extends { readonly paginated: true } ? Listed<Sent<ItemOf<AnswerOf<E>>>> : Sent<AnswerOf<E>>;
type Listed<Item> = Page<Item> | WrittenPage<Item>;

type IsPublic<E, Yes, No> = E extends { readonly access: { readonly kind: 'public' } } ? Yes : No;
type ContextOf<E> = IsPublic<E, PublicContext, Context> & AfterCommit;

export type Operation<E> = (ctx: ContextOf<E>, input: Input<E>) => Result<E>;

/** An operation too long for one turn of the event loop. */
interface Sliced<E> {
  slices(ctx: ContextOf<E>, input: Input<E>): Slices<Result<E>>;
}

/** Does work that waits for more than the store. Meanwhile the request gives up its turn, for which others wait. */
export type Aside = <R>(work: () => Promise<R>) => Promise<R>;

/**
 * Slow work before the transaction (hashing a password, reading closed segments), done only after a check admits the
 * caller. Returns the operation; an error that it throws counts as the operation's.
 */
interface Preparation<E> {
  prepare(input: Input<E>, caller: IsPublic<E, undefined, Caller>, aside: Aside): Promise<Operation<E> | Sliced<E>>;
  /** Whether the preparation is needed; absent: always. Otherwise `inPlace` does. */
  isNeeded?(input: Input<E>): boolean;
  readonly inPlace?: Operation<E>;
  /** The same for what is too long for one turn of the event loop. */
  readonly inSlices?: Sliced<E> & { isNeeded(input: Input<E>): boolean };
}

/** Routes of some endpoints, by id. */
export type RoutesOf<Id extends EndpointId> = {
  readonly [I in Id]: Operation<EndpointOf<I>> | Sliced<EndpointOf<I>> | Preparation<EndpointOf<I>>;
};

/**
 * Handlers of the local endpoints that concern a tenant: outside of any transaction, writing their own activity
 * records.
 */
export type TenantRoutes = {
  readonly [Id in LocalId as LocalOf<Id>['access']['of'] extends 'tenant' ? Id : never]: (
    input: LocalInput<LocalOf<Id>> & RequestScope,
  ) => Promise<LocalAnswer<LocalOf<Id>>>;
};

/** A route that reads its answer outside the transaction, which only authorizes and records the request. */
export function beside<I, R>(read: (input: I) => Promise<R>): { prepare(input: I): Promise<() => R> } {
  return {
    async prepare(input) {
      const found = await read(input);
      return () => found;
    },
  };
}

/** A `beside` route for a list, which is read part by part, so that other requests need not wait. */
export function listed<I extends RequestScope, R>(
  read: (reader: Reader, input: I) => Promise<R>,
): { prepare(input: I): Promise<() => R> } {
  return beside((input) => read(readerOf(input), input));
}

export function readerOf({ handle: { store }, appliance: { world } }: RequestScope): Reader {
  return { store, world };
}

/** Runs all slices in one go. */
export function atOnce<R>(slices: Slices<R>): R {
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
  }
}
