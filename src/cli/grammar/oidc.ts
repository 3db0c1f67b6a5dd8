// The commands about logins with an identity provider, `kms tenant oidc …`.
import { argument, command, list, optionalArgument, path, required, text, toggle } from './declaration.ts';
import { destroying, flagged } from './option-sets.ts';

const ofTenant = { '[NAME]': optionalArgument('tenant') };

export const oidc = {
  set: command(
    'set',
    'let people of a tenant log in with an identity provider; takes the place of the one before',
    [
      'kms tenant oidc set --issuer https://login.example.org --client-id kms --client-secret-file secret',
      "kms tenant oidc set --issuer https://login.example.org --client-id kms --client-secret-file secret --create-users --flags-claim groups --claim-flags 'payroll=keyring.list,keyring.payroll.*'",
    ],
    {
      ...ofTenant,
      '--issuer': required(text('URL', 'the provider, as it calls itself (required)')),
      '--client-id': required(text('ID', 'who this service is there (required)')),
      '--client-secret-file': required(path('FILE', 'the secret that goes with it (required)')),
      '--name': text('NAME', 'what people read on the button (default: the host of the provider)'),
      '--scope': text('WORDS', 'what is asked for (default: openid email profile)'),
      '--user-claim': text(
        'CLAIM',
        'the claim that names the user: email (default), preferred_username, sub or any other',
        ['email', 'preferred_username', 'sub'],
      ),
      '--create-users': toggle('make a user for whoever has none'),
      '--flags-claim': text('CLAIM', 'the claim whose values give permissions'),
      '--claim-flags': list('VALUE=FLAG,FLAG', 'a value of that claim, and the permissions that it gives'),
      ...flagged,
      '--allow-root': toggle('let values give * and system.*'),
      '--provider-ca': path(
        'FILE',
        'the authorities that the provider is trusted by, PEM (default: the well-known ones)',
      ),
    },
  ),
  show: command('show', 'show how people log in with an identity provider', ['kms tenant oidc show'], ofTenant),
  remove: command('remove', 'let nobody log in with it any more; users stay', ['kms tenant oidc remove'], {
    ...ofTenant,
    ...destroying,
  }),
  unlink: command(
    'unlink',
    'forget who a user is at the provider, so that the next login finds it by the claim again',
    ['kms tenant oidc unlink ada'],
    { '<USERNAME>': argument('user') },
  ),
};
