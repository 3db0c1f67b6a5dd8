// Types of the client's methods, derived from the endpoints' declarations; types only. In the package,
// build/client-contract.ts writes them out in full, so that users of the package need no other types.
import type { AnswerOf, AnyEndpoint, BodyOf, ParamsOf, QueryOf } from '../api/endpoints.ts';
import type { ClientEndpointId } from '../api/paths.ts';

export interface CallOptions {
  /** Ends this call: it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Boolean switches such as `id: true` may be given as booleans; everything is sent as text. */
type QueryInput<Q> = { readonly [Name in keyof Q]: string extends Q[Name] ? string | boolean : Q[Name] };

type ClientEndpoint = Extract<AnyEndpoint, { readonly id: ClientEndpointId }>;

type Inputs = {
  readonly [E in ClientEndpoint as E['id']]: ParamsOf<E> & QueryInput<QueryOf<E>> & BodyOf<E>;
};
type Answers = { readonly [E in ClientEndpoint as E['id']]: AnswerOf<E> };

/** Input of the method `Id`: path parameters, query parameters and fields of the body in one object. */
export type InputOf<Id extends ClientEndpointId> = Inputs[Id];
/** Answer of the method `Id`. */
export type AnswerTo<Id extends ClientEndpointId> = Answers[Id];

type Method<Input, Answer> =
  Record<never, never> extends Input
    ? (input?: Input, options?: CallOptions) => Promise<Answer>
    : (input: Input, options?: CallOptions) => Promise<Answer>;

export type Client = { readonly [Id in ClientEndpointId]: Method<Inputs[Id], Answers[Id]> };

export type { Account } from '../api/accounts.ts';
export type { Activity } from '../api/activity.ts';
export type { FullApiKey, SafeApiKey } from '../api/apikeys.ts';
export type { Asset } from '../api/assets.ts';
export type { AsymKey, AsymKeyRing } from '../api/asym.ts';
export type { Key, KeyListItem, KeyRing, KeyRingConfig } from '../api/keyrings.ts';
export type { PasswordValidation } from '../api/logins.ts';
export type { PageInfo } from '../api/page.ts';
export type { User } from '../api/users.ts';
