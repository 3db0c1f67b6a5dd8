// Every endpoint that the appliance serves, and the types derived from the declarations for the server's handlers and
// the client's methods.
import type { z } from 'zod';
import { accountEndpoints } from './accounts.ts';
import { activityEndpoints } from './activity.ts';
import { apikeyEndpoints } from './apikeys.ts';
import { approvalEndpoints } from './approvals.ts';
import { assetEndpoints } from './assets.ts';
import { asymEndpoints } from './asym.ts';
import { encryptionEndpoints } from './encryption.ts';
import { keyOperationEndpoints } from './key-operations.ts';
import { keyToolEndpoints } from './key-tools.ts';
import { keyringEndpoints } from './keyrings.ts';
import { loginEndpoints } from './logins.ts';
import { managedKeyEndpoints } from './managed-keys.ts';
import { oidcEndpoints } from './oidc.ts';
import { proofEndpoints } from './proofs.ts';
import { secondFactorEndpoints } from './second-factors.ts';
import { secretEndpoints } from './secrets.ts';
import { systemEndpoints } from './system.ts';
import { tangEndpoints } from './tang.ts';
import { userEndpoints } from './users.ts';

export const endpoints = [
  ...keyringEndpoints,
  ...encryptionEndpoints,
  ...assetEndpoints,
  ...asymEndpoints,
  ...secretEndpoints,
  ...managedKeyEndpoints,
  ...keyOperationEndpoints,
  ...keyToolEndpoints,
  ...tangEndpoints,
  ...accountEndpoints,
  ...apikeyEndpoints,
  ...proofEndpoints,
  ...approvalEndpoints,
  ...activityEndpoints,
  ...userEndpoints,
  ...loginEndpoints,
  ...secondFactorEndpoints,
  ...oidcEndpoints,
  ...systemEndpoints,
] as const;

export type AnyEndpoint = (typeof endpoints)[number];
export type EndpointId = AnyEndpoint['id'];
export type EndpointOf<Id extends EndpointId> = Extract<AnyEndpoint, { readonly id: Id }>;

type Parsed<E, Part extends string> = E extends { readonly [P in Part]: infer S extends z.ZodType }
  ? z.output<S>
  : Record<never, never>;

/** Validated parts of a request to `E`. */
export type ParamsOf<E> = Parsed<E, 'params'>;
export type QueryOf<E> = Parsed<E, 'query'>;
export type BodyOf<E> = Parsed<E, 'body'>;
/** The body of status 200. */
export type AnswerOf<E> = Parsed<E, 'answer'>;

/** Bodies of the request and of its answer with status 200, by endpoint id. */
export type Body<Id extends EndpointId> = BodyOf<EndpointOf<Id>>;
export type Answer<Id extends EndpointId> = AnswerOf<EndpointOf<Id>>;

/** An answer as the server makes it: deeply readonly. */
export type Sent<T> = T extends readonly (infer Item)[]
  ? readonly Sent<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Sent<T[K]> }
    : T;
