// The commands about proofs of API keys, `kms apikey proof …`, and the login by them.
import { argument, command, duration, integer, list, path, text, toggle } from './declaration.ts';
import { destroying } from './option-sets.ts';

const keyId = 'apik_01jz4b8m6q3v9x2c5d7f8g9h0k';
const key = { '<KEYID>': argument('api-key') };
const one = { ...key, '<PROOF>': argument() };

export const proof = {
  add: command(
    'add',
    'add a proof to an API key: aws (an access key), certificate, jwt (signed tokens), secret (for a key that has none)',
    [
      `kms apikey proof add ${keyId} jwt --issuer https://token.actions.githubusercontent.com --audience kms --claim repository_id=42`,
      `kms apikey proof add ${keyId} jwt --issuer https://kubernetes.default.svc --audience kms --subject system:serviceaccount:prod:app --jwks-file cluster.jwks`,
      `kms apikey proof add ${keyId} certificate --issue --out client`,
      `kms apikey proof add ${keyId} aws --secret-out access-key.env`,
    ],
    {
      ...key,
      '<KIND>': argument(['aws', 'certificate', 'jwt', 'secret']),
      '--name': text('TEXT', 'what people call it'),
      '--secret-out': path(
        'FILE',
        'aws, secret: write the secret to this file, readable only by its owner, instead of showing it',
      ),
      '--issuer': text(
        'URL',
        'jwt: who signs the tokens, exactly as they name it; https, or spiffe:// and a trust domain',
      ),
      '--audience': list('TEXT', 'jwt: the audience that tokens are issued for; may be repeated'),
      '--subject': text('TEXT', 'jwt: the claim sub; * stands for anything but a slash'),
      '--claim': list('NAME=VALUE', 'jwt: a claim that tokens must have; repeated with one name: any of the values'),
      '--jwks-file': path(
        'FILE',
        "jwt: the issuer's public keys, JSON Web Keys, a SPIFFE bundle or PEM; no network is needed then",
      ),
      '--jwks-url': text('URL', 'jwt: where the keys are, if the issuer has no discovery document'),
      '--ca': path(
        'FILE',
        "jwt: authorities that the issuer's address is trusted by, PEM; certificate: the authority that signs them",
      ),
      '--san': text('TEXT', 'certificate, with --ca: the name in it: dns:NAME, email:ADDRESS, uri:URI or a SPIFFE ID'),
      '--file': path('FILE', 'certificate: the client certificate, PEM, whose key is pinned'),
      '--issue': toggle('certificate: have the appliance issue one, with a new key'),
      '--out': path(
        'DIR',
        'certificate, with --issue: the directory for client.crt, client.key, ca.crt and client.p12',
      ),
      '--days': integer('N', 'certificate, with --issue: how long it is valid (default: 90)'),
      '--once': toggle('jwt: each token opens one session'),
      '--longest': duration('TIME', 'jwt: the longest lifetime of a token, such as 15m (default: 24h)'),
    },
  ),
  list: command('list', 'list the proofs of an API key, oldest first', [`kms apikey proof list ${keyId}`], key),
  disable: command(
    'disable',
    'disable a proof, from the next request on; asks first',
    [`kms apikey proof disable ${keyId} proof_01jz4b8m6q3v9x2c5d7f8g9h0k`],
    { ...one, ...destroying },
  ),
  enable: command(
    'enable',
    'enable a disabled proof',
    [`kms apikey proof enable ${keyId} proof_01jz4b8m6q3v9x2c5d7f8g9h0k`],
    one,
  ),
  remove: command(
    'remove',
    'remove a proof of an API key: by its id, the id of the access key, or secret',
    [`kms apikey proof remove ${keyId} secret`],
    { ...one, ...destroying },
  ),
  test: command(
    'test',
    'check a signed token against the proofs of an API key and say which check fails; exit code 1 if none lets it in; a client certificate is tried with `kms apikey login KEY --certificate`',
    [`kms apikey proof test ${keyId} --token-file token.jwt`],
    { ...key, '--token-file': path('FILE', 'the token; otherwise it is read from stdin') },
  ),
};

export const workload = {
  login: command(
    'login',
    'log in as an API key with a signed token or a client certificate; prints a workload token to use as KMS_API_KEY',
    [
      'kms apikey login ci --token-file /var/run/secrets/tokens/kms',
      'kms apikey login ci --lease 5m < token.jwt',
      'kms apikey login app --certificate --server https://kms.example --client-cert client.crt --client-key client.key',
    ],
    {
      '<ROLE>': argument('api-key'),
      '--token-file': path('FILE', 'the signed token; otherwise it is read from stdin'),
      '--certificate': toggle('log in with the certificate of --client-cert; the token needs it in every request, too'),
      '--lease': duration('TIME', 'end it earlier than the appliance would, such as 5m'),
    },
  ),
};
