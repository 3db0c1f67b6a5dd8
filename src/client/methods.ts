// What each method of the client takes and answers: types alone, made from the declarations of the endpoints. In the
// package these are written out in full by build/client-contract.ts, so that who uses it needs nothing else.
import type { AnswerOf, AnyEndpoint, BodyOf, ParamsOf, QueryOf } from '../api/endpoints.ts';
import type { ClientEndpointId } from '../api/paths.ts';

export interface CallOptions {
  /** Ends this call: it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Switches such as `id: true` may be given as what they are; everything is sent as text. */
type QueryInput<Q> = { readonly [Name in keyof Q]: string extends Q[Name] ? string | boolean : Q[Name] };

type ClientEndpoint = Extract<AnyEndpoint, { readonly id: ClientEndpointId }>;

type Inputs = {
  readonly [E in ClientEndpoint as E['id']]: ParamsOf<E> & QueryInput<QueryOf<E>> & BodyOf<E>;
};
type Answers = { readonly [E in ClientEndpoint as E['id']]: AnswerOf<E> };

/** What the method `Id` takes: path parameters, query parameters and fields of the body in one object. */
export type InputOf<Id extends ClientEndpointId> = Inputs[Id];
/** What the method `Id` answers. */
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
