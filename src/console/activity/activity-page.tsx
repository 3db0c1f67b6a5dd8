// ActivityPage shows the activity log: searched by filters that are kept in the page's address, or followed live.
import { useActorNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Field, Select, TextArea } from '../parts/fields.tsx';
import { Failed, Loading } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { BadFilters, SearchForm } from '../parts/search.tsx';
import { shownTime } from '../parts/search-fields.ts';
import { useList } from '../parts/state.ts';
import {
  type ActivityFilters,
  actionNames,
  activityFields,
  type FilterFields,
  type Following,
  mostRows,
  type Names,
  pollEvery,
  shownFilters,
  useTail,
} from './records.ts';
import { Export, Records, Timeline } from './timeline.tsx';

/**
 * View options in the address besides the filters: whether the log is followed, and whether it includes reads, and the
 * reader's own reads of it.
 */
interface View {
  readonly isLive: boolean;
  readonly showsReads: boolean;
  readonly showsOwn: boolean;
}

export function ActivityPage({ api, session, keeper, navigate, query }: PageProps) {
  const fields = activityFields.fromQuery(query);
  const view: View = {
    isLive: query.get('live') === 'yes',
    showsReads: query.get('reads') === 'yes',
    showsOwn: query.get('own') === 'yes',
  };
  const { isLive, showsOwn } = view;
  const result = activityFields.filters(fields);
  const to = (next: FilterFields, { isLive, showsReads, showsOwn }: View): string =>
    hrefTo(
      'activity',
      {},
      {
        ...activityFields.toQuery(next),
        ...(isLive && { live: 'yes' }),
        ...(showsReads && { reads: 'yes' }),
        ...(showsOwn && { own: 'yes' }),
      },
    );
  const names = useActorNames();
  const ownId = session.user?.id;
  return (
    <>
      <PageHeader
        title="Activity"
        lead="Who asked this service for what, and whether it was allowed. Times are in your time zone."
        actions={
          <button
            type="button"
            data-kind={isLive ? undefined : 'quiet'}
            aria-pressed={isLive ? 'true' : 'false'}
            onClick={() => navigate(to(fields, { ...view, isLive: !isLive }), 'replace')}
          >
            {isLive ? 'Stop following' : 'Follow live'}
          </button>
        }
      />
      <QuickSearches
        query={query}
        to={(next) => to({ ...activityFields.empty, ...next }, view)}
        reads={{
          areShown: view.showsReads,
          onClick: () => navigate(to(fields, { ...view, showsReads: !view.showsReads }), 'replace'),
        }}
      />
      <FilterForm
        fields={fields}
        onSearch={(next) => navigate(to({ ...next, keyid: idOf(next.keyid, names) }, view))}
        names={names}
        clearHref={to(activityFields.empty, view)}
      />
      {ownId !== undefined && (
        <label data-inline>
          <input
            type="checkbox"
            checked={showsOwn}
            onChange={() => navigate(to(fields, { ...view, showsOwn: !showsOwn }), 'replace')}
          />{' '}
          Include my own reading of this log
        </label>
      )}
      {'problems' in result ? (
        <BadFilters key="bad" problems={result.problems} />
      ) : isLive ? (
        <ActivityFollowed key="live" {...{ api, names }} filters={shownFilters(result.filters, ownId, view)} />
      ) : (
        <Found key="found" {...{ api, names, keeper }} filters={shownFilters(result.filters, ownId, view)} />
      )}
    </>
  );
}

interface FoundProps {
  readonly api: PageProps['api'];
  readonly filters: ActivityFilters;
  readonly names: Names;
}

function Found({ api, filters, names, keeper }: FoundProps & Pick<PageProps, 'keeper'>) {
  const about = JSON.stringify(filters);
  const list = useList((page, signal) => api.searchActivity({ ...filters, ...page }, { signal }), [about], {
    keep: { session: keeper, as: `activity ${about}` },
  });
  return <Records list={list} names={names} empty="Nothing in the log matches these filters." />;
}

const quickSearches: readonly (readonly [title: string, fields: Partial<FilterFields>])[] = [
  ['What was done', {}],
  ['Denied', { valid: 'false' }],
  ['Logins', { action: 'session.create' }],
  ['Flags granted', { granted: 'any' }],
  ['Flags revoked', { revoked: 'any' }],
  ['Deleted', { action: '*.delete' }],
  ['Decrypts', { action: 'keyring.decrypt' }],
  ['The appliance', { action: 'system.*' }],
];

interface QuickSearchesProps {
  readonly query: URLSearchParams;
  readonly to: (fields: Partial<FilterFields>) => string;
  readonly reads: { readonly areShown: boolean; readonly onClick: () => void };
}

