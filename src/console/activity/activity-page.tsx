// ActivityPage is the activity log: searched by all that it can be searched by, in the page's address, and followed
// live. ActivityRecordPage is one record of it, with all that it says.
import type { Client } from '../../client/client.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Field, Select, TextArea } from '../parts/fields.tsx';
import { Failed, Loaded, Loading } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { BadFilters, SearchForm } from '../parts/search.tsx';
import { shownTime } from '../parts/search-fields.ts';
import { useAnswer, useList, useState } from '../parts/state.ts';
import { type Column, DataTable, Rows } from '../parts/table.tsx';
import { Facts, Json, Time } from '../parts/values.tsx';
import { shortId } from '../text.ts';
import {
  type ActivityFilters,
  type ActivityRecord,
  actionNames,
  activityFields,
  type FilterFields,
  type Following,
  mostRows,
  useTail,
} from './records.ts';

export function ActivityPage({ api, session, navigate, query }: PageProps) {
  const fields = activityFields.fromQuery(query);
  const isLive = query.get('live') === 'yes';
  const result = activityFields.filters(fields);
  const to = (next: FilterFields, live: boolean): string => {
    const values = activityFields.toQuery(next);
    return hrefTo('activity', {}, live ? { ...values, live: 'yes' } : values);
  };
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
            onClick={() => navigate(to(fields, !isLive), 'replace')}
          >
            {isLive ? 'Stop following' : 'Follow live'}
          </button>
        }
      />
      <FilterForm
        fields={fields}
        onSearch={(next) => navigate(to(next, isLive))}
        clearHref={to(activityFields.empty, isLive)}
      />
      {'problems' in result ? (
        <BadFilters key="bad" problems={result.problems} />
      ) : isLive ? (
        <ActivityFollowed key="live" api={api} filters={result.filters} ownId={session.user?.id} />
      ) : (
        <Found key="found" api={api} filters={result.filters} />
      )}
    </>
  );
}

interface FoundProps {
  readonly api: PageProps['api'];
  readonly filters: ActivityFilters;
}

function Found({ api, filters }: FoundProps) {
  const list = useList(
    (page, signal) => api.searchActivity({ ...filters, ...page }, { signal }),
    [JSON.stringify(filters)],
  );
  return (
    <DataTable
      caption="Activity, the newest first"
      columns={activityColumns}
      list={list}
      keyOf={({ id }) => id}
      empty={<p>Nothing in the log matches these filters.</p>}
    />
  );
}

const activityColumns: readonly Column<ActivityRecord>[] = [
  {
    title: 'When',
    kind: 'name',
    cell: ({ id, createdAt }) => (
      <a href={hrefTo('activityRecord', { id })}>
        <Time at={createdAt} />
      </a>
    ),
  },
  { title: 'Action', cell: ({ action }) => <code data-any>{action}</code> },
  { title: 'Ring', cell: ({ ringname }) => (ringname === '' ? <span data-quiet>none</span> : <bdi>{ringname}</bdi>) },
  { title: 'Verdict', cell: ({ validAction }) => <Verdict granted={validAction} /> },
  { title: 'Status', kind: 'number', cell: ({ status }) => String(status) },
  { title: 'By', cell: ({ keyid }) => <Actor keyid={keyid} /> },
];

function Verdict({ granted }: { readonly granted: boolean }) {
  return (
    <span data-tag data-tone={granted ? 'good' : 'bad'}>
      {granted ? 'granted' : 'denied'}
    </span>
  );
}

/** An API key, or a user who was logged in. */
function Actor({ keyid }: { readonly keyid: string }) {
  const [prefix] = keyid.split('_');
  const name = (
    <code data-whole title={keyid}>
      {`${prefix}_${shortId(keyid)}`}
    </code>
  );
  return prefix === 'apik' ? <a href={hrefTo('apikey', { id: keyid })}>{name}</a> : name;
}

interface FilterFormProps {
  readonly fields: FilterFields;
  /** With fields that make sense. */
  readonly onSearch: (fields: FilterFields) => void;
  readonly clearHref: string;
}

function FilterForm({ fields, onSearch, clearHref }: FilterFormProps) {
  const { accountUid, accountId, keyid, props } = fields;
  const hasMore = [accountUid, accountId, keyid, props].some((value) => value !== '');
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

interface ActivityFollowedProps {
  readonly api: Client;
  readonly filters: ActivityFilters;
  /**
   * Of the user who is looking: that this page asks for the log is itself in the log. Undefined where that is not
   * known.
   */
  readonly ownId: string | undefined;
}

/** The log as it grows: the newest records on top, a bounded number of them. */
function ActivityFollowed({ api, filters, ownId }: ActivityFollowedProps) {
  const [showsOwn, setShowsOwn] = useState(false);
  const following = useTail({ api, filters, without: showsOwn ? undefined : ownId });
  const { records } = following;
  return (
    <section aria-label="Live" data-live>
      <div data-bar>
        <p role="status" data-following={following.is}>
          {stateText(following)}
        </p>
        {ownId !== undefined && (
          <label data-inline>
            <input
              type="checkbox"
              checked={showsOwn}
              onChange={(event: Event) => setShowsOwn((event.target as HTMLInputElement).checked)}
            />{' '}
            Show my own reading of the log too
          </label>
        )}
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
          columns={activityColumns}
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

export function ActivityRecordPage({ api, params }: PageProps) {
  const { id = '' } = params;
  const answer = useAnswer((signal) => api.getActivity({ id }, { signal }), [id]);
  return (
    <>
      <PageHeader title="Activity record" back={{ href: hrefTo('activity'), title: 'Activity' }} />
      <Loaded of={answer} show={(record) => <Record record={record} />} />
    </>
  );
}

function Record({ record }: { readonly record: ActivityRecord }) {
  const { id, keyid, createdAt, action, ringname, validAction, status, props, reporter } = record;
  return (
    <>
      <section data-panel>
        <Facts
          facts={[
            ['Id', <code key="id">{id}</code>],
            ['When', <Time key="when" at={createdAt} />],
            ['Action', <code key="action">{action}</code>],
            ringname !== '' && [
              'Ring',
              <a key="ring" href={action.startsWith('asym.') ? hrefTo('asym') : hrefTo('keyring', { name: ringname })}>
                <bdi>{ringname}</bdi>
              </a>,
            ],
            ['Verdict', <Verdict key="verdict" granted={validAction} />],
            ['Status', `${status}: ${statusText(status)}`],
            ['By', <Actor key="by" keyid={keyid} />],
            reporter !== undefined && ['Reported by', <Actor key="reporter" keyid={reporter} />],
          ]}
        />
      </section>
      <section data-panel>
        <h2>Properties</h2>
        <Json value={props} />
      </section>
      <p>
        <a href={hrefTo('activity', {}, { keyid })}>All activity of the same credential</a>
      </p>
    </>
  );
}

function statusText(status: number): string {
  const texts: Readonly<Record<number, string>> = {
    200: 'done',
    400: 'the request made no sense',
    401: 'the credential is disabled or past its time',
    403: 'not allowed, or a limit is reached',
    404: 'no such thing',
    413: 'the request was too large',
    422: 'an asset does not verify',
    503: 'the service could not serve',
  };
  return texts[status] ?? 'the service failed';
}
