// The commands about profiles, which name remote appliances: `kms profile …`.
import { argument, command, optionalArgument, toggle } from './declaration.ts';
import { destroying } from './option-sets.ts';

export const profile = {
  add: command(
    'add',
    'save an address and an API key, from --api-key-file, KMS_API_KEY, typed without echo, or on stdin',
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
    'use a profile by default, unless the command line, the environment or a data directory here says otherwise',
    ['kms profile use prod', 'kms profile use --none'],
    {
      '[NAME]': optionalArgument('profile'),
      '--none': toggle('use no profile by default'),
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
