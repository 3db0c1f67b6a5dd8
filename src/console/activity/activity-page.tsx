// ActivityPage is the activity log: searched by all that it can be searched by, in the page's address, and followed
// live.
import { useActorNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Field, Select, TextArea } from '../parts/fields.tsx';
import { Failed, Loading } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { BadFilters, SearchForm } from '../parts/search.tsx';
import { shownTime } from '../parts/search-fields.ts';
import { useList } from '../parts/state.ts';
import { DataTable, Rows } from '../parts/table.tsx';
import { activityColumns } from './record-parts.tsx';
import {
  type ActivityFilters,
  actionNames,
  activityFields,
  type FilterFields,
  type Following,
  mostRows,
  useTail,
  withoutOwn,
} from './records.ts';

/** Beside the filters, in the address: whether the log is followed, and with one's own reading of it. */
interface View {
  readonly isLive: boolean;
  readonly showsOwn: boolean;
}

export function ActivityPage({ api, session, navigate, query }: PageProps) {
  const fields = activityFields.fromQuery(query);
  const view: View = { isLive: query.get('live') === 'yes', showsOwn: query.get('own') === 'yes' };
  const { isLive, showsOwn } = view;
  const result = activityFields.filters(fields);
  const to = (next: FilterFields, { isLive, showsOwn }: View): string =>
    hrefTo(
      'activity',
      {},
      {
        ...activityFields.toQuery(next),
        ...(isLive && { live: 'yes' }),
        ...(showsOwn && { own: 'yes' }),
      },
    );
  const names = useActorNames(api);
  const ownId = session.user?.id;
  return (
    <>
      <PageHeader
        title="Activity"
        lead="What was asked of this service, by whom, and whether it was allowed. All times are in UTC."
        actions={
          <button
            type="button"
            data-kind={isLive ? undefined : 'quiet'}
            aria-pressed={isLive ? 'true' : 'false'}
            onClick={() => navigate(to(fields, { isLive: !isLive, showsOwn }), 'replace')}
          >
            {isLive ? 'Stop following' : 'Follow live'}
          </button>
        }
      />
      <FilterForm
        fields={fields}
        onSearch={(next) => navigate(to(next, view))}
        clearHref={to(activityFields.empty, view)}
      />
      {ownId !== undefined && (
        <label data-inline>
          <input
            type="checkbox"
            checked={showsOwn}
            onChange={() => navigate(to(fields, { isLive, showsOwn: !showsOwn }), 'replace')}
          />{' '}
          Show my own reading of the log too
        </label>
      )}
      {'problems' in result ? (
        <BadFilters key="bad" problems={result.problems} />
      ) : isLive ? (
        <ActivityFollowed key="live" {...{ api, names }} filters={withoutOwn(result.filters, ownId, showsOwn)} />
      ) : (
        <Found key="found" {...{ api, names }} filters={withoutOwn(result.filters, ownId, showsOwn)} />
      )}
    </>
  );
}

interface FoundProps {
  readonly api: PageProps['api'];
  readonly filters: ActivityFilters;
  readonly names: ReadonlyMap<string, string>;
}

function Found({ api, filters, names }: FoundProps) {
  const list = useList(
    (page, signal) => api.searchActivity({ ...filters, ...page }, { signal }),
    [JSON.stringify(filters)],
  );
  return (
    <DataTable
      caption="Activity, the newest first"
      columns={activityColumns(names)}
      list={list}
      keyOf={({ id }) => id}
      empty={<p>Nothing in the log matches these filters.</p>}
    />
  );
}

interface FilterFormProps {
  readonly fields: FilterFields;
  /** With fields that make sense. */
  readonly onSearch: (fields: FilterFields) => void;
  readonly clearHref: string;
}

function FilterForm({ fields, onSearch, clearHref }: FilterFormProps) {
  const { accountUid, accountId, keyid, props, address, object, granted, revoked } = fields;
  const hasMore = [accountUid, accountId, keyid, props, address, object, granted, revoked].some((each) => each !== '');
  return (
    <SearchForm search={activityFields} onSearch={onSearch} clearHref={clearHref}>
      <div data-columns>
        <Field name="action" label="Action" value={fields.action} proposals={actionNames} />
        <Field name="ring" label="Ring" value={fields.ring} />
        <Select name="valid" label="Verdict" value={fields.valid} options={verdicts} />
        <Field name="start" label="From, in UTC" type="datetime-local" value={shownTime(fields.start)} />
        <Field name="end" label="Until, in UTC" type="datetime-local" value={shownTime(fields.end)} />
      </div>
      <details open={hasMore || undefined}>
        <summary>More filters</summary>
        <div data-columns>
          <Field name="keyid" label="By" value={keyid} hint="The id of an API key, or of a user who was logged in." />
          <Field name="object" label="To what" value={object} hint="The id or the name of a user, a key, a ring, …" />
          <Field name="address" label="From" value={address} hint="An address, or a block such as 203.0.113.0/24." />
          <Field name="granted" label="Flags granted" value={granted} hint="A flag, or: any." />
          <Field name="revoked" label="Flags revoked" value={revoked} hint="A flag, or: any." />
          <Field name="accountUid" label="Account, by its UID" value={accountUid} />
          <Field name="accountId" label="Account, by its id" value={accountId} />
        </div>
        <TextArea
          name="props"
          label="Properties"
          value={props}
          isCode
          hint='A JSON object that the record has to contain, such as {"order": 17}.'
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

/** The log as it grows: the newest records on top, a bounded number of them. */
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
      {following.is === 'starting' && <Loading key="loading" />}
      {following.is === 'failed' && <Failed key="failed" error={following.error} />}
      {following.isGapped && (
        <p key="gap" data-note data-tone="warn">
          More came at once than is shown here: search for what is missing.
        </p>
      )}
      {records.length > 0 && (
        <Rows
          key="rows"
          caption="Activity, the newest first"
          columns={activityColumns(names)}
          items={records}
          keyOf={({ id }) => id}
        />
      )}
      {records.length === 0 && following.is !== 'starting' && (
        <p key="empty" data-empty>
          Nothing yet. What happens from now on appears here.
        </p>
      )}
    </section>
  );
}

function stateText({ is }: Following): string {
  switch (is) {
    case 'starting':
      return 'Looking for the newest.';
    case 'following':
      return `Following. The newest ${mostRows} records are kept here.`;
    case 'paused':
      return 'Paused while this page is hidden.';
    case 'failed':
      return 'Interrupted; trying again in a moment.';
  }
}
