// The part of the grammar about files and the keyrings that they are encrypted with, of both services, and assets.
import {
  argument,
  command,
  integer,
  list,
  object,
  optionalArgument,
  path,
  required,
  text,
  toggle,
} from './declaration.ts';
import { byId, destroying, output, paged, searched } from './option-sets.ts';

export const keyring = {
  create: command(
    'create',
    'make a keyring and keep its private key in a file',
    ['kms keyring create payroll', 'kms keyring create payroll --public-key payroll.pub'],
    {
      '<NAME>': argument(),
      '--public-key': path('FILE', 'use this X25519 public key (PEM or base64) instead of making a pair'),
      '--private-key-out': path('FILE', 'where the private key goes (default: $XDG_CONFIG_HOME/kms/rings/<NAME>.key)'),
      '--props': object('JSON', 'free-form properties of the ring'),
      '--key-props': object('JSON', 'free-form properties of its keys'),
    },
  ),
  list: command('list', 'list keyrings, oldest first', ['kms keyring list'], {
    ...paged,
  }),
  show: command('show', 'show a keyring', ['kms keyring show payroll'], {
    '<NAME>': argument('ring'),
    ...byId,
  }),
  keys: command('keys', 'list the keys of a keyring, oldest first', ['kms keyring keys payroll'], {
    '<NAME>': argument('ring'),
    ...byId,
    ...paged,
  }),
  rotate: command(
    'rotate',
    'give a keyring a new active key; the old ones still decrypt',
    ['kms keyring rotate payroll'],
    {
      '<NAME>': argument('ring'),
    },
  ),
  config: command(
    'config',
    'show or change the configuration of a keyring',
    ['kms keyring config payroll', 'kms keyring config payroll --max-encrypt-count 1000000'],
    {
      '<NAME>': argument('ring'),
      '--max-encrypt-count': integer('N', 'how many encrypts a key serves before the ring rotates'),
      '--props': object('JSON', 'free-form properties of the ring, replaced whole'),
      '--key-props': object('JSON', 'free-form properties of keys to come, replaced whole'),
    },
  ),
  remove: command(
    'delete',
    'delete a keyring; for 30 days it can be restored under its id',
    ['kms keyring delete payroll'],
    {
      '<NAME>': argument('ring'),
      ...destroying,
    },
  ),
  restore: command('restore', 'bring a deleted keyring back', ['kms keyring restore ring_01jz4b8m6q3v9x2c5d7f8g9h0k'], {
    '<ID>': argument(),
  }),
};

export const asym = {
  create: command('create', 'make an asym keyring and keep its private key in a file', ['kms asym create partners'], {
    '<NAME>': argument(),
    '--private-key-out': path('FILE', 'where the private key goes (default: $XDG_CONFIG_HOME/kms/asym/<NAME>.key)'),
    '--props': object('JSON', 'free-form properties of the ring'),
    '--key-props': object('JSON', 'free-form properties of its keys'),
  }),
  showKey: command(
    'show-key',
    'show a key of an asym keyring',
    ['kms asym show-key partners key_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    {
      '<NAME>': argument(),
      '<KEYID>': argument(),
      ...byId,
    },
  ),
  rotate: command('rotate', 'give an asym keyring a new active key', ['kms asym rotate partners'], {
    '<NAME>': argument(),
  }),
};

export const asset = {
  show: command('show', 'show an asset', ['kms asset show asset_01jz4b8m6q3v9x2c5d7f8g9h0k'], {
    '<ID>': argument(),
  }),
  search: command('search', 'search assets, newest first', ['kms asset search --contains \'{"case": 17}\''], {
    ...searched,
    '--apikey': text('KEYID', 'made with this API key', 'api-key'),
    '--account': text('UID', 'made with an API key of this account', 'account'),
    '--ring-id': text('ID', 'of this keyring'),
    '--parent': list('ID', 'has this parent'),
    '--contains': object('JSON', 'its data contains this object'),
  }),
  signingKeys: command(
    'signing-keys',
    'show the public keys that verify the signatures of assets, those from before a rekey too',
    ['kms asset signing-keys --json'],
  ),
  remove: command(
    'delete',
    'delete an asset: headers that carry it no longer verify',
    ['kms asset delete asset_01jz4b8m6q3v9x2c5d7f8g9h0k'],
    {
      '<ID>': argument(),
      ...destroying,
    },
  ),
};

export const files = {
  encrypt: command(
    'encrypt',
    'encrypt FILE or stdin with a key of a ring; needs the flag keyring.<ringname>.encrypt',
    ['kms encrypt --ring payroll -o report.pdf.kms report.pdf', 'tar c dir | kms encrypt --ring payroll > dir.tar.kms'],
    {
      '[FILE]': optionalArgument('file'),
      '--ring': required(text('NAME', 'the keyring (required)', 'ring')),
      '--private-key': path('FILE', "the ring's private key, PEM or base64 (default: where `keyring create` put it)"),
      '--asset-data': object('JSON', 'sign an asset with this data into the header'),
      '--asset-id': text('ID', 'update this asset instead of making one'),
      '--parent': list('ID', 'a parent of the asset'),
      ...output,
    },
  ),
  decrypt: command(
    'decrypt',
    'decrypt FILE or stdin; needs the flag keyring.<ringname>.decrypt',
    ['kms decrypt -o report.pdf report.pdf.kms', 'kms decrypt < dir.tar.kms | tar x'],
    {
      '[FILE]': optionalArgument('file'),
      '--private-key': path('FILE', "the ring's private key, PEM or base64 (default: where `keyring create` put it)"),
      ...output,
      '--allow-invalid-asset': toggle('decrypt although the asset in the header does not verify'),
    },
  ),
  inspect: command(
    'inspect',
    'say what the header of an encrypted file says; needs no key and no server',
    ['kms inspect report.pdf.kms'],
    {
      '<FILE>': argument('file'),
    },
  ),
};
