// The request log is one structured line for each request: a failure of the server at level error, a refusal at info,
// all others at debug, since the activity log has them and a line would cost as much as the rest of the request. It
// names the route's pattern, never the path as sent, since paths may hold secrets; no body, no query, no credential.
import type { AppliancePort, Logger, Meter, State } from './appliance-port.ts';
import type { AnswerRoom, ApiRequest } from './request.ts';
import { type Outcome, type RequestResult, refused, staleCall } from './respond.ts';
import type { ServedPath } from './route.ts';

/** The answer to send. */
export interface Reply {
  readonly outcome: Outcome;
  /** Value of the header `Kms-State`, for authenticated callers. */
  readonly state?: string | undefined;
}

/** Answers any request. Never fails. */
export type Answer = (request: ApiRequest) => Promise<Reply>;

/** Answers requests, given what the router `found`. Never fails. */
export type Handler<Found> = (request: ApiRequest, found: Found) => Promise<Reply>;

/**
 * Makes a handler that logs each outcome and counts it if wanted. The appliance's state is read here, once per request.
 */
export function logged<Found>(
  appliance: AppliancePort,
  ids: RequestIds,
  { path: route, counted }: Pick<ServedPath, 'path' | 'counted'>,
  serve: (request: ApiRequest, state: State, found: Found) => Promise<RequestResult>,
): Handler<Found> {
  const { logger } = appliance;
  // Asked each time: a reload may change the level.
  const tellsAll = (): boolean => logger.level === undefined || logger.level === 'debug' || logger.level === 'trace';
  const countOf = counted === undefined ? undefined : countedBy(counted);
  return async (request, found) => {
    const started = performance.now();
    const { state } = appliance;
    let served: RequestResult;
    try {
      served = await serve(request, state, found);
    } catch (error) {
      served = { outcome: refused(error instanceof Error ? error : new Error('thrown value is no error')) };
    }
    const { outcome, action, keyid, byNobody, state: told } = served;
    if (outcome === staleCall) return { outcome };
    const { status, cause, reason } = outcome;
    const ms = Math.round((performance.now() - started) * 1000) / 1000;
    if (countOf && !state.sealed) countOf(state.meter)(served, ms);
    if (status < 400 && !tellsAll()) return { outcome, state: told };
    const requestId = request.requestId ?? ids.next();
    const fields = { method: request.method, route, status, ms, action, keyid, byNobody, reason, requestId };
    if (status < 500 || (status === 503 && cause === undefined)) {
      if (status < 400) logger.debug(fields, 'request');
      else logger.info(fields, 'request');
      return { outcome, state: told };
    }
    logger.error({ ...fields, err: cause }, 'request failed');
    return { outcome: { ...outcome, headers: { ...outcome.headers, 'X-Request-Id': requestId } }, state: told };
  };
}

/** Counters start at zero each time the appliance is opened. */
function countedBy(action: string): (meter: Meter) => ReturnType<Meter['route']> {
  let asked: Meter | undefined;
  let count: ReturnType<Meter['route']> = () => {};
  return (meter) => {
    if (meter !== asked) {
      asked = meter;
      count = meter.route(action);
    }
    return count;
  };
}

interface RequestIds {
  next(): string;
}

/** Ids that are unique in one process, and with the prefix across several. */
export function requestIds(prefix: string): RequestIds {
  let count = 0;
  return { next: () => `${prefix}-${(++count).toString(36)}` };
}

/**
 * When a stream fails, its status has already gone out, so the cause goes to the log. The connection is cut before the
 * answer can be ended properly, which would make it look whole.
 */
export function brokenOff(logger: Logger, route: string, room: AnswerRoom | undefined): (cause: unknown) => void {
  return (err) => {
    logger.error({ err, route }, 'an answer broke off');
    room?.cut();
  };
}
