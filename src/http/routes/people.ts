// Routes of people: users, sessions, invites, password resets, and the links that the administrator at the machine
// hands out. Passwords are hashed and checked before the transaction, after a look at whether there is anything to
// check.
import type { loginEndpoints } from '../../api/logins.ts';
import type { userEndpoints } from '../../api/users.ts';
import { activityRecord } from '../../core/activity.ts';
import { localCaller } from '../../core/credential.ts';
import { checkInvite, checkInvitePassword, completeInvite, inviteUser, validateInvite } from '../../core/invites.ts';
import { inviteMail, type LinkSettings } from '../../core/links.ts';
import {
  checkCandidate,
  findCandidate,
  type LoginCandidate,
  login,
  logout,
  refreshSession,
} from '../../core/logins.ts';
import {
  checkReset,
  checkResetPassword,
  completeReset,
  resetLink,
  resetStarted,
  startReset,
} from '../../core/password-reset.ts';
import { checkSetUp, completeSetUp, setUpLink } from '../../core/set-up.ts';
import {
  checkUserNames,
  createUser,
  deleteUser,
  generatePassword,
  getUser,
  listUsers,
  type UserRef,
  updateUser,
} from '../../core/users.ts';
import type { AppDeps } from '../deps.ts';
import type { LocalHandlers } from '../local.ts';
import { type Outside, type RoutesOf, staged } from '../route.ts';

export const userRoutes: RoutesOf<(typeof userEndpoints)[number]['id']> = {
  listUsers: (ctx, { page }) => listUsers(ctx, { page }),
  createUser: staged('createUser', {
    async prepare(_input, { deps }) {
      const password = generatePassword(deps.world.random);
      return { password, passwordHash: await deps.people.hasher.hash(password) };
    },
    run: (ctx, { body }, secret) => createUser(ctx, { fields: body, ...secret }),
    answer: (created) => created,
  }),
  getUser: (ctx, { params, query }) => getUser(ctx, { user: userRef(params.username, 'email', query.email) }),
  updateUser: (ctx, { params, body }) =>
    updateUser(ctx, { user: { text: params.username, is: 'username' }, changes: body }),
  deleteUser: (ctx, { params, query }) => deleteUser(ctx, { user: userRef(params.username, 'id', query.id) }),
  inviteUser: staged('inviteUser', {
    prepare: async (_input, outside) => linksOf(outside),
    run: (ctx, { body }, links) => inviteUser(ctx, { fields: body, links }),
    answer: ({ loginUrl }) => ({ loginUrl }),
    async after({ loginUrl, user, expiresAt }, _input, { deps }) {
      await deps.people.mailer?.send(inviteMail(user, loginUrl, expiresAt));
    },
  }),
};

function userRef(text: string, otherwise: 'email' | 'id', on: string | undefined): UserRef {
  return { text, is: on === 'true' ? otherwise : 'username' };
}