/** Links to the most common searches, and the switch for reads. */
function QuickSearches({ query, to, reads }: QuickSearchesProps) {
  const here = JSON.stringify(activityFields.toQuery(activityFields.fromQuery(query)));
  return (
    <ul aria-label="Searches" data-quick>
      {quickSearches.map(([title, fields]) => (
        <li key={title}>
          <a href={to(fields)} aria-current={JSON.stringify(fields) === here ? 'true' : undefined}>
            {title}
          </a>
        </li>
      ))}
      <li key="reads">
        <button
          type="button"
          data-kind="quiet"
          aria-pressed={reads.areShown ? 'true' : 'false'}
          onClick={reads.onClick}
        >
          Reads too
        </button>
      </li>
    </ul>
  );
}

interface FilterFormProps {
  readonly fields: FilterFields;
  /** Called with valid fields only. */
  readonly onSearch: (fields: FilterFields) => void;
  readonly clearHref: string;
  readonly names: Names;
}

/** The id of the user or API key with that name; any other text unchanged. */
function idOf(text: string, names: Names): string {
  const wanted = text.trim().toLowerCase();
  return [...names].find(([, name]) => name.toLowerCase() === wanted)?.[0] ?? text;
}

function FilterForm({ fields, onSearch, clearHref, names }: FilterFormProps) {
  const { accountUid, accountId, keyid, props, address, object, granted, revoked } = fields;
  const hasMore = [accountUid, accountId, keyid, props, address, object, granted, revoked].some((each) => each !== '');
  return (
    <SearchForm search={activityFields} onSearch={onSearch} clearHref={clearHref}>
      <div data-columns>
        <Field name="action" label="Action" value={fields.action} proposals={actionNames} />
        <Field name="ring" label="Keyring" value={fields.ring} />
        <Select name="valid" label="Verdict" value={fields.valid} options={verdicts} />
        <Field name="start" label="From" type="datetime-local" value={shownTime(fields.start)} />
        <Field name="end" label="Until" type="datetime-local" value={shownTime(fields.end)} />
      </div>
      <details open={hasMore || undefined}>
        <summary>More filters</summary>
        <div data-columns>
          <Field
            name="keyid"
            label="By"
            value={keyid}
            hint="The name or id of a user or an API key."
            proposals={[...new Set(names.values())]}
          />
          <Field
            name="object"
            label="Object"
            value={object}
            hint="The id or name of the user, key, keyring, … that it was done to."
          />
          <Field
            name="address"
            label="From address"
            value={address}
            hint="An address, or a block such as 203.0.113.0/24."
          />
          <Field name="granted" label="Flags granted" value={granted} hint="A flag, or: any." />
          <Field name="revoked" label="Flags revoked" value={revoked} hint="A flag, or: any." />
          <Field name="accountUid" label="Account UID" value={accountUid} />
          <Field name="accountId" label="Account id" value={accountId} />
        </div>
        <TextArea
          name="props"
          label="Properties"
          value={props}
          isCode
          hint='A JSON object that the record must contain, such as {"order": 17}.'
        />
      </details>
    </SearchForm>
  );
}

const verdicts = [
  ['', 'Granted or denied'],
  ['true', 'Granted'],
  ['false', 'Denied'],
] as const;

/** The log as it grows: the newest records on top, up to a maximum number. */
function ActivityFollowed({ api, filters, names }: FoundProps) {
  const following = useTail({ api, filters });
  const { records } = following;
  return (
    <section aria-label="Live" data-live>
      <div data-bar>
        <p role="status" data-following={following.is}>
          {stateText(following)}
        </p>
      </div>
      <p key="recorded" data-quiet>
        As long as you follow it and see this page, it looks every {pollEvery / 1000} seconds, and each look is a record
        of its own, <code>activity.read</code>.
      </p>
      {following.is === 'starting' && <Loading key="loading" />}
      {following.is === 'failed' && <Failed key="failed" error={following.error} />}
      {following.isGapped && (
        <p key="gap" data-note data-tone="warn">
          More records arrived at once than fit here. Search to see the rest.
        </p>
      )}
      {records.length > 0 && (
        <div key="rows">
          <Export records={records} names={names} />
          <Timeline title="Activity, newest first" records={records} names={names} />
        </div>
      )}
      {records.length === 0 && following.is !== 'starting' && (
        <p key="empty" data-empty>
          Nothing yet. New activity appears here.
        </p>
      )}
    </section>
  );
}

function stateText({ is }: Following): string {
  switch (is) {
    case 'starting':
      return 'Looking for the newest records.';
    case 'following':
      return `Following. This page keeps the newest ${mostRows} records.`;
    case 'paused':
      return 'Paused while this page is hidden.';
    case 'failed':
      return 'Interrupted; trying again in a moment.';
  }
}
