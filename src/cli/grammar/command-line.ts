// The part of the grammar about the command line and the executable themselves.
import { argument, command, hidden, optionalArgument, rest, toggle } from './declaration.ts';
import { destroying, shells } from './option-sets.ts';

export const profile = {
  add: command(
    'add',
    'keep an address and an API key; the key from --api-key-file, KMS_API_KEY, typed without echo, or on stdin',
    [
      'kms profile add prod --server https://kms.example',
      'kms profile add lab --server https://kms.lab --ca-file ca.pem --api-key-file key.txt',
    ],
    {
      '<NAME>': argument(),
    },
  ),
  list: command('list', 'list profiles', ['kms profile list']),
  show: command('show', 'show a profile, without its API key', ['kms profile show prod'], {
    '<NAME>': argument('profile'),
  }),
  use: command(
    'use',
    'use a profile wherever neither the command line, the environment nor a data directory here says otherwise',
    ['kms profile use prod', 'kms profile use --none'],
    {
      '[NAME]': optionalArgument('profile'),
      '--none': toggle('use none from now on'),
    },
  ),
  remove: command(
    'remove',
    'remove a profile with its API key; the key itself stays valid',
    ['kms profile remove prod'],
    {
      '<NAME>': argument('profile'),
      ...destroying,
    },
  ),
};

export const commandLine = {
  completion: command(
    'completion',
    'print what makes a shell complete commands, options and names: bash, zsh or fish',
    [
      'kms completion bash > ~/.local/share/bash-completion/completions/kms',
      'kms completion zsh > ~/.zfunc/_kms',
      'kms completion fish > ~/.config/fish/completions/kms.fish',
    ],
    {
      '<SHELL>': argument(shells),
    },
  ),
  man: command('man', 'print the manual page kms(1)', [
    'kms man > /usr/local/share/man/man1/kms.1',
    'kms man | man -l -',
  ]),
  help: command(
    'help',
    'show what a command does, as --help behind it would',
    ['kms help', 'kms help keyring create'],
    {
      '[COMMAND...]': rest(),
    },
  ),
  complete: hidden('__complete', { '[WORDS...]': rest() }),
  licenses: command(
    'licenses',
    'whose work is in this executable, and the text of each licence',
    ['kms licenses', 'kms licenses --sbom > kms.cdx.json'],
    {
      '--sbom': toggle('the list of components as CycloneDX JSON'),
    },
  ),
};
