// The commands about assets, `kms asset …`.
import { argument, command, list, object, text } from './declaration.ts';
import { destroying, searched } from './option-sets.ts';

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
    'show the public keys that verify the signatures of assets, including those from before a rekey',
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
