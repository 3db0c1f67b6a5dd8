// The commands that make an appliance and run it: `kms init` and `kms serve`.
import { custodianKindsByName } from '../../model/custodian-kinds.ts';
import {
  alternatives,
  command,
  directory,
  duration,
  list,
  oneOf,
  optionalArgument,
  path,
  text,
  toggle,
  wait,
} from './declaration.ts';
import { custodian } from './option-sets.ts';
import { serve, serving } from './serving.ts';

/** How long an upgrade waits for each start, stop and check, unless told otherwise, in milliseconds. */
export const upgradeLimit = 120_000;

export const upgrading = {
  upgrade: command(
    'upgrade',
    'replace this executable with a newer one: verified, tried before it serves, rolled back if it fails',
    [
      'kms upgrade kms-0.2.0-linux-x64.tar.gz --trusted-key release.key.pub',
      'kms upgrade --status',
      'kms upgrade --resume',
    ],
    {
      '[FILE]': optionalArgument('file'),
      '--trusted-key': path('FILE', 'the public key of the publisher of the releases, as minisign writes it'),
      '--stop': text('COMMAND', 'stops the server if systemd does not run it; a line for /bin/sh'),
      '--start': text('COMMAND', 'starts it, and returns'),
      '--time-limit': wait('TIME', 'how long each start, stop and check may take (default: 2m)'),
      '--allow-downgrade': toggle('accept a version that is older than this one'),
      '--resume': toggle(
        'finish an upgrade that was cut off: a version that had passed stays, anything else is rolled back',
      ),
      '--status': toggle('show the progress of an upgrade that is under way or was cut off'),
    },
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
      '--custodian': oneOf(
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
    [
      'kms serve',
      'kms serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem',
      'kms serve --config kms.yaml',
    ],
    {
      '--config': path(
        'FILE',
        'a YAML or JSON file with options; the command line and the environment take precedence',
      ),
      ...serve,
    },
  ),
};

/** How long the one that a standby takes over from is given to stop, unless told otherwise, in milliseconds. */
export const standbyWait = 10_000;

export const standing = {
  standby: command(
    'standby',
    'follow what an appliance ships, without serving; with `promote`, take over from it',
    [
      'kms standby --from /mnt/shipped --data ./kms-standby --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem',
      'kms standby promote --data ./kms-standby',
    ],
    {
      '[promote]': optionalArgument(['promote']),
      '--from': directory('DIR', 'the directory of `kms serve --ship-to`'),
      '--wait': duration('TIME', 'with promote: how long the other has to stop and ship the rest (default: 10s)'),
      '--unfenced': toggle('with promote: take over without telling the other, if it was stopped for good'),
      '--accept-older': toggle('with promote: take the last proven state if the newest is damaged or out of reach'),
      ...serving,
    },
  ),
};
