// The commands about clients of KMIP, `kms kmip …`.
import { argument, command, integer, list, path, required, text } from './declaration.ts';

export const kmipClient = {
  create: command(
    'create',
    'make an API key for a client of KMIP, known by a certificate alone, and write that and its settings into a directory',
    [
      'kms kmip client create san --account storage --out san',
      'kms kmip client create vcenter --account vm --out vcenter --days 730 --address kms.example:5696',
      "kms kmip client create seal --account vault --out seal --flag key.seal.read --flag 'key.seal.*'",
    ],
    {
      '<NAME>': argument(),
      '--account': required(text('UID', 'the account that the API key belongs to (required)', 'account')),
      '--out': required(path('DIR', 'the directory for certificate, key, client.p12 and settings.md (required)')),
      '--address': text(
        'HOST[:PORT]',
        'where the client reaches KMIP, for settings.md (default: port 5696 of --server)',
      ),
      '--days': integer('N', 'how long the certificate is valid (default: 365)'),
      '--flag': list('FLAG', 'a permission to give it (default: kmip.*, all with objects of its own)', 'flag'),
    },
  ),
};
