// The commands about API keys, `kms apikey …`.
import { argument, boolean, command, list, object, oneOf, path, required, text, toggle } from './declaration.ts';
import { flagged, keyed, paged } from './option-sets.ts';

export const apikey = {
  create: command(
    'create',
    'make an API key; its secret is shown this once',
    [
      'kms apikey create --account billing --flag keyring.payroll.encrypt --secret-out billing.apikey',
      'kms apikey create --account billing --name nightly --expires 90d --allow-address 192.0.2.0/24',
    ],
    {
      '--account': required(text('UID', 'the account that it belongs to (required)', 'account')),
      '--flag': list('FLAG', 'a permission that it has', 'flag'),
      ...flagged,
      ...keyed,
      '--secret-out': path('FILE', 'write the secret here, readable by its user alone, instead of showing it'),
      '--props': object('JSON', 'free-form properties'),
    },
  ),
  list: command('list', 'list API keys, oldest first', ['kms apikey list', 'kms apikey list --account billing'], {
    ...paged,
    '--account': text('UID', 'of this account only', 'account'),
    '--ring': text('NAME', 'only those whose flags name this keyring', 'ring'),
    '--wildcard': toggle('with --ring: also those that a wildcard lets in'),
  }),
  show: command('show', 'show an API key, without its secret', ['kms apikey show apik_01jz4b8m6q3v9x2c5d7f8g9h0k'], {
    '<KEYID>': argument('api-key'),
  }),
  update: command(
    'update',
    'change an API key',
    [
      'kms apikey update apik_01jz4b8m6q3v9x2c5d7f8g9h0k --flag keyring.payroll.decrypt',
      'kms apikey update apik_01jz4b8m6q3v9x2c5d7f8g9h0k --op delete --flag keyring.payroll.decrypt',
      'kms apikey update apik_01jz4b8m6q3v9x2c5d7f8g9h0k --expires 2027-01-01 --any-address',
    ],
    {
      '<KEYID>': argument('api-key'),
      '--op': oneOf(
        'OP',
        'merge (default): add what is given; replace: put it in place of what was; delete: take it away',
        ['merge', 'replace', 'delete'],
      ),
      '--flag': list('FLAG', 'a permission', 'flag'),
      ...flagged,
      ...keyed,
      '--any-address': toggle('it may come from anywhere'),
      '--props': object('JSON', 'free-form properties'),
      '--account': text('UID', 'move it to this account', 'account'),
      '--owner': text('USERNAME', 'hand it to this user, with whom it ends', 'user'),
      '--active': boolean('BOOLEAN', 'true or false'),
    },
  ),
  revoke: command('revoke', 'set an API key inactive', ['kms apikey revoke apik_01jz4b8m6q3v9x2c5d7f8g9h0k'], {
    '<KEYID>': argument('api-key'),
  }),
  validate: command(
    'validate',
    'tell whether the API key on stdin is valid; exit code 1 when not',
    ['kms apikey validate < key.txt'],
    {
      '--activity': object('JSON', 'an activity to record for the key'),
    },
  ),
};
