// The commands about the master key and its custodians: `kms master …` and `kms recovery-kit`.
import { custodianKindsByName } from '../../model/custodian-kinds.ts';
import { alternatives, argument, command, path } from './declaration.ts';
import { custodian, destroying } from './option-sets.ts';

export const master = {
  list: command('list', 'list the custodians', ['kms master list']),
  rotate: command('rotate', 'make a new master key for the same custodians; requests continue', ['kms master rotate']),
  addCustodian: command(
    'add-custodian',
    `add a custodian, who can then open the appliance: ${alternatives(custodianKindsByName)}`,
    [
      'kms master add-custodian passphrase',
      'kms master add-custodian shares --shares 5 --threshold 3',
      'kms master add-custodian exec --exec /usr/bin/tpm2_unseal --exec-arg=-c --exec-arg 0x81010001',
    ],
    {
      '<KIND>': argument(custodianKindsByName),
      ...custodian,
      '--file': path(
        'FILE',
        'keyfile: where to make it (default: kms-additional.master.key beside the data directory)',
      ),
    },
  ),
  removeCustodian: command(
    'remove-custodian',
    'remove a custodian, who can then no longer open the appliance; never the last one',
    ['kms master remove-custodian 2f1f360ab6f69bac'],
    {
      '<ID>': argument('custodian'),
      ...destroying,
    },
  ),
};

export const kit = {
  recoveryKit: command(
    'recovery-kit',
    'make a sheet of paper that, with a backup and this program, opens everything',
    ['kms recovery-kit', 'kms recovery-kit -o kit.txt --svg kit.svg'],
    {
      '--output': { ...path('FILE', 'write it here instead of to stdout; never overwrites', 'file'), short: '-o' },
      '--svg': path('FILE', 'write its QR code here, for printing'),
    },
  ),
};
