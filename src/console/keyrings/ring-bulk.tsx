// Actions on several rings at once: rotation, deletion and restoration. Before one is confirmed, it is looked up who
// uses the rings, and those that cannot be deleted are left out.
import type { Child } from 'hono/jsx/dom';
import type { BulkAction } from '../parts/bulk.tsx';
import { Failed, Loading } from '../parts/messages.tsx';
import { useAnswer } from '../parts/state.ts';
import { countedText } from '../text.ts';
import { deletionHindrance, recentCallers, stateWords } from './managed-key-words.ts';
import { ringKinds } from './ring-page.tsx';
import type { ListedRing, RingSource } from './ring-source.ts';
import { allUsersText, hindranceText, type RingUsers } from './ring-users.ts';

export type Row = ListedRing & { readonly source: RingSource };

function isManaged({ source }: Row): boolean {
  return source.kind === ringKinds.managedKey;
}

/** API keys that may use the rings, by the ring's id; those of which that is not known are missing. */
async function usersOfAll(rows: readonly Row[], signal: AbortSignal): Promise<ReadonlyMap<string, RingUsers>> {
  const found = new Map<string, RingUsers>();
  for (const { id, name, source } of rows) {
    const users = await source.users?.(name, signal);
    if (users) found.set(id, users);
  }
  return found;
}

function usersNotice(rows: readonly Row[], users: ReadonlyMap<string, RingUsers>): Child {
  const known = rows.flatMap(({ id }) => users.get(id) ?? []);
  return known.length > 0 && <p key="users">{allUsersText(known, rows.length === 1)}</p>;
}

export const rotation: BulkAction<Row> = {
  label: 'Rotate…',
  title: (count) => `Rotate ${count}?`,
  hindrance: ({ state = 'active' }) =>
    state === 'active' || state === 'pre-active' ? undefined : `It is ${stateWords(state).label}.`,
  look: async (rows, signal) => {
    const users = await usersOfAll(rows, signal);
    return { about: (chosen) => usersNotice(chosen, users) };
  },
  about: (rows) => (
    <>
      <p>{rotationText(rows.some(isManaged), rows.length === 1)}</p>
      {rows.some(({ source }) => source.dependents) && <RowsUse key="use" rows={rows} isTold />}
    </>
  ),
  action: 'Rotate',
  run: ({ name, source }) => source.rotate(name),
  done: (count) => `Rotated ${count}.`,
};

function rotationText(isManaged: boolean, isOne: boolean): string {
  const subject = isOne ? 'It' : 'Each';
  return isManaged
    ? `${subject} gets a new version for what is made from now on. What was made before can still be read and verified.`
    : `${subject} gets a new key for what is encrypted from now on. What was encrypted before stays readable.`;
}

export const deletion: BulkAction<Row> = {
  label: 'Delete…',
  kind: 'danger',
  title: (count) => `Delete ${count}?`,
  hindrance: ({ deletionAllowed = true }) => (deletionAllowed ? undefined : deletionHindrance),
  look: async (rows, signal) => {
    const users = await usersOfAll(rows, signal);
    return {
      hindrance: ({ id }) => hindranceText(users.get(id)),
      about: (chosen) => usersNotice(chosen, users),
    };
  },
  about: (rows) => (
    <>
      <p>{deletionText(rows.some(isManaged), rows.length === 1)}</p>
      {rows.some(({ source }) => source.dependents) && <RowsUse key="use" rows={rows} />}
    </>
  ),
  action: 'Delete',
  run: ({ name, source }) => source.remove(name),
  undo: ({ id, source }) => source.restore(id),
  done: (count) => `Deleted ${count}.`,
};

function deletionText(isManaged: boolean, isOne: boolean): string {
  const loss = isManaged
    ? `${isOne ? 'It does' : 'They do'} nothing from then on.`
    : `After that, nobody can encrypt with ${isOne ? 'it or decrypt what it' : 'them or decrypt what they'} encrypted.`;
  const [them, their] = isOne ? ['it', 'its'] : ['them', 'their'];
  return `${loss} For 30 days you can restore ${them}; then ${their} keys are gone for ever.`;
}

export const restoration: BulkAction<Row> = {
  label: 'Restore…',
  title: (count) => `Restore ${count}?`,
  about: ({ length }) => <p>{length === 1 ? 'It' : 'They'} can be used again as before.</p>,
  action: 'Restore',
  run: ({ id, source }) => source.restore(id),
  done: (count) => `Restored ${count}.`,
};

interface RowsUseProps {
  readonly rows: readonly Row[];
  /** Whether the callers go on as before, and are only counted. */
  readonly isTold?: boolean;
}

/** Counts the callers that still use the keys, for each that is used. */
function RowsUse({ rows, isTold = false }: RowsUseProps) {
  const answer = useAnswer((signal) =>
    Promise.all(
      rows.map(async ({ name, displayName, source }) => ({
        displayName,
        dependents: (await source.dependents?.(name, signal)) ?? [],
      })),
    ),
  );
  if (answer.is === 'loading') return <Loading key="loading" />;
  if (answer.is === 'failed') return <Failed key="failed" error={answer.error} onRetry={answer.reload} />;
  const used = answer.value.flatMap(({ displayName, dependents }) => {
    const { length } = recentCallers(dependents, Date.now());
    return length === 0 ? [] : [{ displayName, callers: length }];
  });
  if (used.length === 0) {
    return <p key="unused">Nobody used {rows.length === 1 ? 'it' : 'them'} in the last 24 hours.</p>;
  }
  return (
    <div key="used" data-note data-tone={isTold ? undefined : 'warn'}>
      <p>
        <strong>Used in the last 24 hours</strong>
        {isTold ? ', by callers that go on as before:' : ', by callers that will be refused:'}
      </p>
      <ul data-failures>
        {used.map(({ displayName, callers }, index) => (
          <li key={index}>
            <bdi>{displayName}</bdi>: {countedText(callers, 'caller')}
          </li>
        ))}
      </ul>
    </div>
  );
}
