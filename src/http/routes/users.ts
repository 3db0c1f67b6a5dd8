// Routes of Users.
import type { userEndpoints } from '../../api/endpoints/users.ts';
import { generatePassword } from '../../core/generated-password.ts';
import { inviteUser } from '../../core/invites.ts';
import { inviteMail } from '../../core/user-mails.ts';
import { createUser, deleteUser, getUser, listUsers, type UserRef, updateUser } from '../../core/users.ts';
import { linksOf } from '../people.ts';
import { type RoutesOf, staged } from '../route.ts';
import { isOn } from './refs.ts';

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
  return { text, is: isOn(on) ? otherwise : 'username' };
}
