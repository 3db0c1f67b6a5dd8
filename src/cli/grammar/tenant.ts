// The commands about tenants, `kms tenant …`.
import { argument, command, limit, list, oneOf, optionalArgument, required, text, toggle } from './declaration.ts';
import { destroying } from './option-sets.ts';

export const tenant = {
  create: command(
    'create',
    'make a tenant; its root API key is shown only once',
    ['kms tenant create blue --host blue.example'],
    {
      '<NAME>': argument(),
      '--host': required(
        list('NAME', 'a host that it answers for (required); * is every host that no other tenant has'),
      ),
    },
  ),
  list: command('list', 'list tenants, newest first', ['kms tenant list'], {
    '--deleted': toggle('list the living ones, then the deleted ones that can still be restored'),
  }),
  show: command('show', 'show a tenant: the one in use, unless another is named', ['kms tenant show blue'], {
    '[NAME]': optionalArgument('tenant'),
  }),
  use: command(
    'use',
    'use a tenant by default, in commands for this data directory that name none',
    ['kms tenant use blue', 'kms tenant use --none'],
    {
      '[NAME]': optionalArgument('tenant'),
      '--none': toggle('use no tenant by default'),
    },
  ),
  update: command(
    'update',
    'change the name or hosts of a tenant, who needs a second factor, or who may hold keys; takes effect at once',
    [
      'kms tenant update blue --host blue.example --host b.example',
      'kms tenant update blue --second-factor-for user.update --second-factor-for apikey.create',
      'kms tenant update blue --custody client',
    ],
    {
      '<NAME>': argument('tenant'),
      '--name': text('NAME', 'the new name'),
      '--host': list('NAME', 'a host that it answers for; the given ones replace all before'),
      '--second-factor-for': list(
        'FLAG',
        'users with this permission need a second factor; the given ones replace all before, none removes it',
        'flag',
      ),
      '--custody': oneOf(
        'any|client',
        'who may hold new keys: client allows no new managed keys and Tang pairs, whose keys the appliance holds',
        ['any', 'client'],
      ),
    },
  ),
  limits: command(
    'limits',
    'show or set how much a tenant may have; none removes a limit',
    ['kms tenant limits blue', 'kms tenant limits blue --users 50 --keyrings none'],
    {
      '<NAME>': argument('tenant'),
      '--keyrings': limit('N', 'at most this many keyrings'),
      '--keys-per-ring': limit('N', 'at most this many keys in each keyring'),
      '--users': limit('N', 'at most this many users'),
      '--accounts': limit('N', 'at most this many accounts'),
      '--apikeys': limit('N', 'at most this many API keys'),
      '--assets': limit('N', 'at most this many assets'),
      '--asset-versions': limit('N', 'at most this many stored versions of all assets together'),
    },
  ),
  remove: command('delete', 'delete a tenant; for 30 days it can be restored', ['kms tenant delete blue'], {
    '<NAME>': argument('tenant'),
    ...destroying,
  }),
  restore: command('restore', 'restore a deleted tenant, by its name or id', ['kms tenant restore blue'], {
    '<ID>': argument(),
    '--name': text('NAME', 'under this name, if its own is taken'),
    '--host': list('NAME', 'with this host instead of those it had'),
  }),
  rekey: command(
    'rekey',
    'give a tenant new keys and re-encrypt its files under them; what clients hold stays valid',
    ['kms tenant rekey default'],
    {
      '<NAME>': argument('tenant'),
    },
  ),
};
