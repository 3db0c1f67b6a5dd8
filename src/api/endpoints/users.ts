// Users.
import { z } from 'zod';
import { endpoint } from '../endpoint.ts';
import { errorBody, messageBody } from '../error.ts';
import { pageOf, pageQuery } from '../page.ts';
import { createUserAnswer, createUserBody, inviteAnswer, inviteBody, updateUserBody, user } from '../user.ts';
import { pathText, trueParam } from '../values.ts';

const tag = 'Users';
const unknown = { 404: { description: 'no such User', schema: errorBody } };
const params = z.object({ username: pathText });

export const userEndpoints = [
  endpoint({
    id: 'listUsers',
    method: 'GET',
    path: '/auth/users',
    tag,
    summary: 'List Users, oldest first',
    access: { kind: 'flag', action: 'user.read' },
    query: z.object(pageQuery),
    answer: pageOf(user),
    paginated: true,
  }),
  endpoint({
    id: 'createUser',
    method: 'POST',
    path: '/auth/users',
    tag,
    summary: 'Make a User with a generated password',
    access: { kind: 'flag', action: 'user.create' },
    body: createUserBody,
    answer: createUserAnswer,
  }),
  endpoint({
    id: 'getUser',
    method: 'GET',
    path: '/auth/users/{username}',
    tag,
    summary: 'Read a User',
    access: { kind: 'flag', action: 'user.read', orSelf: 'username' },
    params,
    query: z.object({
      email: trueParam.exactOptional().meta({ description: '`true`: the path value is an e-mail address' }),
    }),
    answer: user,
    errors: unknown,
  }),
  endpoint({
    id: 'updateUser',
    method: 'PATCH',
    path: '/auth/users/{username}',
    tag,
    summary: 'Change a User: each field that is named is replaced whole',
    access: { kind: 'flag', action: 'user.update', orSelf: 'username' },
    params,
    body: updateUserBody,
    answer: user,
    errors: unknown,
  }),
  endpoint({
    id: 'deleteUser',
    method: 'DELETE',
    path: '/auth/users/{username}',
    tag,
    summary: 'Delete a User, end its sessions and disable its API keys',
    access: { kind: 'flag', action: 'user.delete' },
    params,
    query: z.object({ id: trueParam.exactOptional().meta({ description: '`true`: the path value is a User id' }) }),
    answer: messageBody,
    errors: unknown,
  }),
  endpoint({
    id: 'inviteUser',
    method: 'POST',
    path: '/auth/user/invite',
    tag,
    summary: 'Make a User that completes an invite to log in',
    access: { kind: 'flag', action: 'user.invite' },
    body: inviteBody,
    answer: inviteAnswer,
  }),
] as const;
