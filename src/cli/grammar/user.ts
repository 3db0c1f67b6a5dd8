// The commands about users, `kms user …`.
import { argument, command, list, object, required, text, toggle } from './declaration.ts';
import { byId, destroying, flagged, paged } from './option-sets.ts';

export const newUser = {
  '<USERNAME>': argument(),
  '--email': required(text('ADDRESS', 'the e-mail address (required)')),
  '--first-name': required(text('NAME', 'the first name (required)')),
  '--last-name': required(text('NAME', 'the last name (required)')),
  '--flag': list('FLAG', 'a permission to give the user', 'flag'),
  ...flagged,
  '--props': object('JSON', 'free-form properties'),
};

const byEmail = { '--by-email': toggle('the argument is an e-mail address') };

export const user = {
  create: command(
    'create',
    'make a user with a generated password, which is shown only once',
    ['kms user create ada --email ada@example.org --first-name Ada --last-name Lovelace'],
    {
      ...newUser,
      '--display-name': text('NAME', 'how the name is shown (default: first and last name)'),
    },
  ),
  invite: command(
    'invite',
    'make a user who chooses a password through a link',
    ['kms user invite ada --email ada@example.org --first-name Ada --last-name Lovelace --flag "keyring.payroll.*"'],
    {
      ...newUser,
    },
  ),
  list: command('list', 'list users, newest first', ['kms user list'], {
    ...paged,
  }),
  show: command('show', 'show a user', ['kms user show ada'], {
    '<USERNAME>': argument('user'),
    ...byEmail,
  }),
  update: command(
    'update',
    'change a user; each given field is replaced as a whole',
    ['kms user update ada --flag keyring.list --flag "keyring.payroll.*"'],
    {
      '<USERNAME>': argument('user'),
      '--email': text('ADDRESS', 'the e-mail address'),
      '--first-name': text('NAME', 'the first name'),
      '--last-name': text('NAME', 'the last name'),
      '--flag': list('FLAG', 'a permission; the given ones replace all that the user had', 'flag'),
      ...flagged,
      '--clear-flags': toggle('remove all permissions'),
      '--props': object('JSON', 'free-form properties'),
    },
  ),
  remove: command(
    'delete',
    'delete a user, end their sessions and disable their API keys',
    ['kms user delete ada', 'kms user delete ada --hand-keys-to grace'],
    {
      '<USERNAME>': argument('user'),
      ...byId,
      '--hand-keys-to': text('USERNAME', 'first hand the API keys to this user, so that they keep working', 'user'),
      ...destroying,
    },
  ),
  resetLink: command('reset-link', 'make a link for a user to set a new password', ['kms user reset-link ada'], {
    '<USERNAME>': argument('user'),
    ...byEmail,
  }),
  resetSecondFactor: command(
    'reset-second-factor',
    'remove all second factors of a user who lost them; sessions end, and the password alone is enough again',
    ['kms user reset-second-factor ada'],
    {
      '<USERNAME>': argument('user'),
      ...byEmail,
      ...destroying,
    },
  ),
  setUpLink: command('set-up-link', 'make a link for setting up the first user in the console, while there is none', [
    'kms user set-up-link',
  ]),
};
