// The part of the grammar about tenants and the people in them.
import { argument, command, limit, list, object, required, text, toggle } from './declaration.ts';
import { byId, destroying, paged } from './option-sets.ts';

export const tenant = {
  create: command(
    'create',
    'make a tenant; its root API key is shown this once',
    ['kms tenant create blue --host blue.example'],
    {
      '<NAME>': argument(),
      '--host': required(list('NAME', 'a host that it answers (required); * is every host that no other tenant has')),
    },
  ),
  list: command('list', 'list tenants, oldest first', ['kms tenant list'], {
    '--deleted': toggle('also those that are deleted and can be restored'),
  }),
  show: command('show', 'show a tenant', ['kms tenant show blue'], {
    '<NAME>': argument('tenant'),
  }),
  update: command(
    'update',
    'change the name or the hosts of a tenant, at once',
    ['kms tenant update blue --host blue.example --host b.example'],
    {
      '<NAME>': argument('tenant'),
      '--name': text('NAME', 'the new name'),
      '--host': list('NAME', 'a host that it answers; all of them replace those that it had'),
    },
  ),
  limits: command(
    'limits',
    'show or set how much a tenant may have; none lifts a limit',
    ['kms tenant limits blue', 'kms tenant limits blue --users 50 --keyrings none'],
    {
      '<NAME>': argument('tenant'),
      '--keyrings': limit('N', 'at most so many keyrings'),
      '--keys-per-ring': limit('N', 'at most so many keys in each keyring'),
      '--users': limit('N', 'at most so many users'),
      '--accounts': limit('N', 'at most so many accounts'),
      '--apikeys': limit('N', 'at most so many API keys'),
      '--assets': limit('N', 'at most so many assets'),
      '--asset-versions': limit('N', 'at most so many stored versions of all assets together'),
    },
  ),
  remove: command(
    'delete',
    'delete a tenant; for 30 days it can be restored under its id',
    ['kms tenant delete blue'],
    {
      '<NAME>': argument('tenant'),
      ...destroying,
    },
  ),
  restore: command('restore', 'bring a deleted tenant back', ['kms tenant restore tenant_01jz4b8m6q3v9x2c5d7f8g9h0k'], {
    '<ID>': argument(),
    '--name': text('NAME', 'under this name, where its own is taken'),
    '--host': list('NAME', 'with this host instead of those that it had'),
  }),
  rekey: command(
    'rekey',
    'give a tenant new keys and bring all its files under them; what clients hold stays good',
    ['kms tenant rekey default'],
    {
      '<NAME>': argument('tenant'),
    },
  ),
};

export const newUser = {
  '<USERNAME>': argument(),
  '--email': required(text('ADDRESS', 'the e-mail address (required)')),
  '--first-name': required(text('NAME', 'the first name (required)')),
  '--last-name': required(text('NAME', 'the last name (required)')),
  '--flag': list('FLAG', 'a permission that the user has', 'flag'),
  '--props': object('JSON', 'free-form properties'),
};

const byEmail = { '--by-email': toggle('what is given is an e-mail address') };

export const user = {
  create: command(
    'create',
    'make a user; the password is made too and shown this once',
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
  list: command('list', 'list users, oldest first', ['kms user list'], {
    ...paged,
  }),
  show: command('show', 'show a user', ['kms user show ada'], {
    '<USERNAME>': argument('user'),
    ...byEmail,
  }),
  update: command(
    'update',
    'change a user: what is given is replaced whole',
    ['kms user update ada --flag keyring.list --flag "keyring.payroll.*"'],
    {
      '<USERNAME>': argument('user'),
      '--email': text('ADDRESS', 'the e-mail address'),
      '--first-name': text('NAME', 'the first name'),
      '--last-name': text('NAME', 'the last name'),
      '--flag': list('FLAG', 'a permission; all of them replace those that the user had', 'flag'),
      '--clear-flags': toggle('take all permissions away'),
      '--props': object('JSON', 'free-form properties'),
    },
  ),
  remove: command('delete', 'delete a user, end the sessions and disable the API keys', ['kms user delete ada'], {
    '<USERNAME>': argument('user'),
    ...byId,
    ...destroying,
  }),
  resetLink: command('reset-link', 'make a link with which a user sets a new password', ['kms user reset-link ada'], {
    '<USERNAME>': argument('user'),
    ...byEmail,
  }),
  setUpLink: command(
    'set-up-link',
    'make the link with which the first user is made in the console, while there is none',
    ['kms user set-up-link'],
  ),
};
