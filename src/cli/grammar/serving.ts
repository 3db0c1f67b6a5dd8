// Every option of `kms serve`, declared once: its kind, default, help and heading, and whether a running server takes a
// new value. Flags, environment and configuration file are all read by this declaration.
import { kemNames } from '../../model/kems.ts';
import { labelColours } from '../../model/label.ts';
import {
  atLeast,
  blocks,
  directory,
  duration,
  group,
  integer,
  type Kind,
  type Kinds,
  label,
  list,
  live,
  oneOf,
  path,
  settingName,
  text,
  toggle,
  usually,
  wait,
} from './declaration.ts';
import { globals } from './option-sets.ts';

/** Bytes: enough for an encrypt with 100 known keys, for hybrid public keys and for long passwords. */
const leastBodyLimit = 4096;

/** Options shared by `serve` and `standby`. */
export const serving = {
  ...group('Network', {
    '--listen': usually('127.0.0.1:8080', text('HOST:PORT', 'where to listen; port 0 picks one')),
    '--url': text('BASE_URL', 'the address under which clients reach the appliance'),
    '--behind-proxy': toggle('a proxy in front terminates TLS: allow plain HTTP on any address'),
    '--tang-listen': text('HOST:PORT', 'also listen here for clients of Tang such as clevis, always in plain HTTP'),
    ...live({
      '--tang-allow': blocks(
        'CIDR',
        'an address or block that may ask at --tang-listen (default: loopback and private networks)',
      ),
    }),
  }),
  ...group(
    'TLS',
    live(
      {
        '--tls-cert': path('FILE', 'the certificate chain for HTTPS, PEM'),
        '--tls-key': path('FILE', 'its private key, PEM'),
      },
      'replaced',
    ),
  ),
  ...group(
    'Label',
    live({
      '--label': label(
        'TEXT',
        'a name such as prod, at most 24 characters, which the console and destructive commands show; anybody can read it',
      ),
      '--label-colour': oneOf('COLOUR', 'its colour: red, amber, green, blue or grey (default)', labelColours),
    }),
  ),
  ...group('Keys', {
    '--crypto': usually(
      'node',
      oneOf(
        'node|noble',
        'where signatures, hashes and ciphers come from: Node itself, tested at each start (node), or noble alone',
        ['node', 'noble'],
      ),
    ),
    '--default-kem': usually(
      'x25519',
      oneOf(
        'KEM',
        'how the keys of a new ring are wrapped if the request names no KEM: x25519, or mlkem768-x25519, which ' +
          'withstands quantum computers too',
        kemNames,
      ),
    ),
  }),
  ...group('Backups and shipping', {
    ...live({
      '--backup-to': directory('DIR', 'make backups in this directory; each is test-restored before it counts'),
      '--backup-schedule': usually('0 3 * * *', text('CRON', 'when, as a cron expression in UTC')),
      '--backup-keep': usually(
        '7',
        atLeast(1, integer('N', 'how many scheduled ones to keep, and as many made on request')),
      ),
    }),
    '--ship-to': directory('DIR', 'ship every change to this directory, on another disk'),
    '--ship-every': usually('5s', wait('TIME', 'how often; at most this much is lost with the first disk')),
    '--ship-window': usually('1d', duration('TIME', 'how long earlier states can be restored from there')),
  }),
  ...group(
    'Activity',
    live({
      '--activity-retention': duration(
        'TIME',
        'drop activity older than this, such as 400d, in whole closed files (default: keep it for ever)',
      ),
      '--activity-to': list(
        'TARGET',
        'stream the activity of every tenant there: syslog+tcp://host:port, syslog+tls://host:port, ' +
          'https://host/path, or a directory',
        'directory',
      ),
      '--activity-from': usually(
        'end',
        oneOf('END|START', 'where a new target begins: at the current end of the activity (end) or at its start', [
          'end',
          'start',
        ]),
      ),
      '--activity-ca-file': path(
        'FILE',
        'certificate authorities to trust for syslog servers and webhooks, PEM (default: those of the system)',
      ),
      '--activity-webhook-secret-file': path(
        'FILE',
        'the secrets that sign webhooks: lines of whsec_ and base64, the newest first',
      ),
    }),
  ),
  ...group(
    'Users and mail',
    live({
      '--access-ttl': usually('1h', duration('TIME', 'how long an access token is valid, such as 30s, 15m, 12h, 7d')),
      '--session-max': usually('12h', duration('TIME', 'how long a login can be refreshed or renewed')),
      '--workload-ttl': usually('1h', duration('TIME', 'the lease of the token of a program, at most 1h')),
      '--invite-ttl': usually('7d', duration('TIME', 'how long an invite can be completed')),
      '--reset-ttl': usually('1h', duration('TIME', 'how long a password can be reset with a link')),
      '--notify-to': text(
        'URL',
        'a webhook for new approval requests and broken glass; signed like the webhooks of the activity',
      ),
      '--smtp-url': text(
        'URL',
        'the mail server, smtp://host:port or smtps://host; with a password in it, use KMS_SMTP_URL or a file',
      ),
      '--smtp-url-file': path('FILE', 'the same from a file'),
      '--smtp-from': text('ADDRESS', 'the address that mail comes from'),
      '--smtp-ca': path(
        'FILE',
        'certificate authorities to trust for the mail server, PEM (default: those of the system)',
      ),
    }),
  ),
  ...group('Limits, log and metrics', {
    ...live({
      '--body-limit': usually(
        '1048576',
        atLeast(leastBodyLimit, integer('BYTES', `the largest body of a request; at least ${leastBodyLimit}`)),
      ),
      '--log-level': usually(
        'info',
        oneOf('LEVEL', 'fatal, error, warn, info, debug, trace or silent', [
          'fatal',
          'error',
          'warn',
          'info',
          'debug',
          'trace',
          'silent',
        ]),
      ),
    }),
    '--log-format': usually(
      'auto',
      oneOf('FORMAT', 'lines for people (text) or for programs (json); auto is text on a terminal', [
        'auto',
        'text',
        'json',
      ]),
    ),
    '--metrics-rings': toggle(
      'also count encrypts by keyring; anybody who reads metrics then sees the names of keyrings',
    ),
  }),
};

