// The activity log: searched by all that it can be searched by, in the page's address, and followed live.

import { activityColumns } from '../activity/activity-columns.tsx';
import { ActivityFollowed } from '../activity/activity-followed.tsx';
import { FilterForm } from '../activity/filter-form.tsx';
import { activityFields, type FilterFields } from '../activity/filter-query.ts';
import type { ActivityFilters } from '../activity/newest.ts';
import { hrefTo } from '../address.ts';
import { BadFilters } from '../parts/bad-filters.tsx';
import { DataTable, usePages } from '../parts/data-table.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import type { RoomProps } from '../room.ts';

export function ActivityRoom({ api, session, navigate, query }: RoomProps) {
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
  readonly api: RoomProps['api'];
  readonly filters: ActivityFilters;
}

function Found({ api, filters }: FoundProps) {
  const pages = usePages(
    (page, signal) => api.searchActivity({ ...filters, ...page }, { signal }),
    [JSON.stringify(filters)],
  );
  return (
    <DataTable
      caption="Activity, the newest first"
      columns={activityColumns}
      pages={pages}
      keyOf={({ id }) => id}
      empty={<p>Nothing in the log matches these filters.</p>}
    />
  );
}
