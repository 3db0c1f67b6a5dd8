// The whole grammar of `kms`: every command, argument and option. What a command does is in `commands/<noun>/<verb>.ts`,
// loaded when it is used.
import { version } from '../version.ts';
import { GrammarCommand, repeated, type Session } from './grammar.ts';

export function program(session: Session): GrammarCommand {
  const kms = new GrammarCommand(session, 'kms')
    .description(
      'A key-management appliance: it issues encryption keys from keyrings, and encrypts and decrypts files with them.',
    )
    .version(version, '--version', 'show the version')
    .option('--data <DIR>', 'the data directory (default: ./kms-data)')
    .option('--tenant <NAME>', 'the tenant (default: the only one)')
    .option('--server <URL>', 'use the appliance at this address instead of the one on this machine')
    .option('--api-key-file <FILE>', 'the API key for --server; or put the key itself into KMS_API_KEY')
    .option('--key-file <FILE>', 'the file with the master key')
    .option('--json', 'print one JSON document instead of tables and sentences')
    .addHelpText(
      'after',
      `
Every option can also come from the environment: --api-key-file is KMS_API_KEY_FILE, and so on.
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 nothing reachable, 4 sealed.

Examples:
  $ kms serve
  $ kms keyring create payroll
  $ kms encrypt --ring payroll -o report.pdf.kms report.pdf
  $ kms decrypt -o report.pdf report.pdf.kms`,
    );
  life(kms);
  keyrings(kms);
  asym(kms);
  assets(kms);
  accounts(kms);
  apiKeys(kms);
  activity(kms);
  files(kms);
  return kms;
}

function life(kms: GrammarCommand): void {
  kms
    .leaf(
      'init',
      'make a data directory, a master key and the first API key',
      ['kms init', 'kms init --data /var/lib/kms --host kms.example'],
      () => import('./commands/init.ts'),
    )
    .option('--custodian <KIND>', 'who keeps the master key: keyfile (default)')
    .option('--host <NAME>', 'answer requests for this host only', repeated);
  kms
    .leaf(
      'serve',
      'serve; an empty or missing data directory is initialised first',
      ['kms serve', 'kms serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem'],
      () => import('./commands/serve.ts'),
    )
    .option('--listen <HOST:PORT>', 'where to listen (default: 127.0.0.1:8080); port 0 picks one')
    .option('--url <BASE_URL>', 'the address under which clients reach the appliance')
    .option('--tls-cert <FILE>', 'the certificate chain for HTTPS, PEM')
    .option('--tls-key <FILE>', 'its private key, PEM')
    .option('--behind-proxy', 'a proxy in front ends TLS: allow plain HTTP on any address')
    .option('--host <NAME>', 'when initialising: answer requests for this host only', repeated)
    .option('--body-limit <BYTES>', 'the largest body of a request (default: 1048576)')
    .option('--log-level <LEVEL>', 'debug, info (default), warn, error or silent');
  kms.leaf(
    'status',
    'sealed or not, version, tenants, sizes; exit code 4 when sealed',
    ['kms status', 'kms status --json'],
    () => import('./commands/status.ts'),
  );
}

