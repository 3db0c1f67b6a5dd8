// The commands that seal and unseal a server: `kms seal` and `kms unseal`.
import { command, toggle } from './declaration.ts';
import { destroying } from './option-sets.ts';

export const sealing = {
  unseal: command(
    'unseal',
    'unseal a server with a passphrase or a share, typed without echo or from stdin, or with --key-file',
    ['kms unseal', 'kms unseal --server https://kms.example < share.txt', 'kms unseal --key-file recovery-kit.txt'],
    {
      '--reset': toggle('forget the shares given so far'),
    },
  ),
  seal: command(
    'seal',
    'make a server forget its keys: it serves nothing until it is unsealed; asks first on a terminal; over the network ' +
      'it needs the flag system.seal',
    ['kms seal', 'kms seal --server https://kms.example --api-key-file key.txt'],
    destroying,
  ),
};
