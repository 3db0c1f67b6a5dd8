// The commands about logins with an identity provider, `kms tenant oidc …`.
import { argument, command, list, optionalArgument, path, required, text, toggle } from './declaration.ts';
import { destroying, flagged } from './option-sets.ts';

const ofTenant = { '[NAME]': optionalArgument('tenant') };

export const oidc = {
  set: command(
    'set',
    'let people of a tenant log in with an identity provider; replaces the one before',
    [
      'kms tenant oidc set --issuer https://login.example.org --client-id kms --client-secret-file secret',
      "kms tenant oidc set --issuer https://login.example.org --client-id kms --client-secret-file secret --create-users --flags-claim groups --claim-flags 'payroll=keyring.list,keyring.payroll.*'",
    ],
    {
      ...ofTenant,
      '--issuer': required(text('URL', 'the issuer URL of the provider (required)')),
      '--client-id': required(text('ID', 'the client id of this service there (required)')),
      '--client-secret-file': required(path('FILE', 'a file with the client secret (required)')),
      '--name': text('NAME', 'the label of the button (default: the host of the provider)'),
      '--scope': text('WORDS', 'the scopes to request (default: openid email profile)'),
      '--user-claim': text(
        'CLAIM',
        'the claim that names the user: email (default), preferred_username, sub or any other',
        ['email', 'preferred_username', 'sub'],
      ),
      '--create-users': toggle('make a user for a person who has none'),
      '--trust-email': toggle('treat an address as verified if the provider sends no claim email_verified'),
      '--flags-claim': text('CLAIM', 'the claim whose values grant permissions'),
      '--claim-flags': list('VALUE=FLAG,FLAG', 'a value of that claim, and the permissions that it grants'),
      ...flagged,
      '--allow-root': toggle('let values grant * and system.*'),
      '--provider-ca': path(
        'FILE',
        "certificate authorities to trust for the provider, PEM (default: the well-known ones and the system's)",
      ),
    },
  ),
  show: command('show', 'show how people log in with an identity provider', ['kms tenant oidc show'], ofTenant),
  remove: command('remove', 'end logins with the identity provider; users stay', ['kms tenant oidc remove'], {
    ...ofTenant,
    ...destroying,
  }),
  unlink: command(
    'unlink',
    'forget who a user is at the provider, so that the next login uses the claim again',
    ['kms tenant oidc unlink ada'],
    { '<USERNAME>': argument('user') },
  ),
};
