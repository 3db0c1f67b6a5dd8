// Local endpoints are for the administrator at the machine: served on the local socket and in process, unknown to
// everybody else. They work while sealed, and record for themselves what they do, in the log of each tenant that it
// concerns.
import type { LocalEndpoint } from '../api/endpoint.ts';
import type { AnswerOf, BodyOf, ParamsOf, QueryOf, Sent } from '../api/endpoints.ts';
import type { LocalId, LocalOf } from '../api/local.ts';
import { localCaller } from '../core/credential.ts';
import type { KmsError } from '../errors.ts';
import { tenantHeader } from '../model/names.ts';
import { sealedError } from './admission.ts';
import { checkParts, rawInput } from './input.ts';
import { type AppContext, defaultBodyLimit, headerOf, readJsonBody } from './request.ts';
import { type Logger, reported, type Served } from './request-log.ts';
import { answered, refused, streamed, unknownPath } from './respond.ts';
import { localTenant, type TenantDirectory, type TenantHandle } from './tenants.ts';

interface LocalInput<E> {
  readonly params: ParamsOf<E>;
  readonly query: QueryOf<E>;
  readonly body: Sent<BodyOf<E>>;
  /** Where the endpoint is about a tenant: the one that the request names. */
  readonly handle: E extends { readonly access: { readonly of: 'tenant' } } ? TenantHandle : undefined;
}

/**
 * The body of status 200, or the pieces of what is no JSON, made while they are read; a failure on the way breaks the
 * connection off.
 */
type LocalAnswer<E> = E extends { readonly binary: true } | { readonly text: string }
  ? AsyncIterable<string | Uint8Array>
  : Sent<AnswerOf<E>>;

type LocalHandler<E> = (input: LocalInput<E>) => Promise<LocalAnswer<E>>;

export type LocalHandlers = { readonly [Id in LocalId]: LocalHandler<LocalOf<Id>> };

/** A handler with its types forgotten: those of `LocalHandlers` have bound it to its endpoint. */
export type PlainLocalHandler = (input: object) => Promise<object>;

export interface LocalDeps {
  readonly tenants: TenantDirectory;
  readonly logger: Logger;
  /** Bytes; 1 MiB when absent. */
  readonly bodyLimit?: number;
  /** Whether the master key is out of reach: then all but health answers 503. Called for each request. */
  sealed?(): boolean;
  /**
   * Why nothing can be changed now, while reading goes on; undefined when it can. Called for each request that changes
   * something.
   */
  refuseWrites?(): KmsError | undefined;
  /** What stands behind the local endpoints that concern the appliance; one without a handler is unknown. */
  readonly local?: Partial<LocalHandlers>;
}

export function serveLocal(deps: LocalDeps, endpoint: LocalEndpoint, handle: PlainLocalHandler) {
  const { access, changes = endpoint.method !== 'GET' } = endpoint;
  const type = endpoint.binary ? 'application/octet-stream' : endpoint.text;

  function tenantOf(c: AppContext): TenantHandle | undefined {
    if (access.of === 'appliance') return undefined;
    if (deps.sealed?.()) throw sealedError;
    return localTenant(deps.tenants, headerOf(c, tenantHeader));
  }

  return async (c: AppContext): Promise<Served> => {
    if (!c.env?.local) return { outcome: refused(unknownPath) };
    try {
      const about = tenantOf(c);
      const refusal = changes ? deps.refuseWrites?.() : undefined;
      if (refusal) throw refusal;
      const limit = deps.bodyLimit ?? defaultBodyLimit;
      const body = endpoint.body && (await readJsonBody(c, { limit, kept: 'all', holder: localCaller.id }));
      const checked = checkParts(endpoint, { ...rawInput(endpoint, c), body });
      if (checked.error) throw checked.error;
      const answer = await handle({ ...checked.input, handle: about });
      if (type === undefined) return { outcome: answered(answer) };
      // The types of `LocalHandlers` see to it that these endpoints answer pieces.
      const pieces = answer as AsyncIterable<string | Uint8Array>;
      return { outcome: streamed(type, reported(deps.logger, endpoint.path, pieces)) };
    } catch (error) {
      return { outcome: refused(error) };
    }
  };
}
