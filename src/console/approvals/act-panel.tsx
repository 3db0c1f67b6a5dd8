// ActPanel shows what is asked for: the operation with its parameters and body, the object before and after, the
// permissions that somebody gains or loses, and who depends on the object.
import type { Child } from 'hono/jsx/dom';
import type { ApprovalRequest } from '../../api/approvals.ts';
import { isJsonObject } from '../../model/json.ts';
import { ThingLink } from '../activity/record-parts.tsx';
import { grantOf } from '../flags/draft.ts';
import { dialectText, operationText } from '../keyrings/managed-key-words.ts';
import { type Column, Rows } from '../parts/table.tsx';
import { Ago, type Fact, Facts, Json } from '../parts/values.tsx';
import { countedText, countText } from '../text.ts';
import { consequenceText } from './act-words.ts';
import { type Difference, differencesBetween, unseenChanges } from './differences.ts';
import { Person } from './request-parts.tsx';

export function ActPanel({ request }: { readonly request: ApprovalRequest }) {
  const { action, actions, operation, dialect, object, shown, effects } = request;
  const others = actions.filter((each) => each !== action);
  // The object itself is named below.
  const parameters = Object.entries(shown.parameters).filter(([, value]) => value !== object?.id);
  return (
    <section data-panel>
      <h2>What will happen</h2>
      {consequenceText(request).map((text) => (
        <p key={text} data-note data-tone="warn">
          {text}
        </p>
      ))}
      <Facts
        facts={[
          ['Operation', <code key="operation">{operation}</code>],
          ['Permission', <code key="action">{action}</code>],
          others.length > 0 && ['Counts as', <Texts key="actions" of={others} />],
          object !== null && ['Done to', <Thing key="object" of={object} />],
          ...shown.further.map((further, n): Fact => ['And also', <Further key={n} of={further} />]),
          dialect !== undefined && ['Through', dialectText(dialect)],
          ...parameters.map(([name, value]): Fact => [`Parameter ${name}`, <Value key={name} of={value} />]),
          effects.objects.length > 0 && [
            'Also affected',
            <Things key="objects" of={effects.objects} count={effects.objectCount} />,
          ],
        ]}
      />
      {shown.body !== null && <Body key="body" body={shown.body} />}
      <Flags key="granted" title="Permissions gained" flags={effects.granted} count={effects.grantedCount} />
      <Flags key="revoked" title="Permissions lost" flags={effects.revoked} count={effects.revokedCount} />
      <Change key="change" effects={effects} />
      {effects.vouched && <Vouched key="vouched" of={effects.vouched} count={effects.vouchedCount} />}
      {effects.dependents && <Dependents key="dependents" of={effects.dependents} />}
    </section>
  );
}

type ThingRef = NonNullable<ApprovalRequest['object']>;

export function Thing({ of }: { readonly of: ThingRef }) {
  // Cast: a type that this console does not know is shown as it is.
  return <ThingLink thing={of as Parameters<typeof ThingLink>[0]['thing']} names={new Map()} />;
}

interface ThingsShown {
  readonly of: readonly ThingRef[];
  /** Undefined if these are all. */
  readonly count: number | undefined;
}

function Things({ of, count = of.length }: ThingsShown) {
  return (
    <ul data-plain data-dense>
      {of.map((thing) => (
        <li key={`${thing.type} ${thing.id}`}>
          <Thing of={thing} />
        </li>
      ))}
      {count > of.length && <li key="more">and {count - of.length} more</li>}
    </ul>
  );
}

/** A further object, and the flag for what is done to it. */
function Further({ of: { action, object } }: { readonly of: ApprovalRequest['shown']['further'][number] }) {
  return (
    <span>
      <code>{action}</code>
      {object && (
        <>
          {' on '}
          <Thing of={object} />
        </>
      )}
    </span>
  );
}

function Body({ body }: { readonly body: NonNullable<ApprovalRequest['shown']['body']> }) {
  const entries = Object.entries(body);
  return (
    <>
      <h3>Body of the request</h3>
      {entries.length === 0 ? (
        <p key="empty" data-quiet>
          An empty object.
        </p>
      ) : (
        <Facts key="fields" facts={entries.map(([name, value]) => [name, <Value key={name} of={value} />])} />
      )}
    </>
  );
}

