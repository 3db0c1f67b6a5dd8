// The part of the grammar about the master key: who holds it, and how a sealed appliance is opened.
import { type GrammarCommand, repeated } from '../grammar-command.ts';
import { destroying } from './option-sets.ts';

export function custody(kms: GrammarCommand): void {
  kms
    .leaf(
      'unseal',
      'open a sealed server with a passphrase or a share, typed without echo or from stdin, or with --key-file',
      ['kms unseal', 'kms unseal --server https://kms.example < share.txt', 'kms unseal --key-file recovery-kit.txt'],
      () => import('../commands/unseal.ts'),
    )
    .option('--reset', 'forget the shares that were given so far');
  kms.leaf(
    'seal',
    'make a server forget its keys: it answers nothing until it is unsealed; over the network it needs the flag *',
    ['kms seal', 'kms seal --server https://kms.example --api-key-file key.txt'],
    () => import('../commands/seal.ts'),
  );
  master(kms);
  kms
    .leaf(
      'recovery-kit',
      'make a sheet of paper that opens everything, with a backup and this program alone',
      ['kms recovery-kit', 'kms recovery-kit -o kit.txt --svg kit.svg'],
      () => import('../commands/recovery-kit.ts'),
    )
    .option('-o, --output <FILE>', 'write it here instead of to stdout; never overwrites')
    .option('--svg <FILE>', 'write its QR code here, to be printed');
}

function master(kms: GrammarCommand): void {
  const group = kms.group('master', 'the master key, and who holds it');
  group.leaf('list', 'list the custodians', ['kms master list'], () => import('../commands/master/list.ts'));
  group.leaf(
    'rotate',
    'make a new master key for the same custodians; requests go on',
    ['kms master rotate'],
    () => import('../commands/master/rotate.ts'),
  );
  custodianOptions(
    group.leaf(
      'add-custodian <KIND>',
      'let one more open the appliance: keyfile, passphrase, shares, exec, env or credential',
      [
        'kms master add-custodian passphrase',
        'kms master add-custodian shares --shares 5 --threshold 3',
        'kms master add-custodian exec --exec /usr/bin/tpm2_unseal --exec-arg=-c --exec-arg 0x81010001',
      ],
      () => import('../commands/master/add-custodian.ts'),
    ),
  ).option('--file <FILE>', 'keyfile: where to make it (default: kms-additional.master.key beside the data directory)');
  destroying(
    group.leaf(
      'remove-custodian <ID>',
      'let one no longer open the appliance; never the last one',
      ['kms master remove-custodian 2f1f360ab6f69bac'],
      () => import('../commands/master/remove-custodian.ts'),
    ),
  );
}

export function custodianOptions(command: GrammarCommand): GrammarCommand {
  return command
    .option('--shares <N>', 'shares: how many to make')
    .option('--threshold <K>', 'shares: how many it takes')
    .option('--exec <COMMAND>', 'exec: the command whose output is the key; no shell is run')
    .option('--exec-arg <ARG>', 'exec: an argument of it', repeated);
}
