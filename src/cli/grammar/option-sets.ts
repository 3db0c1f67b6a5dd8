// Options that several commands share, and the global ones.
import {
  applianceId,
  atLeast,
  blocks,
  directory,
  integer,
  list,
  moment,
  path,
  text,
  time,
  toggle,
  typedPath,
} from './declaration.ts';

export const shells = ['bash', 'zsh', 'fish'] as const;

/** Options of every command. */
export const globals = {
  '--data': directory('DIR', 'the data directory (default: ./kms-data)'),
  '--store': text(
    'URL',
    'the database of an appliance that several nodes share, postgres://HOST/NAME; --data is then for this node alone',
  ),
  '--store-password-file': path('FILE', 'a file with the password for --store; or set PGPASSWORD'),
  '--tenant': text('NAME', 'the tenant (default: the one of `kms tenant use`, else the only one)', 'tenant'),
  '--server': text('URL', 'use the appliance at this address instead of the one on this machine'),
  '--api-key-file': path('FILE', 'a file with the API key for --server; or set KMS_API_KEY to the key itself'),
  '--profile': text('NAME', 'use the appliance that `kms profile add` saved under this name', 'profile'),
  '--ca-file': path(
    'FILE',
    "certificate authorities to trust for --server, PEM (default: the well-known ones and the system's)",
  ),
  '--client-cert': path(
    'FILE',
    'the client certificate to show to --server, PEM, with those that signed it: a proof of an API key, without one',
  ),
  '--client-key': path('FILE', 'its private key, PEM (default: in the file of --client-cert)'),
  '--key-file': path('FILE', 'the file with the master key, or with a recovery kit'),
  '--passphrase-file': path('FILE', 'a file with the passphrase of the master key; or set KMS_PASSPHRASE'),
  '--expect-appliance': applianceId(
    'ID',
    'refuse any appliance with another id, whether in the data, a backup, a shipped copy or at the address',
  ),
  '--reason': text('TEXT', 'why, for those who approve; recorded with the request'),
  '--json': toggle('print one JSON document instead of tables and sentences'),
  '--wide': toggle('tables with every column, whole ids and exact times, however narrow the terminal'),
};

export const paged = {
  '--limit': atLeast(1, integer('N', 'one page with at most this many, oldest first (default: all)')),
  '--cursor': text('CURSOR', 'the page after the one that returned this cursor'),
};

export const searched = {
  '--start': time(
    'TIME',
    'from this time on: a time or day, in UTC unless it has a zone, 24h or 7d ago, today, yesterday, or milliseconds ' +
      'since 1970',
  ),
  '--end': time('TIME', 'up to and including this time, likewise in UTC'),
  '--limit': atLeast(1, integer('N', 'at most this many (default: 100)')),
  '--all': toggle('all of them'),
  '--cursor': text('CURSOR', 'the page after the one that returned this cursor'),
};

/** Properties of an API key besides its permissions. */
export const keyed = {
  '--name': text('TEXT', 'a name for people'),
  '--expires': moment(
    'TIME|AGE',
    'when it expires: a time, in UTC unless it has a zone, an age such as 90d from now, or never',
  ),
  '--allow-address': blocks(
    'CIDR',
    'an address or block that it may be used from; without any, it may be used from anywhere',
  ),
};

/** Option of commands that set permissions. */
export const flagged = {
  '--any-flag': toggle('accept permissions that grant nothing in this appliance, for a program of your own'),
};

export const byId = { '--id': toggle('the argument is an id') };

export const destroying = { '--yes': toggle('do not ask for confirmation') };

/** Path as typed: `-` is stdout. */
export const output = {
  '--output': { ...typedPath('FILE', 'write here instead of to stdout; never overwrites'), short: '-o' },
};

export const custodian = {
  '--shares': integer('N', 'shares: how many to make'),
  '--threshold': integer('K', 'shares: how many are needed'),
  '--exec': text('COMMAND', 'exec: the command whose output is the key; no shell is run'),
  '--exec-arg': list('ARG', 'exec: an argument for it'),
};
