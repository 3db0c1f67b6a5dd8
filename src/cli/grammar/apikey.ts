// The commands about API keys, `kms apikey …`.
import { argument, boolean, command, list, object, oneOf, path, required, text, toggle } from './declaration.ts';
import { destroying, flagged, keyed, paged } from './option-sets.ts';

export const apikey = {
  create: command(
    'create',
    'make an API key; its secret is shown only once',
    [
      'kms apikey create --account billing --flag keyring.payroll.encrypt --secret-out billing.apikey',
      'kms apikey create --account billing --name nightly --expires 90d --allow-address 192.0.2.0/24',
    ],
    {
      '--account': required(text('UID', 'the account that it belongs to (required)', 'account')),
      '--flag': list('FLAG', 'a permission to give it', 'flag'),
      ...flagged,
      ...keyed,
      '--secret-out': path('FILE', 'write the secret to this file, readable only by its owner, instead of showing it'),
      '--without-secret': toggle('make it without a secret: it is known by the proofs that are added to it'),
      '--props': object('JSON', 'free-form properties'),
    },
  ),
  list: command('list', 'list API keys, newest first', ['kms apikey list', 'kms apikey list --account billing'], {
    ...paged,
    '--account': text('UID', 'of this account only', 'account'),
    '--ring': text('NAME', 'only those whose flags name this keyring', 'ring'),
    '--wildcard': toggle('with --ring: also those that match by a wildcard'),
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
        'merge (default): add what is given; replace: replace what was there; delete: remove what is given',
        ['merge', 'replace', 'delete'],
      ),
      '--flag': list('FLAG', 'a permission', 'flag'),
      ...flagged,
      ...keyed,
      '--any-address': toggle('allow it from any address'),
      '--props': object('JSON', 'free-form properties'),
      '--account': text('UID', 'move it to this account', 'account'),
      '--owner': text('USERNAME', 'hand it to this user; it ends when they are deleted', 'user'),
      '--active': boolean('BOOLEAN', 'true or false'),
    },
  ),
  revoke: command(
    'revoke',
    'make an API key inactive; asks first on a terminal',
    ['kms apikey revoke apik_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    {
      '<KEYID>': argument('api-key'),
      ...destroying,
    },
  ),
  remove: command(
    'delete',
    'delete an API key; `revoke` can be taken back, this cannot',
    ['kms apikey delete apik_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    {
      '<KEYID>': argument('api-key'),
      ...destroying,
    },
  ),
  validate: command(
    'validate',
    'check whether the API key on stdin is valid; exit code 1 if not',
    ['kms apikey validate < key.txt'],
    {
      '--activity': object('JSON', 'an activity to record for the key'),
    },
  ),
};
