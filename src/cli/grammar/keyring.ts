// The commands about keyrings of the key service, `kms keyring …`.
import { kemNames } from '../../model/kems.ts';
import { age, argument, atLeast, boolean, command, integer, object, oneOf, path, toggle } from './declaration.ts';
import { byId, destroying, paged } from './option-sets.ts';

export const keyring = {
  create: command(
    'create',
    'make a keyring and keep its private key in a file',
    ['kms keyring create payroll', 'kms keyring create payroll --public-key payroll.pub'],
    {
      '<NAME>': argument(),
      '--kem': oneOf(
        'KEM',
        'how its keys are wrapped: mlkem768-x25519 (the default), which withstands quantum computers too, or x25519',
        kemNames,
      ),
      '--public-key': path('FILE', 'use this public key (PEM or base64) instead of making a pair'),
      '--private-key-out': path(
        'FILE',
        'where the private key goes (default: $XDG_CONFIG_HOME/kms/rings/<appliance>/<NAME>.key)',
      ),
      '--props': object('JSON', 'free-form properties of the ring'),
      '--key-props': object('JSON', 'free-form properties of its keys'),
    },
  ),
  list: command('list', 'list keyrings, newest first', ['kms keyring list', 'kms keyring list --deleted'], {
    '--deleted': toggle('list the deleted ones that can still be restored'),
    ...paged,
  }),
  show: command('show', 'show a keyring', ['kms keyring show payroll'], {
    '<NAME>': argument('ring'),
    ...byId,
  }),
  keys: command(
    'keys',
    'list the keys of a keyring, newest first',
    ['kms keyring keys payroll', 'kms keyring keys payroll --usage'],
    {
      '<NAME>': argument('ring'),
      '--usage': toggle('when and by whom each key was last used, and how often in the last 30 days'),
      ...byId,
      ...paged,
    },
  ),
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
    ['kms keyring config payroll', 'kms keyring config payroll --max-encrypt-count 1000000 --rotate-after 90d'],
    {
      '<NAME>': argument('ring'),
      '--max-encrypt-count': atLeast(1, integer('N', 'how many encrypts a key serves before the ring rotates')),
      '--rotate-after': age('AGE', 'how old a key gets before the ring rotates, such as 12h or 90d, or never'),
      '--offline-decrypt': boolean(
        'true|false',
        'whether files encrypted with --recipient open with the private key alone, without permission or record',
      ),
      '--props': object('JSON', 'free-form properties of the ring, replaced as a whole'),
      '--key-props': object('JSON', 'free-form properties of future keys, replaced as a whole'),
    },
  ),
  remove: command('delete', 'delete a keyring; for 30 days it can be restored', ['kms keyring delete payroll'], {
    '<NAME>': argument('ring'),
    ...destroying,
  }),
  restore: command('restore', 'restore a deleted keyring, by its name or id', ['kms keyring restore payroll'], {
    '<ID>': argument(),
  }),
};

export const keyringUpgrade = {
  upgrade: command(
    'upgrade',
    'give a keyring of x25519 a hybrid key pair; what was encrypted before needs the earlier private key as well',
    ['kms keyring upgrade payroll --prepare', 'kms keyring upgrade payroll', 'kms keyring upgrade payroll --rewrap'],
    {
      '<NAME>': argument('ring'),
      '--prepare': toggle('only add the new private key to the file, to be handed to all who use the keyring'),
      '--rewrap': toggle('also rewrap the earlier keys to the new pair, now or later, so that it alone opens them'),
      '--put-back': toggle('put your pair back in place of one that somebody else gave the keyring'),
      '--dry-run': toggle('with --rewrap: only say how many keys are left to rewrap'),
      '--private-key': path(
        'FILE',
        'the file that has its private key, and gets the new one too (default: where `keyring create` put it)',
      ),
      '--public-key': path('FILE', 'use this hybrid public key (PEM or base64) instead of making a pair'),
    },
  ),
};
