// How an endpoint is declared: once, as data, for the server's validation, the types, the permission matrix and the
// API description alike; and the bodies of errors, which all of them share.

import { z } from 'zod';
import { type DeclaredId, type Path, paths } from './paths.ts';

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
  | {
      readonly kind: 'public';
      /** Whoever failed too often from where they are has to wait, before a byte of the body is read. */
      readonly backoff?: true;
      /**
       * Its name in the activity log, where it is recorded under the id of the user whose name or link it came with.
       */
      readonly recorded?: string;
    }
  /** Any known credential; `action` names it in the activity log, `backoff` as above. */
  | { readonly kind: 'credential'; readonly action: string; readonly backoff?: true }
  | {
      readonly kind: 'flag';
      /**
       * The flag, or with `ring` the flag before the ring's name is put in: `keyring.encrypt` becomes
       * `keyring.<ringname>.encrypt`.
       */
      readonly action: string;
      /** The action's name in the activity log, where that is not the flag's. */
      readonly recorded?: string;
      readonly ring?: RingSource;
      /** The ring that the request is about where the flag does not name it; goes to the activity log only. */
      readonly about?: RingSource;
      /** The path parameter that names a user: that user may do it without the flag. */
      readonly orSelf?: string;
      /**
       * Concerns the whole appliance, so that the flag counts in the operator tenant alone: a look at it, or an act
       * that every tenant's log has.
       */
      readonly operator?: 'look' | 'act';
    };

/** For the administrator at the machine, on the local socket and in process; to everybody else the path is unknown. */
interface LocalAccess {
  readonly kind: 'local';
  /** What it is about: the tenant that the request names, where there are several, or the appliance. */
  readonly of: 'appliance' | 'tenant';
}

/** What the endpoints of the administrator at the machine share. */
export const ofAppliance = { tag: 'Local', access: { kind: 'local', of: 'appliance' } } as const;
export const ofTenant = { tag: 'Local', access: { kind: 'local', of: 'tenant' } } as const;

/** What the activity log calls a request; empty where it has none of it. */
export function actionOf(access: Access): string {
  if (access.kind === 'public') return access.recorded ?? '';
  return (access.kind === 'flag' ? access.recorded : undefined) ?? access.action;
}

/** What is declared of an endpoint beside its place. */
interface Declaration<A> {
  readonly tag: string;
  readonly summary: string;
  readonly access: A;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** The body of status 200. */
  readonly answer: z.ZodType;
  /** Answers pages: `query` has `cursor` and `limit`, `answer` is a `pageOf`. */
  readonly paginated?: true;
  /** Answers bytes, `application/octet-stream`, in place of JSON; `answer` says nothing then. */
  readonly binary?: true;
  /**
   * Answers lines of text of this media type, made while they are sent, in place of JSON; `answer` says nothing then.
   */
  readonly lines?: string;
  /** Answers text of this media type in place of JSON; `answer` is a string then. */
  readonly text?: string;
  /** Every 400 is `{}`, as the interface wants it here. */
  readonly silent400?: true;
  /** Whether it changes more than the activity log; absent = all but GET do. */
  readonly changes?: boolean;
  /** The other statuses that it can answer, beyond 400 to 413 and 500 that all have. */
  readonly errors?: Readonly<Record<number, { readonly description: string; readonly schema?: z.ZodType }>>;
}

interface Placed<A> extends Declaration<A> {
  /** Stable, unique, camelCase: the operationId of the API description and the name of the client's method. */
  readonly id: string;
  readonly method: Path[0];
  /** With `{name}` for parameters. */
  readonly path: string;
}

export type Endpoint = Placed<Access>;
export type LocalEndpoint = Placed<LocalAccess>;

/** Declares the endpoint of that id, whose place is in the table of paths, and keeps its exact type. */
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
  })
  .meta({ id: 'Error', description: 'why a request was refused' });
export type ErrorBody = z.output<typeof errorBody>;

/** Errors of an endpoint that finds nothing. */
export function missing(description: string) {
  return { 404: { description, schema: errorBody } };
}

/** Errors of one that slows guessing down. */
export const tooManyTries = {
  429: { description: 'too many failed tries; `Retry-After` says how long to wait', schema: errorBody },
};

export const emptyBody = z.object({}).meta({ id: 'Empty', description: 'an empty object' });
export const messageBody = z
  .object({ message: z.string().meta({ description: 'what was done', examples: ['done'] }) })
  .meta({ id: 'Message', description: 'what was done, in one sentence' });