export const serve = {
  ...serving,
  ...group('Network', {
    '--vault-listen': text('HOST:PORT', 'also listen here for software that speaks Vault transit; TLS as for --listen'),
    '--aws-listen': text('HOST:PORT', 'also listen here for software that speaks AWS KMS; TLS as for --listen'),
    '--aws-region': text('REGION', 'the region of --aws-listen, which its clients sign for (default: us-east-1)'),
    '--kmip-listen': text('HOST:PORT', 'also listen here for clients of KMIP, always in TLS with client certificates'),
    '--kmip-tls-cert': path('FILE', "KMIP's own certificate chain, PEM (default: that of --tls-cert)"),
    '--kmip-tls-key': path('FILE', 'its private key, PEM'),
    '--kmip-old-ciphers': toggle('also offer KMIP in cipher suites of old appliances: CBC, and no forward secrecy'),
  }),
  ...group('Data', {
    '--host': list('NAME', 'when initialising: answer requests for this host only'),
    '--accept-older': list(
      'TENANT',
      'accept, this once, that the files of a tenant (or of `system`) are older than before',
      'tenant',
    ),
    '--take-back': toggle('serve, this once, although a standby took over: what was written there since is not here'),
  }),
};

/** Options of every command that a configuration file may also have. */
const ofFile = {
  '--data': globals['--data'],
  '--store': globals['--store'],
  '--store-password-file': globals['--store-password-file'],
  '--key-file': globals['--key-file'],
  '--passphrase-file': globals['--passphrase-file'],
  '--expect-appliance': globals['--expect-appliance'],
};

/** An option as a configuration file may have it. */
interface Setting {
  /** Its name on the command line. */
  readonly option: string;
  readonly kind: Kind<unknown>;
}

/** All settings of a configuration file, by their names in it. */
export const settings: ReadonlyMap<string, Setting> = new Map([
  ...settingsOf(serve),
  ...settingsOf(group('Data', ofFile)),
]);

function settingsOf<V>(kinds: Kinds<V>): (readonly [string, Setting])[] {
  return Object.entries<Kind<unknown>>(kinds).map(([option, kind]) => [settingName(option), { option, kind }]);
}
