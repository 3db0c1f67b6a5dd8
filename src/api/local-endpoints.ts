// Local endpoints, for the administrator at the machine: served on the local socket and in process, unknown to other
// callers, and no part of the API description or of the client.
import type { z } from 'zod';
import type { Sent } from './endpoints.ts';
import { copyEndpoints } from './local/copies.ts';
import { masterEndpoints } from './local/master.ts';
import { peopleEndpoints } from './local/people.ts';
import { statusEndpoints } from './local/status.ts';
import { tenantEndpoints } from './local/tenants.ts';

export const localEndpoints = [
  ...statusEndpoints,
  ...copyEndpoints,
  ...tenantEndpoints,
  ...masterEndpoints,
  ...peopleEndpoints,
] as const;

type AnyLocalEndpoint = (typeof localEndpoints)[number];
export type LocalId = AnyLocalEndpoint['id'];
export type LocalOf<Id extends LocalId> = Extract<AnyLocalEndpoint, { readonly id: Id }>;

/** Path parameters, query and body of a request, if the endpoint has them. */
type Requested<E> = Part<E, 'params'> & Part<E, 'query'> & Part<E, 'body'>;

type Part<E, P extends string> = E extends { readonly [Q in P]: infer S extends z.ZodType }
  ? object extends z.input<S>
    ? { readonly [Q in P]?: Sent<z.input<S>> }
    : { readonly [Q in P]: Sent<z.input<S>> }
  : object;

/** Arguments after the id: none if nothing is required. */
export type LocalArguments<Id extends LocalId> =
  object extends Requested<LocalOf<Id>> ? [request?: Requested<LocalOf<Id>>] : [request: Requested<LocalOf<Id>>];
