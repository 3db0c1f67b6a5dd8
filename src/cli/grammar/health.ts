// The commands that report the state of an appliance: `kms status`, `kms doctor` and `kms metrics`.
import { command, path } from './declaration.ts';

export const health = {
  status: command('status', 'show whether it is sealed, its version, tenants and sizes; exit code 4 if sealed', [
    'kms status',
    'kms status --json',
  ]),
  doctor: command(
    'doctor',
    'check the appliance on this machine for problems and say what to do; changes nothing; ' +
      'exit code 1 if there are any',
    ['kms doctor', 'kms doctor --json'],
    {
      '--tls-cert': path('FILE', 'if no server runs: the certificate that it would use'),
      '--tls-key': path('FILE', 'and its private key'),
    },
  ),
  metrics: command('metrics', 'print the numbers that Prometheus reads at /metrics', [
    'kms metrics',
    'kms metrics --server https://kms.example --api-key-file monitoring.key',
  ]),
};
