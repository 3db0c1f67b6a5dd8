// Routes of people: users, sessions, invites, password resets, and the links that the administrator at the machine
// hands out. Passwords are hashed and checked before the transaction, after a look at whether there is anything to
// check.
import type { loginEndpoints } from '../../api/logins.ts';
import type { userEndpoints } from '../../api/users.ts';
import { activityRecord } from '../../core/activity.ts';
import { localCaller } from '../../core/credential.ts';
import { checkInvite, checkInvitePassword, completeInvite, inviteUser, validateInvite } from '../../core/invites.ts';
import { inviteMail, type LinkSettings, type Mailer } from '../../core/links.ts';
import {
  changePassword,
  checkCandidate,
  findCandidate,
  type LoginCandidate,
  login,
  ownCandidate,
} from '../../core/logins.ts';
import {
  checkReset,
  checkResetPassword,
  completeReset,
  resetLink,
  resetStarted,
  startReset,
} from '../../core/password-reset.ts';
import { endOtherSessions, endSession, listSessions, logout, refreshSession, sessionOf } from '../../core/sessions.ts';
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
import type { Deed } from '../../model/deed.ts';
import type { Tables } from '../../store/port.ts';
import type { Around, Input, RoutesOf, TenantRoutes } from '../route.ts';

export const userRoutes: RoutesOf<(typeof userEndpoints)[number]['id']> = {
  listUsers: (ctx, { page }) => listUsers(ctx, { page }),
  createUser: {
    async prepare({ body, appliance, open }) {
      const password = generatePassword(appliance.world.random);
      const passwordHash = await open.people.hasher.hash(password);
      return (ctx) => createUser(ctx, { fields: body, password, passwordHash });
    },
  },
  getUser: (ctx, { params, query }) => getUser(ctx, { user: userRef(params.username, 'email', query.email) }),
  updateUser: (ctx, { params, body }) =>
    updateUser(ctx, { user: { text: params.username, is: 'username' }, changes: body }),
  deleteUser: (ctx, { params, query }) => deleteUser(ctx, { user: userRef(params.username, 'id', query.id) }),
  async inviteUser(ctx, input) {
    const { loginUrl, user, expiresAt } = await inviteUser(ctx, { fields: input.body, links: linksOf(input) });
    mailLater(input, (mailer) => mailer.send(inviteMail(user, loginUrl, expiresAt)));
    return { loginUrl };
  },
};

function userRef(text: string, otherwise: 'email' | 'id', on: string | undefined): UserRef {
  return { text, is: on === 'true' ? otherwise : 'username' };
}

export const loginRoutes: RoutesOf<(typeof loginEndpoints)[number]['id']> = {
  validateInvite: (ctx, { query }) => validateInvite(ctx, { token: query.token ?? '' }),
  completeInvite: {
    async prepare({ body: { token, password }, appliance, open, handle }) {
      const { lifetimes, hasher } = open.people;
      await handle.store.peek((tables) => checkInvite(tables, token, appliance.world.now()));
      checkInvitePassword(password);
      const passwordHash = await hasher.hash(password);
      return (ctx) => completeInvite(ctx, { token, passwordHash, lifetimes });
    },
  },
  completeSetUp: {
    async prepare({ body: { token, password, ...fields }, appliance, open, handle }) {
      const { lifetimes, hasher } = open.people;
      const given = { tenant: handle.tenant, token, lifetimes };
      await handle.store.peek((tables) => checkSetUp(tables, given, appliance.world.now()));
      checkUserNames(fields);
      checkInvitePassword(password);
      const passwordHash = await hasher.hash(password);
      return (ctx) => completeSetUp(ctx, { token, fields, lifetimes, passwordHash });
    },
  },
  login: {
    async prepare(input) {
      const { body, query } = input;
      const { lifetimes } = input.open.people;
      const name = { name: body.username, isEmail: query.email === 'true' };
      const find = (tables: Tables) => findCandidate(tables, name);
      const checked = await checkPassword(input, { name: name.name, password: body.password, find });
      return (ctx) => login(ctx, { ...checked, lifetimes });
    },
  },
  refreshSession: (ctx, { open: { people } }) => refreshSession(ctx, { lifetimes: people.lifetimes }),
  logout: (ctx) => logout(ctx),
  changePassword: {
    async prepare(input, caller) {
      sessionOf(caller);
      const { body, open, handle } = input;
      checkInvitePassword(body.newPassword);
      const name = await handle.store.peek(async ({ users }) => (await users.byId(caller.id))?.username ?? '');
      const find = (tables: Tables) => ownCandidate(tables, caller);
      const { candidate, passed } = await checkPassword(input, { name, password: body.currentPassword, find });
      const newHash = passed ? await open.people.hasher.hash(body.newPassword) : undefined;
      return (ctx) => changePassword(ctx, { candidate, newHash });
    },
  },
  listSessions: (ctx) => listSessions(ctx),
  endSession: (ctx, { params }) => endSession(ctx, params),
  endOtherSessions: (ctx) => endOtherSessions(ctx),
  async startPasswordReset(_ctx, input) {
    mailLater(input, (mailer) => sendResetLink(input, mailer, input.body.email));
    return resetStarted(input.open.people.mailer !== undefined);
  },
  completePasswordReset: {
    async prepare({ body: { token, password }, appliance, open, handle }) {
      await handle.store.peek((tables) => checkReset(tables, token, appliance.world.now()));
      checkResetPassword(password);
      const passwordHash = await open.people.hasher.hash(password);
      return (ctx) => completeReset(ctx, { token, passwordHash });
    },
  },
};

