// The commands about the activity log, `kms activity …`: searching it, and the auditor's side.
import {
  argument,
  block,
  boolean,
  command,
  duration,
  integer,
  object,
  optional,
  path,
  text,
  toggle,
  typedPath,
} from './declaration.ts';
import { output, searched } from './option-sets.ts';

export const activity = {
  search: command(
    'search',
    'search activity, newest first',
    [
      'kms activity search --ring payroll',
      'kms activity search --valid false --start 24h',
      'kms activity search --start 2026-01-01 --end yesterday',
      'kms activity search --granted --keyid ruth',
      'kms activity search --address 203.0.113.0/24 --object billing',
      'kms activity search --watch --valid false',
    ],
    {
      ...searched,
      // With --watch, 0 makes sense too.
      '--limit': integer('N', 'at most this many (default: 100)'),
      '--keyid': text('ID|NAME', 'by this API key or user', 'api-key'),
      '--account': text('UID', 'by an API key of this account', 'account'),
      '--action': text('ACTION', 'of this kind, such as keyring.encrypt; also *.delete or user.*', 'action'),
      '--ring': text('NAME', 'about this keyring', 'ring'),
      '--valid': boolean('BOOLEAN', 'granted (true) or denied (false)'),
      '--object': text('ID', 'about the user, key, account, keyring or the like with this id or name'),
      '--about': text(
        'ID|NAME',
        'by the caller or account, or about the ring or key, of this id or name; or as --object; deleted callers: ID',
      ),
      '--address': block('CIDR', 'from this address, or one of this block'),
      '--granted': optional(
        text('FLAG', 'that granted permission flags: any, or this one or a wildcard that includes it', 'flag'),
      ),
      '--revoked': optional(text('FLAG', 'that revoked permission flags, likewise', 'flag')),
      '--exclude-keyid': text(
        'ID|NAME',
        'not by this API key or user; with --exclude-action: only if both match',
        'api-key',
      ),
      '--exclude-action': text('ACTION', 'not of this kind, likewise', 'action'),
      '--contains': object('JSON', 'its props contain this object'),
      '--watch': toggle(
        'show records as they are written, until Ctrl-C, beginning with the newest --limit (default: 0)',
      ),
      '--every': duration('TIME', 'with --watch: how often to poll; each poll is recorded (default: 2s)'),
    },
  ),
  show: command('show', 'show an activity record', ['kms activity show act_01jz4b8m6q3v9x2c5d7f8g9h0k'], {
    '<ID>': argument(),
  }),
  head: command(
    'head',
    'print the last record with its hash, signed; a copy kept elsewhere reveals later changes up to this record',
    [
      'kms activity head',
      'kms activity head --json > head.json',
      'kms activity head --post-quantum --json > head.json',
    ],
    {
      '--post-quantum': toggle('also sign it with ML-DSA-65, for the day when quantum computers can forge Ed25519'),
    },
  ),
  verify: command(
    'verify',
    'verify that no record was changed, dropped or moved; exit code 1 if one was',
    [
      'kms activity verify',
      'kms activity verify --since head.json',
      'kms activity verify --file export.jsonl --since head.json',
    ],
    {
      '--file': typedPath('FILE', 'verify this export; needs no appliance'),
      '--since': path('HEAD-FILE', 'also verify that the head in this file, from `kms activity head`, is still there'),
      '--public-key': text(
        'KEY',
        'with --file or --server: the key that must have signed the head of --since, or the head that an export begins ' +
          "with after retention; or an ML-DSA-65 key's SHA-256 in hex",
      ),
    },
  ),
  exportRecords: command(
    'export',
    'export all records, oldest first, as JSON Lines that an auditor can verify without the appliance',
    ['kms activity export -o activity.jsonl', 'kms activity export --since head.json > newer.jsonl'],
    {
      ...output,
      '--since': path('HEAD-FILE', 'only the records after this head'),
    },
  ),
};
