// The commands that make an appliance and run it: `kms init` and `kms serve`.
import { custodianKindsByName } from '../../model/custodian-kinds.ts';
import { kemNames } from '../../model/kems.ts';
import {
  alternatives,
  atLeast,
  blocks,
  command,
  directory,
  duration,
  integer,
  list,
  oneOf,
  optionalArgument,
  path,
  text,
  toggle,
  wait,
} from './declaration.ts';
import { custodian } from './option-sets.ts';

/** How long an upgrade waits for each start, stop and check, unless it is told, in milliseconds. */
export const upgradeLimit = 120_000;

export const upgrading = {
  upgrade: command(
    'upgrade',
    'put a newer executable in the place of this one: verified, tried before anybody is served, taken back when it fails',
    [
      'kms upgrade kms-0.2.0-linux-x64.tar.gz --trusted-key release.key.pub',
      'kms upgrade --status',
      'kms upgrade --resume',
    ],
    {
      '[FILE]': optionalArgument('file'),
      '--trusted-key': path('FILE', 'the public key, as minisign has it, of whoever hands out the releases'),
      '--stop': text('COMMAND', 'ends the server where systemd does not run it; a line for /bin/sh'),
      '--start': text('COMMAND', 'starts it, and returns'),
      '--time-limit': wait('TIME', 'how long each start, stop and check may take (default: 2m)'),
      '--allow-downgrade': toggle('take a version that is older than this one, too'),
      '--resume': toggle('end an upgrade that was cut off: what had passed stays, anything else is taken back'),
      '--status': toggle('say how far an upgrade is that is under way or was cut off'),
    },
  ),
};

/** What encrypts that name 100 known keys, hybrid public keys and long passwords need, in bytes, and some room. */
const leastBodyLimit = 4096;

/** How an appliance is served, at once or by a standby that took over. */
export const serving = {
  '--listen': text('HOST:PORT', 'where to listen (default: 127.0.0.1:8080); port 0 picks one'),
  '--url': text('BASE_URL', 'the address under which clients reach the appliance'),
  '--tls-cert': path('FILE', 'the certificate chain for HTTPS, PEM'),
  '--tls-key': path('FILE', 'its private key, PEM'),
  '--behind-proxy': toggle('a proxy in front terminates TLS: allow plain HTTP on any address'),
  '--tang-listen': text(
    'HOST:PORT',
    'also listen here for clients of Tang such as clevis, always in plain HTTP (default: not)',
  ),
  '--tang-allow': blocks(
    'CIDR',
    'an address or block that may ask at --tang-listen (default: loopback and private networks)',
  ),
  '--body-limit': atLeast(
    leastBodyLimit,
    integer('BYTES', `the largest body of a request (default: 1048576; at least ${leastBodyLimit})`),
  ),
  '--access-ttl': duration('TIME', 'how long an access token is valid, such as 30s, 15m, 12h, 7d (default: 1h)'),
  '--session-max': duration('TIME', 'how long a login can be refreshed (default: 12h)'),
  '--invite-ttl': duration('TIME', 'how long an invite can be completed (default: 7d)'),
  '--reset-ttl': duration('TIME', 'how long a password can be reset with a link (default: 1h)'),
  '--smtp-url': text(
    'URL',
    'the mail server, smtp://host:port or smtps://host; with a password in it, use KMS_SMTP_URL',
  ),
  '--smtp-url-file': path('FILE', 'the same from a file'),
  '--smtp-from': text('ADDRESS', 'the address that mail comes from'),
  '--smtp-ca': path('FILE', 'certificate authorities to trust for the mail server, PEM (default: those of the system)'),
  '--metrics-rings': toggle(
    'also count encrypts by keyring; whoever reads metrics can then read the names of keyrings',
  ),
  '--crypto': oneOf(
    'node|noble',
    'what does signatures, hashes and ciphers: Node itself, tested at each start (node, the default), or ' +
      'noble alone',
    ['node', 'noble'],
  ),
  '--default-kem': oneOf(
    'KEM',
    'how keys of a ring are wrapped whose maker names no kem: x25519 (the default), or mlkem768-x25519, which ' +
      'withstands quantum computers too',
    kemNames,
  ),
  '--log-level': text('LEVEL', 'fatal, error, warn, info (default), debug, trace or silent', [
    'fatal',
    'error',
    'warn',
    'info',
    'debug',
    'trace',
    'silent',
  ]),
  '--backup-to': directory('DIR', 'make backups in this directory; each is test-restored before it counts'),
  '--backup-schedule': text('CRON', 'when, as a cron expression in UTC (default: "0 3 * * *")'),
  '--backup-keep': atLeast(
    1,
    integer('N', 'how many scheduled ones to keep, and as many that were asked for (default: 7)'),
  ),
  '--ship-to': directory('DIR', 'ship every change to this directory, on another disk'),
  '--ship-every': wait('TIME', 'how often; at most this much is lost with the first disk (default: 5s)'),
  '--ship-window': duration('TIME', 'how long earlier states can be restored from there (default: 1d)'),
  '--activity-retention': duration(
    'TIME',
    'drop activity older than this, such as 400d, in whole closed files (default: keep it for ever)',
  ),
  '--activity-to': list(
    'TARGET',
    'stream the activity of every tenant there: syslog+tcp://host:port, syslog+tls://host:port, https://host/path, ' +
      'or a directory',
    'directory',
  ),
  '--activity-from': oneOf(
    'END|START',
    'where a new target begins: at the current end of the activity (end, the default) or at its start',
    ['end', 'start'],
  ),
  '--activity-ca-file': path(
    'FILE',
    'certificate authorities to trust for syslog servers and webhooks, PEM (default: those of the system)',
  ),
  '--activity-webhook-secret-file': path(
    'FILE',
    'the secrets that sign webhooks: lines of whsec_ and base64, the newest first',
  ),
};

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
    'run the server; an empty or missing data directory is initialised first',
    ['kms serve', 'kms serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem'],
    {
      ...serving,
      '--transit-listen': text(
        'HOST:PORT',
        'also listen here for software that speaks Vault transit; TLS as for --listen (default: not)',
      ),
      '--host': list('NAME', 'when initialising: answer requests for this host only'),
      '--accept-older': list(
        'TENANT',
        'accept, this once, files of a tenant (or of `system`) that are older than they were',
        'tenant',
      ),
      '--take-back': toggle('serve, this once, although a standby took over: what was written there since is not here'),
    },
  ),
};

/** How long the one that a standby takes over from is given to stop, unless it is told, in milliseconds. */
export const standbyWait = 10_000;

export const standing = {
  standby: command(
    'standby',
    'follow what an appliance ships, serving nobody; with `promote`, take over from it',
    [
      'kms standby --from /mnt/shipped --data ./kms-standby --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem',
      'kms standby promote --data ./kms-standby',
    ],
    {
      '[promote]': optionalArgument(['promote']),
      '--from': directory('DIR', 'the directory of `kms serve --ship-to`'),
      '--wait': duration(
        'TIME',
        'with promote: for how long the other is given to stop and ship the rest (default: 10s)',
      ),
      '--unfenced': toggle('with promote: take over without telling the other, which was stopped for good'),
      '--accept-older': toggle('with promote: take the last proven state where the newest is damaged or out of reach'),
      ...serving,
    },
  ),
};
