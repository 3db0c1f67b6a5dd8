// Every endpoint that the appliance answers, and the types by which the server's handlers and the client's methods follow
// the declarations.
import type { z } from 'zod';
import { accountEndpoints } from './endpoints/accounts.ts';
import { activityEndpoints } from './endpoints/activity.ts';
import { apikeyEndpoints } from './endpoints/apikeys.ts';
import { assetEndpoints } from './endpoints/assets.ts';
import { asymEndpoints } from './endpoints/asym.ts';
import { encryptionEndpoints } from './endpoints/encryption.ts';
import { keyringEndpoints } from './endpoints/keyrings.ts';
import { loginEndpoints } from './endpoints/login.ts';
import { systemEndpoints } from './endpoints/system.ts';
import { userEndpoints } from './endpoints/users.ts';

export const endpoints = [
  ...keyringEndpoints,
  ...encryptionEndpoints,
  ...assetEndpoints,
  ...asymEndpoints,
  ...accountEndpoints,
  ...apikeyEndpoints,
  ...activityEndpoints,
  ...userEndpoints,
  ...loginEndpoints,
  ...systemEndpoints,
] as const;

export type AnyEndpoint = (typeof endpoints)[number];
export type EndpointId = AnyEndpoint['id'];
export type EndpointOf<Id extends EndpointId> = Extract<AnyEndpoint, { readonly id: Id }>;

type Parsed<E, Part extends string> = E extends { readonly [P in Part]: infer S extends z.ZodType }
  ? z.output<S>
  : Record<never, never>;

/** What a request to `E` carries once it is validated. */
export type ParamsOf<E> = Parsed<E, 'params'>;
export type QueryOf<E> = Parsed<E, 'query'>;
export type BodyOf<E> = Parsed<E, 'body'>;
/** The body of status 200. */
export type AnswerOf<E> = Parsed<E, 'answer'>;
