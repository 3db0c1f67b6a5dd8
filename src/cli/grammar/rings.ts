// The part of the grammar about keyrings of both services, and assets.
import { type GrammarCommand, repeated } from '../grammar-command.ts';
import { byId, destroying, paged, searched } from './option-sets.ts';

export function keyrings(kms: GrammarCommand): void {
  const keyring = kms.group('keyring', 'keyrings: what keys are issued from');
  keyring
    .leaf(
      'create <NAME>',
      'make a keyring and keep its private key in a file',
      ['kms keyring create payroll', 'kms keyring create payroll --public-key payroll.pub'],
      () => import('../commands/keyring/create.ts'),
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
      () => import('../commands/keyring/list.ts'),
    ),
  );
  byId(
    keyring.leaf(
      'show <NAME>',
      'show a keyring',
      ['kms keyring show payroll'],
      () => import('../commands/keyring/show.ts'),
    ),
  );
  paged(
    byId(
      keyring.leaf(
        'keys <NAME>',
        'list the keys of a keyring, oldest first',
        ['kms keyring keys payroll'],
        () => import('../commands/keyring/keys.ts'),
      ),
    ),
  );
  keyring.leaf(
    'rotate <NAME>',
    'give a keyring a new active key; the old ones still decrypt',
    ['kms keyring rotate payroll'],
    () => import('../commands/keyring/rotate.ts'),
  );
  keyring
    .leaf(
      'config <NAME>',
      'show or change the configuration of a keyring',
      ['kms keyring config payroll', 'kms keyring config payroll --max-encrypt-count 1000000'],
      () => import('../commands/keyring/config.ts'),
    )
    .option('--max-encrypt-count <N>', 'how many encrypts a key serves before the ring rotates')
    .option('--props <JSON>', 'free-form properties of the ring, replaced whole')
    .option('--key-props <JSON>', 'free-form properties of keys to come, replaced whole');
  destroying(
    keyring.leaf(
      'delete <NAME>',
      'delete a keyring; for 30 days it can be restored under its id',
      ['kms keyring delete payroll'],
      () => import('../commands/keyring/delete.ts'),
    ),
  );
  keyring.leaf(
    'restore <ID>',
    'bring a deleted keyring back',
    ['kms keyring restore ring_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('../commands/keyring/restore.ts'),
  );
}

export function asym(kms: GrammarCommand): void {
  const group = kms.group('asym', 'keyrings of the asym service');
  group
    .leaf(
      'create <NAME>',
      'make an asym keyring and keep its private key in a file',
      ['kms asym create partners'],
      () => import('../commands/asym/create.ts'),
    )
    .option('--private-key-out <FILE>', 'where the private key goes (default: $XDG_CONFIG_HOME/kms/asym/<NAME>.key)')
    .option('--props <JSON>', 'free-form properties of the ring')
    .option('--key-props <JSON>', 'free-form properties of its keys');
  byId(
    group.leaf(
      'show-key <NAME> <KEYID>',
      'show a key of an asym keyring',
      ['kms asym show-key partners key_01jz4b8m6q3v9x2c5d7f8g9h0k'],
      () => import('../commands/asym/show-key.ts'),
    ),
  );
  group.leaf(
    'rotate <NAME>',
    'give an asym keyring a new active key',
    ['kms asym rotate partners'],
    () => import('../commands/asym/rotate.ts'),
  );
}

export function assets(kms: GrammarCommand): void {
  const asset = kms.group('asset', 'assets: signed records that headers carry');
  asset.leaf(
    'show <ID>',
    'show an asset',
    ['kms asset show asset_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    () => import('../commands/asset/show.ts'),
  );
  searched(
    asset.leaf(
      'search',
      'search assets, newest first',
      ['kms asset search --contains \'{"case": 17}\''],
      () => import('../commands/asset/search.ts'),
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
      () => import('../commands/asset/delete.ts'),
    ),
  );
}
