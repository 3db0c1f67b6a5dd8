// The commands about the command line itself: help, manual page, completion, licences.
import { argument, command, hidden, rest, text, toggle } from './declaration.ts';
import { shells } from './option-sets.ts';

export const helping = {
  completion: command(
    'completion',
    'print the script that completes commands, options and names in a shell: bash, zsh or fish',
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
    'show what a command does, or a guide; alone, all commands and guides',
    ['kms help', 'kms help keyring create', 'kms help operator', 'kms help --search rotate keys'],
    {
      '[TOPIC...]': rest(),
      '--search': text('WORDS', 'show where the guides have these words'),
    },
  ),
  version: command('version', 'show the version', ['kms version', 'kms version --json']),
  complete: hidden('__complete', { '[WORDS...]': rest() }),
  licenses: command(
    'licenses',
    'list the components of this executable, with the text of each licence',
    ['kms licenses', 'kms licenses --sbom > kms.cdx.json'],
    {
      '--sbom': toggle('the list of components as CycloneDX JSON'),
    },
  ),
};
