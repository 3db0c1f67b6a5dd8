// The commands that encrypt, decrypt and inspect files: `kms encrypt`, `kms decrypt` and `kms inspect`.
import { argument, command, list, object, optionalArgument, path, text, toggle } from './declaration.ts';
import { output } from './option-sets.ts';

export const files = {
  encrypt: command(
    'encrypt',
    'encrypt FILE or stdin with a key of a keyring; needs the flag keyring.<ringname>.encrypt',
    [
      'kms encrypt --ring payroll -o report.pdf.kms report.pdf',
      'tar c dir | kms encrypt --ring payroll --recipient > dir.tar.kms',
    ],
    {
      '[FILE]': optionalArgument('file'),
      '--ring': list('NAME', 'the keyring (required); with --recipient up to 20, any one of which decrypts', 'ring'),
      '--private-key': path('FILE', "the ring's private key, PEM or base64 (default: where `keyring create` put it)"),
      '--recipient': toggle('without any private key: seal it to the public key, which is remembered at first use'),
      '--public-key': path('FILE', 'with --recipient: the public key that the ring must have, PEM or base64'),
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
      '--offline': toggle("with the private key alone, for a keyring that is configured with 'offlineDecrypt'"),
      ...output,
      '--allow-invalid-asset': toggle('decrypt even if the asset in the header does not verify'),
    },
  ),
  inspect: command(
    'inspect',
    'show what the header of an encrypted file says; needs no key and no server',
    ['kms inspect report.pdf.kms'],
    {
      '<FILE>': argument('file'),
    },
  ),
};
