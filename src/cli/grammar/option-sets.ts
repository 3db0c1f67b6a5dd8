// Options that several commands have in the same form, and those of every command.
import { directory, integer, list, moment, path, text, time, toggle } from './declaration.ts';

export const shells = ['bash', 'zsh', 'fish'] as const;

/** Of every command. */
export const globals = {
  '--data': directory('DIR', 'the data directory (default: ./kms-data)'),
  '--tenant': text('NAME', 'the tenant (default: the only one)', 'tenant'),
  '--server': text('URL', 'use the appliance at this address instead of the one on this machine'),
  '--api-key-file': path('FILE', 'the API key for --server; or put the key itself into KMS_API_KEY'),
  '--profile': text('NAME', 'use the appliance that `kms profile add` gave this name', 'profile'),
  '--ca-file': path('FILE', 'the authorities that --server is trusted by, PEM (default: the well-known ones)'),
  '--key-file': path('FILE', 'the file with the master key, or with a recovery kit'),
  '--passphrase-file': path('FILE', 'the passphrase of the master key; or put it into KMS_PASSPHRASE'),
  '--json': toggle('print one JSON document instead of tables and sentences'),
};

export const paged = {
  '--limit': integer('N', 'one page with at most so many (default: all there are)'),
  '--cursor': text('CURSOR', 'the page after the one that named this cursor'),
};

export const searched = {
  '--start': time('TIME', 'from this time on: milliseconds since 1970 or a date'),
  '--end': time('TIME', 'up to and with this time'),
  '--limit': integer('N', 'at most so many (default: 100)'),
  '--all': toggle('all there are'),
  '--cursor': text('CURSOR', 'the page after the one that named this cursor'),
};

/** What an API key is beside its permissions. */
export const keyed = {
  '--name': text('TEXT', 'what people call it'),
  '--expires': moment('TIME|AGE', 'when it ends: a date, an age such as 90d from now on, or never'),
  '--allow-address': list('CIDR', 'an address or block that it may come from; without any, it may come from anywhere'),
};

/** Where permissions are given. */
export const flagged = {
  '--any-flag': toggle('take permissions that grant nothing in this appliance, for a program of your own'),
};

export const byId = { '--id': toggle('what is given is an id') };

export const destroying = { '--yes': toggle("don't ask") };

/** As it was typed: `-` is stdout. */
export const output = {
  '--output': { ...text('FILE', 'write here instead of to stdout; never overwrites', 'file'), short: '-o' },
};

export const custodian = {
  '--shares': integer('N', 'shares: how many to make'),
  '--threshold': integer('K', 'shares: how many it takes'),
  '--exec': text('COMMAND', 'exec: the command whose output is the key; no shell is run'),
  '--exec-arg': list('ARG', 'exec: an argument of it'),
};
