// The part of the grammar about who may do what, and who did.
import {
  argument,
  boolean,
  command,
  duration,
  list,
  object,
  oneOf,
  path,
  required,
  text,
  toggle,
} from './declaration.ts';
import { destroying, output, paged, searched } from './option-sets.ts';

export const account = {
  create: command('create', 'make an account', ['kms account create billing --notes "the billing system"'], {
    '<UID>': argument(),
    '--notes': text('TEXT', 'notes'),
    '--props': object('JSON', 'free-form properties'),
  }),
  list: command('list', 'list accounts, oldest first', ['kms account list'], {
    ...paged,
  }),
  show: command('show', 'show an account', ['kms account show billing'], {
    '<UID>': argument('account'),
  }),
  update: command(
    'update',
    'change an account: what is given is replaced whole',
    ['kms account update billing --notes "moved"'],
    {
      '<UID>': argument('account'),
      '--uid': text('UID', 'the new uid'),
      '--notes': text('TEXT', 'notes'),
      '--props': object('JSON', 'free-form properties'),
    },
  ),
  remove: command('delete', 'delete an account and its API keys', ['kms account delete billing'], {
    '<UID>': argument('account'),
    ...destroying,
  }),
};

export const apikey = {
  create: command(
    'create',
    'make an API key; its secret is shown this once',
    ['kms apikey create --account billing --flag keyring.payroll.encrypt --secret-out billing.apikey'],
    {
      '--account': required(text('UID', 'the account that it belongs to (required)', 'account')),
      '--flag': list('FLAG', 'a permission that it has', 'flag'),
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
    ],
    {
      '<KEYID>': argument('api-key'),
      '--op': oneOf(
        'OP',
        'merge (default): add what is given; replace: put it in place of what was; delete: take it away',
        ['merge', 'replace', 'delete'],
      ),
      '--flag': list('FLAG', 'a permission', 'flag'),
      '--props': object('JSON', 'free-form properties'),
      '--account': text('UID', 'move it to this account', 'account'),
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

export const activity = {
  search: command(
    'search',
    'search activity, newest first',
    [
      'kms activity search --ring payroll',
      'kms activity search --valid false --start 2026-01-01',
      'kms activity search --watch --valid false',
    ],
    {
      ...searched,
      '--keyid': text('ID', 'by this API key or user', 'api-key'),
      '--account': text('UID', 'by an API key of this account', 'account'),
      '--action': text('ACTION', 'of this kind, such as keyring.encrypt', 'action'),
      '--ring': text('NAME', 'about this keyring', 'ring'),
      '--valid': boolean('BOOLEAN', 'granted (true) or denied (false)'),
      '--contains': object('JSON', 'its props contain this object'),
      '--watch': toggle(
        'show each record as it is written, until Ctrl-C, beginning with the --limit newest (default: 0)',
      ),
      '--every': duration('TIME', 'with --watch: how often to ask, which is recorded each time (default: 2s)'),
    },
  ),
  show: command('show', 'show an activity', ['kms activity show act_01jz4b8m6q3v9x2c5d7f8g9h0k'], {
    '<ID>': argument(),
  }),
  head: command(
    'head',
    'the last record with its hash, signed: keep it elsewhere, so that nothing up to here can be taken back unseen',
    ['kms activity head', 'kms activity head --json > head.json'],
  ),
  verify: command(
    'verify',
    'verify that no record was changed, dropped or moved; exit code 1 when one was',
    [
      'kms activity verify',
      'kms activity verify --since head.json',
      'kms activity verify --file export.jsonl --since head.json',
    ],
    {
      '--file': text('FILE', 'verify this export; needs no appliance', 'file'),
      '--since': path('HEAD-FILE', 'verify too that what `kms activity head` printed into this file is still there'),
      '--public-key': text('KEY', 'with --file: the key that must have signed the head'),
    },
  ),
  exportRecords: command(
    'export',
    'all records, oldest first, as JSON Lines that an auditor can verify without the appliance',
    ['kms activity export -o activity.jsonl', 'kms activity export --since head.json > newer.jsonl'],
    {
      ...output,
      '--since': path('HEAD-FILE', 'only the records after this head'),
    },
  ),
};
