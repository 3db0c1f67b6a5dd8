// The part of the grammar about encrypting and decrypting files.
import { type GrammarCommand, repeated } from '../grammar-command.ts';

export function files(kms: GrammarCommand): void {
  kms
    .leaf(
      'encrypt [FILE]',
      'encrypt FILE or stdin with a key of a ring; needs the flag keyring.<ringname>.encrypt',
      [
        'kms encrypt --ring payroll -o report.pdf.kms report.pdf',
        'tar c dir | kms encrypt --ring payroll > dir.tar.kms',
      ],
      () => import('../commands/encrypt.ts'),
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
      () => import('../commands/decrypt.ts'),
    )
    .option('--private-key <FILE>', "the ring's private key, PEM or base64 (default: where `keyring create` put it)")
    .option('-o, --output <FILE>', 'write here instead of to stdout; never overwrites')
    .option('--allow-invalid-asset', 'decrypt although the asset in the header does not verify');
  kms.leaf(
    'inspect <FILE>',
    'say what the header of an encrypted file says; needs no key and no server',
    ['kms inspect report.pdf.kms'],
    () => import('../commands/inspect.ts'),
  );
}
