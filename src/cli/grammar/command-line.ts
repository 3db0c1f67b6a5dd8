// The part of the grammar about the command line and the executable themselves.
import type { GrammarCommand } from '../grammar-command.ts';

import { destroying } from './option-sets.ts';

export function commandLine(kms: GrammarCommand): void {
  profiles(kms);
  kms.leaf(
    'completion <SHELL>',
    'print what makes a shell complete commands, options and names: bash, zsh or fish',
    [
      'kms completion bash > ~/.local/share/bash-completion/completions/kms',
      'kms completion zsh > ~/.zfunc/_kms',
      'kms completion fish > ~/.config/fish/completions/kms.fish',
    ],
    () => import('../commands/completion.ts'),
  );
  kms.leaf(
    'man',
    'print the manual page kms(1)',
    ['kms man > /usr/local/share/man/man1/kms.1', 'kms man | man -l -'],
    () => import('../commands/man.ts'),
  );
  kms.leaf(
    'help [COMMAND...]',
    'show what a command does, as --help behind it would',
    ['kms help', 'kms help keyring create'],
    () => import('../commands/help.ts'),
  );
  kms.hidden('__complete [WORDS...]', () => import('../commands/complete.ts'));
  kms
    .leaf(
      'licenses',
      'whose work is in this executable, and the text of each licence',
      ['kms licenses', 'kms licenses --sbom > kms.cdx.json'],
      () => import('../commands/licenses.ts'),
    )
    .option('--sbom', 'the list of components as CycloneDX JSON');
}

function profiles(kms: GrammarCommand): void {
  const profile = kms.group('profile', 'profiles: remote appliances by name, with their credentials');
  profile.leaf(
    'add <NAME>',
    'keep an address and an API key; the key from --api-key-file, KMS_API_KEY, typed without echo, or on stdin',
    [
      'kms profile add prod --server https://kms.example',
      'kms profile add lab --server https://kms.lab --ca-file ca.pem --api-key-file key.txt',
    ],
    () => import('../commands/profile/add.ts'),
  );
  profile.leaf('list', 'list profiles', ['kms profile list'], () => import('../commands/profile/list.ts'));
  profile.leaf(
    'show <NAME>',
    'show a profile, without its API key',
    ['kms profile show prod'],
    () => import('../commands/profile/show.ts'),
  );
  profile
    .leaf(
      'use [NAME]',
      'use a profile wherever neither the command line, the environment nor a data directory here says otherwise',
      ['kms profile use prod', 'kms profile use --none'],
      () => import('../commands/profile/use.ts'),
    )
    .option('--none', 'use none from now on');
  destroying(
    profile.leaf(
      'remove <NAME>',
      'remove a profile with its API key; the key itself stays valid',
      ['kms profile remove prod'],
      () => import('../commands/profile/remove.ts'),
    ),
  );
}
