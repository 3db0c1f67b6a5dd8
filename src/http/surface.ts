// Surfaces are the protocols of other systems that the appliance speaks beside its own API. Each is a codec: it matches
// a request to an operation, decodes the input and encodes the result. It has no rules of its own.
import type { EndpointId } from '../api/endpoints.ts';
import type { JsonObject } from '../model/json.ts';
import type { Tables } from '../store/port.ts';
import type { AppliancePort, State } from './appliance-port.ts';
import type { Codec } from './codec.ts';
import type { FairQueue } from './fair-queue.ts';
import type { ApiRequest, Credential } from './request.ts';
import type { Answer, Handler } from './request-log.ts';
import type { RequestResult } from './respond.ts';
import type { PathParams, ServedPath } from './route.ts';

/** Surfaces by name, each made for an appliance. */
export type Surfaces = Readonly<Record<string, (appliance: AppliancePort, ways: Ways) => Answer>>;

/** Ways to pass on a request from a surface. */
export interface Ways {
  /** To the declared endpoints, which authorize, operate and record. */
  readonly endpoints: ReadonlyMap<EndpointId, Handler<EndpointCall>>;
  /** Where requests wait while too many are running. */
  readonly queue: FairQueue;
  /** To anything but an endpoint: logged, and counted if wanted. */
  logged<Found>(
    path: Pick<ServedPath, 'path' | 'counted'>,
    serve: (request: ApiRequest, state: State, found: Found) => Promise<RequestResult>,
  ): Handler<Found>;
}

/** A request to a declared endpoint, as decoded by a surface. */
export interface EndpointCall {
  readonly credential: Credential | undefined;
  readonly params: PathParams;
  readonly query: PathParams;
  readonly codec: Codec;
  /** Name of the surface's dialect. */
  readonly dialect: string;
  /** Further facts for the record. */
  readonly props?: JsonObject | undefined;
  /** Whether the surface shows nothing of what the path names: it is answered as missing. */
  isHidden?(tables: Tables): boolean;
  /**
   * Whether the call was planned on data that does not hold in the transaction: then nothing is done, and the outcome
   * is `staleCall`.
   */
  isStale?(tables: Tables): boolean;
}
