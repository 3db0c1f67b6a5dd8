// The commands about rings whose keys the appliance holds, `kms key …`.
import { age, argument, boolean, command, integer, oneOf, optionalArgument, text, toggle } from './declaration.ts';
import { destroying, paged } from './option-sets.ts';

const bound = {
  '--associated-data': text('TEXT', 'what the message is bound to; the same must be given to decrypt'),
  '--context': text('TEXT', 'for a ring that derives its keys: the context that this one is derived from'),
};

export const key = {
  create: command(
    'create',
    'make a managed key: the appliance holds its keys, and anybody with the master key and the database can use them',
    ['kms key create unseal', 'kms key create release --type ed25519'],
    {
      '<NAME>': argument(),
      '--type': oneOf(
        'TYPE',
        'aes256-gcm96 (default) or chacha20-poly1305, which encrypt; ed25519 or ecdsa-p256, which sign',
        ['aes256-gcm96', 'chacha20-poly1305', 'ed25519', 'ecdsa-p256'],
      ),
      '--derived': toggle('derive a key for each context that a message comes with'),
    },
  ),
  list: command('list', 'list managed keys, newest first', ['kms key list', 'kms key list --deleted'], {
    '--deleted': toggle('list the deleted ones that can still be restored'),
    ...paged,
  }),
  show: command('show', 'show a managed key and its versions', ['kms key show unseal'], {
    '<NAME>': argument('managed-key'),
  }),
  rotate: command('rotate', 'give a managed key a new version; the old ones still decrypt', ['kms key rotate unseal'], {
    '<NAME>': argument('managed-key'),
  }),
  config: command(
    'config',
    'show or change the configuration of a managed key',
    [
      'kms key config unseal',
      'kms key config unseal --rotate-after 90d',
      'kms key config unseal --min-decryption-version 1 --deletion-allowed true',
    ],
    {
      '<NAME>': argument('managed-key'),
      '--min-decryption-version': integer('N', 'do not use older versions'),
      '--min-encryption-version': integer('N', 'do not make messages with older versions; 0: any that decrypts'),
      '--rotate-after': age('AGE', 'how old a version gets before the ring rotates, such as 12h or 90d, or never'),
      '--deletion-allowed': boolean('true|false', 'whether the ring may be deleted'),
    },
  ),
  remove: command(
    'delete',
    'delete a managed key whose config allows it; for 30 days it can be restored by its id',
    ['kms key delete unseal'],
    { '<NAME>': argument('managed-key'), ...destroying },
  ),
  restore: command('restore', 'restore a deleted managed key', ['kms key restore ring_01jz4b8m6q3v9x2c5d7f8g9h0k'], {
    '<ID>': argument(),
  }),
  encrypt: command(
    'encrypt',
    'encrypt a small message with a managed key, for trying it out; see `kms encrypt` for files',
    ['kms key encrypt unseal message.txt > message.vault'],
    { '<NAME>': argument('managed-key'), '[FILE]': optionalArgument('file'), ...bound },
  ),
  decrypt: command('decrypt', 'decrypt such a message', ['kms key decrypt unseal message.vault'], {
    '<NAME>': argument('managed-key'),
    '[FILE]': optionalArgument('file'),
    ...bound,
  }),
};
