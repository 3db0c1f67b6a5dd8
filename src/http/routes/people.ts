// Routes of people: users, sessions, invites, password resets, and the links that the administrator at the machine
// hands out. Passwords are hashed and checked before the transaction, and only if there is something to check.
import type { loginEndpoints } from '../../api/logins.ts';
import type { userEndpoints } from '../../api/users.ts';
import { activityRecord } from '../../core/activity.ts';
import type { Context } from '../../core/context.ts';
import { localCaller } from '../../core/credential.ts';
import {
  checkInvite,
  checkInvitePassword,
  checkNewPassword,
  completeInvite,
  inviteUser,
  validateInvite,
} from '../../core/invites.ts';
import { inviteMail, type LinkSettings, type Mailer } from '../../core/links.ts';
import { changePassword, checkCandidate, findCandidate, login, ownCandidate } from '../../core/logins.ts';
import {
  checkReset,
  checkResetPassword,
  completeReset,
  resetLink,
  resetStarted,
  startReset,
} from '../../core/password-reset.ts';
import { listSecondFactors, lookAtSecondStep, resetSecondFactor } from '../../core/second-factors.ts';
import {
  endOtherSessions,
  endSession,
  extendSession,
  listSessions,
  logout,
  refreshSession,
  sessionOf,
} from '../../core/sessions.ts';
import { checkSetUp, completeSetUp, setUpLink } from '../../core/set-up.ts';
import {
  checkUserNames,
  createUser,
  deleteUser,
  generatePassword,
  listUsers,
  type UserRef,
  updateUser,
} from '../../core/users.ts';
import type { ActivityDetails } from '../../model/activity-details.ts';
import { type AfterCommit, type Input, listed, type RequestScope, type RoutesOf, type TenantRoutes } from '../route.ts';
import { baseUrlOf } from '../tenant-directory.ts';
import { alongRoutes, userRef } from './along.ts';
import { atPace, passkeyLoginRoutes, placeOf, triedAs } from './second-factors.ts';

export const userRoutes: RoutesOf<(typeof userEndpoints)[number]['id']> = {
  listUsers: listed((reader, { page }) => listUsers(reader, { page })),
  createUser: {
    async prepare({ body, appliance, open }) {
      const password = generatePassword(appliance.world.random);
      const passwordHash = await open.people.hasher.hash(password);
      return (ctx) => createUser(ctx, { fields: body, password, passwordHash });
    },
  },
  getUser: alongRoutes.getUser,
  updateUser: (ctx, { params, body }) =>
    updateUser(ctx, { user: { text: params.username, is: 'username' }, changes: body }),
  deleteUser: {
    slices: (ctx, { params, query }) => deleteUser(ctx, { user: userRef(params.username, 'id', query.id) }),
  },
  inviteUser(ctx, input) {
    const { loginUrl, user, expiresAt } = inviteUser(ctx, { fields: input.body, links: linksOf(input) });
    mailLater(ctx, input, (mailer) => mailer.send(inviteMail(user, loginUrl, expiresAt)));
    return { loginUrl };
  },
};

export const loginRoutes: RoutesOf<(typeof loginEndpoints)[number]['id']> = {
  validateInvite: (ctx, { query }) => validateInvite(ctx, { token: query.token ?? '' }),
  completeInvite: {
    async prepare({ body: { token, password }, appliance, open, handle }) {
      const { lifetimes, hasher } = open.people;
      await handle.store.transaction((tables) => checkInvite(tables, token, appliance.world.now()));
      checkInvitePassword(password);
      const passwordHash = await hasher.hash(password);
      return (ctx) => completeInvite(ctx, { token, passwordHash, lifetimes });
    },
  },
  completeSetUp: {
    async prepare({ body: { token, password, ...fields }, appliance, open, handle }) {
      const { lifetimes, hasher } = open.people;
      const given = { tenant: handle.tenant, token, lifetimes };
      await handle.store.transaction((tables) => checkSetUp(tables, given, appliance.world.now()));
      checkUserNames(fields);
      checkNewPassword(password);
      const passwordHash = await hasher.hash(password);
      return (ctx) => completeSetUp(ctx, { token, fields, lifetimes, passwordHash });
    },
  },
  login: {
    async prepare(input) {
      const { body, query, open, handle } = input;
      const name = { name: body.username, isEmail: query.email === 'true' };
      const checked = await atPace(
        input,
        { name: name.name },
        async (mayBe) => {
          const candidate = await handle.store.transaction((tables) => findCandidate(tables, name));
          const isTooSoon = candidate !== undefined && !mayBe(candidate.userId);
          const passed = await checkCandidate(open.people.hasher, candidate, body.password);
          if (!candidate || !passed || isTooSoon) return { candidate, step: undefined };
          return { candidate, step: await lookAtSecondStep(handle.store, placeOf(input), candidate.userId, body) };
        },
        // A right password that still needs a second factor neither logs in nor clears earlier failures.
        ({ step }) => (step?.is === 'missing' ? undefined : step !== undefined && step.is !== 'wrong'),
      );
      const { lifetimes } = open.people;
      return (ctx) => login(ctx, { ...checked, lifetimes });
    },
  },
  ...passkeyLoginRoutes,
  refreshSession: (ctx, { open: { people }, isConsole }) =>
    (isConsole ? extendSession : refreshSession)(ctx, { lifetimes: people.lifetimes }),
  logout: (ctx) => logout(ctx),
  changePassword: {
    async prepare(input, caller) {
      sessionOf(caller);
      const { body, open, handle } = input;
      const { hasher } = open.people;
      checkNewPassword(body.newPassword);
      const candidate = await handle.store.transaction((tables) => ownCandidate(tables, caller));
      const check = () => checkCandidate(hasher, candidate, body.currentPassword);
      const passed = await atPace(input, await triedAs(input, caller.id), check, (right) => right);
      const newHash = passed ? await hasher.hash(body.newPassword) : undefined;
      return (ctx) => changePassword(ctx, { candidate, newHash });
    },
  },
  // In one answer, so that a page about one's own account is one record.
  listSessions: (ctx, { query }) => ({
    ...listSessions(ctx),
    ...(query.secondFactors && { secondFactors: listSecondFactors(ctx) }),
  }),
  endSession: (ctx, { params }) => endSession(ctx, params),
  endOtherSessions: (ctx) => endOtherSessions(ctx),
  startPasswordReset(ctx, input) {
    mailLater(ctx, input, (mailer) => sendResetLink(input, mailer, input.body.email));
    return resetStarted(input.open.people.mailer !== undefined);
  },
  completePasswordReset: {
    async prepare({ body: { token, password }, appliance, open, handle }) {
      await handle.store.transaction((tables) => checkReset(tables, token, appliance.world.now()));
      checkResetPassword(password);
      const passwordHash = await open.people.hasher.hash(password);
      return (ctx) => completeReset(ctx, { token, passwordHash });
    },
  },
};

