// The commands of configuration as code: `kms plan`, `kms apply`, `kms export`, `kms schema`.
import { command, directory, list, optionalArgument, path, someOf, text, toggle, usually } from './declaration.ts';
import { destroying } from './option-sets.ts';

/** Kinds of objects in files. */
export const fileKinds = ['tenant-limits', 'account', 'keyring', 'managed-key', 'user', 'apikey', 'rule'] as const;

export const described = {
  '--file': {
    ...list('FILE', 'a file that says what there shall be: YAML or JSON; a directory of such; - for stdin', 'file'),
    short: '-f',
  },
  '--prune': toggle('remove what an earlier apply made and no file has any more'),
  '--adopt': toggle('put the mark on what the files have and somebody made otherwise, so that --prune may remove it'),
  '--managed-by': usually(
    'kms-apply',
    text('NAME', 'the mark (props.managedBy) of what is made, and of what --prune removes'),
  ),
  '--any-flag': toggle('accept permissions that grant nothing in this appliance, for a program of your own'),
  '--used': toggle('suspend, deactivate and delete managed keys that were used in the last 24 hours, too'),
};

export const asCode = {
  plan: {
    ...command(
      'plan',
      'show what would make the appliance what files say; exit code 0: nothing, 2: changes, 1: failed, 3: unreachable, 4: sealed',
      [
        'kms plan -f team.yaml',
        'kms plan -f accounts.yaml -f keys.yaml --out team.plan',
        'kms plan -f team.yaml --drift',
      ],
      {
        ...described,
        '--out': path('PLAN', 'save the plan, for `kms apply PLAN`; never overwrites'),
        '--drift': toggle('look for what was changed by hand: also what was made from files that no longer have it'),
        '--metrics-file': path(
          'FILE',
          'write the number of changes and the time, for the textfile collector of Prometheus',
        ),
      },
    ),
    // Wrong usage must not look like changes.
    usageCode: 1,
  },
  apply: command(
    'apply',
    'make the appliance what files say, or do what a saved plan says; asks first on a terminal',
    [
      'kms apply -f team.yaml --secrets-out secrets',
      'kms apply team.plan --secrets-out secrets --secrets-to team.age.pub',
      'kms apply -f team.yaml --prune --yes',
    ],
    {
      '[PLAN]': optionalArgument('file'),
      ...described,
      '--secrets-out': directory('DIR', 'write the secrets of what is new into files of this directory'),
      '--secrets-to': path(
        'FILE',
        'seal them to the recipient of age in this file; without --secrets-out they are printed',
      ),
      ...destroying,
    },
  ),
  export: command(
    'export',
    'print what there is as a file for `kms apply`; without any secret',
    ['kms export > team.yaml', 'kms export --kind account --kind apikey'],
    {
      '--kind': someOf('KIND', 'only objects of this kind', fileKinds),
    },
  ),
  schema: command('schema', 'print the JSON Schema of the files, for editors', ['kms schema > kms.schema.json']),
};