/** A value of the request. A confidential one is replaced by a code, which is the same for equal values. */
function Value({ of }: { readonly of: unknown }): Child {
  const code = hiddenIn(of);
  if (code !== undefined) {
    return (
      <span title={`Confidential. The same value always has the code ${code}.`}>
        <span data-tag>hidden</span> <code data-any>{code}</code>
      </span>
    );
  }
  if (of === undefined) return <span data-quiet>not there</span>;
  if (typeof of === 'string') return <bdi data-value>{of}</bdi>;
  if (isTexts(of)) return <Texts of={of} />;
  if (typeof of === 'object' && of !== null) return <Json value={of} />;
  return <code>{String(of)}</code>;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'string');
}

function Texts({ of }: { readonly of: readonly string[] }) {
  return (
    <ul data-plain data-dense>
      {of.map((text, index) => (
        <li key={index}>
          <bdi data-value>{text}</bdi>
        </li>
      ))}
    </ul>
  );
}

function hiddenIn(value: unknown): string | undefined {
  if (!isJsonObject(value) || Object.keys(value).length !== 1) return undefined;
  return typeof value.hidden === 'string' ? value.hidden : undefined;
}

interface FlagsShown {
  readonly title: string;
  readonly flags: readonly string[];
  /** Undefined if `flags` are all. */
  readonly count: number | undefined;
}

function Flags({ title, flags, count = flags.length }: FlagsShown) {
  if (flags.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul data-plain data-flag-list>
        {flags.map((flag) => (
          <li key={flag}>
            <code>{flag}</code> {grantOf(flag) ?? ''}
          </li>
        ))}
      </ul>
      {count > flags.length && <p>And {count - flags.length} more.</p>}
    </>
  );
}

/** The fields that change, if both states are known; otherwise the object as it is. */
function Change({ effects }: { readonly effects: ApprovalRequest['effects'] }) {
  const { before, after, changed } = effects;
  if (!before && !after) return changed.length === 0 ? null : <p>It changes: {changed.join(', ')}.</p>;
  if (before && after) {
    const differences = differencesBetween(before, after);
    const others = unseenChanges(changed, differences);
    if (differences.length + others.length === 0) return <p data-quiet>No visible field changes.</p>;
    return (
      <>
        {differences.length > 0 && (
          <div key="seen">
            <h3>Before and after</h3>
            <Rows caption="What changes" columns={changeColumns} items={differences} keyOf={({ field }) => field} />
          </div>
        )}
        {others.length > 0 && <p key="others">It changes, without a value to show: {others.join(', ')}.</p>}
      </>
    );
  }
  return (
    <details>
      <summary>{before ? 'The object at the time of the request' : 'The object as it would be'}</summary>
      <Json value={before ?? after} />
    </details>
  );
}

const changeColumns: readonly Column<Difference>[] = [
  { title: 'Field', kind: 'name', cell: ({ field }) => <code data-any>{field}</code> },
  { title: 'Before', cell: ({ before }) => <Value of={before} /> },
  { title: 'After', cell: ({ after }) => <Value of={after} /> },
];

interface VouchedShown {
  readonly of: NonNullable<ApprovalRequest['effects']['vouched']>;
  /** Undefined if these are all. */
  readonly count: number | undefined;
}

function Vouched({ of, count = of.length }: VouchedShown) {
  return (
    <>
      <h3>Users whom the rule would vouch for</h3>
      <ul data-plain data-dense>
        {of.map((person) => (
          <li key={person.id}>
            <Person of={person} />
            {person.reached && (
              <span data-tag data-tone="warn">
                the requester could have had access
              </span>
            )}
          </li>
        ))}
        {count > of.length && <li key="more">and {count - of.length} more</li>}
      </ul>
    </>
  );
}

type Dependent = NonNullable<ApprovalRequest['effects']['dependents']>[number];

const dependentColumns: readonly Column<Dependent>[] = [
  { title: 'Who', kind: 'name', cell: ({ by }) => <Person of={by} /> },
  { title: 'For', cell: ({ operation }) => operationText(operation) },
  { title: 'Last', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
  { title: 'Times', kind: 'number', cell: ({ uses }) => countText(uses) },
];

function Dependents({ of }: { readonly of: readonly Dependent[] }) {
  const callers = new Set(of.map(({ by }) => by.id)).size;
  return (
    <>
      <h3>Who depends on it</h3>
      {of.length === 0 ? (
        <p key="none">Nobody used it in the last 30 days.</p>
      ) : (
        <div key="some">
          <p data-note data-tone="warn">
            {countedText(callers, 'caller')} used it in the last 30 days.
          </p>
          <Rows
            caption="Who depends on it"
            columns={dependentColumns}
            items={of}
            keyOf={({ by, operation }) => `${by.id} ${operation}`}
          />
        </div>
      )}
    </>
  );
}
