// The part of the grammar about the appliance's own life.
import { type GrammarCommand, repeated } from '../grammar-command.ts';
import { copyOptions } from './backup.ts';
import { custodianOptions } from './custody.ts';

export function life(kms: GrammarCommand): void {
  custodianOptions(
    kms.leaf(
      'init',
      'make a data directory, a master key and the first API key',
      [
        'kms init',
        'kms init --data /var/lib/kms --host kms.example',
        'kms init --custodian shares --shares 5 --threshold 3',
      ],
      () => import('../commands/init.ts'),
    ),
  )
    .option(
      '--custodian <KIND>',
      'who keeps the master key: keyfile (default), passphrase, shares, exec, env or credential',
    )
    .option('--recovery-kit <FILE>', 'make a recovery kit too and write it here')
    .option('--host <NAME>', 'answer requests for this host only', repeated);
  const serve = kms
    .leaf(
      'serve',
      'serve; an empty or missing data directory is initialised first',
      ['kms serve', 'kms serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem'],
      () => import('../commands/serve.ts'),
    )
    .option('--listen <HOST:PORT>', 'where to listen (default: 127.0.0.1:8080); port 0 picks one')
    .option('--url <BASE_URL>', 'the address under which clients reach the appliance')
    .option('--tls-cert <FILE>', 'the certificate chain for HTTPS, PEM')
    .option('--tls-key <FILE>', 'its private key, PEM')
    .option('--behind-proxy', 'a proxy in front ends TLS: allow plain HTTP on any address')
    .option('--host <NAME>', 'when initialising: answer requests for this host only', repeated)
    .option('--body-limit <BYTES>', 'the largest body of a request (default: 1048576)')
    .option('--access-ttl <TIME>', 'how long an access token lives, such as 30s, 15m, 12h, 7d (default: 1h)')
    .option('--session-max <TIME>', 'how long a login can be refreshed (default: 12h)')
    .option('--invite-ttl <TIME>', 'how long an invite can be completed (default: 7d)')
    .option('--reset-ttl <TIME>', 'how long a password can be reset with a link (default: 1h)')
    .option('--smtp-url <URL>', 'the mail server, smtp://host:port or smtps://host; one with a password: KMS_SMTP_URL')
    .option('--smtp-url-file <FILE>', 'the same from a file')
    .option('--smtp-from <ADDRESS>', 'the address that mail comes from')
    .option(
      '--smtp-ca <FILE>',
      'the authorities that the mail server is trusted by, PEM (default: those of the system)',
    )
    .option(
      '--metrics-rings',
      'count encrypts by keyring too: whoever reads metrics can read the names of keyrings then',
    )
    .option('--log-level <LEVEL>', 'debug, info (default), warn, error or silent');
  copyOptions(serve);
  kms.leaf(
    'status',
    'sealed or not, version, tenants, sizes; exit code 4 when sealed',
    ['kms status', 'kms status --json'],
    () => import('../commands/status.ts'),
  );
}
