// Declaration of an endpoint: once, as data, used by the server's validation, the types, the permission matrix and the
// API description; and the error bodies that all endpoints share.

import { z } from 'zod';
import { sample } from './example-values.ts';
import { type DeclaredId, type Path, paths } from './paths.ts';

/** Where a request names its ring; the permission flag is made from that ring's name. */
export type RingSource =
  /** A path parameter: the ring's name, or, with `byId`, its id if the query says `id=true`. */
  | { readonly from: 'path'; readonly param: string; readonly byId: boolean }
  /** A path parameter that is a managed key's name, id or alias. */
  | { readonly from: 'key'; readonly param: string }
  /** A path parameter that is a secret's path. */
  | { readonly from: 'secret'; readonly param: string }
  /** A path parameter that is a ring's id, deleted rings included. */
  | { readonly from: 'deleted-id'; readonly param: string }
  | { readonly from: 'query'; readonly param: string }
  | { readonly from: 'body'; readonly field: string }
  /** A path parameter that is a hash or a header. */
  | { readonly from: 'hash'; readonly param: string }
  | { readonly from: 'header'; readonly param: string }
  /** The body's `hash` or `header`. */
  | { readonly from: 'sealed-body' };

/** Access rule: public, any credential, or a flag. */
export type Access =
  | {
      readonly kind: 'public';
      /** After too many failures, an origin has to wait before a byte of the body is read. */
      readonly backoff?: true;
      /** Its action in the activity log, if it is recorded; the actor is the user whose name or link came with it. */
      readonly recorded?: string;
    }
  /** Any known credential; `action` names it in the activity log, `backoff` as above. */
  | { readonly kind: 'credential'; readonly action: string; readonly backoff?: true }
  | {
      readonly kind: 'flag';
      /**
       * The flag, or with `ring` the flag without the ring's name: `keyring.encrypt` becomes
       * `keyring.<ringname>.encrypt`.
       */
      readonly action: string;
      /** The action's name in the activity log, if it differs from the flag's. */
      readonly recorded?: string;
      readonly ring?: RingSource;
      /** Two flags, by their actions, that together allow what `action` allows. */
      readonly orBoth?: readonly [string, string];
      /** The ring that the request is about, if the flag does not name it; only for the activity log. */
      readonly about?: RingSource;
      /** The path parameter that names a user: that user needs no flag. */
      readonly orSelf?: string;
      /**
       * Concerns the whole appliance, so that the flag counts in the operator tenant alone. `look` reads; `act` is
       * recorded in every tenant's log.
       */
      readonly operator?: 'look' | 'act';
    };

/** For the administrator at the machine, on the local socket and in process; to other callers the path is unknown. */
interface LocalAccess {
  readonly kind: 'local';
  /** Scope: the tenant that the request names, if there are several, or the appliance. */
  readonly of: 'appliance' | 'tenant';
}

/** Common declarations of the local endpoints. */
export const ofAppliance = { tag: 'Local', access: { kind: 'local', of: 'appliance' } } as const;
export const ofTenant = { tag: 'Local', access: { kind: 'local', of: 'tenant' } } as const;

/** Action name in the activity log; empty if requests are not recorded. */
export function actionOf(access: Access): string {
  if (access.kind === 'public') return access.recorded ?? '';
  return (access.kind === 'flag' ? access.recorded : undefined) ?? access.action;
}

/** Declaration of an endpoint without its id and path. */
interface Declaration<A> {
  readonly tag: string;
  readonly summary: string;
  readonly access: A;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** The body of status 200. */
  readonly answer: z.ZodType;
  /** Returns pages: `query` has `cursor` and `limit`, `answer` is a `pageOf`. */
  readonly paginated?: true;
  /** Returns bytes, `application/octet-stream`, instead of JSON; `answer` is ignored then. */
  readonly binary?: true;
  /** Streams lines of text of this media type instead of JSON; `answer` is ignored then. */
  readonly lines?: string;
  /** Returns text of this media type instead of JSON; `answer` is a string then. */
  readonly text?: string;
  /** Every 400 has the body `{}`, as the interface requires here. */
  readonly silent400?: true;
  /**
   * May be polled: its answer has an ETag, and a request with `If-None-Match` is recorded once an hour per credential,
   * as `session.watch`, instead of each time. `apart` names fields whose change alone makes no new answer. It
   * shows what the caller's flags allow, so a second factor that these need is needed here.
   */
  readonly watchable?: { readonly apart: readonly string[] };
  /** A console page, which sends it by itself, is recorded once an hour per credential, as `session.watch`. */
  readonly byPages?: true;
  /** Whether it changes more than the activity log. Default: true for all but GET. */
  readonly changes?: boolean;
  /**
   * Bytes by which a request that brings the answer back may be longer than this one: its body may be smaller by as
   * much, so that the appliance takes back all that it gave.
   */
  readonly growth?: number;
  /** Further statuses, beyond 400 to 413 and 500, which all endpoints have. */
  readonly errors?: Readonly<Record<number, { readonly description: string; readonly schema?: z.ZodType }>>;
}

interface Placed<A> extends Declaration<A> {
  /** Stable, unique, camelCase: the operationId of the API description and the name of the client's method. */
  readonly id: string;
  readonly method: Path[0];
  /** Path with `{name}` for parameters. */
  readonly path: string;
}

export type Endpoint = Placed<Access>;
export type LocalEndpoint = Placed<LocalAccess>;

/** Declares the endpoint with this id, whose method and path are in `paths`, and keeps its exact type. */
export function endpoint<const Id extends DeclaredId, const D extends Declaration<Access | LocalAccess>>(
  id: Id,
  declaration: D,
): D & { readonly id: Id; readonly method: (typeof paths)[Id][0]; readonly path: (typeof paths)[Id][1] } {
  const [method, path] = paths[id];
  return { id, method, path, ...declaration };
}

export const errorBody = z
  .object({
    message: z.string().meta({
      description: 'what is wrong, in one sentence for people; never a secret',
      examples: ['name: is required'],
    }),
    errors: z
      .record(z.string(), z.string())
      .exactOptional()
      .meta({ description: 'what is wrong, by field', examples: [{ name: 'is required' }] }),
    approval: z
      .object({
        id: z.string().meta({ description: 'id of the request', examples: [sample.approvalId] }),
        needed: z
          .int()
          .min(0)
          .meta({ description: 'how many approvals it needs', examples: [2] }),
        given: z
          .int()
          .min(0)
          .meta({ description: 'how many it has', examples: [0] }),
      })
      .exactOptional()
      .meta({ description: 'with 403: the request that waits for approval; once it is approved, send the same again' }),
  })
  .meta({ id: 'Error', description: 'why a request was refused' });
export type ErrorBody = z.output<typeof errorBody>;

/** Errors of an endpoint whose look-up can fail. */
export function missing(description: string) {
  return { 404: { description, schema: errorBody } };
}

/** Errors of an endpoint that slows guessing down. */
export const tooManyTries = {
  429: { description: 'too many failed tries; `Retry-After` says how long to wait', schema: errorBody },
};

export const emptyBody = z.object({}).meta({ id: 'Empty', description: 'an empty object' });
export const messageBody = z
  .object({ message: z.string().meta({ description: 'what was done', examples: ['done'] }) })
  .meta({ id: 'Message', description: 'what was done, in one sentence' });
