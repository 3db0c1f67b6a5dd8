// The request log is one structured line for each request: a failure of the server at level error, a refusal at info,
// all others at debug, since the activity log has them and a line a request would cost as much as the rest of it. It
// names the route's pattern, never the path as it came, since paths may hold secrets; no body, no query, no credential.
import type { AppContext } from './request.ts';
import { type Outcome, refused, respond } from './respond.ts';

/** Pino's shape, as far as it is used. */
export interface Logger {
  /** Absent = all are written. */
  readonly level?: string;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** An outcome and what the log says of the request. */
export interface Served {
  readonly outcome: Outcome;
  readonly action?: string;
  readonly keyid?: string;
  /** How far the appliance is, for whoever has a credential: the header `Kms-State`. */
  state?: string | undefined;
  /** For who counts: the tenant's id, the verdict of authorization where there was one, and the ring's name. */
  readonly tenant?: string;
  readonly granted?: boolean;
  readonly ringname?: string;
  /** It came without a credential, under a name that nobody has. */
  readonly byNobody?: boolean;
}

/** A path that stands beside the declared endpoints, and what serves it. */
export interface ServedPath {
  readonly method: 'GET' | 'POST';
  /** With `{name}` for parameters. */
  readonly path: string;
  readonly serve: (c: AppContext) => Promise<Served>;
}

/** Whoever counts answers. Nothing may be done per answer but add to numbers. */
export interface Meter {
  /** Asked once for each route; what it answers is told of each request to it, with the milliseconds that it took. */
  route(action: string): (served: Served, milliseconds: number) => void;
}

export interface RequestLogDeps {
  readonly logger: Logger;
  /** Where it is absent nothing is counted. */
  readonly meter?: Meter;
}

/** Makes a handler of `serve`: its outcome is logged, counted under `counted` where it has one, and sent. */
export function logged(
  { logger, meter }: RequestLogDeps,
  ids: RequestIds,
  route: string,
  serve: (c: AppContext) => Promise<Served>,
  counted?: string,
) {
  const tellsAll = logger.level === undefined || logger.level === 'debug' || logger.level === 'trace';
  const count = counted === undefined ? undefined : meter?.route(counted);
  return async (c: AppContext): Promise<Response> => {
    const started = performance.now();
    let served: Served;
    try {
      served = await serve(c);
    } catch (error) {
      served = { outcome: refused(error instanceof Error ? error : new Error('thrown value is no error')) };
    }
    const { outcome, action, keyid, state, byNobody } = served;
    const { status, cause } = outcome;
    const ms = Math.round((performance.now() - started) * 1000) / 1000;
    count?.(served, ms);
    if (status < 400 && !tellsAll) return respond(outcome, state);
    const requestId = ids.next();
    const fields = { method: c.req.method, route, status, ms, action, keyid, byNobody, requestId };
    if (status < 500 || (status === 503 && cause === undefined)) {
      if (status < 400) logger.debug(fields, 'request');
      else logger.info(fields, 'request');
      return respond(outcome, state);
    }
    logger.error({ ...fields, err: cause }, 'request failed');
    return respond({ ...outcome, headers: { ...outcome.headers, 'X-Request-Id': requestId } }, state);
  };
}

interface RequestIds {
  next(): string;
}

/** Ids that tell the requests of one process apart, and with the prefix those of several. */
export function requestIds(prefix: string): RequestIds {
  let count = 0;
  return { next: () => `${prefix}-${(++count).toString(36)}` };
}

/** The status has gone out already when a stream fails: what went wrong is for the log. */
export async function* reported<T>(logger: Logger, route: string, pieces: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* pieces;
  } catch (err) {
    logger.error({ err, route }, 'an answer broke off');
    throw err;
  }
}
