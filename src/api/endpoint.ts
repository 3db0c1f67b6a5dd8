// How an endpoint is declared: once, as data, for the server's validation, the types, the permission matrix and the
// API description alike.
import type { z } from 'zod';

/** Where a request says which ring it is about; the permission flag is made from that ring's name. */
export type RingSource =
  /** A path parameter: the ring's name, or where `byId` its id when the query says `id=true`. */
  | { readonly from: 'path'; readonly param: string; readonly byId: boolean }
  /** A path parameter that is a ring's id, deleted rings included. */
  | { readonly from: 'deleted-id'; readonly param: string }
  | { readonly from: 'query'; readonly param: string }
  | { readonly from: 'body'; readonly field: string }
  /** A path parameter that is a hash or a header. */
  | { readonly from: 'hash'; readonly param: string }
  | { readonly from: 'header'; readonly param: string }
  /** The body's `hash` or `header`. */
  | { readonly from: 'sealed-body' };

/** Who may call: everybody, everybody with a credential, or whoever holds the flag. */
export type Access =
  | { readonly kind: 'public' }
  /** Any known credential; `action` names it in the activity log. */
  | { readonly kind: 'credential'; readonly action: string }
  | {
      readonly kind: 'flag';
      /** The flag, or with `ring` the flag before the ring's name is put in: `keyring.encrypt` becomes `keyring.<ringname>.encrypt`. */
      readonly action: string;
      /** The flag, where it is not the action's name. */
      readonly flag?: string;
      readonly ring?: RingSource;
      /** The ring that the request is about where the flag does not name it; goes to the activity log only. */
      readonly about?: RingSource;
      /** The path parameter that names a user: that user may do it without the flag. */
      readonly orSelf?: string;
    };

export interface Endpoint {
  /** Stable, unique, camelCase: the operationId of the API description and the name of the client's method. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for parameters. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly access: Access;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** The body of status 200. */
  readonly answer: z.ZodType;
  /** Answers pages: `query` has `cursor` and `limit`, `answer` is a `pageOf`. */
  readonly paginated?: true;
  /** Answers bytes, `application/octet-stream`, in place of JSON; `answer` says nothing then. */
  readonly binary?: true;
  /** Answers text of this media type in place of JSON; `answer` is a string then. */
  readonly text?: string;
  /** Every 400 is `{}`, as the interface wants it here. */
  readonly silent400?: true;
  /** Whether it changes more than the activity log; absent = all but GET do. */
  readonly changes?: boolean;
  /** The other statuses that it can answer, beyond 400 to 413 and 500 that all have. */
  readonly errors?: Readonly<Record<number, { readonly description: string; readonly schema?: z.ZodType }>>;
}

/** Declares an endpoint and keeps its exact type. */
export function endpoint<const E extends Endpoint>(declaration: E): E {
  return declaration;
}
