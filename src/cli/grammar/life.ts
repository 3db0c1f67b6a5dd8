// The part of the grammar about the life of an appliance, how it is, and copies of it.
import { custodianKindsByName } from '../../model/custodian-kinds.ts';
import {
  alternatives,
  argument,
  command,
  directory,
  duration,
  integer,
  list,
  path,
  required,
  text,
  time,
  toggle,
} from './declaration.ts';
import { custodian } from './option-sets.ts';

export const appliance = {
  init: command(
    'init',
    'make a data directory, a master key and the first API key',
    [
      'kms init',
      'kms init --data /var/lib/kms --host kms.example',
      'kms init --custodian shares --shares 5 --threshold 3',
    ],
    {
      ...custodian,
      '--custodian': text(
        'KIND',
        `who keeps the master key: ${alternatives(custodianKindsByName).replace('keyfile', 'keyfile (default)')}`,
        custodianKindsByName,
      ),
      '--recovery-kit': path('FILE', 'make a recovery kit too and write it here'),
      '--host': list('NAME', 'answer requests for this host only'),
    },
  ),
  serve: command(
    'serve',
    'serve; an empty or missing data directory is initialised first',
    ['kms serve', 'kms serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem'],
    {
      '--listen': text('HOST:PORT', 'where to listen (default: 127.0.0.1:8080); port 0 picks one'),
      '--url': text('BASE_URL', 'the address under which clients reach the appliance'),
      '--tls-cert': path('FILE', 'the certificate chain for HTTPS, PEM'),
      '--tls-key': path('FILE', 'its private key, PEM'),
      '--behind-proxy': toggle('a proxy in front ends TLS: allow plain HTTP on any address'),
      '--host': list('NAME', 'when initialising: answer requests for this host only'),
      '--body-limit': integer('BYTES', 'the largest body of a request (default: 1048576)'),
      '--access-ttl': duration('TIME', 'how long an access token lives, such as 30s, 15m, 12h, 7d (default: 1h)'),
      '--session-max': duration('TIME', 'how long a login can be refreshed (default: 12h)'),
      '--invite-ttl': duration('TIME', 'how long an invite can be completed (default: 7d)'),
      '--reset-ttl': duration('TIME', 'how long a password can be reset with a link (default: 1h)'),
      '--smtp-url': text('URL', 'the mail server, smtp://host:port or smtps://host; one with a password: KMS_SMTP_URL'),
      '--smtp-url-file': path('FILE', 'the same from a file'),
      '--smtp-from': text('ADDRESS', 'the address that mail comes from'),
      '--smtp-ca': path(
        'FILE',
        'the authorities that the mail server is trusted by, PEM (default: those of the system)',
      ),
      '--metrics-rings': toggle(
        'count encrypts by keyring too: whoever reads metrics can read the names of keyrings then',
      ),
      '--accept-older': list(
        'TENANT',
        'go on, this once, with files that are older than they were, of a tenant or of `system`',
        'tenant',
      ),
      '--log-level': text('LEVEL', 'debug, info (default), warn, error or silent', [
        'debug',
        'info',
        'warn',
        'error',
        'silent',
      ]),
      '--backup-to': directory('DIR', 'make backups into this directory, each restored on trial before it counts'),
      '--backup-schedule': text('CRON', 'when, as a cron expression in UTC (default: "0 3 * * *")'),
      '--backup-keep': integer('N', 'how many of them to keep (default: 7)'),
      '--ship-to': directory('DIR', 'ship every change to this directory, on another disk'),
      '--ship-every': duration('TIME', 'how often: what at most is lost with the first disk (default: 5s)'),
      '--ship-window': duration('TIME', 'for how long earlier states stay restorable from there (default: 1d)'),
    },
  ),
};

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

export const tls = {
  selfSigned: command(
    'self-signed',
    'make a certificate and its key for closed networks, signed by itself',
    ['kms tls self-signed --host kms.example --host 192.0.2.7 --out /etc/kms/tls'],
    {
      '--host': required(list('NAME', 'a host name or address that it is for (required)')),
      '--out': directory('DIR', 'where cert.pem and key.pem go (default: here); neither is overwritten'),
      '--days': integer('N', 'how long it is valid (default: 397)'),
    },
  ),
};

export const backup = {
  create: command(
    'create',
    'make a backup, with the server running or not; nothing waits for it',
    ['kms backup create /mnt/backup/kms.kms-backup', 'kms backup create - | ssh host "cat > kms.kms-backup"'],
    {
      '<OUT>': argument('file'),
    },
  ),
  verify: command(
    'verify',
    'prove that a backup restores, without restoring it; without the master key compare digests alone',
    ['kms backup verify kms.kms-backup', 'kms backup verify kms.kms-backup --key-file kms-data.master.key'],
    {
      '<FILE>': argument('file'),
    },
  ),
};

export const copies = {
  restore: command(
    'restore',
    'put an appliance back into a new data directory: from a backup file, or a directory that was shipped to',
    [
      'kms restore kms.kms-backup --data ./kms-restored',
      'kms restore /mnt/shipped --data ./kms-restored --to 2026-01-02T03:04:05Z',
    ],
    {
      '<FROM>': argument('file'),
      '--to': time('TIME', 'of a directory that was shipped to: as it was at this time (default: the newest)'),
    },
  ),
  drill: command(
    'drill',
    'make a backup, restore it beside the appliance, check everything in it, and throw both away',
    ['kms drill', 'kms drill --json'],
  ),
};
