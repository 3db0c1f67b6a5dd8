// The part of the grammar about tenants and the people in them.
import { type GrammarCommand, repeated } from '../grammar-command.ts';
import { byId, destroying, paged } from './option-sets.ts';

export function tenants(kms: GrammarCommand): void {
  const tenant = kms.group('tenant', 'tenants: each has its own address, data and keys');
  tenant
    .leaf(
      'create <NAME>',
      'make a tenant; its root API key is shown this once',
      ['kms tenant create blue --host blue.example'],
      () => import('../commands/tenant/create.ts'),
    )
    .option('--host <NAME>', 'a host that it answers (required); * is every host that no other tenant has', repeated);
  tenant
    .leaf('list', 'list tenants, oldest first', ['kms tenant list'], () => import('../commands/tenant/list.ts'))
    .option('--deleted', 'also those that are deleted and can be restored');
  tenant.leaf('show <NAME>', 'show a tenant', ['kms tenant show blue'], () => import('../commands/tenant/show.ts'));
  tenant
    .leaf(
      'update <NAME>',
      'change the name or the hosts of a tenant, at once',
      ['kms tenant update blue --host blue.example --host b.example'],
      () => import('../commands/tenant/update.ts'),
    )
    .option('--name <NAME>', 'the new name')
    .option('--host <NAME>', 'a host that it answers; all of them replace those that it had', repeated);
  const limits = tenant.leaf(
    'limits <NAME>',
    'show or set how much a tenant may have; none lifts a limit',
    ['kms tenant limits blue', 'kms tenant limits blue --users 50 --keyrings none'],
    () => import('../commands/tenant/limits.ts'),
  );
  for (const [option, what] of [
    ['keyrings', 'keyrings'],
    ['keys-per-ring', 'keys in each keyring'],
    ['users', 'users'],
    ['accounts', 'accounts'],
    ['apikeys', 'API keys'],
    ['assets', 'assets'],
  ]) {
    limits.option(`--${option} <N>`, `at most so many ${what}`);
  }
  destroying(
    tenant.leaf(
      'delete <NAME>',
      'delete a tenant; for 30 days it can be restored under its id',
      ['kms tenant delete blue'],
      () => import('../commands/tenant/delete.ts'),
    ),
  );
  tenant
    .leaf(
      'restore <ID>',
      'bring a deleted tenant back',
      ['kms tenant restore tenant_01jz4b8m6q3v9x2c5d7f8g9h0k'],
      () => import('../commands/tenant/restore.ts'),
    )
    .option('--name <NAME>', 'under this name, where its own is taken')
    .option('--host <NAME>', 'with this host instead of those that it had', repeated);
  tenant.leaf(
    'rekey <NAME>',
    'give a tenant new keys and bring all its files under them; what clients hold stays good',
    ['kms tenant rekey default'],
    () => import('../commands/tenant/rekey.ts'),
  );
}

export function users(kms: GrammarCommand): void {
  const user = kms.group('user', 'users: people who log in');
  newUser(
    user.leaf(
      'create <USERNAME>',
      'make a user; the password is made too and shown this once',
      ['kms user create ada --email ada@example.org --first-name Ada --last-name Lovelace'],
      () => import('../commands/user/create.ts'),
    ),
  ).option('--display-name <NAME>', 'how the name is shown (default: first and last name)');
  newUser(
    user.leaf(
      'invite <USERNAME>',
      'make a user who chooses a password through a link',
      ['kms user invite ada --email ada@example.org --first-name Ada --last-name Lovelace --flag "keyring.payroll.*"'],
      () => import('../commands/user/invite.ts'),
    ),
  );
  paged(user.leaf('list', 'list users, oldest first', ['kms user list'], () => import('../commands/user/list.ts')));
  byEmail(user.leaf('show <USERNAME>', 'show a user', ['kms user show ada'], () => import('../commands/user/show.ts')));
  user
    .leaf(
      'update <USERNAME>',
      'change a user: what is given is replaced whole',
      ['kms user update ada --flag keyring.list --flag "keyring.payroll.*"'],
      () => import('../commands/user/update.ts'),
    )
    .option('--email <ADDRESS>', 'the e-mail address')
    .option('--first-name <NAME>', 'the first name')
    .option('--last-name <NAME>', 'the last name')
    .option('--flag <FLAG>', 'a permission; all of them replace those that the user had', repeated)
    .option('--clear-flags', 'take all permissions away')
    .option('--props <JSON>', 'free-form properties');
  destroying(
    byId(
      user.leaf(
        'delete <USERNAME>',
        'delete a user, end the sessions and disable the API keys',
        ['kms user delete ada'],
        () => import('../commands/user/delete.ts'),
      ),
    ),
  );
  byEmail(
    user.leaf(
      'reset-link <USERNAME>',
      'make a link with which a user sets a new password',
      ['kms user reset-link ada'],
      () => import('../commands/user/reset-link.ts'),
    ),
  );
  user.leaf(
    'set-up-link',
    'make the link with which the first user is made in the console, while there is none',
    ['kms user set-up-link'],
    () => import('../commands/user/set-up-link.ts'),
  );
}

function newUser(command: GrammarCommand): GrammarCommand {
  return command
    .option('--email <ADDRESS>', 'the e-mail address (required)')
    .option('--first-name <NAME>', 'the first name (required)')
    .option('--last-name <NAME>', 'the last name (required)')
    .option('--flag <FLAG>', 'a permission that the user has', repeated)
    .option('--props <JSON>', 'free-form properties');
}

function byEmail(command: GrammarCommand): GrammarCommand {
  return command.option('--by-email', 'what is given is an e-mail address');
}
