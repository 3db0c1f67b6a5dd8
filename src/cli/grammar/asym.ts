// The commands about keyrings of the asym service, `kms asym …`.
import { kemNames } from '../../model/kems.ts';
import { argument, command, object, oneOf, path } from './declaration.ts';
import { byId } from './option-sets.ts';

export const asym = {
  create: command('create', 'make an asym keyring and keep its private key in a file', ['kms asym create partners'], {
    '<NAME>': argument(),
    '--kem': oneOf('KEM', "how its keys are wrapped: x25519 or mlkem768-x25519 (default: the appliance's)", kemNames),
    '--private-key-out': path(
      'FILE',
      'where the private key goes (default: $XDG_CONFIG_HOME/kms/asym/<appliance>/<NAME>.key)',
    ),
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
