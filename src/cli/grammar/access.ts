// The part of the grammar about who may do what, and who did.
import { type GrammarCommand, repeated } from '../grammar-command.ts';
import { destroying, paged, searched } from './option-sets.ts';

export function accounts(kms: GrammarCommand): void {
  const account = kms.group('account', 'accounts: what API keys belong to');
  account
    .leaf(
      'create <UID>',
      'make an account',
      ['kms account create billing --notes "the billing system"'],
      () => import('../commands/account/create.ts'),
    )
    .option('--notes <TEXT>', 'notes')
    .option('--props <JSON>', 'free-form properties');
  paged(
    account.leaf(
      'list',
      'list accounts, oldest first',
      ['kms account list'],
      () => import('../commands/account/list.ts'),
    ),
  );
  account.leaf(
    'show <UID>',
    'show an account',
    ['kms account show billing'],
    () => import('../commands/account/show.ts'),
  );
  account
    .leaf(
      'update <UID>',
      'change an account: what is given is replaced whole',
      ['kms account update billing --notes "moved"'],
      () => import('../commands/account/update.ts'),
    )
    .option('--uid <UID>', 'the new uid')
    .option('--notes <TEXT>', 'notes')
    .option('--props <JSON>', 'free-form properties');
  destroying(
    account.leaf(
      'delete <UID>',
      'delete an account and its API keys',
      ['kms account delete billing'],
      () => import('../commands/account/delete.ts'),
    ),
  );
}

export function apiKeys(kms: GrammarCommand): void {
  const apikey = kms.group('apikey', 'API keys: what programs authenticate with');
  apikey
    .leaf(
      'create',
      'make an API key; its secret is shown this once',
      ['kms apikey create --account billing --flag keyring.payroll.encrypt --secret-out billing.apikey'],
      () => import('../commands/apikey/create.ts'),
    )
    .option('--account <UID>', 'the account that it belongs to (required)')
    .option('--flag <FLAG>', 'a permission that it has', repeated)
    .option('--secret-out <FILE>', 'write the secret here, readable by its user alone, instead of showing it')
    .option('--props <JSON>', 'free-form properties');
  paged(
    apikey.leaf(
      'list',
      'list API keys, oldest first',
      ['kms apikey list', 'kms apikey list --account billing'],
      () => import('../commands/apikey/list.ts'),
    ),
  )
    .option('--account <UID>', 'of this account only')
    .option('--ring <NAME>', 'only those whose flags name this keyring')
    .option('--wildcard', 'with --ring: also those that a wildcard lets in');
  apikey.leaf(
    'show <KEYID>',
    'show an API key, without its secret',
    ['kms apikey show apik_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('../commands/apikey/show.ts'),
  );
  apikey
    .leaf(
      'update <KEYID>',
      'change an API key',
      [
        'kms apikey update apik_01jz4b8m6q3v9x2c5d7f8g9h0k --flag keyring.payroll.decrypt',
        'kms apikey update apik_01jz4b8m6q3v9x2c5d7f8g9h0k --op delete --flag keyring.payroll.decrypt',
      ],
      () => import('../commands/apikey/update.ts'),
    )
    .option(
      '--op <OP>',
      'merge (default): add what is given; replace: put it in place of what was; delete: take it away',
    )
    .option('--flag <FLAG>', 'a permission', repeated)
    .option('--props <JSON>', 'free-form properties')
    .option('--account <UID>', 'move it to this account')
    .option('--active <BOOLEAN>', 'true or false');
  apikey.leaf(
    'revoke <KEYID>',
    'set an API key inactive',
    ['kms apikey revoke apik_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('../commands/apikey/revoke.ts'),
  );
  apikey
    .leaf(
      'validate',
      'tell whether the API key on stdin is valid; exit code 1 when not',
      ['kms apikey validate < key.txt'],
      () => import('../commands/apikey/validate.ts'),
    )
    .option('--activity <JSON>', 'an activity to record for the key');
}

export function activity(kms: GrammarCommand): void {
  const group = kms.group('activity', 'activity: who did what, granted or denied');
  searched(
    group.leaf(
      'search',
      'search activity, newest first',
      [
        'kms activity search --ring payroll',
        'kms activity search --valid false --start 2026-01-01',
        'kms activity search --watch --valid false',
      ],
      () => import('../commands/activity/search.ts'),
    ),
  )
    .option('--keyid <ID>', 'by this API key or user')
    .option('--account <UID>', 'by an API key of this account')
    .option('--action <ACTION>', 'of this kind, such as keyring.encrypt')
    .option('--ring <NAME>', 'about this keyring')
    .option('--valid <BOOLEAN>', 'granted (true) or denied (false)')
    .option('--contains <JSON>', 'its props contain this object')
    .option(
      '--watch',
      'show each record as it is written, until Ctrl-C, beginning with the --limit newest (default: 0)',
    )
    .option('--every <TIME>', 'with --watch: how often to ask, which is recorded each time (default: 2s)');
  group.leaf(
    'show <ID>',
    'show an activity',
    ['kms activity show act_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('../commands/activity/show.ts'),
  );
  group.leaf(
    'head',
    'the last record with its hash, signed: keep it elsewhere, so that nothing up to here can be taken back unseen',
    ['kms activity head', 'kms activity head --json > head.json'],
    () => import('../commands/activity/head.ts'),
  );
  group
    .leaf(
      'verify',
      'verify that no record was changed, dropped or moved; exit code 1 when one was',
      [
        'kms activity verify',
        'kms activity verify --since head.json',
        'kms activity verify --file export.jsonl --since head.json',
      ],
      () => import('../commands/activity/verify.ts'),
    )
    .option('--file <FILE>', 'verify this export; needs no appliance')
    .option('--since <HEAD-FILE>', 'verify too that what `kms activity head` printed into this file is still there')
    .option('--public-key <KEY>', 'with --file: the key that must have signed the head');
  group
    .leaf(
      'export',
      'all records, oldest first, as JSON Lines that an auditor can verify without the appliance',
      ['kms activity export -o activity.jsonl', 'kms activity export --since head.json > newer.jsonl'],
      () => import('../commands/activity/export.ts'),
    )
    .option('-o, --output <FILE>', 'write here instead of to stdout; never overwrites')
    .option('--since <HEAD-FILE>', 'only the records after this head');
}
