// Surfaces are what the appliance speaks beside its own API: protocols of other systems. Each is a codec: it matches a
// request with an operation, decodes its input and encodes what comes of it. It has no rule of its own.
import type { EndpointId } from '../api/endpoints.ts';
import type { AppliancePort, State } from './appliance-port.ts';
import type { Codec } from './codec.ts';
import type { FairQueue } from './fair-queue.ts';
import type { ApiRequest, Credential } from './request.ts';
import type { Answer, Handler } from './request-log.ts';
import type { Served } from './respond.ts';
import type { PathParams, ServedPath } from './route.ts';

/** Surfaces by their names, each made for an appliance. */
export type Surfaces = Readonly<Record<string, (appliance: AppliancePort, ways: Ways) => Answer>>;

/** The ways that a request can take from a surface. */
export interface Ways {
  /** To the declared endpoints, which decide, operate and record. */
  readonly endpoints: ReadonlyMap<EndpointId, Handler<EndpointCall>>;
  /** Where requests wait for those that are worked on. */
  readonly queue: FairQueue;
  /** To what is no endpoint: logged, and counted where that is wanted. */
  logged<Found>(
    path: Pick<ServedPath, 'path' | 'counted'>,
    serve: (request: ApiRequest, state: State, found: Found) => Promise<Served>,
  ): Handler<Found>;
}

/** A request to a declared endpoint, as a surface understood it. */
export interface EndpointCall {
  readonly credential: Credential | undefined;
  readonly params: PathParams;
  readonly query: PathParams;
  readonly codec: Codec;
}
