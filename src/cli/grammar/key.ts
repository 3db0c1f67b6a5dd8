// The commands about the life of managed keys, whose keys the appliance holds: `kms key create …`.
import { keyTypes, keyUses } from '../../model/key-types.ts';
import {
  age,
  argument,
  assignments,
  atLeast,
  choice,
  command,
  integer,
  list,
  moment,
  oneOf,
  someOf,
  time,
  toggle,
  usually,
} from './declaration.ts';
import { destroying, paged } from './option-sets.ts';

const name = { '<NAME>': argument('managed-key') };

const types =
  'aes128-gcm, aes256-gcm, chacha20-poly1305, rsa-2048|3072|4096, ecdsa-p256|p384|p521|secp256k1, ed25519, ' +
  'hmac-sha224|256|384|512, ml-dsa-44|65|87 or secret';

export const keyType = oneOf('TYPE', `what the key is: ${types}`, keyTypes);

/** Options of a key that is made or imported. */
export const newKey = {
  '--use': someOf(
    'USE',
    'what it may be used for: encrypt, decrypt, sign, verify, mac, wrap, unwrap, derive or export (default: by its type)',
    keyUses,
  ),
  '--derived': toggle('each message has a key of its own, derived by the context that it comes with'),
  '--exportable': choice('whether the key may leave the appliance, see `kms key export` (default: by its use)'),
  '--rotate-after': age('AGE', 'how old a version gets before its next use rotates the key: 12h, 90d or never'),
};

const dates = {
  '--activate-at': moment(
    'TIME|AGE',
    'when it becomes active: a time, in UTC unless it has a zone, an age such as 7d from now, or never',
  ),
  '--deactivate-at': moment('TIME|AGE', 'from when on it protects nothing new, likewise in UTC'),
};

const version = { '--version': atLeast(1, integer('N', 'this version alone')) };

export const key = {
  create: command(
    'create',
    'make a managed key: the appliance holds it, and anybody with the master key and the database can use it',
    [
      'kms key create unseal',
      'kms key create release --type ed25519 --alias apps/release',
      'kms key create envelope --type rsa-4096 --use encrypt --use decrypt',
    ],
    {
      '<NAME>': argument(),
      '--type': { ...keyType, about: `${keyType.about} (default: aes256-gcm)` },
      ...newKey,
      '--alias': list('NAME', 'another name of the key, which may contain /'),
      '--deletion-allowed': choice('whether the key may be deleted (default: false)'),
      '--tag': assignments('NAME=VALUE', 'a text to find or sort it by'),
      ...dates,
    },
  ),
  list: command(
    'list',
    'list managed keys, newest first',
    ['kms key list', 'kms key list --tag team=payments', 'kms key list --deleted'],
    {
      '--deleted': toggle('list the deleted ones that can still be restored'),
      '--tag': assignments('NAME=VALUE', 'only those with this tag; with several, those that have all of them', 'some'),
      ...paged,
    },
  ),
  show: command('show', 'show a managed key', ['kms key show unseal'], name),
  versions: command('versions', 'list the versions of a managed key, newest first', ['kms key versions unseal'], name),
  rotate: command(
    'rotate',
    'give a managed key a new version, which protects what is new; on a terminal, show who uses the key',
    ['kms key rotate unseal'],
    name,
  ),
  config: command(
    'config',
    'show or change the configuration of a managed key; before it stops anything at once, it asks',
    [
      'kms key config unseal',
      'kms key config unseal --rotate-after 90d',
      'kms key config unseal --min-decrypt-version 2 --deletion-allowed true --tag team=payments',
    ],
    {
      ...name,
      '--min-decrypt-version': integer('N', 'refuse what older versions made'),
      '--min-encrypt-version': integer('N', 'protect nothing new with older versions; 0: with any that decrypts'),
      '--rotate-after': newKey['--rotate-after'],
      '--deletion-allowed': choice('whether the key may be deleted'),
      '--exportable': choice('false: the key may no longer leave the appliance, for good'),
      '--tag': assignments('NAME=VALUE', 'a text to find or sort it by; all tags are replaced, by none with "none"'),
      ...dates,
      ...destroying,
    },
  ),
  enable: command(
    'enable',
    'make a managed key active, or one version: one that was disabled, or whose time has not come yet',
    ['kms key enable unseal', 'kms key enable unseal --version 2'],
    { ...name, ...version },
  ),
  disable: command(
    'disable',
    'suspend a managed key, or one version: nothing works with it until it is enabled again',
    ['kms key disable unseal', 'kms key disable unseal --version 2 --yes'],
    { ...name, ...version, ...destroying },
  ),
  deactivate: command(
    'deactivate',
    'deactivate a managed key, or one version, for good: it still decrypts and verifies, but protects nothing new',
    ['kms key deactivate unseal --version 1'],
    { ...name, ...version, ...destroying },
  ),
  compromised: command(
    'compromised',
    'mark a managed key as compromised, or one version, for good: it still decrypts and verifies, with a warning',
    ['kms key compromised unseal --version 1'],
    { ...name, ...version, ...destroying },
  ),
  dependents: command(
    'dependents',
    'list who used a managed key: through which dialect, which version, what for, how often and when last',
    ['kms key dependents unseal', 'kms key dependents unseal --since 90d'],
    { ...name, '--since': time('AGE', 'only who used it in this time, such as 24h or 90d, or since a time') },
  ),
  remove: command(
    'delete',
    'delete a managed key whose config allows it; for 30 days it can be restored',
    ['kms key delete unseal', 'kms key delete unseal --days 7 --yes'],
    {
      ...name,
      '--days': usually('30', atLeast(7, integer('N', 'how many days it can be restored, 7 to 30'))),
      ...destroying,
    },
  ),
  restore: command('restore', 'restore a deleted managed key, by its name or id', ['kms key restore unseal'], {
    '<ID>': argument(),
  }),
};

export const keyAlias = {
  add: command(
    'add',
    'give a managed key another name; if another key has that name, it asks, and takes it from that key',
    ['kms key alias add unseal apps/openbao'],
    { ...name, '<ALIAS>': argument(), ...destroying },
  ),
  remove: command('remove', 'remove another name of a managed key', ['kms key alias remove unseal apps/openbao'], {
    ...name,
    '<ALIAS>': argument(),
    ...destroying,
  }),
};