function keyrings(kms: GrammarCommand): void {
  const keyring = kms.group('keyring', 'keyrings: what keys are issued from');
  keyring
    .leaf(
      'create <NAME>',
      'make a keyring and keep its private key in a file',
      ['kms keyring create payroll', 'kms keyring create payroll --public-key payroll.pub'],
      () => import('./commands/keyring/create.ts'),
    )
    .option('--public-key <FILE>', 'use this X25519 public key (PEM or base64) instead of making a pair')
    .option('--private-key-out <FILE>', 'where the private key goes (default: $XDG_CONFIG_HOME/kms/rings/<NAME>.key)')
    .option('--props <JSON>', 'free-form properties of the ring')
    .option('--key-props <JSON>', 'free-form properties of its keys');
  paged(
    keyring.leaf(
      'list',
      'list keyrings, oldest first',
      ['kms keyring list'],
      () => import('./commands/keyring/list.ts'),
    ),
  );
  byId(
    keyring.leaf(
      'show <NAME>',
      'show a keyring',
      ['kms keyring show payroll'],
      () => import('./commands/keyring/show.ts'),
    ),
  );
  paged(
    byId(
      keyring.leaf(
        'keys <NAME>',
        'list the keys of a keyring, oldest first',
        ['kms keyring keys payroll'],
        () => import('./commands/keyring/keys.ts'),
      ),
    ),
  );
  keyring.leaf(
    'rotate <NAME>',
    'give a keyring a new active key; the old ones still decrypt',
    ['kms keyring rotate payroll'],
    () => import('./commands/keyring/rotate.ts'),
  );
  keyring
    .leaf(
      'config <NAME>',
      'show or change the configuration of a keyring',
      ['kms keyring config payroll', 'kms keyring config payroll --max-encrypt-count 1000000'],
      () => import('./commands/keyring/config.ts'),
    )
    .option('--max-encrypt-count <N>', 'how many encrypts a key serves before the ring rotates')
    .option('--props <JSON>', 'free-form properties of the ring, replaced whole')
    .option('--key-props <JSON>', 'free-form properties of keys to come, replaced whole');
  destroying(
    keyring.leaf(
      'delete <NAME>',
      'delete a keyring; for 30 days it can be restored under its id',
      ['kms keyring delete payroll'],
      () => import('./commands/keyring/delete.ts'),
    ),
  );
  keyring.leaf(
    'restore <ID>',
    'bring a deleted keyring back',
    ['kms keyring restore ring_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('./commands/keyring/restore.ts'),
  );
}

function asym(kms: GrammarCommand): void {
  const group = kms.group('asym', 'keyrings of the asym service');
  group
    .leaf(
      'create <NAME>',
      'make an asym keyring and keep its private key in a file',
      ['kms asym create partners'],
      () => import('./commands/asym/create.ts'),
    )
    .option('--private-key-out <FILE>', 'where the private key goes (default: $XDG_CONFIG_HOME/kms/asym/<NAME>.key)')
    .option('--props <JSON>', 'free-form properties of the ring')
    .option('--key-props <JSON>', 'free-form properties of its keys');
  byId(
    group.leaf(
      'show-key <NAME> <KEYID>',
      'show a key of an asym keyring',
      ['kms asym show-key partners key_01jz4b8m6q3v9x2c5d7f8g9h0k'],
      () => import('./commands/asym/show-key.ts'),
    ),
  );
  group.leaf(
    'rotate <NAME>',
    'give an asym keyring a new active key',
    ['kms asym rotate partners'],
    () => import('./commands/asym/rotate.ts'),
  );
}

function assets(kms: GrammarCommand): void {
  const asset = kms.group('asset', 'assets: signed records that headers carry');
  asset.leaf(
    'show <ID>',
    'show an asset',
    ['kms asset show asset_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('./commands/asset/show.ts'),
  );
  searched(
    asset.leaf(
      'search',
      'search assets, newest first',
      ['kms asset search --contains \'{"case": 17}\''],
      () => import('./commands/asset/search.ts'),
    ),
  )
    .option('--apikey <KEYID>', 'made with this API key')
    .option('--account <UID>', 'made with an API key of this account')
    .option('--ring-id <ID>', 'of this keyring')
    .option('--parent <ID>', 'has this parent', repeated)
    .option('--contains <JSON>', 'its data contains this object');
  destroying(
    asset.leaf(
      'delete <ID>',
      'delete an asset: headers that carry it no longer verify',
      ['kms asset delete asset_01jz4b8m6q3v9x2c5d7f8g9h0k'],
      () => import('./commands/asset/delete.ts'),
    ),
  );
}

function accounts(kms: GrammarCommand): void {
  const account = kms.group('account', 'accounts: what API keys belong to');
  account
    .leaf(
      'create <UID>',
      'make an account',
      ['kms account create billing --notes "the billing system"'],
      () => import('./commands/account/create.ts'),
    )
    .option('--notes <TEXT>', 'notes')
    .option('--props <JSON>', 'free-form properties');
  paged(
    account.leaf(
      'list',
      'list accounts, oldest first',
      ['kms account list'],
      () => import('./commands/account/list.ts'),
    ),
  );
  account.leaf(
    'show <UID>',
    'show an account',
    ['kms account show billing'],
    () => import('./commands/account/show.ts'),
  );
  account
    .leaf(
      'update <UID>',
      'change an account: what is given is replaced whole',
      ['kms account update billing --notes "moved"'],
      () => import('./commands/account/update.ts'),
    )
    .option('--uid <UID>', 'the new uid')
    .option('--notes <TEXT>', 'notes')
    .option('--props <JSON>', 'free-form properties');
  destroying(
    account.leaf(
      'delete <UID>',
      'delete an account and its API keys',
      ['kms account delete billing'],
      () => import('./commands/account/delete.ts'),
    ),
  );
}

function apiKeys(kms: GrammarCommand): void {
  const apikey = kms.group('apikey', 'API keys: what programs authenticate with');
  apikey
    .leaf(
      'create',
      'make an API key; its secret is shown this once',
      ['kms apikey create --account billing --flag keyring.payroll.encrypt --flag keyring.payroll.read'],
      () => import('./commands/apikey/create.ts'),
    )
    .option('--account <UID>', 'the account that it belongs to (required)')
    .option('--flag <FLAG>', 'a permission that it has', repeated)
    .option('--props <JSON>', 'free-form properties');
  paged(
    apikey.leaf(
      'list',
      'list API keys, oldest first',
      ['kms apikey list', 'kms apikey list --account billing'],
      () => import('./commands/apikey/list.ts'),
    ),
  )
    .option('--account <UID>', 'of this account only')
    .option('--ring <NAME>', 'only those whose flags name this keyring')
    .option('--wildcard', 'with --ring: also those that a wildcard lets in');
  apikey.leaf(
    'show <KEYID>',
    'show an API key, without its secret',
    ['kms apikey show apik_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('./commands/apikey/show.ts'),
  );
  apikey
    .leaf(
      'update <KEYID>',
      'change an API key',
      [
        'kms apikey update apik_01jz4b8m6q3v9x2c5d7f8g9h0k --flag keyring.payroll.decrypt',
        'kms apikey update apik_01jz4b8m6q3v9x2c5d7f8g9h0k --op delete --flag keyring.payroll.decrypt',
      ],
      () => import('./commands/apikey/update.ts'),
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
    () => import('./commands/apikey/revoke.ts'),
  );
  apikey
    .leaf(
      'validate',
      'tell whether the API key on stdin is valid; exit code 1 when not',
      ['kms apikey validate < key.txt'],
      () => import('./commands/apikey/validate.ts'),
    )
    .option('--activity <JSON>', 'an activity to record for the key');
}

function activity(kms: GrammarCommand): void {
  const group = kms.group('activity', 'activity: who did what, granted or denied');
  searched(
    group.leaf(
      'search',
      'search activity, newest first',
      ['kms activity search --ring payroll', 'kms activity search --valid false --start 2026-01-01'],
      () => import('./commands/activity/search.ts'),
    ),
  )
    .option('--keyid <ID>', 'by this API key or user')
    .option('--account <UID>', 'by an API key of this account')
    .option('--action <ACTION>', 'of this kind, such as keyring.encrypt')
    .option('--ring <NAME>', 'about this keyring')
    .option('--valid <BOOLEAN>', 'granted (true) or denied (false)')
    .option('--contains <JSON>', 'its props contain this object');
  group.leaf(
    'show <ID>',
    'show an activity',
    ['kms activity show act_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('./commands/activity/show.ts'),
  );
}

function files(kms: GrammarCommand): void {
  kms
    .leaf(
      'encrypt [FILE]',
      'encrypt FILE or stdin with a key of a ring; needs the flag keyring.<ringname>.encrypt',
      [
        'kms encrypt --ring payroll -o report.pdf.kms report.pdf',
        'tar c dir | kms encrypt --ring payroll > dir.tar.kms',
      ],
      () => import('./commands/encrypt.ts'),
    )
    .option('--ring <NAME>', 'the keyring (required)')
    .option('--private-key <FILE>', "the ring's private key, PEM or base64 (default: where `keyring create` put it)")
    .option('--asset-data <JSON>', 'sign an asset with this data into the header')
    .option('--asset-id <ID>', 'update this asset instead of making one')
    .option('--parent <ID>', 'a parent of the asset', repeated)
    .option('-o, --output <FILE>', 'write here instead of to stdout; never overwrites');
  kms
    .leaf(
      'decrypt [FILE]',
      'decrypt FILE or stdin; needs the flag keyring.<ringname>.decrypt',
      ['kms decrypt -o report.pdf report.pdf.kms', 'kms decrypt < dir.tar.kms | tar x'],
      () => import('./commands/decrypt.ts'),
    )
    .option('--private-key <FILE>', "the ring's private key, PEM or base64 (default: where `keyring create` put it)")
    .option('-o, --output <FILE>', 'write here instead of to stdout; never overwrites')
    .option('--allow-invalid-asset', 'decrypt although the asset in the header does not verify');
  kms.leaf(
    'inspect <FILE>',
    'say what the header of an encrypted file says; needs no key and no server',
    ['kms inspect report.pdf.kms'],
    () => import('./commands/inspect.ts'),
  );
}

function paged(command: GrammarCommand): GrammarCommand {
  return command
    .option('--limit <N>', 'one page with at most so many (default: all there are)')
    .option('--cursor <CURSOR>', 'the page after the one that named this cursor');
}

function searched(command: GrammarCommand): GrammarCommand {
  return command
    .option('--start <TIME>', 'from this time on: milliseconds since 1970 or a date')
    .option('--end <TIME>', 'up to and with this time')
    .option('--limit <N>', 'at most so many (default: 100)')
    .option('--all', 'all there are')
    .option('--cursor <CURSOR>', 'the page after the one that named this cursor');
}

function byId(command: GrammarCommand): GrammarCommand {
  return command.option('--id', 'what is given is an id');
}

function destroying(command: GrammarCommand): GrammarCommand {
  return command.option('--yes', "don't ask");
}
