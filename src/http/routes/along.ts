// Reads of one thing that bring along what belongs to it, so that a page about it is one request and one record: a
// keyring's keys, and the API keys that may use a keyring or belong to an account or user. The lists are read outside
// the transaction, as their own endpoints do; a caller without the flag for API keys gets none.
import { mostAlong } from '../../api/page.ts';
import { type AccountRef, getAccount } from '../../core/accounts.ts';
import { listAccountApiKeys, listUserApiKeys, searchApiKeysByRing } from '../../core/api-keys.ts';
import type { Caller } from '../../core/context.ts';
import { getConfig, getKeyring, listKeys } from '../../core/keyrings.ts';
import type { WrittenPage } from '../../core/pages.ts';
import type { RingRef } from '../../core/rings.ts';
import { getUser, type UserRef } from '../../core/users.ts';
import { type RoutesOf, readerOf } from '../route.ts';

const page = { limit: mostAlong };

export const alongRoutes: RoutesOf<'getKeyring' | 'getAccount' | 'getUser'> = {
  getKeyring: {
    isNeeded: ({ query }) => query.keys !== undefined || query.apikeys !== undefined,
    async prepare(input, caller, aside) {
      const { params, query } = input;
      const ring = ringRef(params.ringname, query.id);
      const reader = { ...readerOf(input), caller };
      const keys = query.keys && beginning(await aside(() => listKeys(reader, { ring, usage: true, page })));
      const apikeys =
        query.apikeys &&
        maySee(caller) &&
        beginning(await aside(() => searchApiKeysByRing(reader, { ring, wildcard: true, page })));
      return (ctx) => ({
        ...getKeyring(ctx, { ring }),
        ...(query.config && getConfig(ctx, { ring })),
        ...(keys && { keys }),
        ...(apikeys && maySee(ctx.caller) && { apikeys }),
      });
    },
    inPlace: (ctx, { params, query }) => {
      const ring = ringRef(params.ringname, query.id);
      return { ...getKeyring(ctx, { ring }), ...(query.config && getConfig(ctx, { ring })) };
    },
  },
  getAccount: {
    isNeeded: ({ query }) => query.apikeys !== undefined,
    async prepare(input, caller, aside) {
      const account = accountRef(input.params.id, input.query.uid);
      const apikeys =
        maySee(caller) && beginning(await aside(() => listAccountApiKeys(readerOf(input), { account, page })));
      return (ctx) => ({ ...getAccount(ctx, { account }), ...(apikeys && maySee(ctx.caller) && { apikeys }) });
    },
    inPlace: (ctx, { params, query }) => getAccount(ctx, { account: accountRef(params.id, query.uid) }),
  },
  getUser: {
    isNeeded: ({ query }) => query.apikeys !== undefined,
    async prepare(input, caller, aside) {
      const user = userRef(input.params.username, 'email', input.query.email);
      const apikeys =
        maySee(caller) && (await aside(() => listUserApiKeys(readerOf(input), { user, most: mostAlong })));
      return (ctx) => ({ ...getUser(ctx, { user }), ...(apikeys && maySee(ctx.caller) && { apikeys }) });
    },
    inPlace: (ctx, { params, query }) => getUser(ctx, { user: userRef(params.username, 'email', query.email) }),
  },
};

function maySee({ flags }: Caller): boolean {
  return flags.allows('apikey.read');
}

function beginning<T>({ items, next }: WrittenPage<T>): { data: T[]; hasMore: boolean } {
  // Cast: they were written as such.
  return { data: items.parsed() as T[], hasMore: next !== undefined };
}

/** The ring named by a path value: by name, or by id if the query says so. */
export function ringRef(value: string, byId: string | undefined): RingRef {
  return byId === 'true' ? { id: value } : { name: value };
}

export function accountRef(value: string, byUid: string | undefined): AccountRef {
  return byUid === 'true' ? { uid: value } : { id: value };
}

export function userRef(text: string, otherwise: 'email' | 'id', on: string | undefined): UserRef {
  return { text, is: on === 'true' ? otherwise : 'username' };
}