export const loginRoutes: RoutesOf<(typeof loginEndpoints)[number]['id']> = {
  validateInvite: (ctx, { query }) => validateInvite(ctx, { token: query.token ?? '' }),
  completeInvite: staged('completeInvite', {
    async prepare({ body }, { deps, handle }) {
      await handle.store.peek((tables) => checkInvite(tables, body.token, deps.world.now()));
      checkInvitePassword(body.password);
      return {
        token: body.token,
        passwordHash: await deps.people.hasher.hash(body.password),
        lifetimes: deps.people.lifetimes,
      };
    },
    run: (ctx, _input, prepared) => completeInvite(ctx, prepared),
    answer: (completed) => completed,
  }),
  completeSetUp: staged('completeSetUp', {
    async prepare({ body }, { deps, handle }) {
      const { token, password, ...fields } = body;
      const { lifetimes } = deps.people;
      const given = { tenant: handle.tenant, token, lifetimes };
      await handle.store.peek((tables) => checkSetUp(tables, given, deps.world.now()));
      checkUserNames(fields);
      checkInvitePassword(password);
      return { token, fields, lifetimes, passwordHash: await deps.people.hasher.hash(password) };
    },
    run: (ctx, _input, prepared) => completeSetUp(ctx, prepared),
    answer: (completed) => completed,
  }),
  login: staged('login', {
    brake({ remoteAddress }, { deps, handle }) {
      const refusal = deps.people.backoff.refusal({ tenant: handle.tenant.id, address: remoteAddress ?? 'local' });
      if (refusal) throw refusal;
    },
    async prepare({ body, query, remoteAddress }, outside) {
      const name = { name: body.username, isEmail: query.email === 'true' };
      return {
        checked: await checkLogin(outside, name, body.password, remoteAddress),
        lifetimes: outside.deps.people.lifetimes,
      };
    },
    run: (ctx, _input, prepared) => login(ctx, prepared),
    answer: (session) => session,
  }),
  refreshSession: staged('refreshSession', {
    prepare: async (_input, { deps }) => ({ lifetimes: deps.people.lifetimes }),
    run: (ctx, _input, prepared) => refreshSession(ctx, prepared),
    answer: (session) => session,
  }),
  logout: (ctx) => logout(ctx),
  startPasswordReset: staged('startPasswordReset', {
    prepare: async () => undefined,
    run: async () => resetStarted,
    answer: (started) => started,
    after: (_result, { body }, outside) => sendResetLink(outside, body.email),
  }),
  completePasswordReset: staged('completePasswordReset', {
    async prepare({ body }, { deps, handle }) {
      await handle.store.peek((tables) => checkReset(tables, body.token, deps.world.now()));
      checkResetPassword(body.password);
      return { token: body.token, passwordHash: await deps.people.hasher.hash(body.password) };
    },
    run: (ctx, _input, prepared) => completeReset(ctx, prepared),
    answer: (done) => done,
  }),
};

/** Checks a password at the pace that the tries before allow. Undefined for nobody and for a wrong one. */
async function checkLogin(
  { deps, handle }: Outside,
  name: { readonly name: string; readonly isEmail: boolean },
  password: string,
  remoteAddress: string | undefined,
): Promise<LoginCandidate | undefined> {
  const { backoff, hasher } = deps.people;
  const address = remoteAddress ?? 'local';
  const attempt = await backoff.begin({ tenant: handle.tenant.id, name: name.name, address });
  try {
    const candidate = await handle.store.peek((tables) => findCandidate(tables, name));
    const checked = await checkCandidate(hasher, candidate, password);
    if (checked) attempt.succeeded();
    else attempt.failed();
    return checked;
  } finally {
    attempt.abandoned();
  }
}

/** Does nothing until the answer is on its way, so that it takes the same time for everybody. */
async function sendResetLink(outside: Outside, email: string): Promise<void> {
  const { deps, handle } = outside;
  const { mailer, resetMails } = deps.people;
  if (!mailer) return;
  await new Promise((resolve) => setTimeout(resolve));
  const { tenant, store } = handle;
  const user = await store.peek((tables) => tables.users.byEmail(email));
  if (!user || !resetMails.allows(user.id)) return;
  const links = linksOf(outside);
  const mail = await store.transaction((tx) => startReset({ tx, tenant, world: deps.world }, { email, links }));
  if (mail) await mailer.send(mail);
}

export function linkHandlers(deps: AppDeps): Pick<LocalHandlers, 'makeSetUpLink' | 'makeResetLink'> {
  const { world } = deps;
  return {
    makeSetUpLink({ handle }) {
      const { tenant, store } = handle;
      const links = linksOf({ deps, handle });
      return store.transaction((tx) => setUpLink({ tx, tenant, world }, { links }));
    },
    makeResetLink({ body, handle }) {
      const { tenant, store } = handle;
      const user = { text: body.username, is: body.email ? 'email' : 'username' } as const;
      const links = linksOf({ deps, handle });
      return store.transaction(async (tx) => {
        const link = await resetLink({ tx, tenant, world, caller: localCaller }, { user, links });
        // A link lets its holder in as that user: making one is recorded as a change of the user.
        tx.record(activityRecord(world, { keyid: localCaller.id, action: 'user.update' }));
        return link;
      });
    },
  };
}

/** Where the links lead that people of this tenant get. */
function linksOf({ deps, handle }: Outside): LinkSettings {
  return { lifetimes: deps.people.lifetimes, baseUrl: handle.baseUrl ?? deps.baseUrl };
}
