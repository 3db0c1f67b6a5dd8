// The checklist of a first run: the steps from an empty appliance to one that people may rely on. Steps that the
// appliance knows of are read from the overview; those that only a person can know of are marked in this browser.
import type { ConsolePageName } from '../../api/console-pages.ts';
import type { AnswerTo } from '../../client/client.ts';
import type { Flags } from '../../model/flags.ts';

type StepName = 'masterKey' | 'keyring' | 'secondFactor' | 'backup' | 'colleague';

export interface Step {
  readonly name: StepName;
  readonly title: string;
  readonly why: string;
  readonly isDone: boolean;
  /** A page of the console, or a command for what the console cannot do. */
  readonly by:
    | { readonly page: ConsolePageName; readonly title: string }
    | { readonly command: string; readonly what: string };
  /** Only the person can tell that it is done. */
  readonly isMarked?: true;
}

/** Mark set by a person: a step is done, or the whole list is hidden. */
export type Mark = 'masterKey' | 'hidden';

type Overview = AnswerTo<'getOverview'>;

/** The steps that this person can take; none for somebody who has nothing to set up. */
export function firstSteps(found: Overview, may: Flags, marks: ReadonlySet<Mark>): readonly Step[] {
  const { backups, keyrings, users, secondFactor, readiness } = found;
  const steps: (Step | false)[] = [
    backups !== undefined && {
      name: 'masterKey',
      title: 'Keep the master key in a second place',
      why: 'Without it nobody can open the data again. Copy its file, or print a recovery kit on the machine:',
      isDone: marks.has('masterKey'),
      by: { command: 'kms recovery-kit -o kit.txt', what: 'the command for a recovery kit' },
      isMarked: true,
    },
    keyrings !== undefined &&
      may.allows('keyring.create') && {
        name: 'keyring',
        title: 'Create a keyring',
        why: 'Programs encrypt with its keys, and you hold its private key.',
        isDone: keyrings.rings.length > 0 || keyrings.more,
        by: { page: 'newKeyring', title: 'Create one' },
      },
    secondFactor !== undefined && {
      name: 'secondFactor',
      title: 'Turn on a second factor',
      why: 'So that a stolen password is not enough to log in as you.',
      isDone: secondFactor,
      by: { page: 'me', title: 'Add one' },
    },
    backups !== undefined && {
      name: 'backup',
      title: 'Set up backups',
      why: 'The service makes and tests one every night if it is started with a directory on another disk:',
      isDone: backups.configured !== null || backups.lastVerified !== null || readiness.shipping !== undefined,
      by: { command: 'kms serve --backup-to /mnt/backups', what: 'the command for backups' },
    },
    users !== undefined &&
      may.allows('user.create') && {
        name: 'colleague',
        title: 'Invite a colleague',
        why: 'So that somebody else can get in when you cannot.',
        isDone: users > 1,
        by: { page: 'newUser', title: 'Invite one' },
      },
  ];
  const mine = steps.filter((step) => step !== false);
  return mine.some(({ name }) => name !== 'secondFactor') ? mine : [];
}

/** Whether nothing was ever made or used here, so that there is nothing to show figures of. */
export function isUnused({ use, keyrings }: Overview): boolean {
  if (!use || !keyrings || keyrings.rings.length > 0 || keyrings.more) return false;
  return [use.encrypts, use.decrypts].every((counts) => counts.every((count) => count === 0));
}

const marks: readonly Mark[] = ['masterKey', 'hidden'];
const keptAs = (appliance: string): string => `kms-first-steps ${appliance}`;

type Storage = Pick<globalThis.Storage, 'getItem' | 'setItem'>;

/** The marks that this browser keeps for an appliance, by its id. */
export function keptMarks(storage: Storage, appliance: string): ReadonlySet<Mark> {
  const kept = storage.getItem(keptAs(appliance))?.split(' ') ?? [];
  return new Set(marks.filter((mark) => kept.includes(mark)));
}

export function keepMark(storage: Storage, appliance: string, mark: Mark): ReadonlySet<Mark> {
  const all = new Set([...keptMarks(storage, appliance), mark]);
  storage.setItem(keptAs(appliance), [...all].join(' '));
  return all;
}
