// The commands that tell how an appliance is: `kms status`, `kms doctor` and `kms metrics`.
import { command, path } from './declaration.ts';

export const health = {
  status: command('status', 'sealed or not, version, tenants, sizes; exit code 4 when sealed', [
    'kms status',
    'kms status --json',
  ]),
  doctor: command(
    'doctor',
    'look for what is wrong with the appliance on this machine, and say what to do; changes nothing; ' +
      'exit code 1 when something is',
    ['kms doctor', 'kms doctor --json'],
    {
      '--tls-cert': path('FILE', 'where no server runs: the certificate that it would be given'),
      '--tls-key': path('FILE', 'and its private key'),
    },
  ),
  metrics: command('metrics', 'the numbers that Prometheus reads at /metrics', [
    'kms metrics',
    'kms metrics --server https://kms.example --api-key-file monitoring.key',
  ]),
};
