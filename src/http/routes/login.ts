// Routes of sessions, invites and password resets. Passwords are hashed and checked before the transaction, after a look at
// whether there is anything to check.
import type { loginEndpoints } from '../../api/endpoints/login.ts';
import { checkInvite, checkInvitePassword, completeInvite, validateInvite } from '../../core/invites.ts';
import { checkCandidate, findCandidate, type LoginCandidate, login } from '../../core/login.ts';
import { checkReset, checkResetPassword, completeReset, resetStarted, startReset } from '../../core/password-reset.ts';
import { logout, refreshSession } from '../../core/sessions.ts';
import { checkSetUp, completeSetUp } from '../../core/set-up.ts';
import { checkUserNames } from '../../core/user-fields.ts';
import { linksOf } from '../people.ts';
import { type Outside, type RoutesOf, staged } from '../route.ts';
import { isOn } from './refs.ts';

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
    async prepare({ body, query, remoteAddress }, outside) {
      const name = { name: body.username, isEmail: isOn(query.email) };
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
