// The commands about clients of KMIP, `kms kmip …`.
import { argument, command, integer, list, path, required, text } from './declaration.ts';

export const kmipClient = {
  create: command(
    'create',
    'make an API key for a client of KMIP, known by a certificate alone, and write that into a directory',
    [
      'kms kmip client create san --account storage --out san',
      'kms kmip client create vcenter --account vm --out vcenter --days 730',
      "kms kmip client create seal --account vault --out seal --flag key.seal.read --flag 'key.seal.*'",
    ],
    {
      '<NAME>': argument(),
      '--account': required(text('UID', 'the account that the API key belongs to (required)', 'account')),
      '--out': required(path('DIR', 'the directory for client.crt, client.key and ca.crt (required)')),
      '--days': integer('N', 'how long the certificate is valid (default: 365)'),
      '--flag': list('FLAG', 'a permission to give it (default: kmip.*, all with objects of its own)', 'flag'),
    },
  ),
};