/**
 * Sends mail once the operation is durable. The answer does not wait for it: its timing must not reveal whether there
 * was anything to send.
 */
function mailLater(ctx: AfterCommit, input: Input<unknown>, send: (mailer: Mailer) => Promise<void>): void {
  const { mailer } = input.open.people;
  if (!mailer) return;
  const sending = async (): Promise<void> => {
    try {
      await send(mailer);
    } catch (err) {
      input.appliance.logger.error({ err, route: input.path }, 'work after the answer failed');
    }
  };
  ctx.afterCommit(async () => void sending());
}

/** Does nothing until the answer is on its way, so that it takes the same time for every address. */
async function sendResetLink(around: RequestScope, mailer: Mailer, email: string): Promise<void> {
  const { appliance, open, handle } = around;
  await new Promise((resolve) => setTimeout(resolve));
  const { tenant, store } = handle;
  const user = await store.transaction((tables) => tables.users.byEmail(email));
  if (!user || !open.people.resetMails.allows(user.id)) return;
  const links = linksOf(around);
  const mail = await store.transaction((tx) => startReset({ tx, tenant, world: appliance.world }, { email, links }));
  if (mail) await mailer.send(mail);
}

export const linkRoutes: Pick<TenantRoutes, 'makeSetUpLink' | 'makeResetLink' | 'resetSecondFactor'> = {
  makeSetUpLink(input) {
    const { world } = input.appliance;
    const { tenant, store } = input.handle;
    const links = linksOf(input);
    return store.transaction((tx) => setUpLink({ tx, tenant, world }, { links }));
  },
  makeResetLink(input) {
    const links = linksOf(input);
    const user = namedUser(input.body);
    // A link logs its holder in as that user, so making one is recorded as a change of the user.
    return asAdministrator(input, { action: 'user.update', props: { operation: 'reset-link' } }, (ctx) =>
      resetLink(ctx, { user, links }),
    );
  },
  resetSecondFactor(input) {
    const user = namedUser(input.body);
    return asAdministrator(input, { action: 'user.reset-second-factor' }, (ctx) => resetSecondFactor(ctx, { user }));
  },
};

function namedUser({ username, email }: { readonly username: string; readonly email?: boolean }): UserRef {
  return { text: username, is: email ? 'email' : 'username' };
}

/** Runs and records an operation of the administrator at the machine. */
function asAdministrator<R>(
  { appliance: { world }, handle: { tenant, store } }: RequestScope,
  recorded: Pick<Parameters<typeof activityRecord>[1], 'action' | 'props'>,
  operation: (ctx: Omit<Context, 'handsOut' | 'did' | 'touches'>) => R,
): Promise<R> {
  return store.transaction((tx) => {
    let deed: ActivityDetails = {};
    const note = (said: ActivityDetails): void => {
      deed = said;
    };
    const result = operation({ tx, tenant, world, note, caller: localCaller });
    tx.record(activityRecord(world, { keyid: localCaller.id, ...recorded, deed }));
    return result;
  });
}

/** Settings of the links that are sent to this tenant's people. */
function linksOf(around: RequestScope): LinkSettings {
  return { lifetimes: around.open.people.lifetimes, baseUrl: baseUrlOf(around) };
}
