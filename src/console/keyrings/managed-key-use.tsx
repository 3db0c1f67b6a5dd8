// Uses of a managed key: a table on its page, and a summary where somebody is about to take the key away.
import type { Dependent } from '../../api/managed-keys.ts';
import type { AnswerTo } from '../../client/client.ts';
import { Actor } from '../activity/record-parts.tsx';
import { useActorNames } from '../known-names.ts';
import { Failed, Loading } from '../parts/messages.tsx';
import { type Shown, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Ago } from '../parts/values.tsx';
import { countedText, countText } from '../text.ts';
import { callersOf, dialectText, operationText, recentCallers } from './managed-key-words.ts';

export type Dependents = Shown<AnswerTo<'listManagedKeyDependents'>>;

/** Rows shown at first, and added at a time. */
const rowsAtOnce = 10;

export function ManagedKeyUse({ name, of }: { readonly name: string; readonly of: Dependents }) {
  const names = useActorNames();
  const [most, setMost] = useState(rowsAtOnce);
  const all = of.is === 'ready' ? of.value.dependents : [];
  const columns: readonly Column<Dependent>[] = [
    { title: 'Who', kind: 'name', cell: ({ caller }) => <Actor keyid={caller} names={names} /> },
    { title: 'Through', cell: ({ dialect }) => dialectText(dialect) },
    { title: 'For', cell: ({ operation }) => operationText(operation) },
    { title: 'Version', kind: 'number', cell: ({ version }) => version },
    { title: 'Last', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
    { title: 'Times', kind: 'number', cell: ({ count }) => countText(count) },
  ];
  return (
    <section data-panel>
      <h2>Who uses it</h2>
      <DataTable
        caption={`Who uses ${name}`}
        columns={columns}
        list={{
          items: all.slice(0, most),
          is: of.is,
          error: of.is === 'failed' ? of.error : undefined,
          hasMore: all.length > most,
          more: of.is === 'failed' ? of.reload : () => setMost(most + 10 * rowsAtOnce),
          again: of.reload,
        }}
        keyOf={({ caller, dialect, operation, version }) => `${caller} ${dialect} ${operation} ${version}`}
        empty={<p>Nobody has used it.</p>}
      />
    </section>
  );
}

/** Whether somebody used the key in the last 24 hours, as far as this page could tell its reader. */
export function isInUse(of: Dependents): boolean {
  return of.is === 'ready' && recentCallers(of.value.dependents, Date.now()).length > 0;
}

const mostNamed = 5;

interface UseNoticeProps {
  readonly of: Dependents;
  /** Whether those who use it go on as before, and are only named. */
  readonly isTold?: boolean;
}

/** Says who still uses the key. */
export function UseNotice({ of, isTold = false }: UseNoticeProps) {
  const names = useActorNames();
  if (of.is === 'loading') return <Loading key="loading" />;
  if (of.is === 'failed') return <Failed key="failed" error={of.error} onRetry={of.reload} />;
  const { dependents } = of.value;
  const recent = recentCallers(dependents, Date.now());
  const [last] = dependents;
  if (recent.length === 0) {
    return (
      <p key="unused">
        {last === undefined ? (
          'Nobody has used it.'
        ) : (
          <>
            Nobody used it in the last 24 hours; the last use was <Ago at={last.lastUsedAt} />.
          </>
        )}
      </p>
    );
  }
  return (
    <div key="used" data-note data-tone={isTold ? undefined : 'warn'}>
      <p>
        <strong>{countedText(recent.length, 'caller')} used it in the last 24 hours</strong>
        {isTold ? ':' : ', and will be refused:'}
      </p>
      <Callers uses={recent} names={names} />
    </div>
  );
}

interface CallersProps {
  readonly uses: readonly Dependent[];
  readonly names: ReadonlyMap<string, string>;
}

function Callers({ uses, names }: CallersProps) {
  return (
    <ul>
      {uses.slice(0, mostNamed).map(({ caller, dialect, operation, lastUsedAt }) => (
        <li key={caller}>
          <Actor keyid={caller} names={names} />, for {operationText(operation)} through {dialectText(dialect)},{' '}
          <Ago at={lastUsedAt} />
        </li>
      ))}
      {uses.length > mostNamed && <li key="more">and {countText(uses.length - mostNamed)} more</li>}
    </ul>
  );
}

interface VersionUseProps {
  readonly of: Dependents;
  /** The oldest version asked about. */
  readonly first: number;
  /** The version after the latest one asked about. */
  readonly end: number;
}

/** Says who used versions that are about to be refused, at whatever time. */
export function VersionUse({ of, first, end }: VersionUseProps) {
  const names = useActorNames();
  if (of.is === 'loading') return <Loading key="loading" />;
  if (of.is === 'failed') return <Failed key="failed" error={of.error} onRetry={of.reload} />;
  const uses = callersOf(of.value.dependents, first, end);
  const which = end - first === 1 ? `version ${first}` : `versions ${first} to ${end - 1}`;
  if (uses.length === 0) return <p key="unused">Nobody has used {which}.</p>;
  return (
    <div key="used" data-note data-tone="warn">
      <p>
        <strong>
          {countedText(uses.length, 'caller')} used {which}:
        </strong>
      </p>
      <Callers uses={uses} names={names} />
    </div>
  );
}
