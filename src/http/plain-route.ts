// A route with its types erased, and what follows from the declaration of its endpoint.
import { actionOf, type Endpoint } from '../api/endpoint.ts';
import type { Caller } from '../core/context.ts';
import type { Slices } from '../store/sql.ts';
import { keptNumbers, publicBodyLimit } from './body.ts';
import type { EndpointInput } from './input.ts';
import type { OperationContext } from './operation-context.ts';
import type { Aside } from './route.ts';

/** `app.ts` has bound each to its endpoint. */
export type PlainRoute = PlainOperation | PlainPreparation | PlainSlices;

/** Work in the transaction of a request. */
export type PlainWork = PlainOperation | PlainSlices;

export type PlainOperation = (ctx: OperationContext, input: EndpointInput) => unknown;

export interface PlainPreparation {
  prepare(input: EndpointInput, caller: Caller | undefined, aside: Aside): Promise<PlainOperation | PlainSlices>;
  /** Whether the preparation is needed; absent: always. Otherwise `inPlace` does. */
  isNeeded?(input: EndpointInput): boolean;
  readonly inPlace?: PlainOperation;
  /** The same for what is too long for one turn of the event loop. */
  readonly inSlices?: PlainSlices & { isNeeded(input: EndpointInput): boolean };
}

/** An operation too long for one turn of the event loop. */
export interface PlainSlices {
  slices(ctx: OperationContext, input: EndpointInput): Slices<unknown>;
}

/** Where bodies are small, a quarter is enough for all but the longest signatures. */
function growthAt(limit: number, growth: number): number {
  return Math.min(growth, Math.floor(limit / 4));
}

/** Properties that follow from the endpoint's declaration. */
export function traitsOf(endpoint: Endpoint, route: PlainRoute) {
  const { method, access, changes = method !== 'GET', growth = 0 } = endpoint;
  const isPublic = access.kind === 'public';
  return {
    action: actionOf(access),
    isPublic,
    changes,
    backsOff: access.kind !== 'flag' && access.backoff === true,
    isActOfOperator: access.kind === 'flag' && access.operator === 'act',
    /** Routes that always wait for more than the store have limits of their own and would block this queue. */
    isQueued: !isPublic && !('prepare' in route && !route.inPlace) && !endpoint.paginated,
    bodyLimit: (usual: number) => Math.min(usual - growthAt(usual, growth), isPublic ? publicBodyLimit : usual),
    kept: (endpoint.body && keptNumbers(endpoint.body)) ?? new Map(),
  };
}

/** An operation whose error is recorded like any other outcome. */
export function throwing(error: unknown): PlainOperation {
  return () => {
    throw error;
  };
}
