// The part of the grammar about the machine that the appliance runs on.
import { type GrammarCommand, repeated } from '../grammar-command.ts';

export function machine(kms: GrammarCommand): void {
  kms
    .leaf(
      'doctor',
      'look for what is wrong with the appliance on this machine, and say what to do; changes nothing; exit code 1 when something is',
      ['kms doctor', 'kms doctor --json'],
      () => import('../commands/doctor.ts'),
    )
    .option('--tls-cert <FILE>', 'where no server runs: the certificate that it would be given')
    .option('--tls-key <FILE>', 'and its private key');
  kms.leaf(
    'metrics',
    'the numbers that Prometheus reads at /metrics',
    ['kms metrics', 'kms metrics --server https://kms.example --api-key-file monitoring.key'],
    () => import('../commands/metrics.ts'),
  );
  kms
    .group('tls', 'certificates for HTTPS')
    .leaf(
      'self-signed',
      'make a certificate and its key for closed networks, signed by itself',
      ['kms tls self-signed --host kms.example --host 192.0.2.7 --out /etc/kms/tls'],
      () => import('../commands/tls/self-signed.ts'),
    )
    .option('--host <NAME>', 'a host name or address that it is for (required)', repeated)
    .option('--out <DIR>', 'where cert.pem and key.pem go (default: here); neither is overwritten')
    .option('--days <N>', 'how long it is valid (default: 397)');
}