/**
 * Sends mail once what the operation did is durable. The answer does not wait for it: it must not tell by its time
 * whether there was anything to do.
 */
function mailLater(input: Input<unknown>, send: (mailer: Mailer) => Promise<void>): void {
  const { mailer } = input.open.people;
  if (!mailer) return;
  const sending = async (): Promise<void> => {
    try {
      await send(mailer);
    } catch (err) {
      input.appliance.logger.error({ err, route: input.path }, 'work after the answer failed');
    }
  };
  input.afterCommit(async () => void sending());
}

interface PasswordCheck {
  /** Under which failures are counted. */
  readonly name: string;
  readonly password: string;
  find(tables: Tables): Promise<LoginCandidate | undefined>;
}

/** Checks a password at the pace that the tries before allow. */
async function checkPassword(
  { open, handle, address }: Pick<Input<unknown>, 'open' | 'handle' | 'address'>,
  { name, password, find }: PasswordCheck,
): Promise<{ readonly candidate: LoginCandidate | undefined; readonly passed: boolean }> {
  const { backoff, hasher } = open.people;
  const attempt = await backoff.begin({ tenant: handle.tenant.id, name, address });
  try {
    const candidate = await handle.store.peek(find);
    const passed = await checkCandidate(hasher, candidate, password);
    if (passed) attempt.succeeded();
    else attempt.failed();
    return { candidate, passed };
  } finally {
    attempt.abandoned();
  }
}

/** Does nothing until the answer is on its way, so that it takes the same time for everybody. */
async function sendResetLink(around: Around, mailer: Mailer, email: string): Promise<void> {
  const { appliance, open, handle } = around;
  await new Promise((resolve) => setTimeout(resolve));
  const { tenant, store } = handle;
  const user = await store.peek((tables) => tables.users.byEmail(email));
  if (!user || !open.people.resetMails.allows(user.id)) return;
  const links = linksOf(around);
  const mail = await store.transaction((tx) => startReset({ tx, tenant, world: appliance.world }, { email, links }));
  if (mail) await mailer.send(mail);
}

export const linkRoutes: Pick<TenantRoutes, 'makeSetUpLink' | 'makeResetLink'> = {
  makeSetUpLink(input) {
    const { world } = input.appliance;
    const { tenant, store } = input.handle;
    const links = linksOf(input);
    return store.transaction((tx) => setUpLink({ tx, tenant, world }, { links }));
  },
  makeResetLink(input) {
    const { username, email } = input.body;
    const { world } = input.appliance;
    const { tenant, store } = input.handle;
    const user = { text: username, is: email ? 'email' : 'username' } as const;
    const links = linksOf(input);
    return store.transaction(async (tx) => {
      let deed: Deed = {};
      const note = (said: Deed): void => {
        deed = said;
      };
      const link = await resetLink({ tx, tenant, world, note, caller: localCaller }, { user, links });
      // A link lets its holder in as that user: making one is recorded as a change of the user.
      const props = { operation: 'reset-link' };
      tx.record(activityRecord(world, { keyid: localCaller.id, action: 'user.update', props, deed }));
      return link;
    });
  },
};

/** Where the links lead that people of this tenant get. */
function linksOf({ open, handle }: Around): LinkSettings {
  return { lifetimes: open.people.lifetimes, baseUrl: handle.baseUrl ?? open.baseUrl };
}
